"""A rate from few labels and many scores: a judge scores every row, people labelled some (docs/rates.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant import calibrators
from calibrant.core.arrays import Array
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.io.formats import plain_file
from calibrant.core.io.frames import plain_frame
from calibrant.core.io.tables import column_names, read_table
from calibrant.core.json import plain
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import check_confidence
from calibrant.core.statistics.estimate import Estimate, Normal
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.multiple_tests import holm
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.text import number_format as fmt
from calibrant.core.text.table import Table, TableResult
from calibrant.measuring.answer_table import number_column

if TYPE_CHECKING:
    pass

AUTO = "platt"  # two numbers: what fifty labels can tell
FOLDS = 5
NO_WIDTH = "all labels are alike, so that they do not show how far the rate may be off"
Bools = npt.NDArray[np.bool_]
Rows = Predictions | Mapping[str, Any] | str | Path | Any  # anything with columns: a frame, a file, a mapping


@dataclass(frozen=True, kw_only=True)
class RateColumns:
    """Names of the columns of a table of judged rows."""

    score: str = "score"
    human: str = "human"  # a label from 0 to 1; empty where nobody labelled the row
    cluster: str | None = None
    weight: str | None = None
    by: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rate(TableResult):
    """A mean label with its interval, what the labels and the judge say alone, and what the judge was worth.

    Where there are too few labels for an interval the ends are None, and `reason` says so.
    """

    value: float
    low: float | None
    high: float | None
    confidence: float
    labels_alone: tuple[float, float | None, float | None]  # mean of the labels, with its interval
    judge_alone: float  # mean score of all rows
    worth: float  # labels that would tell as much by themselves
    weight_of_judge: float  # from 0, where its scores do not follow the labels, to 1
    labelled: int
    unlabelled: int
    sensitivity: float | None  # of verdicts: share of the positive rows with a score above one half
    specificity: float | None
    kappa: float | None  # agreement of verdicts and labels beyond chance
    map: str
    bias: float  # mean label minus mean mapped score of the labelled rows
    bias_p_value: float | None = None  # corrected for the number of groups
    group: str | None = None
    reason: str | None = None

    @property
    def bias_words(self) -> str:
        """What is known of the mapped scores in this group: biased, or not beyond noise."""
        if self.bias_p_value is None:
            return ""
        where = self.group or "these rows"
        points = f"{100 * abs(self.bias):.1f} points {'too little' if self.bias > 0 else 'too much'}"
        chance = fmt.chance(self.bias_p_value)
        if self.bias_p_value < 1 - self.confidence:
            return f"In {where} the mapped scores promise {points} ({chance}): do not use them without labels there."
        return f"In {where} a bias of the mapped scores is not shown ({points}, {chance})."

    @property
    def words(self) -> str:
        """The result in one sentence that can be quoted."""
        own = _share(self.value, self.low, self.high, self.confidence)
        alone = _share(*self.labels_alone)
        whose = f" of {self.group}" if self.group else ""
        text = (
            f"{fmt.count(self.labelled, 'label')} and {fmt.count(self.unlabelled, 'further score')} put the rate"
            f"{whose} at {own}; the labels alone say {alone}, the judge alone says {fmt.percent(self.judge_alone)}."
        )
        if self.reason:
            return f"{text} No interval: {self.reason}."
        more = round(self.worth) - self.labelled
        bought = f"as much as {fmt.count(more, 'more label')}" if more > 0 else "nothing: it does not follow the labels"
        return f"{text} The judge is worth {bought}."

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self)) | {"words": self.words}

    def table(self) -> Table:
        return self.words, HEAD, [self.cells]

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of one row in a table of rates."""
        return (
            self.group or "all rows",
            fmt.percent(self.value),
            _ends(self.low, self.high),
            fmt.percent(self.labels_alone[0]),
            fmt.percent(self.judge_alone),
            f"{self.labelled:,}",
            f"{round(self.worth):,}" if np.isfinite(self.worth) else "",
        )


HEAD = ("group", "rate", "interval", "labels", "judge", "n", "worth")  # what labels and judge say alone


