"""Two models on the same rows, or one on two sets of rows: the difference of a measure, with interval and test."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, overload

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import OnDone, check_confidence
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.text import number_format as fmt
from calibrant.core.text.table import FrameResult, Table, TableResult, html_table
from calibrant.measures import Measure
from calibrant.measuring.estimating import check_resamples, difference
from calibrant.measuring.matching_rows import MatchedBy, MatchedRows, match_rows, same_classes
from calibrant.measuring.measure import What, definition_of, resolve

Better = Literal["a", "b", "neither"]


@dataclass(frozen=True, kw_only=True)
class Comparison(FrameResult):
    """Difference of a measure, b minus a, with interval and test; of distances for a measure that is best at 0 or 1.

    The p-value is below 1 - confidence when the interval leaves out zero, up to the last resample. Where there are too
    few rows for an interval, `reason` says so, and the ends and the p-value are NaN (null in JSON).
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    better: Better  # "neither": the rows are inconclusive
    n: int
    k: int
    definition: str
    paired: bool = True
    n_b: int | None = None  # rows of b, where they are other ones
    only_in_a: int = 0  # rows left out because b has none of their id
    only_in_b: int = 0
    reason: str | None = None  # why there is no interval
    matched_by: MatchedBy | None = None  # what pairs the rows; None where they are not paired

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = plain(self)
        return fields

    HEAD: ClassVar[tuple[str, ...]] = ("a", "b", "difference", "interval", "p", "better")

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of one row in a table of comparisons."""
        return (
            fmt.number(self.a),
            fmt.number(self.b),
            fmt.number(self.difference, sign=True),
            fmt.bracket(self.low, self.high, sign=True),
            fmt.p_value(self.p_value),
            "inconclusive" if self.better == "neither" else self.better,
        )

    def __bool__(self) -> bool:
        fix = 'ask for .better ("a", "b" or "neither"), or for .p_value'
        raise InputError("a comparison as true or false", expected="a question", got="two models", fix=fix)

    def _repr_html_(self) -> str:
        rows = "same rows" if self.paired else f"{self.n:,} and {self.n_b:,} rows"
        return html_table(f"{self.definition}; {rows}", ("measure", *self.HEAD), [(self.measure, *self.cells)])

    def __str__(self) -> str:
        return (
            f"{self.measure}: {' against '.join(fmt.apart([self.a, self.b], 4))}, difference "
            f"{fmt.number(self.difference, sign=True)} {fmt.bracket(self.low, self.high, sign=True)}, "
            f"{self.reason or fmt.chance(self.p_value)}"
        )


class Comparisons(FrameResult, TableResult, list[Comparison]):
    """Comparisons of the same two models by several measures."""

    def table(self) -> Table:
        rows = [(c.measure, *c.cells) for c in self]
        return f"{self[0].n:,} rows" if self else "no measures", ("measure", *Comparison.HEAD), rows


@overload
def compare(  # type: ignore[overload-overlap]  # a text is a sequence of texts
    a: Predictions,
    b: Predictions,
    what: What = "ece",
    *,
    paired: bool = True,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Comparison: ...


@overload
def compare(
    a: Predictions,
    b: Predictions,
    what: Sequence[What],
    *,
    paired: bool = True,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Comparisons: ...


def compare(
    a: Predictions,
    b: Predictions,
    what: What | Sequence[What] = "ece",
    *,
    paired: bool = True,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Comparison | Comparisons:
    """Compare two models on the same rows by a measure, or by several; or one model on different rows.

    Models on the same rows share their noise, so that what both find hard cancels.

    Parameters
    ----------
    a, b : Predictions
        The two models. Rows are joined by their ids where both have ids; rows that one of them lacks are left out and
        counted.
    what : str, Measure, function, or sequence of these, default "ece"
        What to compare, as for `measure`.
    paired : bool, default True
        Whether the rows are the same; False compares different rows.
    confidence : float, default 0.95
        How often the interval should hold the true difference.
    resamples : int, optional
        How many resamples the bootstrap takes, by default as many as the measure asks for.
    seed : int, default 0
        The seed of all random numbers.
    progress : function of two numbers, optional
        It is called with the number of steps done and of all.

    Returns
    -------
    Comparison or Comparisons
        The difference, b minus a, with its interval and p-value; a list of them where `what` names several.

    Examples
    --------
    >>> a = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]] * 4, labels=[0, 1, 1] * 4)
    >>> compare(a, a, "brier", resamples=50).difference
    0.0
    """
    if isinstance(what, Sequence) and not isinstance(what, str):
        options: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed, "progress": progress}
        return Comparisons(compare(a, b, one, paired=paired, **options) for one in what)
    check_confidence(confidence)
    check_resamples(resamples, least=1)
    chosen, name = resolve(what)
    same_classes(a, b)
    rows = match_rows(a, b) if paired else MatchedRows(a, b)
    a, b = rows.a, rows.b
    chosen.check_shape(a)
    pair = Sampling.pair(a, b, paired=paired, seed=seed, resamples=resamples, progress=progress)
    return replace(
        compare_estimates(chosen, name, a, difference(chosen, a, b, pair), confidence),
        paired=paired,
        n_b=None if paired else b.n,
        only_in_a=rows.only_in_a,
        only_in_b=rows.only_in_b,
        matched_by=rows.by if paired else None,
    )


def compare_estimates(m: Measure, name: str, p: Predictions, e: Estimate, confidence: float = 0.95) -> Comparison:
    """The comparison of a measure on the rows of p, from the estimate of its difference."""
    a, b = e.terms
    (low, high), chance = e.limits(confidence), e.p_value()
    if not np.isfinite(e.value) or not np.isfinite(chance):
        low = high = chance = np.nan
    return Comparison(
        measure=name,
        a=a,
        b=b,
        difference=e.value,
        low=low,
        high=high,
        p_value=chance,
        better=_better(m, a, b) if chance < 1 - confidence else "neither",
        n=p.n,
        k=p.k,
        definition=definition_of(m, p)
        + ("" if m.ideal is None else f"; the difference is that of the distances from {m.ideal:g}"),
        reason=e.reason,
    )


def _better(chosen: Measure, a: float, b: float) -> Better:
    if chosen.direction == "none":
        return "neither"
    if chosen.ideal is not None:
        a, b = abs(a - chosen.ideal), abs(b - chosen.ideal)
    return "a" if (a < b) != (chosen.direction == "up") else "b"
