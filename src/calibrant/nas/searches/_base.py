"""Base class of searches: so many architectures tried, each once, in an order that the seed decides."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError

STUCK = 100  # steps without anything new, after which a search continues at random
EXHAUSTED = 2000  # and after which the whole space counts as tried

Objective = Callable[[str], float]  # of an architecture; the higher the better


@dataclass(frozen=True)
class Trial:
    """An architecture that was tried, and its value."""

    arch: str
    value: float


@dataclass(frozen=True)
class Landscape:
    """A space as two functions: a random architecture, and those that differ from one in one place."""

    sample: Callable[[np.random.Generator], str]
    neighbours: Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class Search:
    """A way to choose the next architecture from those tried. An entry defines `walk`.

    Only architectures not tried before cost budget; a search that finds nothing new for long continues at random.
    """

    title: ClassVar[str]
    reference: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, landscape: Landscape, objective: Objective, *, budget: int, seed: int = 0) -> list[Trial]:
        """Run the search and return its trials: `budget` different architectures, or all of a smaller space."""
        if budget < 1:
            raise InputError("budget", expected="at least 1", got=str(budget), fix="allow more networks")
        rng = np.random.default_rng(seed)
        history = TrialHistory(objective)
        walk, idle = self.walk(landscape, history, rng), 0
        while len(history.values) < budget and idle < EXHAUSTED:
            before = len(history.values)
            if idle < STUCK:
                next(walk)
            else:
                history(landscape.sample(rng))
            idle = 0 if len(history.values) > before else idle + 1
        return [Trial(arch, value) for arch, value in history.values.items()]

    def walk(self, landscape: Landscape, history: "TrialHistory", rng: np.random.Generator) -> Iterator[None]:
        """The endless search; at most one architecture is tried before each `yield`."""
        raise TypeError(f"{type(self).__name__} does not say what it tries next: define walk")


class TrialHistory:
    """The trials of a search; an architecture is measured once."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.values = objective, dict[str, float]()

    def __call__(self, arch: str) -> float:
        if arch not in self.values:
            self.values[arch] = float(self.objective(arch))
        return self.values[arch]


def pick(of: Sequence[str], rng: np.random.Generator) -> str:
    return of[int(rng.integers(len(of)))]