@dataclass(frozen=True, eq=False)
class _JudgedRows:
    """Scores of rows with their labels (NaN where there is none), weights and clusters."""

    scores: Array
    labels: Array
    weights: Array | None = None
    clusters: npt.NDArray[Any] | None = None  # any values: rows with the same one come together
    groups: npt.NDArray[Any] | None = None

    def take(self, rows: Any) -> "_JudgedRows":
        weights = None if self.weights is None else self.weights[rows]
        return _JudgedRows(
            self.scores[rows], self.labels[rows], weights, None if self.clusters is None else self.clusters[rows]
        )

    @property
    def n(self) -> int:
        return len(self.scores)

    @property
    def sampling(self) -> Sampling:
        clusters = None if self.clusters is None else np.unique(self.clusters, return_inverse=True)[1]
        return Sampling(n=self.n, weights=self.weights, clusters=clusters)

    def mean(self, values: Array) -> float:
        return float(np.average(values, weights=self.weights))

    def influence(self, values: Array) -> Array:
        """The influence of each row on the mean of the values."""
        w = np.ones(self.n) if self.weights is None else self.weights
        return np.asarray(w * (values - self.mean(values)) / w.sum())

    def covariance(self, x: Array, y: Array) -> float:
        w = np.full(self.n, 1 / self.n) if self.weights is None else self.weights / self.weights.sum()
        kish = 1 / float(w @ w)
        return float(w @ ((x - w @ x) * (y - w @ y))) * kish / max(kish - 1, 1e-12)


def estimate_rate(
    labelled: Rows,
    unlabelled: Rows | None = None,
    *,
    map: str | Map = "auto",
    score: str = "score",
    human: str = "human",
    by: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
    seed: int = 0,
) -> Rate | tuple[Rate, ...]:
    """Estimate the mean label of all rows, of which a judge scored each and people labelled some.

    The estimate is the mean label of the labelled rows, corrected by how far the judge's scores of all rows differ from
    those of the labelled ones, as far as scores follow labels. It holds for any judge: a bad one only makes it no
    shorter than the labels alone. Both kinds of rows must be random parts of one population.

    Parameters
    ----------
    labelled : Predictions, frame, mapping or file
        Rows with a score and a label in [0, 1]; rows without a label (empty, NaN) are unlabelled ones.
    unlabelled : the same, optional
        Rows with a score only, where they are a table of their own.
    map : "auto", "identity", the name of a calibrator, or a Map
        What turns scores into labels. A calibrator is cross-fitted on the labelled rows; a Map that saw none of these
        rows is used as it is. "auto" is platt.
    score, human, by, cluster, weight : str
        Names of columns. With `by` each group has its own rate, and the bias of the judge in it is tested.
    scale : tuple of float
        The lowest and the highest score, for instance (1, 10).
    confidence, seed
        Of the interval; of the folds.

    Returns
    -------
    Rate or, with `by`, a tuple of one Rate for each group
        `.value`, `.low`, `.high`, and `.words` to quote.

    Examples
    --------
    >>> i, j = np.arange(1, 61), np.arange(1, 601)
    >>> s, u = 0.6180339887498949 * i % 1, (0.5698402909980532 * j % 1) ** 0.8
    >>> y = 0.7548776662466927 * i % 1 < s**1.5
    >>> rate = estimate_rate({"score": s, "human": y}, {"score": u}, map="identity")
    >>> round(rate.value, 8), round(rate.low, 8), round(rate.high, 8)
    (0.4331789, 0.32655404, 0.53980376)
    """
    check_confidence(confidence)
    if not scale[0] < scale[1]:
        got, fix = f"{scale[0]:g} and {scale[1]:g}", "write for instance scale=(1, 10)"
        raise InputError("scale", expected="the lowest score, then the highest", got=got, fix=fix)
    columns = RateColumns(score=score, human=human, cluster=cluster, weight=weight, by=by)
    rows = _read(labelled, columns, scale)
    if unlabelled is not None:
        rows = _join(rows, _read(unlabelled, columns, scale, labels=False))
    known = ~np.isnan(rows.labels)
    if not known.any():
        fix = f"label some rows (column {human}), at random"
        raise InputError("estimate_rate", expected="rows with a label", got="none", fix=fix)
    mapped, name = _map_scores(rows, known, map, seed)
    if by is not None and rows.groups is None:
        fix = "give groups in all tables"
        raise InputError("by", expected="groups of the rows", got="none", fix=fix)
    if rows.groups is None:
        return _estimate(rows, known, mapped, name, confidence)
    rates: list[Rate] = []
    for group in np.unique(rows.groups):
        inside = rows.groups == group
        if not known[inside].any():
            raise InputError(
                f"estimate_rate by {by}",
                expected="labels in every group: the judge may be biased in one that has none",
                got=f"none in {group}",
                fix="label some of its rows, or leave the group out",
            )
        rates.append(_estimate(rows.take(inside), known[inside], mapped[inside], name, confidence, str(group)))
    corrected = holm(np.array([np.nan if r.bias_p_value is None else r.bias_p_value for r in rates]))
    return tuple(
        replace(rate, bias_p_value=None if np.isnan(p) else float(p)) for rate, p in zip(rates, corrected, strict=True)
    )


