"""Two methods over several seeds: the mean difference with an interval over seeds, and the paired test of each seed.

Runs of `calibrant train` are compared by `calibrant table runs/*/test.npz --by loss`; here the predictions are made up.
"""

import numpy as np

import calibrant as cal


def trained(seed: int, sharpness: float) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 2000)
    logits = rng.normal(size=(2000, 4)) + 2.0 * np.eye(4)[labels]
    return cal.Predictions.from_logits(sharpness * logits, labels)


differences = []
for seed in range(5):
    found = cal.compare(trained(seed, 4.0), trained(seed, 3.0), "ece")
    differences.append(found.difference)
    print(f"seed {seed}: {found}")

mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
print(f"ECE of the second minus the first: {mean:+.4f} +- {2.776 * error:.4f} (95 %, t with 4 degrees of freedom)")
