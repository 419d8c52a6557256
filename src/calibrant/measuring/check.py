"""A limit for a measure, or for its worsening: violated on evidence, not on noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import OnDone, check_confidence
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.text.number_format import bracket, number
from calibrant.core.text.table import FrameResult, Table, TableResult
from calibrant.measures import Measure
from calibrant.measuring.estimating import check_resamples, difference, estimate
from calibrant.measuring.matching_rows import same_classes
from calibrant.measuring.measure import What, definition_of, resolve

Side = Literal["max", "min", "worse"]
State = Literal["holds", "inconclusive", "violated"]


@dataclass(frozen=True, kw_only=True)
class Check(FrameResult, TableResult):
    """A limit compared with one-sided bounds of a measure.

    `state` is "holds" or "violated" where that is significant, else "inconclusive".
    A check is true, and `passed`, unless its limit is violated: `assert check(p, "ece", limit=0.03)`. With side "worse"
    the value is by how much the measure is worse than on the rows of a reference. Where there are too few rows for
    bounds they are None, `reason` says so, and the state is "inconclusive".
    """

    measure: str
    side: Side
    limit: float
    value: float
    low: float | None
    high: float | None
    state: State
    n: int
    k: int
    definition: str
    reason: str | None = None  # why there are no bounds

    @property
    def passed(self) -> bool:
        """Whether the limit is not violated."""
        return self.state != "violated"

    def __bool__(self) -> bool:
        return self.passed

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = plain(self)
        return fields

    HEAD: ClassVar[tuple[str, ...]] = ("value", "bounds", "limit", "result")

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of one row in a table of checks."""
        limit = {"max": "at most", "min": "at least", "worse": "worse by at most"}[self.side]
        return number(self.value), bracket(self.low, self.high), f"{limit} {self.limit:g}", self.state

    def table(self) -> Table:
        return self.definition, ("measure", *self.HEAD), [(self.measure, *self.cells)]


def check(
    p: Predictions,
    what: What,
    *,
    limit: float,
    side: Literal["max", "min"] | None = None,
    against: Predictions | None = None,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Check:
    """Compare a limit with one-sided bounds: violated only if the bound itself is on the wrong side.

    Parameters
    ----------
    p : Predictions
        The rows to check.
    what : str, Measure or function
        The measure, as for `measure`.
    limit : float
        What the value may reach; with `against`, how much worse it may be than there.
    side : {"max", "min"}, optional
        Whether the limit is the highest or the lowest value allowed; by default "min" where higher is better.
    against : Predictions, optional
        Reference rows, such as those of last month: the check is of how much the measure worsened.
    confidence : float, default 0.95
        How often each one-sided bound should hold the true value.
    resamples : int, optional
        How many resamples the bootstrap takes, by default as many as the measure asks for.
    seed : int, default 0
        The seed of all random numbers.
    progress : function of two numbers, optional
        It is called with the number of steps done and of all.

    Returns
    -------
    Check
        True, and `passed`, unless the limit is violated.

    Examples
    --------
    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]] * 10, labels=[0, 1, 1] * 10)
    >>> check(p, "error", limit=0.9).state
    'holds'
    >>> check(p, "error", limit=0.5, against=p, resamples=100).state
    'holds'
    """
    check_confidence(confidence)
    check_resamples(resamples, least=1)
    chosen, name = resolve(what)
    chosen.check_shape(p)
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "progress": progress}
    definition = definition_of(chosen, p)
    if against is None:
        side = limit_side(chosen, name, limit, side)
        e = estimate(chosen, p, Sampling.of(p, **options))
        _check_defined(name, e.value)
        return check_estimate(name, side, limit, e, 1 - confidence, rows=p, definition=definition)
    if side is not None:
        raise InputError("side", expected="none with against", got=side, fix="leave it out: worse has one side only")
    same_classes(against, p)
    sign = worsening_sign(chosen, name, limit)
    e = difference(chosen, against, p, Sampling.pair(against, p, paired=False, **options))
    for value in e.terms:
        _check_defined(name, value)
    definition = f"{definition}; worse than on {against.n:,} reference rows by"
    return check_worsening(name, limit, sign, e, 1 - confidence, rows=p, definition=definition)


class CheckedData(Protocol):
    """Number of rows and classes of what is checked: predictions, or sums of them."""

    @property
    def n(self) -> int: ...

    @property
    def k(self) -> int: ...


