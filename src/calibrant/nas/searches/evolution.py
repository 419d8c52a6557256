"""Regularised evolution: the oldest dies, whatever it was worth."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.nas.searches._base import Landscape, Search, TrialHistory, pick


@dataclass(frozen=True)
class Evolution(Search):
    """A population in which the best of a random few has a child that differs in one place.

    Small budgets need small populations: the first `population` architectures are drawn at random.

    >>> line = Landscape(lambda rng: str(rng.integers(90)), lambda arch: [f"{float(arch) + step}" for step in (-1, 1)])
    >>> max(trial.value for trial in Evolution()(line, float, budget=40)) > 89
    True
    """

    population: int = 10
    sample: int = 4  # candidates for parent

    title: ClassVar[str] = "Regularised evolution"
    reference: ClassVar[str] = "Real, Aggarwal, Huang, Le, AAAI 2019"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("population", "sample"):
            if getattr(self, name) < 1:
                raise InputError(name, expected="at least 1", got=str(getattr(self, name)), fix="give a larger one")

    def walk(self, landscape: Landscape, history: TrialHistory, rng: np.random.Generator) -> Iterator[None]:
        living: deque[str] = deque(maxlen=self.population)
        while len(living) < self.population:
            living.append(landscape.sample(rng))
            history(living[-1])
            yield
        while True:
            parents = [pick(living, rng) for _ in range(self.sample)]
            near = landscape.neighbours(max(parents, key=history))
            living.append(pick(near, rng) if near else landscape.sample(rng))
            history(living[-1])
            yield
