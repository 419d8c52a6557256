"""A gate: does a measure break a limit on evidence, and not on noise?"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.intervals import Progress, check_confidence, draw
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Measure
from calibrant.measures._measure import resolve


@dataclass(frozen=True)
class Verdict:
    """`state`: "kept" (shown to hold), "broken" (shown not to), or "open" (the data do not tell)."""

    measure: str
    side: Literal["max", "min"]
    limit: float
    value: float
    low: float
    high: float
    state: Literal["kept", "open", "broken"]
    n: int
    k: int
    definition: str

    def to_dict(self) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in asdict(self).items()}


def check(
    p: Predictions,
    what: str | Measure,
    *,
    limit: float,
    side: Literal["max", "min"] = "max",
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Verdict:
    """Compare a limit with one-sided bounds: broken only if the bound itself is on the wrong side.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], labels=[0, 1, 1])
    >>> check(p, "error", limit=0.9, resamples=100).state
    'kept'
    """
    check_confidence(confidence)
    if not np.isfinite(limit):
        raise InputError("limit", expected="a number", got=str(limit), fix="write for instance 0.03")
    chosen, name = resolve(what)
    value = chosen(p)
    size = chosen.resamples if resamples is None else resamples
    draws = draw(lambda counts: chosen.resampled(p, counts), p.n, size, seed, progress)
    if not np.isfinite(value):
        raise InputError(
            name, expected="a number to compare with the limit", got="undefined on these rows", fix="use other rows"
        )
    low, high = chosen.lower_bound(p, draws, confidence, seed), chosen.upper_bound(p, draws, confidence)
    over, under = low > limit, high <= limit
    if side == "min":
        over, under = high < limit, low >= limit
    state: Literal["kept", "open", "broken"] = "broken" if over else "kept" if under else "open"
    return Verdict(name, side, limit, value, low, high, state, p.n, p.k, chosen.definition)
