"""Pairs of models on the same rows whose class-wise errors are known: equal, opposite in kind, or apart."""

from functools import cache

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measuring.compare import compare

SCALE, NOISE = 3.0, 0.7  # of true logits, and of what each model sees beside them
SHRINK = SCALE**2 / (SCALE**2 + NOISE**2)  # of such noisy logits: calibrated again, up to a factor
MANY = {2: 400_000, 5: 400_000, 20: 200_000, 100: 100_000}  # rows that stand for infinitely many, by classes


def pair(k, n, seed, factor_a, factor_b):
    """Two models of the same rows whose logits are too large by a factor."""
    rng = np.random.default_rng(seed)
    z = SCALE * rng.normal(size=(n, k))
    a, b = (SHRINK * (z + NOISE * rng.normal(size=z.shape)) for _ in range(2))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return Predictions.from_logits(factor_a * a, labels), Predictions.from_logits(factor_b * b, labels)


@cache
def error(k, factor):
    return make("classwise")(pair(k, MANY[k], 10**6, factor, factor)[0])


@cache
def opposite(k, factor=1.5):
    """A factor below 1 whose class-wise error is that of a factor above 1."""
    factors = np.linspace(0.5, 0.8, 7)
    return float(np.interp(-error(k, factor), [-error(k, f) for f in factors], factors))


def shares(k, n, factor_a, factor_b, seeds):
    """How often `compare` finds a difference at 5 %, and how often its interval holds the true one."""
    true = error(k, factor_b) - error(k, factor_a) if factor_a != factor_b else 0.0
    compared = [compare(*pair(k, n, seed, factor_a, factor_b), "classwise", seed=seed) for seed in seeds]
    return np.mean([c.p_value < 0.05 for c in compared]), np.mean([c.low <= true <= c.high for c in compared])
