"""Measures on resamples, all in one pass: what `measure` and `compare` find, in a fraction of the time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.intervals import basic_interval, p_value, resample_counts
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measures._compare import Comparison, _better

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Draws:
    """Values of some measures, and the same on resamples of the rows."""

    values: dict[str, float]
    draws: dict[str, Array]

    @classmethod
    def of(cls, p: Predictions, sizes: Mapping[str, int], seed: int) -> "Draws":
        """Each measure on its number of resamples; all of them see the same rows."""
        made = {name: make(name) for name in sizes}
        found: dict[str, list[Array]] = {name: [] for name in sizes}
        done, most = 0, max(sizes.values(), default=0)
        for counts in resample_counts(p.n, most, seed) if most else ():
            for name, m in made.items():
                if done < sizes[name]:
                    found[name].append(m.resampled(p, counts[: sizes[name] - done]))
            done += len(counts)
        drawn = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in found.items()}
        return cls({name: m(p) for name, m in made.items()}, drawn)

    def first(self, measures: Sequence[str], resamples: int) -> "Draws":
        """Some measures on the first resamples."""
        return Draws({m: self.values[m] for m in measures}, {m: self.draws[m][:resamples] for m in measures})


def compared(a: Draws, b: Draws, p: Predictions) -> tuple[Comparison, ...]:
    """b against a on the same rows, one comparison a measure."""
    rows = []
    for name, before in a.values.items():
        chosen, after = make(name), b.values[name]
        difference, drawn = after - before, b.draws[name] - a.draws[name]
        span = basic_interval(difference, drawn, CONFIDENCE)
        chance = p_value(difference, drawn) if np.isfinite(difference) else np.nan
        better = _better(chosen, before, after) if chance < 1 - CONFIDENCE else "neither"
        numbers = (before, after, difference, span.low, span.high, chance)
        rows.append(Comparison(name, *numbers, better, p.n, p.k, chosen.definition))
    return tuple(rows)
