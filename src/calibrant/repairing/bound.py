"""Keep a fitted map from saying 0 or 1 where n rows cannot support it."""

from dataclasses import replace

import numpy as np

from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves, Mix, Step
from calibrant.core.parallel import pieces
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import KEEP_ELEMENTS

SURER = 1e-9  # less than this is rounding


def clip_to_laplace(m: Map, p: Predictions) -> Map:
    """Keep scores of a map from 0 and 1 by 1 / (n + 2) where only the n rows it was fitted on take them there.

    After n rows of one outcome the next may still be the other: Laplace's rule of succession gives it 1 / (n + 2).
    Values of curves (isotonic regression, bins) are clipped to this range. A fit without an optimum (no row
    contradicts it, so that sharper is always better) is mixed with 2 / (n + 2) of the uniform distribution. Any other
    map that makes rows surer than they were ends in a curve that changes scores within 2 / (n + 2) of 0 and 1 only,
    halves their distance from there, and so keeps their order. A map that makes no row surer, as a temperature above
    1, is not changed: how sure it is the network says, not these rows. A bounded map has `parameters["bound"]`.
    """
    least = 1 / (max(p.n_effective, 3) + 2)  # of fewer rows the two ends would meet
    steps = tuple(_clip(step, least) for step in m.steps)
    if not m.fit.converged:
        steps = (*steps, Mix(T=1.0, weights=np.array([0.0, 1 - 2 * least, 2 * least])))
    elif steps and not isinstance(steps[-1], Curves) and _makes_surer(m, p):
        steps = (*steps, _squeeze(least))
    changed = len(steps) > len(m.steps) or any(new is not old for new, old in zip(steps, m.steps, strict=True))
    if not changed:
        return m
    return replace(m, steps=steps, parameters=m.parameters | {"bound": least})


def _makes_surer(m: Map, p: Predictions) -> bool:
    """Whether the map raises the confidence of any row; some rows at a time, until one is found."""
    return any(
        (m.apply(p.take(np.arange(p.n)[rows])).confidence > p.confidence[rows] + SURER).any()
        for rows in pieces(p.n, max(1, KEEP_ELEMENTS // p.k))
    )


def _clip(step: Step, least: float) -> Step:
    if not isinstance(step, Curves) or all(((y >= least) & (y <= 1 - least)).all() for y in step.y):
        return step
    return replace(step, y=[np.clip(y, least, 1 - least) for y in step.y])


def _squeeze(least: float) -> Curves:
    """A step from scores in 0 to 1 into `least` to 1 - `least`; those 2 `least` away from both ends stay."""
    x, y = np.array([0, 2 * least, 1 - 2 * least, 1]), np.array([least, 2 * least, 1 - 2 * least, 1 - least])
    return Curves([x], [y], form="line", scope="top")
