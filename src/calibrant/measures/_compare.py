"""Two models on the same rows: the difference of a measure, with a paired bootstrap interval and test."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.intervals import Progress, basic_interval, check_confidence, draw, p_value
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Measure
from calibrant.measures._measure import resolve


@dataclass(frozen=True)
class Comparison:
    """b minus a. The p-value is below 1 - confidence when the interval leaves out zero, up to the last resample."""

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    better: str  # "a", "b" or "neither": what the data show
    n: int
    k: int
    definition: str

    def to_dict(self) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in asdict(self).items()}

    def __str__(self) -> str:
        return (
            f"{self.measure}: {self.a:.4f} against {self.b:.4f}, difference {self.difference:+.4f} "
            f"[{self.low:+.4f}, {self.high:+.4f}], p = {self.p_value:.3g}"
        )


def compare(
    a: Predictions,
    b: Predictions,
    what: str | Measure = "ece",
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Resample the same rows of both, so that what both find hard cancels.

    >>> a = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], labels=[0, 1, 1])
    >>> compare(a, a, "brier", resamples=50).difference
    0.0
    """
    check_confidence(confidence)
    chosen, name = resolve(what)
    b = same_rows(a, b)
    size = chosen.resamples if resamples is None else resamples
    if size < 1:
        raise InputError("resamples", expected="at least 1", got=str(size), fix="use 1000")
    value_a, value_b = chosen(a), chosen(b)
    difference = value_b - value_a
    draws = draw(lambda counts: chosen.resampled(b, counts) - chosen.resampled(a, counts), a.n, size, seed, progress)
    interval = basic_interval(difference, draws, confidence)
    p = p_value(difference, draws) if np.isfinite(difference) else np.nan
    better = _better(chosen, value_a, value_b) if p < 1 - confidence else "neither"
    return Comparison(
        name,
        value_a,
        value_b,
        difference,
        interval.low,
        interval.high,
        p,
        better,
        a.n,
        a.k,
        chosen.definition,
    )


def same_rows(a: Predictions, b: Predictions) -> Predictions:
    """b in the order of a; an error when they are not about the same rows."""
    if a.ids is not None and b.ids is not None and a.n == b.n:
        order_a, order_b = np.argsort(a.ids, kind="stable"), np.argsort(b.ids, kind="stable")
        if not np.array_equal(a.ids[order_a], b.ids[order_b]):
            raise InputError("ids", expected="the same in both", got="different ids", fix="predict the same rows")
        back = np.empty(a.n, dtype=np.int64)
        back[order_a] = order_b
        b = b.take(back)
    if a.n != b.n or a.k != b.k:
        raise InputError(
            "compare",
            expected="the same rows and classes in both",
            got=f"{a.n} x {a.k} and {b.n} x {b.k}",
            fix="predict the same data set with both models",
        )
    different = np.flatnonzero(a.labels != b.labels)
    if len(different):
        raise InputError(
            "labels",
            expected="the same in both, row by row",
            got=f"{len(different)} different ones, the first in row {different[0]}",
            fix="write both files in the same order, or give ids",
        )
    return b


def _better(chosen: Measure, a: float, b: float) -> str:
    if chosen.direction == "none":
        return "neither"
    cost = {"down": 1.0, "up": -1.0}.get(chosen.direction)
    a, b = (abs(a), abs(b)) if cost is None else (cost * a, cost * b)
    return "a" if a < b else "b"