def _estimate(
    rows: _JudgedRows, known: Bools, mapped: Array, name: str, confidence: float, group: str | None = None
) -> Rate:
    """The estimate from rows of one group, whose scores are mapped: docs/rates.md."""
    known_rows, others = rows.take(known), rows.take(~known)
    y, m, m_u = known_rows.labels, mapped[known], mapped[~known]
    sampling = known_rows.sampling
    share = 0.0
    if others.n and known_rows.n > 1 and (variance := known_rows.covariance(m, m)) > 0:
        share = float(np.clip(known_rows.covariance(y, m) / variance / (1 + known_rows.n / others.n), 0, 1))
    value = known_rows.mean(y) + (share * (others.mean(m_u) - known_rows.mean(m)) if others.n else 0.0)
    error = float(np.hypot(sampling.error(known_rows.influence(y - share * m)), share * _error(others, m_u)))
    few = too_few_rows(sampling.units, clusters=known_rows.clusters is not None)
    own = _interval(value, error, sampling.freedom, few)
    alone = _interval(known_rows.mean(y), sampling.error(known_rows.influence(y)), sampling.freedom, few)
    reason = own.why_none(confidence)
    bias = Estimate(
        value=known_rows.mean(y) - known_rows.mean(m),
        noise=Normal(error=sampling.error(known_rows.influence(y - m)), freedom=sampling.freedom),
    )
    sensitivity, specificity, kappa = _agreement(known_rows)
    return Rate(
        value=own.value,
        low=_end(own, "low", confidence),
        high=_end(own, "high", confidence),
        confidence=confidence,
        labels_alone=(alone.value, _end(alone, "low", confidence), _end(alone, "high", confidence)),
        judge_alone=rows.mean(rows.scores),
        worth=known_rows.n * (sampling.error(known_rows.influence(y)) / error) ** 2 if error else known_rows.n,
        weight_of_judge=share,
        labelled=known_rows.n,
        unlabelled=others.n,
        sensitivity=sensitivity,
        specificity=specificity,
        kappa=kappa,
        map=name,
        bias=bias.value,
        bias_p_value=None if few else bias.p_value(),
        group=group,
        reason=reason,
    )


def _interval(value: float, error: float, freedom: float, reason: str | None) -> Estimate:
    noise = None if reason else Normal(error=error, freedom=freedom)
    return Estimate(value=value, noise=noise, reason=reason, bounds=(0.0, 1.0), no_width=NO_WIDTH)


def _end(e: Estimate, side: Literal["low", "high"], confidence: float) -> float | None:
    ends = e.interval(confidence)
    return None if ends is None else getattr(ends, side)


def _error(rows: _JudgedRows, values: Array) -> float:
    return rows.sampling.error(rows.influence(values)) if rows.n > 1 else 0.0


def _agreement(rows: _JudgedRows) -> tuple[float | None, float | None, float | None]:
    """Sensitivity, specificity and Cohen's kappa of verdicts (scores above one half), where labels are 0 or 1."""
    if not np.isin(rows.labels, (0, 1)).all() or rows.labels.min() == rows.labels.max():
        return None, None, None
    said, true = rows.scores > 0.5, rows.labels == 1
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    both, neither, total = w[said & true].sum(), w[~said & ~true].sum(), w.sum()
    positive, yes = w[true].sum(), w[said].sum()
    chance = (positive * yes + (total - positive) * (total - yes)) / total**2
    kappa = ((both + neither) / total - chance) / (1 - chance) if chance < 1 else None
    return float(both / positive), float(neither / (total - positive)), None if kappa is None else float(kappa)


# -- maps -----------------------------------------------------------------------------------------


def _map_scores(rows: _JudgedRows, known: Bools, map: str | Map, seed: int) -> tuple[Array, str]:
    """Every score through the map: a labelled row by a map that did not see it (or rows of its cluster)."""
    if isinstance(map, Map):
        return _apply(map, rows.scores), map.calibrator
    if map == "identity":
        return rows.scores, "identity"
    calibrator = calibrators.make(AUTO if map == "auto" else map)
    labelled = np.flatnonzero(known)
    units = labelled if rows.clusters is None else rows.clusters[labelled]
    distinct, unit = np.unique(units, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(distinct)) % FOLDS)[unit]
    mapped, folds = np.zeros(rows.n), np.unique(fold)
    for f in folds:
        fitted = calibrator.fit(_graded(rows.take(labelled[fold != f]) if len(folds) > 1 else rows.take(labelled)))
        mapped[labelled[fold == f]] = _apply(fitted, rows.scores[labelled[fold == f]])
        mapped[~known] += _apply(fitted, rows.scores[~known]) / len(folds)
    return mapped, f"{AUTO if map == 'auto' else map}, cross-fitted"


