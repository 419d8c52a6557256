"""A limit for a measure: violated on evidence, not on noise."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.intervals import OnDone, check_confidence
from calibrant.core.plain import plain
from calibrant.core.predictions import Predictions
from calibrant.measuring.limits import check_resamples, find_limits
from calibrant.measuring.measure import What, resolve


@dataclass(frozen=True)
class Check:
    """`state`: "kept" (shown to hold), "broken" (shown to be violated), or "open" (the data do not tell)."""

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
        made: dict[str, Any] = plain(self)
        return made


def check(
    p: Predictions,
    what: What,
    *,
    limit: float,
    side: Literal["max", "min"] = "max",
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Check:
    """Compare a limit with one-sided bounds: broken only if the bound itself is on the wrong side.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], labels=[0, 1, 1])
    >>> check(p, "error", limit=0.9, resamples=100).state
    'kept'
    """
    check_confidence(confidence)
    check_resamples(resamples, least=1)
    if not np.isfinite(limit):
        raise InputError("limit", expected="a number", got=str(limit), fix="write for instance 0.03")
    chosen, name = resolve(what)
    value = chosen(p)
    if not np.isfinite(value):
        raise InputError(
            name, expected="a number to compare with the limit", got="undefined on these rows", fix="use other rows"
        )
    found = find_limits(chosen, p, tail=1 - confidence, resamples=resamples, seed=seed, progress=progress)
    low, high = found.low, found.high
    over, under = low > limit, high <= limit
    if side == "min":
        over, under = high < limit, low >= limit
    state: Literal["kept", "open", "broken"] = "broken" if over else "kept" if under else "open"
    return Check(name, side, limit, value, low, high, state, p.n, p.k, chosen.definition)
