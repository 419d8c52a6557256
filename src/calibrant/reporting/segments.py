"""Calibration of segments: every predicted class and every group of rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Integers
from calibrant.core.curves.weighted import is_whole
from calibrant.core.errors import InputError, visible
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_shares import effective_rows
from calibrant.core.statistics.multiple_tests import benjamini_hochberg
from calibrant.core.statistics.shares import wilson
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import vocabulary_of
from calibrant.reporting.parts import Segment, Segments

MOST_GROUPS = 50
LEAST_ROWS = 10  # below, one prediction decides
LEAST_HARM = 0.01  # growth of a gap that is worth a word
FALSE_ALARMS = 0.05  # share of the segments called worse than noise that may be noise after all

Names = npt.NDArray[Any]


def by_prediction(p: Predictions, after: Predictions | None, class_names: Sequence[str]) -> Segments:
    """Segments by the predicted class."""
    parts = [(class_names[c], np.flatnonzero(p.predicted == c)) for c in range(p.k)]
    later = None if after is None else [np.flatnonzero(after.predicted == c) for c in range(p.k)]
    return summarise("predicted class", _segments(parts, p, after, later), p.task, of_classes=True)


def by_group(p: Predictions, after: Predictions | None, groups: Names, name: str) -> Segments:
    """Segments by the value of a column."""
    values = groups.astype(str)
    parts = [(visible(str(value)), np.flatnonzero(values == value)) for value in np.unique(values)]
    later = None if after is None else [rows for _, rows in parts]
    return summarise(visible(name), _segments(parts, p, after, later), p.task)


def check_groups(groups: npt.ArrayLike, n: int, name: str = "groups") -> Names:
    """Check group values: one per row, and few enough of them to be segments."""
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
            fix="name a coarser column, or use --group-column none",
        )
    return values


def _segments(
    parts: list[tuple[str, Any]], p: Predictions, after: Predictions | None, later: list[Any] | None
) -> list[Segment]:
    rows = []
    for i, (name, members) in enumerate(parts):
        if not len(members) or (p.weights is not None and not p.weights[members].any()):
            continue
        row = _segment(name, p.take(members))
        if after is not None and later is not None and len(later[i]):
            q = after.take(later[i])
            row = replace(row, gap_after=q.mean(q.score - q.outcome), p_value_after=_chance_of_gap_of(q))
        rows.append(row)
    return rows


def summarise(by: str, rows: list[Segment], task: str, *, of_classes: bool = False) -> Segments:
    """Mark segments whose gap is more than noise, before and after, corrected for the tests; the worst first."""
    before = _beyond_noise([s.p_value for s in rows])
    after = _beyond_noise([float("nan") if s.p_value_after is None else s.p_value_after for s in rows])
    marked = [
        replace(s, beyond_noise=i in before, beyond_noise_after=i in after, worse_after=i in after and _is_worse(s))
        for i, s in enumerate(rows)
    ]
    marked.sort(key=lambda s: (-max(s.low, -s.high, 0.0) if s.low == s.low else 0.0, -abs(s.gap) * s.n**0.5))
    return Segments(by, _words(marked, task, of_classes), len(before), tuple(marked))


def _is_worse(s: Segment) -> bool:
    """Whether the gap grew: by a point at least, and so that the middle of both is beyond the noise that they share."""
    assert s.gap_after is not None
    return abs(s.gap_after) - abs(s.gap) >= LEAST_HARM and abs(s.gap + s.gap_after) > s.high - s.low


def _segment(name: str, p: Predictions) -> Segment:
    says, rate = p.mean(p.score), p.mean(p.outcome)
    low, high = (float(end) for end in wilson(rate, effective_rows(p)))
    return Segment(
        name=name,
        n=p.n,
        says=says,
        right=rate,
        gap=says - rate,
        low=says - high,
        high=says - low,
        p_value=_chance_of_gap_of(p),
        beyond_noise=False,
        gap_after=None,
    )


def _chance_of_gap_of(p: Predictions) -> float:
    return chance_of_gap(p.score, p.outcome.astype(np.float64), p.weights, p.clusters)


def chance_of_gap(
    score: Array, outcome: Array, weights: Array | None = None, clusters: Integers | None = None
) -> float:
    """The chance that a calibrated model is off by this much here: normal, with a correction for counts.

    Rows that came together may be right and wrong together: then the spread of whole clusters is asked.
    """
    if len(outcome) < LEAST_ROWS:
        return 1.0
    w = np.ones(len(outcome)) if weights is None else weights
    counts = weights is None or is_whole(weights)
    off = max(0.0, abs(float(w @ (score - outcome))) - (0.5 if counts else 0.0))
    spread = float(np.sqrt((w if counts else w * w) @ (score * (1 - score))))
    if clusters is not None:
        apart = np.bincount(clusters, w * (score - outcome - float(w @ (score - outcome) / w.sum())))
        spread = max(spread, float(np.sqrt(apart @ apart)))
    if spread == 0:
        return 0.0 if off > 0 else 1.0
    from math import erfc, sqrt

    return float(erfc(off / spread / sqrt(2)))


def _beyond_noise(p_values: list[float]) -> set[int]:
    """Places of the significant p-values by Benjamini and Hochberg: at most 5 % of them are expected to be noise."""
    tested = [i for i, p in enumerate(p_values) if p == p]
    if not tested:
        return set()
    yes = benjamini_hochberg(np.array([p_values[i] for i in tested])) <= FALSE_ALARMS
    return {i for i, significant in zip(tested, yes, strict=True) if significant}


def _words(rows: list[Segment], task: str, of_classes: bool) -> str:
    words = vocabulary_of(task)
    noun, many = ("class", "classes") if of_classes else ("group", "groups")
    off = [s for s in rows if s.beyond_noise]
    if len(rows) == 1:
        return f"There is one {noun} only, {rows[0].name}."
    if any(s.p_value != s.p_value for s in rows):
        return f"{fmt.sentence(fmt.count(len(rows), noun, many))}; without a test, for rows came in clusters."
    if not off:
        return f"Of {fmt.count(len(rows), noun, many)} none is off by more than noise explains."
    over = sum(s.gap > 0 for s in off)
    sides = f"{over} {words.over}, {len(off) - over} {words.under}"
    sides = f"all {words.over}" if over == len(off) else f"all {words.under}" if over == 0 else sides
    if len(off) == 1:
        sides = words.over if over else words.under
    worst = off[0]
    where = f"when it predicts {worst.name}" if of_classes else f"in {worst.name}"
    return (
        f"{len(off)} of {fmt.count(len(rows), noun, many)} {'is' if len(off) == 1 else 'are'} off by more than "
        f"noise explains ({sides}). Worst: {where} it {words.says} {fmt.percent(worst.says)} "
        f"and {_rate(worst, task)} ({fmt.count(worst.n, 'row')})."
    )


def _rate(worst: Segment, task: str) -> str:
    rate = fmt.percent(worst.right)
    return f"{rate} are positive" if task == "binary" else f"is right {rate}"
