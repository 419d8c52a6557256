"""Questions with two to ten options: log-likelihoods of the options, -inf where a question has no such option.

With files of lm-evaluation-harness (`--log_samples`) none of this is needed: `calibrant measure samples_arc.jsonl`.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
questions, most = 1500, 10
options = rng.integers(2, most + 1, questions)
exists = np.arange(most) < options[:, None]  # (questions, most)
right = rng.integers(0, options)

logits = rng.normal(size=(questions, most))
logits[np.arange(questions), right] += 1.5
logits = np.where(exists, 3 * logits, -np.inf)  # twice as sure as it should be

p = cal.Predictions.from_logits(logits, right)
half, rest = p.split(0.5, seed=1)
temperature = cal.fit(half, "temperature")
print(p)
print(cal.measure(rest, "ece"))
print(cal.measure(temperature(rest), "ece"))