def check_estimate(
    name: str, side: Side, limit: float, e: Estimate, tail: float, *, rows: CheckedData, definition: str
) -> Check:
    """The check of a value and its bounds, each of which the truth is beyond with a chance of `tail`."""
    ends = e.ends(tail)
    low, high = (None, None) if ends is None else (ends.low, ends.high)
    return Check(
        measure=name,
        side=side,
        limit=limit,
        value=e.value,
        low=low,
        high=high,
        state=check_limit("min" if side == "min" else "max", limit, low, high),
        n=rows.n,
        k=rows.k,
        definition=definition,
        reason=None if ends is not None else e.reason or e.no_width,
    )


def check_worsening(
    name: str, limit: float, sign: float, e: Estimate, tail: float, *, rows: CheckedData, definition: str
) -> Check:
    """The check of a difference to the reference and its bounds, of which `sign` says what is worse."""
    c = check_estimate(name, "worse", limit, e, tail, rows=rows, definition=definition)
    if c.low is None or c.high is None:
        return replace(c, value=sign * c.value)
    low, high = sorted((sign * c.low, sign * c.high))
    return replace(c, value=sign * c.value, low=low, high=high, state=check_limit("max", limit, low, high))


def limit_side(m: Measure, name: str, limit: float, side: Literal["max", "min"] | None = None) -> Literal["max", "min"]:
    """The side of a limit; an error where no value could break it, and where it is on the side of good values.

    >>> from calibrant.measures.accuracy import Accuracy
    >>> limit_side(Accuracy(), "accuracy", 0.8)
    'min'
    """
    _check_reachable(name, limit, m, *m.bounds)
    better = {"up": "min", "down": "max"}.get(m.direction)
    if side is not None and better is not None and side != better:
        good, extreme = ("higher", "highest") if better == "min" else ("lower", "lowest")
        fix = f'for the other side write --{better} {name}={limit:g}, in Python side="{better}"'
        expected = f"a limit for bad values, as {good} is better"
        raise InputError(name, expected=expected, got=f"{limit:g} as the {extreme} value allowed", fix=fix)
    return side or ("min" if better == "min" else "max")


def worsening_sign(m: Measure, name: str, limit: float) -> float:
    """1 where a measure gets worse as it rises, -1 where it does as it falls; an error for other measures."""
    if m.direction not in ("down", "up"):
        fix = "ask for ece, nll, brier or accuracy"
        raise InputError(name, expected="a measure that gets worse in one direction", got="another one", fix=fix)
    width = m.bounds[1] - m.bounds[0]
    _check_reachable(name, limit, m, -width, width)
    return 1.0 if m.direction == "down" else -1.0


def _check_reachable(name: str, limit: float, m: Measure, least: float, most: float) -> None:
    """Refuse a limit beyond every value that the measure can have."""
    if np.isfinite(limit) and least <= limit <= most:
        return
    known = f"{least:g} or more" if np.isfinite(least) else "a number"
    percent = m.unit == "percent" and least <= limit / 100 <= most
    fix = f"for {limit:g} % write {limit / 100:g}" if percent else "write for instance 0.03"
    expected = f"{least:g} to {most:g}" if np.isfinite(most) else known
    raise InputError(f"limit of {name}", expected=expected, got=f"{limit:g}", fix=fix)


def all_pass(rows: Sequence[Check], *, strict: bool = False) -> bool:
    """Whether no limit is violated; with `strict`, whether all significantly hold."""
    return all(row.state == "holds" or (row.state == "inconclusive" and not strict) for row in rows)


def check_limit(side: Literal["max", "min"], limit: float, low: float | None, high: float | None) -> State:
    """The state of a limit: violated only if a one-sided bound is on the wrong side, inconclusive without bounds.

    >>> check_limit("max", 0.03, 0.02, 0.04), check_limit("min", 0.8, 0.81, 0.9), check_limit("max", 0.03, None, None)
    ('inconclusive', 'holds', 'inconclusive')
    """
    if low is None or high is None:
        return "inconclusive"
    over, under = (low > limit, high <= limit) if side == "max" else (high < limit, low >= limit)
    return "violated" if over else "holds" if under else "inconclusive"


def _check_defined(name: str, value: float) -> None:
    if not np.isfinite(value):
        raise InputError(
            name, expected="a number to compare with the limit", got="undefined on these rows", fix="use other rows"
        )
