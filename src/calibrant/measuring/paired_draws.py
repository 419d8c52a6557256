"""Measures and their noise on the same rows, all in one pass: what `compare` finds, in a fraction of the time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import resample_counts
from calibrant.core.statistics.residual_noise import Spread
from calibrant.measures import ClassMeasure, make
from calibrant.measuring.compare import UNKNOWN, Comparison, Difference, compare_values, difference_of
from calibrant.measuring.confidence_limits import noise_of_labels, sampling, why_no_interval

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Draws:
    """Values of some measures, and their noise: known, or as values on resamples of the rows."""

    predictions: Predictions
    seed: int
    values: dict[str, float]
    draws: dict[str, Array]
    spreads: dict[str, Spread] = field(default_factory=dict)

    @classmethod
    def of(cls, p: Predictions, sizes: Mapping[str, int], seed: int) -> "Draws":
        """Compute each measure on its number of resamples (none for 0); all of them see the same rows."""
        measures = {name: make(name) for name in sizes}
        known = {name: m.spread(p, sampling(p, seed, paired=True)) for name, m in measures.items() if sizes[name]}
        spreads = {name: spread for name, spread in known.items() if spread is not None}
        left = {name: 0 if name in spreads else size for name, size in sizes.items()}
        blocks: dict[str, list[Array]] = {name: [] for name in sizes}
        done, most = 0, max(left.values(), default=0)
        for counts in resample_counts(p.n, most, seed, p.clusters) if most else ():
            for name, m in measures.items():
                if done < left[name]:
                    blocks[name].append(m.resample(p, counts[: left[name] - done]))
            done += len(counts)
        draws = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in blocks.items()}
        return cls(p, seed, {name: m(p) for name, m in measures.items()}, draws, spreads)

    def first(self, measures: Sequence[str], resamples: int) -> "Draws":
        """The draws of some measures on the first resamples."""
        return Draws(
            self.predictions,
            self.seed,
            {m: self.values[m] for m in measures},
            {m: self.draws[m][:resamples] for m in measures},
            {m: self.spreads[m] for m in measures if m in self.spreads},
        )


def compare_draws(a: Draws, b: Draws, p: Predictions) -> tuple[Comparison, ...]:
    """Compare b with a on the same rows, one comparison per measure."""
    rows, tail = [], (1 - CONFIDENCE) / 2
    for name, before in a.values.items():
        m, after = make(name), b.values[name]
        reason = why_no_interval(m, p)
        if reason is not None:
            difference = UNKNOWN
        elif isinstance(m, ClassMeasure) and m.by_labels(a.predictions) and m.by_labels(b.predictions):
            noise = noise_of_labels(m, a.seed, a.predictions, b.predictions)
            difference = Difference.of_labels(noise, tail)
        elif name in a.spreads and m.ideal is None:
            difference = Difference.of_spreads(a.spreads[name], b.spreads[name], tail)
        else:
            difference = difference_of(m, before, after, a.draws[name], b.draws[name], tail)
        rows.append(replace(compare_values(m, name, p, before, after, difference, CONFIDENCE), reason=reason))
    return tuple(rows)
