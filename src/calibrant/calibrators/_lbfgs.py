"""L-BFGS in coordinates where the problem is well scaled, until the gradient in plain ones is small.

Written out because scipy's forgets what it knows of the curvature when it is called again: here the cheap steps in
float32 and the last ones in float64 share it.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from calibrant.calibrators._objective import Objective
from calibrant.calibrators._scaling import Scaling
from calibrant.core.arrays import Array

MEMORY, MEMORY_OF_MANY, MANY = (
    20,
    10,
    1_000_000,
)  # steps whose change of the gradient is kept; of so many numbers, fewer
TRIES = 20  # points of one line search
DECREASE, SLOPE = 1e-4, 0.9  # Wolfe's conditions: the value falls, and the slope with it


@dataclass(frozen=True, eq=False)
class Stage:
    """An objective, and the largest gradient entry at which it counts as solved."""

    objective: Objective
    enough: float
    rounding: float = 1e-15  # relative, of its values: one that rises by less may have fallen


def lbfgs(
    stages: tuple[Stage, ...], scale: Scaling, weight: Array, bias: Array, iterations: int
) -> tuple[Array, Array, int]:
    """Weight and bias after the last stage, and the number of steps."""
    x, steps, memory = np.zeros(scale.size), 0, _Memory(MEMORY if scale.size < MANY else MEMORY_OF_MANY)
    for stage in stages:
        here = _look(stage, scale, weight, bias, x)
        while here.largest >= stage.enough and steps < iterations:
            there = _search(stage, scale, weight, bias, here, memory.direction(here.gradient))
            if there is None and memory.pairs and stage is stages[-1]:  # what is known of the curvature may be wrong
                memory.pairs.clear()
                there = _search(stage, scale, weight, bias, here, memory.direction(here.gradient))
            if there is None:
                break  # rounding hides what is left to gain
            memory.add(there.x - here.x, there.gradient - here.gradient)
            here, steps = there, steps + 1
        x = here.x
    return *scale.out_of(x, weight, bias), steps


@dataclass(frozen=True, eq=False)
class _Point:
    x: Array
    value: float
    gradient: Array  # in scaled coordinates
    largest: float  # gradient entry in plain ones


def _look(stage: Stage, scale: Scaling, weight: Array, bias: Array, x: Array) -> _Point:
    value, gw, gb = stage.objective(*scale.out_of(x, weight, bias))
    return _Point(x, value, scale.into(gw, gb), float(max(np.abs(gw).max(), np.abs(gb).max())))


def _search(stage: Stage, scale: Scaling, weight: Array, bias: Array, here: _Point, direction: Array) -> _Point | None:
    """A point along the direction that keeps Wolfe's conditions, or the best of those tried; None if none is better."""
    slope = float(here.gradient @ direction)
    if not slope < 0:
        return None
    low, high, length, best = 0.0, np.inf, 1.0, None
    for _ in range(TRIES):
        there = _look(stage, scale, weight, bias, here.x + length * direction)
        if not there.value <= here.value + DECREASE * length * slope + stage.rounding * abs(here.value):
            high = length
        else:
            best = there if best is None or there.value <= best.value else best
            if float(there.gradient @ direction) >= SLOPE * slope:
                return there
            low = length
        length = 2 * length if high == np.inf else (low + high) / 2
    return best


class _Memory:
    """The last steps, the changes of the gradient along them, and the direction that follows from them."""

    def __init__(self, length: int) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=length)

    def add(self, step: Array, change: Array) -> None:
        along = float(step @ change)
        if along > 1e-10 * float(change @ change):  # rounding may bend it the wrong way
            self.pairs.append((step, change, along))

    def direction(self, gradient: Array) -> Array:
        """Minus the inverse curvature times the gradient; downhill, no longer than one, where nothing is known."""
        if not self.pairs:
            return -gradient / max(1.0, float(np.linalg.norm(gradient)))
        d, shares = -gradient, []
        for step, change, along in reversed(self.pairs):
            shares.append(float(step @ d) / along)
            d = d - shares[-1] * change
        step, change, along = self.pairs[-1]
        d = d * (along / float(change @ change))
        for (step, change, along), share in zip(self.pairs, reversed(shares), strict=True):
            d = d + (share - float(change @ d) / along) * step
        return d
