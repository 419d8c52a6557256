"""Local search: uphill, and from another place when there is no way up."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.nas.searches._base import Landscape, Search, TrialHistory


@dataclass(frozen=True)
class Local(Search):
    """From the best of a few random architectures to the first neighbour that is better, until none is; then again.

    It needs a landscape without many small hills: noise of one training makes hills.

    >>> line = Landscape(lambda rng: str(rng.integers(90)), lambda arch: [f"{float(arch) + step}" for step in (-1, 1)])
    >>> max(trial.value for trial in Local()(line, float, budget=40)) > 89
    True
    """

    starts: int = 10

    title: ClassVar[str] = "Local search"
    reference: ClassVar[str] = "White, Nolen, Savani, UAI 2021"

    def walk(self, landscape: Landscape, history: TrialHistory, rng: np.random.Generator) -> Iterator[None]:
        while True:
            starts = []
            for _ in range(max(1, self.starts)):
                starts.append(landscape.sample(rng))
                history(starts[-1])
                yield
            here: str | None = max(starts, key=history)
            while here is not None:
                now, here = here, None
                near = list(landscape.neighbours(now))
                for arch in (near[i] for i in rng.permutation(len(near))):
                    better = history(arch) > history(now)
                    yield
                    if better:
                        here = arch
                        break
