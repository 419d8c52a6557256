"""Isotonic regression of outcomes on scores, ties pooled first."""

import numpy as np

from calibrant.core.arrays import Array


def fit_isotonic(scores: Array, outcomes: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Knots (x, y) of the non-decreasing fit: interpolate linearly between them, constant outside.

    >>> x, y = fit_isotonic(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]))
    >>> x, y
    (array([0.1, 0.4, 0.9]), array([0. , 0.5, 1. ]))
    """
    from scipy.optimize import isotonic_regression

    x, group = np.unique(scores, return_inverse=True)
    w = np.ones(len(scores)) if weights is None else weights
    size = np.bincount(group, w)
    has_weight = size > 0  # rows of weight 0 teach nothing
    fit = isotonic_regression(np.bincount(group, w * outcomes)[has_weight] / size[has_weight], weights=size[has_weight])
    return x[has_weight], np.asarray(fit.x)
