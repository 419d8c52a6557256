"""Temperature scaling by a grid search on the ECE."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._base import EVERY_TASK, Calibrator, build_scaling
from calibrant.core.arrays import Array
from calibrant.core.curves.binning import Binning
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.parallel import one_blas_thread, pieces, run_pieces
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import CHUNK_ELEMENTS
from calibrant.core.predictions.row_data import Task

FINALISTS, CLOSE = 100, 2e-4  # best temperatures of the float32 scan, and how close to the best, computed in float64


@dataclass(frozen=True)
class TemperatureECE(Calibrator):
    """The temperature of a grid with the smallest ECE on the calibration rows; of equals, the one nearest 1.

    The ECE is noisy and not a proper score, so this fits noise: it is often worse on new rows than `temperature`.

    >>> p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])  # right 3 times in 4: 2 / T = ln 3
    >>> round(TemperatureECE().fit(p).parameters["T"], 3)
    1.82
    """

    low: float = 0.001
    high: float = 5.0
    step: float = 0.001
    bins: int = 15

    title: ClassVar[str] = "Temperature scaling by ECE grid"
    reference: ClassVar[str] = "Mukhoti et al., NeurIPS 2020; Tang, Chen, Ho, TMLR 2024"
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    holds_temperature: ClassVar[bool] = True
    picks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.low <= self.high and self.step > 0 and self.bins >= 1):
            raise InputError(
                "grid",
                expected="0 < low <= high, step > 0 and at least one bin",
                got=f"low {self.low:g}, high {self.high:g}, step {self.step:g}, bins {self.bins}",
                fix="T = 0 divides by zero: start above it",
            )

    def fit(self, p: Predictions) -> Map:
        count = int(np.floor((self.high - self.low) / self.step + 1e-9)) + 1
        grid = np.asarray(self.low + self.step * np.arange(count), dtype=np.float64)
        rough = self._scan(p, grid)
        near = np.argsort(rough, kind="stable")[:FINALISTS]
        finalists = grid[np.sort(near[rough[near] <= rough[near[0]] + CLOSE + 2 / p.n_effective])]
        exact = np.array([p.with_temperature(T).curve.bins(Binning(self.bins)).ece for T in finalists])
        best = finalists[exact <= exact.min() + 1e-12]
        T = float(best[np.argmin(np.abs(best - 1))])
        return self.build_map(p, build_scaling(T), T=T, ece=float(exact.min()))

    def _scan(self, p: Predictions, grid: Array) -> Array:
        """The ECE at every temperature, in float32 and without sorting; all temperatures for a chunk of rows."""
        sums = np.zeros((len(grid), self.bins))
        chunk = max(1, CHUNK_ELEMENTS // p.k)
        one_score = p.task in ("binary", "confidence")  # of class 1, whether or not it is the larger
        share = np.full(p.n, 1 / p.n) if p.weights is None else p.weights / p.weights.sum()
        blocks = [(p.logits[r].astype(np.float32), p.outcome[r], share[r]) for r in pieces(p.n, chunk)]
        blocks = [(z - z.max(axis=1, keepdims=True), outcome, w) for z, outcome, w in blocks]

        def work(part: slice) -> None:
            for z, outcome, w in blocks:
                e, ones = np.empty_like(z), np.ones(p.k, dtype=np.float32)
                for t in range(part.start, part.stop):
                    np.multiply(z, np.float32(1 / grid[t]), out=e)
                    total = np.exp(e, out=e) @ ones
                    score = e[:, 1] / total if one_score else 1 / total
                    bin_of = np.clip(np.ceil(score * self.bins).astype(np.int64) - 1, 0, self.bins - 1)
                    sums[t] += np.bincount(bin_of, w * (score - outcome), minlength=self.bins)

        with one_blas_thread():
            run_pieces(work, pieces(len(grid), max(1, len(grid) // 8)), p.n * p.k * len(grid))
        return np.asarray(np.abs(sums).sum(axis=1))
