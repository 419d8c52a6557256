"""Where it is worst: the same two numbers, says and is right, for every predicted class and every group of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core import wording
from calibrant.core.arrays import Array, Ints
from calibrant.core.columns import plain_column
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.core.files import existing
from calibrant.core.npz import read_npz
from calibrant.core.predictions import Predictions
from calibrant.core.spoken import spoken
from calibrant.core.tables import column_names, read_table
from calibrant.core.weighted import is_whole
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
        if not len(members) or (p.weights is not None and not p.weights[members].any()):
            continue
        gap_after = None
        if after is not None and later is not None and len(later[i]):
            q = after.take(later[i])
            gap_after = q.mean(q.score - q.hit)
        rows.append(_segment(name, p.take(members), gap_after))
    beyond = _discoveries([s.p_value for s in rows])
    marked = [
        Segment(**{**vars(s), "beyond_noise": bool(yes)}) for s, yes in zip(rows, beyond, strict=True)
    ]  # the test of one depends on all the others
    marked.sort(key=lambda s: (-max(s.low, -s.high, 0.0), -abs(s.gap) * s.n**0.5))
    return Segments(by, _words(by, marked, p.shape), sum(s.beyond_noise for s in marked), tuple(marked))


def _segment(name: str, p: Predictions, gap_after: float | None) -> Segment:
    says, rate = p.mean(p.score), p.mean(p.hit)
    low, high = (float(end) for end in wilson(rate, worth(p)))
    chance = chance_of_gap(p.score, p.hit.astype(np.float64), p.weights, p.clusters)
    return Segment(name, p.n, says, rate, says - rate, says - high, says - low, chance, False, gap_after)


def worth(p: Predictions) -> float:
    """Rows of equal weight that would tell as much; of rows that came together, the clusters at worst."""
    curve = p.curve
    rows = max(curve.total * curve.effective, 1e-9)
    return rows if p.clusters is None else min(rows, _rows_of_clusters(p, rows))


def _rows_of_clusters(p: Predictions, rows: float) -> float:
    """By the spread of the hits of whole clusters."""
    assert p.clusters is not None
    rate, w = p.mean(p.hit), np.ones(p.n) if p.weights is None else p.weights
    apart = np.bincount(p.clusters, w * (p.hit - rate))
    alone, together = float((w * w) @ (p.hit - rate) ** 2), float(apart @ apart)
    return rows * alone / together if together > alone > 0 else rows


def chance_of_gap(score: Array, hit: Array, weights: Array | None = None, clusters: Ints | None = None) -> float:
    """How often a calibrated model would be off by this much here: normal, with a correction for counts.

    Rows that came together may be right and wrong together: then the spread of whole clusters is asked.
    """
    if len(hit) < LEAST_ROWS:
        return 1.0
    w = np.ones(len(hit)) if weights is None else weights
    counts = weights is None or is_whole(weights)
    off = max(0.0, abs(float(w @ (score - hit))) - (0.5 if counts else 0.0))
    spread = float(np.sqrt((w if counts else w * w) @ (score * (1 - score))))
    if clusters is not None:
        apart = np.bincount(clusters, w * (score - hit - float(w @ (score - hit) / w.sum())))
        spread = max(spread, float(np.sqrt(apart @ apart)))
    if spread == 0:
        return 0.0 if off > 0 else 1.0
    from math import erfc, sqrt

    return float(erfc(off / spread / sqrt(2)))


def _discoveries(p_values: list[float]) -> npt.NDArray[np.bool_]:
    """Benjamini and Hochberg: of those called, at most 5 % are expected to be noise."""
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p_values) <= FALSE_ALARMS) if p_values else np.zeros(0, dtype=bool)


def _words(by: str, rows: list[Segment], shape: str) -> str:
    words = spoken(shape)
    what, many = ("class", "classes") if by == "predicted class" else ("group", "groups")
    off = [s for s in rows if s.beyond_noise]
    if len(rows) == 1:
        return f"There is one {what} only, {rows[0].name}."
    if not off:
        return f"Of {wording.count(len(rows), what, many)} none is off by more than noise explains."
    over = sum(s.gap > 0 for s in off)
    sides = f"{over} {words.over}, {len(off) - over} {words.under}"
    sides = f"all {words.over}" if over == len(off) else f"all {words.under}" if over == 0 else sides
    if len(off) == 1:
        sides = words.over if over else words.under
    worst = off[0]
    where = f"when it predicts {worst.name}" if by == "predicted class" else f"in {worst.name}"
    return (
        f"{len(off)} of {wording.count(len(rows), what, many)} {'is' if len(off) == 1 else 'are'} off by more than "
        f"noise explains ({sides}). Worst: {where} it {words.says} {wording.percent(worst.says)} "
        f"and {_rate(worst, shape)} ({wording.count(worst.n, 'row')})."
    )


def _rate(worst: Segment, shape: str) -> str:
    rate = wording.percent(worst.right)
    return f"{rate} are positive" if shape == "binary" else f"is right {rate}"
