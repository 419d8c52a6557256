"""Estimates of several measures on rows that several models share: what `compare` finds, in a fraction of the time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import make
from calibrant.measuring.compare import Comparison, compare_estimates
from calibrant.measuring.estimating import difference


@dataclass(frozen=True, eq=False)
class SharedEstimates:
    """Estimates of some measures of one model, made to be subtracted from those of another on the same rows."""

    predictions: Predictions
    rows: Sampling
    estimates: Mapping[str, Estimate]

    @classmethod
    def of(cls, p: Predictions, measures: Sequence[str], resamples: int, seed: int) -> "SharedEstimates":
        """Estimate each measure by that many resamples, where it needs any; all of them see the same."""
        rows = Sampling.of(p, seed=seed, resamples=resamples, paired=True, subtracted=True)
        return cls(p, rows, {name: make(name).estimate(p, rows) for name in measures})

    def compare(self, other: "SharedEstimates", name: str) -> Comparison:
        """Compare a measure of the other model with that of this one."""
        m = make(name)
        a, b = (replace(model.rows, known={m: model.estimates[name]}) for model in (self, other))
        e = difference(m, self.predictions, other.predictions, (a, b))
        return compare_estimates(m, name, self.predictions, e)