def _graded(rows: _JudgedRows) -> Predictions:
    """Labels from 0 to 1 as rows of both outcomes, each with its share as weight."""
    w = np.ones(rows.n) if rows.weights is None else rows.weights
    weights = np.concatenate([w * rows.labels, w * (1 - rows.labels)])
    kept = weights > 0
    outcomes = np.repeat([1, 0], rows.n)[kept]
    counted = rows.weights is not None or np.any(weights[kept] != 1)
    return Predictions.binary(np.tile(rows.scores, 2)[kept], outcomes, weights=weights[kept] if counted else None)


def _apply(m: Map, scores: Array) -> Array:
    return m(Predictions.binary(scores, None)).score if len(scores) else scores


# -- rows -----------------------------------------------------------------------------------------


def _read(source: Rows, columns: RateColumns, scale: tuple[float, float], *, labels: bool = True) -> _JudgedRows:
    """Read rows from predictions, a frame, a mapping or a file; labels may be missing."""
    if isinstance(source, Predictions):
        known = source.outcome.astype(np.float64) if labels else np.full(source.n, np.nan)
        return _JudgedRows(source.score, known, source.weights, source.clusters, source.groups if columns.by else None)
    wanted = [name for name in (columns.score, columns.human, columns.cluster, columns.weight, columns.by) if name]
    needed = [name for name in wanted if name != columns.human or labels]
    if isinstance(source, str | Path):
        place = str(source)
        with plain_file(source) as file:
            names = column_names(file)
            _check_names(place, needed, names)
            frame = read_table(file, [name for name in names if name in wanted])
    else:
        place, frame = "rows", plain_frame(source, lambda name: name in wanted)
        _check_names(place, needed, frame.columns)
    lowest, highest = scale
    scores = (number_column(frame, columns.score, place) - lowest) / (highest - lowest)
    if np.isnan(scores).any() or scores.min(initial=0) < 0 or scores.max(initial=0) > 1:
        row = int(np.flatnonzero(~((scores >= 0) & (scores <= 1)))[0])
        raise InputError(
            f"{place}, column {columns.score}",
            expected=f"a score from {lowest:g} to {highest:g} in every row",
            got=f"{frame[columns.score][row]} in row {row}",
            fix="give the lowest and the highest score: scale=(1, 10), --scale 1,10",
        )
    has_labels = labels and columns.human in frame.columns
    known = number_column(frame, columns.human, place) if has_labels else np.full(frame.height, np.nan)
    if ((known < 0) | (known > 1)).any():
        got, fix = f"{known[(known < 0) | (known > 1)][0]:g}", "divide grades by the highest one"
        raise InputError(f"{place}, column {columns.human}", expected="labels from 0 to 1", got=got, fix=fix)
    codes = {
        name: None if column is None else frame[column].cast(_text()).fill_null("").to_numpy()
        for name, column in (("clusters", columns.cluster), ("groups", columns.by))
    }
    weights = None if columns.weight is None else number_column(frame, columns.weight, place)
    if weights is not None and not (np.isfinite(weights).all() and (weights > 0).all()):
        fix = "drop the rows without one"
        raise InputError(f"{place}, column {columns.weight}", expected="weights above 0", got="another value", fix=fix)
    return _JudgedRows(scores, known, weights, codes["clusters"], codes["groups"])


def _text() -> Any:
    import polars as pl

    return pl.String


def _check_names(place: str, wanted: list[str], names: list[str]) -> None:
    for name in wanted:
        if name not in names:
            raise unknown_name(f"{place}, column", name, list(names))


def _join(a: _JudgedRows, b: _JudgedRows) -> _JudgedRows:
    def both(x: Any, y: Any) -> Any:
        return None if x is None or y is None else np.concatenate([x, y])

    return _JudgedRows(
        np.concatenate([a.scores, b.scores]),
        np.concatenate([a.labels, b.labels]),
        both(a.weights, b.weights),
        both(a.clusters, b.clusters),
        both(a.groups, b.groups),
    )


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{fmt.percent(low)}, {fmt.percent(high)}]"


def _share(value: float, low: float | None, high: float | None, confidence: float | None = None) -> str:
    if low is None or high is None:
        return fmt.percent(value)
    level = "" if confidence is None else f"{fmt.level(confidence)} interval "
    return f"{fmt.percent(value)} ({level}{fmt.percent(low)} to {fmt.percent(high)})"
