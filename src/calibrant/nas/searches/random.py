"""Random search: the yardstick of all others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.nas.searches._base import Landscape, Search, TrialHistory


@dataclass(frozen=True)
class Random(Search):
    """Architectures drawn at random, without repetition. A search that does not beat it is not worth its code.

    >>> line = Landscape(lambda rng: str(rng.integers(5)), lambda arch: [])
    >>> [trial.value for trial in Random()(line, float, budget=5)]
    [4.0, 3.0, 2.0, 1.0, 0.0]
    """

    title: ClassVar[str] = "Random search"
    reference: ClassVar[str] = "Li, Talwalkar, UAI 2019"

    def walk(self, landscape: Landscape, history: TrialHistory, rng: np.random.Generator) -> Iterator[None]:
        while True:
            history(landscape.sample(rng))
            yield
