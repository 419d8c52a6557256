"""The rows of docs/methods/vectors.md#clinical-measures."""

import numpy as np

import calibrant as cal

N = 200
_index = np.arange(1, N + 1)
SCORES = (_index - 0.5) / N
OUTCOMES = (np.mod(0.6180339887498949 * _index, 1) < SCORES**1.4).astype(int)


def clinical_rows(**options):
    return cal.Predictions.binary(SCORES, OUTCOMES, **options)
