"""Monitoring in production: an alarm by segment, which may be looked at after every row, in a state of fixed size."""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
watch = cal.Watch(tolerance=0.02, alpha=0.05, segments=["web", "phone"])

for day in range(10):
    confidence = rng.beta(5, 1.5, 2000)
    segment = np.where(rng.random(2000) < 0.7, "web", "phone")
    drift = 0.12 if day >= 5 else 0.0  # from the sixth day on the model is too sure of itself, on phones
    correct = rng.random(2000) < confidence - drift * (segment == "phone")
    watch.update(cal.Predictions.from_confidence(confidence, correct, groups=segment))
    print(f"day {day}: {'alarm' if watch.alarm else 'no alarm'}")
    if watch.alarm:
        break

print(watch)
