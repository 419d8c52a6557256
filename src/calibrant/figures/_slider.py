"""A bin-count slider that needs no server: the page holds the sorted curve, cut wherever any bin count could cut it.

Rows between two such cuts always share a bin, so one cell (mean confidence, count, positive outcomes) stands for them
and every bin count gives the measure's own numbers. Up to 20,000 cells are kept. Up to 20,000 rows that is 5 to 500
bins; with more rows the slider ends at the largest count whose cells are still few enough (never below about 200),
and what it shows stays exact.
"""

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.binning import Binning, Scheme, equal_shares
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import WeightedCurve
from calibrant.core.errors import InputError
from calibrant.core.text.vocabulary import Vocabulary
from calibrant.figures._base import Row
from calibrant.figures._layers import chart_of
from calibrant.figures._task import count_of

if TYPE_CHECKING:
    import altair as alt

LEAST, MOST = 5, 500
MOST_CELLS = 20_000


def cells(curve: Curve, scheme: Scheme, bin_worth: Array | None = None) -> Row:
    """The curve in cells, as lists: ready for JSON.

    `bin_worth` has the independent rows of the bins that the slider begins with, where rows come in clusters; the rows
    of each of these bins then count alike, whatever bins they are in later.
    """
    if scheme == "mass" and isinstance(curve, WeightedCurve):
        fix = "draw them into another kind of file, or with bins of equal width"
        raise InputError("slider", expected="rows without weights, for bins of equal mass", got="weights", fix=fix)
    most, cuts = _cuts(curve, scheme)
    start, count = cuts[:-1], np.diff(curve.weight_sum[cuts])
    mean = np.add.reduceat(curve.scores * curve.weights, start) / count
    at = np.clip(mean, curve.scores[start], curve.scores[cuts[1:] - 1])  # rounding must not carry it over an edge
    positives = np.add.reduceat(_even_outcomes(curve) if scheme == "mass" else curve.outcomes * curve.weights, start)
    worth = count * curve.weight_unit
    if bin_worth is not None:
        bin_of = curve.bin_of(Binning(len(bin_worth), scheme))
        share = bin_worth / np.maximum(np.bincount(bin_of, curve.weights, len(bin_worth)), 1e-300)
        worth = np.minimum(worth, np.add.reduceat(share[bin_of] * curve.weights, start))
    return {
        "most": most,
        "n": count_of(curve.total),
        "effective": curve.weight_unit,
        "worth": [] if bin_worth is None else worth.tolist(),
        "start": start.tolist() if scheme == "mass" else [],
        "at": at.tolist(),
        "count": [count_of(c) for c in count],
        "positives": [int(h) if h.is_integer() else h for h in positives.tolist()],
    }


def bin_rows(row: Row, scheme: Scheme, level: float, words: Vocabulary) -> Any:
    """Recompute the rows of `data` from cells in the browser, for the bin count of the slider."""
    lists: list[Any] = ["at", "count", "positives", *(name for name in ("start", "worth") if row[name])]
    values = [{name: row[name] for name in lists}]
    chart = chart_of(values).transform_flatten(lists)
    chart = _bin_of_equal_mass(chart, row["n"]) if scheme == "mass" else _bin_of_equal_width(chart)
    worth = "datum.worth" if row["worth"] else f"datum.count * {row['effective']!r}"
    chart = chart.transform_calculate(score="datum.at * datum.count", rows=worth).transform_aggregate(
        groupby=["bin"],
        size="sum(count)",
        right="sum(positives)",
        score="sum(score)",
        rows="sum(rows)",
        first="min(at)",
        last="max(at)",
    )
    edges = ("datum.first", "datum.last") if scheme == "mass" else ("(datum.bin - 1) / bins", "datum.bin / bins")
    p, n, z = "datum.accuracy", "datum.rows", repr(NormalDist().inv_cdf((1 + level) / 2))
    centre, below = f"({p} + {z} * {z} / (2 * {n}))", f"(1 + {z} * {z} / {n})"
    half = f"{z} * sqrt({p} * (1 - {p}) / {n} + {z} * {z} / (4 * {n} * {n}))"
    for field, expression in {
        "count": "datum.size",
        "share": f"datum.size / {row['n']}",
        "confidence": "datum.score / datum.size",
        "accuracy": "datum.right / datum.size",
        "gap": "datum.confidence - datum.accuracy",
        "side": f"datum.gap > 0 ? '{words.side_over}' : '{words.side_under}'",
        "low_edge": edges[0],
        "high_edge": edges[1],
        "low": f"({centre} - {half}) / {below}" if row["whiskers"] else "null",
        "high": f"({centre} + {half}) / {below}" if row["whiskers"] else "null",
    }.items():
        chart = chart.transform_calculate(as_=field, calculate=expression)
    return chart


def slider(rows: list[Row], bins: int) -> "alt.Parameter":
    """The slider from 5 to 500 bins; it starts at the figure's own count."""
    import altair as alt

    most = min(row["most"] for row in rows)
    bind = alt.binding_range(min=LEAST, max=most, step=1, name="bins")
    return alt.param(name="bins", value=min(max(bins, LEAST), most), bind=bind)


def _bin_of_equal_width(chart: Any) -> Any:
    """The expression for right-closed bins of edges m / bins: the product can be one off, two quotients decide."""
    at, m = "datum.at", "datum.m"
    exact = f"{at} <= ({m} - 1) / bins ? {m} - 1 : {at} > {m} / bins ? {m} + 1 : {m}"
    return chart.transform_calculate(m=f"ceil({at} * bins)").transform_calculate(bin=f"max(1, {exact})")


def _bin_of_equal_mass(chart: Any, n: int) -> Any:
    """The expression for bins of equal mass by position; the first n mod bins hold one row more."""
    size, more, start = f"floor({n} / bins)", f"({n} % bins)", "datum.start"
    longer = f"({more} * ({size} + 1))"
    late = f"{more} + floor(({start} - {longer}) / {size})"
    return chart.transform_calculate(bin=f"{start} < {longer} ? floor({start} / ({size} + 1)) : {late}")


def _cuts(curve: Curve, scheme: Scheme) -> tuple[int, Ints]:
    """The largest bin count that few enough cells allow, and all cuts of the counts up to it."""
    low, high = LEAST, MOST
    best = _all_cuts(curve, scheme, MOST)
    if len(best) <= MOST_CELLS + 1:
        return MOST, best
    while high - low > 1:
        middle = (low + high) // 2
        if len(_all_cuts(curve, scheme, middle)) <= MOST_CELLS + 1:
            low = middle
        else:
            high = middle
    return low, _all_cuts(curve, scheme, low)


def _all_cuts(curve: Curve, scheme: Scheme, most: int) -> Ints:
    counts = range(LEAST, most + 1)
    if scheme == "width":
        edges = np.unique(np.concatenate([np.arange(1, count) / count for count in counts]))
        inner = np.searchsorted(curve.scores, edges, side="right")
    else:
        inner = np.concatenate([equal_shares(curve.n, count)[1:-1] for count in counts])
    return np.unique(np.concatenate([[0], inner, [curve.n]]).astype(np.int64))


def _even_outcomes(curve: Curve) -> Array:
    """Outcomes shared evenly among equal scores, as equal-mass bins share them."""
    positives, negatives = curve.groups
    size = positives + negatives
    return np.repeat(positives / size, size.astype(np.int64))
