"""Where it is worst: the same two numbers, says and is right, for every predicted class and every group of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core import wording
from calibrant.core.arrays import Array
from calibrant.core.columns import plain_column
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.core.files import existing
from calibrant.core.npz import read_npz
from calibrant.core.predictions import Predictions
from calibrant.core.tables import column_names, read_table
from calibrant.core.wilson import wilson
from calibrant.reporting.report import Segment, Segments

MOST_GROUPS = 50
LEAST_ROWS = 10  # below, one prediction decides
FALSE_ALARMS = 0.05  # share of the segments called worse than noise that may be noise after all

Names = npt.NDArray[Any]


def by_prediction(p: Predictions, after: Predictions | None, class_names: Sequence[str]) -> Segments:
    """Rows by the predicted class."""
    parts = [(class_names[c], np.flatnonzero(p.predicted == c)) for c in range(p.k)]
    later = None if after is None else [np.flatnonzero(after.predicted == c) for c in range(p.k)]
    return _segments("predicted class", parts, p, after, later)


def by_group(p: Predictions, after: Predictions | None, groups: Names, name: str) -> Segments:
    """Rows by the value of a column."""
    values = groups.astype(str)
    parts = [(visible(str(value)), np.flatnonzero(values == value)) for value in np.unique(values)]
    return _segments(visible(name), parts, p, after, None if after is None else [rows for _, rows in parts])


def check_groups(groups: Any, n: int, name: str = "groups") -> Names:
    """One value per row, and few enough of them to be segments."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InputError(name, expected=f"one value for each of {n} rows", got=f"shape {values.shape}", fix="check it")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "backslashreplace")
    if values.dtype.kind not in "biufUO":
        raise InputError(name, expected="text or numbers", got=f"type {values.dtype}", fix="convert it to text")
    distinct = len(np.unique(values.astype(str)))
    if distinct > MOST_GROUPS:
        raise InputError(
            name,
            expected=f"at most {MOST_GROUPS} different values",
            got=f"{distinct:,} in {n:,} rows",
            fix="name a coarser column, or use --groups none",
        )
    return values


def read_column(path: str | Path, column: str) -> Names:
    """One column of a file of predictions."""
    file = existing(path)
    if file.suffix == ".npz":
        arrays, names = read_npz(file, [column])
    else:
        names = column_names(file)
        arrays = {column: plain_column(read_table(file, [column])[column], file)} if column in names else {}
    if column not in arrays:
        raise unknown_name(f"{file.name}, --groups", column, names)
    return arrays[column]


def _segments(
    by: str, parts: list[tuple[str, Any]], p: Predictions, after: Predictions | None, later: list[Any] | None
) -> Segments:
    rows = []
    for i, (name, members) in enumerate(parts):
        if not len(members):
            continue
        gap_after = None
        if after is not None and later is not None and len(later[i]):
            gap_after = float(after.confidence[later[i]].mean() - after.correct[later[i]].mean())
        rows.append(_segment(name, p.confidence[members], p.correct[members].astype(np.float64), gap_after))
    beyond = _discoveries([s.p_value for s in rows])
    marked = [
        Segment(**{**vars(s), "beyond_noise": bool(yes)}) for s, yes in zip(rows, beyond, strict=True)
    ]  # the test of one depends on all the others
    marked.sort(key=lambda s: (-max(s.low, -s.high, 0.0), -abs(s.gap) * s.n**0.5))
    return Segments(by, _words(by, marked), sum(s.beyond_noise for s in marked), tuple(marked))


def _segment(name: str, confidence: Array, right: Array, gap_after: float | None) -> Segment:
    n, says, rate = len(right), float(confidence.mean()), float(right.mean())
    low, high = (float(end) for end in wilson(rate, n))
    return Segment(
        name, n, says, rate, says - rate, says - high, says - low, chance_of_gap(confidence, right), False, gap_after
    )


def chance_of_gap(confidence: Array, right: Array) -> float:
    """How often a calibrated model would be off by this much here: normal, with a correction for counts."""
    if len(right) < LEAST_ROWS:
        return 1.0
    off = max(0.0, abs(float((confidence - right).sum())) - 0.5)
    spread = float(np.sqrt((confidence * (1 - confidence)).sum()))
    if spread == 0:
        return 0.0 if off > 0 else 1.0
    from math import erfc, sqrt

    return float(erfc(off / spread / sqrt(2)))


def _discoveries(p_values: list[float]) -> npt.NDArray[np.bool_]:
    """Benjamini and Hochberg: of those called, at most 5 % are expected to be noise."""
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values) <= FALSE_ALARMS) if p_values else np.zeros(0, dtype=bool)


def _words(by: str, rows: list[Segment]) -> str:
    what, many = ("class", "classes") if by == "predicted class" else ("group", "groups")
    off = [s for s in rows if s.beyond_noise]
    if len(rows) == 1:
        return f"There is one {what} only, {rows[0].name}."
    if not off:
        return f"Of {wording.count(len(rows), what, many)} none is off by more than noise explains."
    over = sum(s.gap > 0 for s in off)
    sides = f"{over} overconfident, {len(off) - over} underconfident"
    sides = "all overconfident" if over == len(off) else "all underconfident" if over == 0 else sides
    if len(off) == 1:
        sides = "overconfident" if over else "underconfident"
    worst = off[0]
    where = f"when it predicts {worst.name}" if by == "predicted class" else f"in {worst.name}"
    return (
        f"{len(off)} of {wording.count(len(rows), what, many)} {'is' if len(off) == 1 else 'are'} off by more than "
        f"noise explains ({sides}). Worst: {where} it says {wording.percent(worst.says)} and is right "
        f"{wording.percent(worst.right)} ({wording.count(worst.n, 'row')})."
    )
