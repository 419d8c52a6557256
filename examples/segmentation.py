"""Pixels of images: logits (N, C, H, W) as a network gives them, unlabelled pixels, and intervals that know of images.

Pixels of one image are wrong together, so an interval that takes each as a row of its own is far too narrow.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
images, classes, size = 24, 5, 24
labels = rng.integers(0, classes, (images, 1, 1)) * np.ones((images, size, size), dtype=int)
logits = rng.normal(size=(images, classes, size, size)) + 2.0 * rng.normal(size=(images, classes, 1, 1))
np.put_along_axis(logits, labels[:, None], np.take_along_axis(logits, labels[:, None], 1) + 2.5, 1)
labels[:, :2] = 255  # the border is not labelled

together = cal.Predictions.from_logits(logits, labels, axis=1, ignore=255)  # pixels of one image are one cluster
apart = cal.Predictions.from_logits(
    logits, labels, axis=1, ignore=255, clusters=np.arange(labels.size).reshape(labels.shape)
)
print(together)
print("images as clusters:", cal.measure(together, "accuracy"))
print("pixels on their own:", cal.measure(apart, "accuracy"))
print(cal.measure(together, "ece"))
