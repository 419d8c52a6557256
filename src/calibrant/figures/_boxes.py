"""Box plots: the numbers of a box, and how it is drawn."""

from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.text.theme import WIDTH
from calibrant.figures._base import Row
from calibrant.figures._layers import chart_of

ALL_DRAWN = 30  # values up to which every one is drawn
MOST_OUTSIDE = 40  # of more than these, the most extreme are drawn


def box(values: Array) -> Row:
    """Quartiles, and whiskers to the last value within 1.5 times the distance of the quartiles.

    >>> box(np.array([1.0, 2.0, 3.0, 4.0, 100.0]))["high"]
    4.0
    """
    first, median, third = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (third - first)
    inside = values[(values >= first - reach) & (values <= third + reach)]
    return {
        "count": len(values),
        "low": float(min(inside.min(), first)),
        "first": float(first),
        "median": float(median),
        "third": float(third),
        "high": float(max(inside.max(), third)),
    }


def dots(values: Array) -> list[float]:
    """The values drawn as dots: every value of a small group, those outside the whiskers of a large one."""
    if len(values) <= ALL_DRAWN:
        return [float(value) for value in values]
    b = box(values)
    outside = values[(values < b["low"]) | (values > b["high"])]
    far = np.argsort(-np.abs(outside - b["median"]), kind="stable")[:MOST_OUTSIDE]
    return [float(value) for value in outside[far]]


def rows_of(values: Array, known: Row) -> list[Row]:
    """A box and its dots as rows."""
    empty = dict.fromkeys(("count", "low", "first", "median", "third", "high"))
    box_row = known | {"part": "box", "value": None} | box(values)
    return [box_row, *(known | {"part": "dot", "value": value} | empty for value in dots(values))]


def panel(rows: list[Row], x_title: str, lines: list[str], field: str = "group") -> Any:
    """Horizontal boxes, one line for each of `lines`, the values of `field`."""
    import altair as alt

    bare = alt.Axis(ticks=False, domain=False)
    y = alt.Y(f"{field}:N", title=None, sort=lines, scale=alt.Scale(domain=lines), axis=bare)
    scale, axis = alt.Scale(zero=False, nice=False, padding=6), alt.Axis(tickCount=4)
    tooltip = [
        alt.Tooltip(f"{field}:N"),
        alt.Tooltip("count:Q", title="values"),
        *(alt.Tooltip(f"{end}:Q", format=".4g") for end in ("low", "first", "median", "third", "high")),
    ]

    def x(of: str) -> Any:
        return alt.X(f"{of}:Q", title=x_title, scale=scale, axis=axis)

    boxes = chart_of([row for row in rows if row["part"] == "box"]).encode(y=y, tooltip=tooltip)
    layers = [
        boxes.mark_rule(style="whisker").encode(x=x("low"), x2="first:Q"),
        boxes.mark_rule(style="whisker").encode(x=x("third"), x2="high:Q"),
        boxes.mark_bar(style="box", height={"band": 0.55}).encode(x=x("first"), x2="third:Q"),
        boxes.mark_tick(style="median", thickness=2, height={"band": 0.55}).encode(x=x("median")),
    ]
    if single := [row for row in rows if row["part"] == "dot"]:
        near = [alt.Tooltip(f"{field}:N"), alt.Tooltip("value:Q", format=".4g")]
        layers.append(chart_of(single).mark_circle(style="run").encode(x=x("value"), y=y, tooltip=near))
    line = 24 if len(lines) <= 3 else 17
    return alt.layer(*layers).properties(width=WIDTH - 30, height=max(line * len(lines), 30))
