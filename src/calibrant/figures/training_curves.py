"""A training log as curves: error, NLL and ECE by epoch, and gamma where there is one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.text.number_format import join_clauses, significant
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import numbers, require, shorten, some, text
from calibrant.figures._layers import chart_of, colour, names_in, side_by_side
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

SPLITS = ("train", "val", "test")
ORDER = ("loss", "nll", "ece", "error", "auroc_correct", "gamma")
IN_WORDS = {
    "loss": "loss",
    "nll": "NLL",
    "ece": "ECE",
    "error": "error",
    "auroc_correct": "AUROC of correctness",
    "gamma": "gamma",
}
PERCENT = ("ece", "error", "accuracy")


@dataclass(frozen=True)
class TrainingCurves(TableFigure):
    """One panel per measure: columns named train_, val_ or test_ something, and gamma_mean with gamma_std as a band.

    Column `epoch`, and `model` where the table holds several runs. A measure can be best at an epoch other than the
    last: choosing that epoch on the test part makes it optimistic. Epochs without a value are left out of their curve.

    >>> import polars as pl
    >>> rows = TrainingCurves().data(pl.DataFrame({"epoch": [1, 2], "val_ece": [0.1, 0.05]}))
    >>> [(row["epoch"], row["measure"], row["split"], row["value"]) for row in rows]
    [(1, 'ece', 'val', 0.1), (2, 'ece', 'val', 0.05)]
    """

    title: ClassVar[str] = "Training curves"
    reference: ClassVar[str] = "Wang, Golebiowski, Towards Unbiased Calibration, TMLR 2024, figure 3"
    columns: ClassVar[tuple[str, ...]] = ("epoch",)

    def data(self, table: "pl.DataFrame") -> list[Row]:
        series = [(c, *_parse(c)) for c in table.columns if _parse(c)[0] and table[c].dtype.is_numeric()]
        require("training_curves", table, self.columns, numeric=(*self.columns, *(c for c, *_ in series)))
        if not series:
            raise InputError(
                "table of training_curves",
                expected="columns such as train_loss, val_ece, val_nll or gamma_mean",
                got=shorten(table.columns),
                fix="rename the measures to val_..., train_... or test_...",
            )
        models = np.array(text(table["model"])) if "model" in table.columns else np.full(table.height, "model")
        epoch, rows = numbers(table["epoch"]), []
        for column, measure, split in sorted(series, key=lambda f: (_rank(f[1]), SPLITS.index(f[2] or "train"))):
            value = numbers(table[column])
            spread = numbers(table["gamma_std"]) if measure == "gamma" and "gamma_std" in table.columns else 0 * value
            for model in dict.fromkeys(models.tolist()):
                own = np.flatnonzero((models == model) & np.isfinite(epoch) & np.isfinite(value))
                own = own[np.argsort(epoch[own], kind="stable")]
                for i in own[thin(epoch[own])] if len(own) else ():
                    wide = float(spread[i]) if np.isfinite(spread[i]) else 0.0
                    known = {"model": model, "measure": measure, "split": split, "epoch": _whole(epoch[i])}
                    at = float(value[i])
                    rows.append(known | {"value": at, "low": at - wide, "high": at + wide})
        return some("training_curves", rows)

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for key in dict.fromkeys((row["measure"], row["split"], row["model"]) for row in rows):
            own = [row for row in rows if (row["measure"], row["split"], row["model"]) == key]
            several = f" of {key[2]}" if len(names_in(rows)) > 1 else ""
            name = " ".join(filter(None, (key[1], IN_WORDS.get(key[0], key[0]))))
            sentences.append(f"{name}{several} {significant(own[0]['value'])} to {significant(own[-1]['value'])}")
        last = max((row["epoch"] for row in rows), default=0)
        return f"Training curves to epoch {last:g}, first value to last: {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        measures, names = names_in(rows, "measure"), names_in(rows)
        splits = [split for split in SPLITS if split in names_in(rows, "split")]
        per_line = 1 if len(measures) <= 3 else 2
        panels = [
            _panel([row for row in rows if row["measure"] == m], m, names, splits, last=i + per_line >= len(measures))
            for i, m in enumerate(measures)
        ]
        return dress(side_by_side(panels, per_line))


def _panel(rows: list[Row], measure: str, names: list[str], splits: list[str], *, last: bool) -> Any:
    import altair as alt

    x = alt.X("epoch:Q", title="epoch" if last else None, scale=alt.Scale(nice=False), axis=alt.Axis(tickMinStep=1))
    scale = alt.Scale(zero=measure in PERCENT)
    axis = alt.Axis(tickCount=4, format="%" if measure in PERCENT else "")
    y: dict[str, Any] = {"title": IN_WORDS.get(measure, measure), "scale": scale, "axis": axis}
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("split:N"),
        alt.Tooltip("epoch:Q"),
        alt.Tooltip("value:Q", format=".4f", title=IN_WORDS.get(measure, measure)),
    ]
    base = chart_of(rows).encode(x=x, tooltip=tooltip)
    several, split = len(names) > 1, any(row["split"] for row in rows)
    if several:
        base = base.encode(color=colour(names, line=True))
    lines = base.mark_line(style="curve").encode(y=alt.Y("value:Q", **y))
    if several and len(names_in(rows, "split")) > 1:
        dash = alt.Scale(domain=splits, range=[[1, 0], [5, 3], [2, 2]])
        lines = lines.encode(strokeDash=alt.StrokeDash("split:N", scale=dash, legend=alt.Legend(title=None)))
    elif split and not several:
        lines = lines.encode(color=colour(splits, "split", line=True))
    layers = [lines]
    if any(row["high"] > row["low"] for row in rows):
        layers.append(base.mark_area(style="band").encode(y=alt.Y("low:Q", **y), y2="high:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=96)


def _parse(column: str) -> tuple[str, str]:
    """Parse a column name: `val_ece` is the measure ece on the split val; gamma_mean is gamma; others are ignored."""
    split, _, measure = column.partition("_")
    if split in SPLITS and measure:
        return measure, split
    return ("gamma", "") if column == "gamma_mean" else ("", "")


def _rank(measure: str) -> tuple[int, str]:
    return (ORDER.index(measure) if measure in ORDER else len(ORDER), measure)


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else float(value)
