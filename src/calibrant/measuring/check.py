"""A limit for a measure, or for its worsening: violated on evidence, not on noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.intervals import OnDone, check_confidence
from calibrant.core.notebook import Shown, Table
from calibrant.core.plain import plain
from calibrant.core.predictions import Predictions
from calibrant.core.wording import bracket, number
from calibrant.measures import Measure
from calibrant.measuring.compare import find_unpaired, same_kind
from calibrant.measuring.limits import check_resamples, find_limits
from calibrant.measuring.measure import What, definition_of, resolve

Side = Literal["max", "min", "worse"]
State = Literal["kept", "open", "broken"]


@dataclass(frozen=True)
class Check(Shown):
    """`state`: "kept" (shown to hold), "broken" (shown to be violated), or "open" (the data do not tell).

    With side "worse" the value is by how much the measure is worse than on the rows of a reference.
    """

    measure: str
    side: Side
    limit: float
    value: float
    low: float
    high: float
    state: State
    n: int
    k: int
    definition: str

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = plain(self)
        return made

    HEAD: ClassVar[tuple[str, ...]] = ("value", "bounds", "limit", "result")

    @property
    def cells(self) -> tuple[str, ...]:
        """Of a table of several."""
        said = {"kept": "holds", "open": "not shown to be violated", "broken": "violated"}[self.state]
        limit = {"max": "at most", "min": "at least", "worse": "worse by at most"}[self.side]
        return number(self.value), bracket(self.low, self.high), f"{limit} {self.limit:g}", said

    def table(self) -> Table:
        return self.definition, ("measure", *self.HEAD), [(self.measure, *self.cells)]


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
    chosen, name, value = _begin(p, what, limit, confidence, resamples)
    found = find_limits(chosen, p, tail=1 - confidence, resamples=resamples, seed=seed, progress=progress)
    state = judge(side, limit, found.low, found.high)
    return Check(name, side, limit, value, found.low, found.high, state, p.n, p.k, definition_of(chosen, p))


def check_worse(
    p: Predictions,
    reference: Predictions,
    what: What,
    *,
    limit: float,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Check:
    """The same for the worsening since a reference, which has rows of its own: last month's, for instance.

    >>> p = Predictions.from_confidence([0.9, 0.6, 0.8, 0.7], correct=[1, 0, 1, 1])
    >>> check_worse(p, p, "brier", limit=0.5, resamples=100).state
    'kept'
    """
    chosen, name, value = _begin(p, what, limit, confidence, resamples)
    same_kind(reference, p)
    if chosen.direction not in ("down", "up"):
        fix = "ask for ece, nll, brier or accuracy"
        raise InputError(name, expected="a measure that gets worse in one direction", got="another one", fix=fix)
    sign = 1.0 if chosen.direction == "down" else -1.0
    worse = sign * (value - _value(chosen, name, reference))
    found = find_unpaired(chosen, reference, p, 1 - confidence, resamples, seed, progress)
    low, high = sorted((sign * found.low, sign * found.high))
    low, high = min(low, worse), max(high, worse)
    state = judge("max", limit, low, high)
    words = f"{definition_of(chosen, p)}; worse than on {reference.n:,} reference rows by"
    return Check(name, "worse", limit, worse, low, high, state, p.n, p.k, words)


def passed(rows: Sequence[Check], *, strict: bool = False) -> bool:
    """Whether no limit is broken; with `strict`, whether all are shown to hold."""
    return all(row.state == "kept" or (row.state == "open" and not strict) for row in rows)


def judge(side: Literal["max", "min"], limit: float, low: float, high: float) -> State:
    """By one-sided bounds: broken only if the bound itself is on the wrong side.

    >>> judge("max", 0.03, 0.02, 0.04), judge("min", 0.8, 0.81, 0.9)
    ('open', 'kept')
    """
    over, under = (low > limit, high <= limit) if side == "max" else (high < limit, low >= limit)
    return "broken" if over else "kept" if under else "open"


def _begin(
    p: Predictions, what: What, limit: float, confidence: float, resamples: int | None
) -> tuple[Measure, str, float]:
    check_confidence(confidence)
    check_resamples(resamples, least=1)
    if not np.isfinite(limit):
        raise InputError("limit", expected="a number", got=str(limit), fix="write for instance 0.03")
    chosen, name = resolve(what)
    chosen.check_shape(p)
    return chosen, name, _value(chosen, name, p)


def _value(m: Measure, name: str, p: Predictions) -> float:
    value = m(p)
    if not np.isfinite(value):
        raise InputError(
            name, expected="a number to compare with the limit", got="undefined on these rows", fix="use other rows"
        )
    return value
