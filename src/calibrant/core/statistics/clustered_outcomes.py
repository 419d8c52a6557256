"""Outcomes of calibrated scores, drawn again for rows that come in clusters and so share part of their noise.

Each row keeps its own probability. How far the rows of a cluster agree beyond that is one number, the correlation of
normal numbers behind the outcomes. It is estimated from the residuals, and taken larger than estimated: a test that
thinks rows more independent than they are rejects too often.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Integers

GRID = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.97, 1.0])  # correlations that are tried
TRIES = 30  # sets of outcomes at each of them
MARGIN = 1.5  # standard deviations by which the agreement of residuals is raised before it is compared
BATCH_ELEMENTS = 1 << 22


@dataclass(frozen=True, eq=False)
class ClusteredOutcomes:
    """Scores with their clusters (0, 1, ...) and weights, and the correlation that outcomes are drawn with."""

    scores: Array  # (n,)
    clusters: Integers  # (n,)
    correlation: float

    @classmethod
    def estimate(
        cls, scores: Array, outcomes: Array, clusters: Integers, weights: Array, rng: np.random.Generator
    ) -> "ClusteredOutcomes":
        """The correlation at which drawn residuals agree within clusters as much as the observed ones, and a margin."""
        unit = weights / np.sqrt(np.maximum(scores * (1 - scores), 1e-12))

        def agreement(samples: Array) -> Array:
            """Sum of the products of all pairs of residuals within clusters, of each row of outcomes (b, n)."""
            residuals = (samples - scores) * unit
            sums = np.stack([np.bincount(clusters, row_residuals) for row_residuals in residuals])
            return np.asarray((sums**2).sum(axis=1) - (residuals**2).sum(axis=1))

        agreements = [agreement(cls(scores, clusters, c)._draw(TRIES, rng)) for c in GRID.tolist()]
        mean = np.maximum.accumulate([values.mean() for values in agreements])
        spread = np.maximum.accumulate([values.std(ddof=1) for values in agreements])
        observed = float(agreement(outcomes[None])[0])
        margin = MARGIN * float(np.interp(observed, mean, spread))
        return cls(scores, clusters, float(np.interp(observed + margin, mean, GRID)))

    def draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        """Outcomes of calibrated scores, one set at a time, (n,)."""
        batch = max(1, BATCH_ELEMENTS // len(self.scores))
        for start in range(0, count, batch):
            yield from self._draw(min(batch, count - start), rng)

    def _draw(self, count: int, rng: np.random.Generator) -> Array:
        from scipy.special import ndtri

        shared = rng.standard_normal((count, int(self.clusters.max()) + 1))[:, self.clusters]
        own = rng.standard_normal((count, len(self.scores)))
        noise = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
        return np.asarray(noise < ndtri(self.scores), dtype=np.float64)
