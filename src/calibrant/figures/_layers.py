"""Pieces that several drawings share: the diagonal, axes in percent, one colour per model, panels side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import Row

if TYPE_CHECKING:
    import altair as alt

PER_LINE = 3  # panels side by side


def chart_of(rows: Sequence[Row]) -> "alt.Chart":
    """A chart that carries these rows inside."""
    import altair as alt

    if not rows:
        raise _nothing()
    data = alt.InlineData(values=list(rows))
    # Altair copies a chart at every step; rows never change, so they need not be copied a hundred times.
    object.__setattr__(data, "__deepcopy__", lambda _: data)
    return alt.Chart(data)


def diagonal() -> Any:
    """The diagonal, where both axes, of the same scale, agree."""
    import altair as alt

    ends: list[tuple[Any, Any]] = [(alt.XValue, 0), (alt.YValue, "height"), (alt.X2Value, "width"), (alt.Y2Value, 0)]
    return chart_of([{}]).mark_rule(style="diagonal", tooltip=None).encode(*(channel(end) for channel, end in ends))


def unit_x(field: str, title: str | None, **more: Any) -> "alt.X":
    """The x axis of a share from 0 to 100 %."""
    import altair as alt

    scale = alt.Scale(domain=[0, 1], nice=False)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=unit_axis(**more))


def unit_y(field: str, title: str | None, **more: Any) -> "alt.Y":
    import altair as alt

    scale = alt.Scale(domain=[0, 1], nice=False)
    return alt.Y(f"{field}:Q", title=title, scale=scale, axis=unit_axis(**more))


def unit_axis(**more: Any) -> "alt.Axis":
    import altair as alt

    return alt.Axis(**({"format": ".0%", "values": [0, 0.2, 0.4, 0.6, 0.8, 1]} | more))


LOGIT_TICKS = (1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999)
LEAST_SHARE = 1e-5  # shares below, and above one minus this, stand at the end of a logit axis


def logit_fields(chart: Any, fields: Sequence[str]) -> Any:
    """The chart with the log-odds of shares beside them, named `..._logit`."""
    for field in fields:
        share = f"clamp(datum.{field}, {LEAST_SHARE}, {1 - LEAST_SHARE})"
        chart = chart.transform_calculate(as_=f"{field}_logit", calculate=f"log({share} / (1 - {share}))")
    return chart


def logit_axes(rows: Sequence[Row], fields: Sequence[str]) -> dict[str, Any]:
    """Scale and axis in log-odds, labelled by shares, that hold the shares of these fields between 0 and 1."""
    import math

    import altair as alt

    shares = [row[field] for row in rows for field in fields if LEAST_SHARE < row[field] < 1 - LEAST_SHARE]
    low, high = 0.8 * min(shares, default=0.1), 1 - 0.8 * (1 - max(shares, default=0.9))
    ends = [math.log(share / (1 - share)) for share in (low, high)]
    ticks = [math.log(share / (1 - share)) for share in LOGIT_TICKS if low <= share <= high]
    label = "format(1 / (1 + exp(-datum.value)), '.5~p')"
    return {"scale": alt.Scale(domain=ends, nice=False, clamp=True), "axis": alt.Axis(values=ticks, labelExpr=label)}


def names_in(rows: Sequence[Row], field: str = "model") -> list[str]:
    """The distinct names, in the order of their first occurrence."""
    return list(dict.fromkeys(row[field] for row in rows))


def colour(names: Sequence[str], field: str = "model", *, line: bool = False) -> "alt.Color":
    """One colour per name, in order; no legend where there is nothing to tell apart."""
    import altair as alt

    task: dict[str, Any] = {"symbolType": "stroke", "symbolStrokeWidth": 2.5, "symbolOpacity": 1} if line else {}
    legend = None if len(names) == 1 else alt.Legend(title=None, columns=_columns(names), **task)
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names)), legend=legend)


def falling_threshold(
    rows: Sequence[Row], *, x: tuple[str, str], y: tuple[str, str], tooltip: Sequence["alt.Tooltip"]
) -> "alt.TopLevelMixin":
    """A line per model through its places in order, as a threshold falls, over the diagonal of a useless score.

    x and y are each a field and the title of its axis.
    """
    import altair as alt

    lines = (
        chart_of(rows)
        .mark_line(style="curve")
        .encode(
            x=unit_x(*x),
            y=unit_y(*y),
            order=alt.Order("place:Q"),
            color=colour(names_in(rows), line=True),
            tooltip=[alt.Tooltip("model:N"), *tooltip],
        )
    )
    return dress(alt.layer(diagonal(), lines, width=WIDTH, height=WIDTH))


def side_by_side(panels: Sequence[Any], per_line: int = PER_LINE) -> Any:
    """Arrange panels: one as it is, several in lines."""
    import altair as alt

    if not panels:
        raise _nothing()
    return panels[0] if len(panels) == 1 else alt.concat(*panels, columns=per_line)


def _nothing() -> InputError:
    return InputError("chart", expected="the rows of a figure", got="none", fix="pass what data(...) returned")


def _columns(names: Sequence[str]) -> int:
    """The number of legend entries that fit on a line: a letter takes about 6 pixels, a symbol 30."""
    return max(1, WIDTH // (6 * max(map(len, names)) + 30))
