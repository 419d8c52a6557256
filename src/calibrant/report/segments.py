"""Where it is worst: the same two numbers, says and is right, for every class answered and every group of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.files import existing
from calibrant.core.predictions import Predictions
from calibrant.report import shown
from calibrant.report.values import Segment, Segments

MOST_GROUPS = 50
LEAST_ROWS = 10  # below, one answer decides
FALSE_ALARMS = 0.05  # share of the segments called worse than noise that may be noise after all
Z = 1.96

Names = npt.NDArray[Any]


def by_answer(p: Predictions, after: Predictions | None, class_names: Sequence[str]) -> Segments:
    """Rows by the class that the model answered."""
    parts = [(class_names[c], np.flatnonzero(p.predicted == c)) for c in range(p.k)]
    later = None if after is None else [np.flatnonzero(after.predicted == c) for c in range(p.k)]
    return _segments("class answered", parts, p, after, later)


def by_group(p: Predictions, after: Predictions | None, groups: Names, name: str) -> Segments:
    """Rows by the value of a column."""
    values = groups.astype(str)
    parts = [(str(value), np.flatnonzero(values == value)) for value in np.unique(values)]
    return _segments(name, parts, p, after, None if after is None else [rows for _, rows in parts])


def check_groups(groups: Any, n: int, name: str = "groups") -> Names:
    """One value per row, and few enough of them to be segments."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InputError(name, expected=f"one value for each of {n} rows", got=f"shape {values.shape}", fix="check it")
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
        with np.load(file, allow_pickle=False) as archive:
            if column not in archive.files:
                raise unknown_name(f"{file.name}, --groups", column, archive.files)
            try:
                return np.asarray(archive[column])
            except ValueError as error:
                raise InputError(
                    f"{file.name}, array {column}",
                    expected="plain strings or numbers",
                    got="pickled Python objects, which could run code",
                    fix="save it with .astype(str)",
                ) from error
    import polars as pl

    frame = pl.scan_parquet(file) if file.suffix == ".parquet" else pl.scan_csv(file, infer_schema_length=None)
    names = frame.collect_schema().names()
    if column not in names:
        raise unknown_name(f"{file.name}, --groups", column, names)
    series = frame.select(column).collect()[column]
    if gaps := series.null_count():
        raise InputError(
            f"{file.name}, column {column}", expected="a value in every row", got=f"{gaps} empty cells", fix="fill them"
        )
    return np.array(series.to_list())


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
    low, high = wilson(rate, n)
    return Segment(
        name, n, says, rate, says - rate, says - high, says - low, chance_of_gap(confidence, right), False, gap_after
    )


def wilson(rate: float, n: int, z: float = Z) -> tuple[float, float]:
    """The interval of a share that works for shares of 0 and 1 too.

    >>> low, high = wilson(0.5, 100)
    >>> round(low, 3), round(high, 3)
    (0.404, 0.596)
    """
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (rate * (1 - rate) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def chance_of_gap(confidence: Array, right: Array) -> float:
    """How often an honest model would be off by this much here: normal, with a correction for counts."""
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
    p = np.array(p_values)
    order = np.argsort(p, kind="stable")
    below = np.flatnonzero(p[order] <= FALSE_ALARMS * np.arange(1, len(p) + 1) / len(p))
    found = np.zeros(len(p), dtype=bool)
    if len(below):
        found[order[: below[-1] + 1]] = True
    return found


def _words(by: str, rows: list[Segment]) -> str:
    what, many = ("class", "classes") if by == "class answered" else ("group", "groups")
    off = [s for s in rows if s.beyond_noise]
    if len(rows) == 1:
        return f"There is one {what} only, {rows[0].name}."
    if not off:
        return f"Of {shown.count(len(rows), what, many)} none is off by more than noise explains."
    over = sum(s.gap > 0 for s in off)
    sides = f"{over} too sure, {len(off) - over} not sure enough"
    sides = "all too sure" if over == len(off) else "all not sure enough" if over == 0 else sides
    if len(off) == 1:
        sides = "too sure" if over else "not sure enough"
    worst = off[0]
    where = f"when it answers {worst.name}" if by == "class answered" else f"in {worst.name}"
    return (
        f"{len(off)} of {shown.count(len(rows), what, many)} {'is' if len(off) == 1 else 'are'} off by more than noise "
        f"explains ({sides}). Worst: {where} it says {shown.percent(worst.says)} and is right "
        f"{shown.percent(worst.right)} ({shown.count(worst.n, 'row')})."
    )
