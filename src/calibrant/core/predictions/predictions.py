"""Predictions: the scores of a classifier and the true labels, validated once, never changed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Integers, Ints, lock
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import LONG
from calibrant.core.curves.native import SoftmaxStats
from calibrant.core.curves.softmax import set_top_probability_
from calibrant.core.curves.weighted import WeightedCurves, effective_rows
from calibrant.core.errors import InputError
from calibrant.core.io.column_names import ColumnOptions, Columns, LabelRule
from calibrant.core.io.frames import read_frame
from calibrant.core.io.load import load_scores
from calibrant.core.io.missing import MissingCount
from calibrant.core.io.save import save_predictions
from calibrant.core.io.score_table import ScoreTable
from calibrant.core.keywords import spell_out_keywords
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions import constants
from calibrant.core.predictions.logit_range import clip_logits, mask_options
from calibrant.core.predictions.options import DEFAULTS, EventOptions, ScoreOptions
from calibrant.core.predictions.parsing import parse_event, parse_scores, parse_table
from calibrant.core.predictions.row_data import RowData, ScoreType, Task
from calibrant.core.predictions.rows import row_numbers, split_rows
from calibrant.core.predictions.views import curves, outcomes, probabilities, view


class Predictions:
    """Scores and labels of one of four tasks, valid once built and never changed.

    - multiclass: logits or probabilities (n, k) and labels (n,), from `from_logits` or `from_probs`;
    - binary: P(positive) or its logit (n,) and labels, from `binary`;
    - confidence: a confidence and whether the prediction was right, from `from_confidence`;
    - choice: as multiclass, but with options that some rows do not have, from `from_logits(..., mask=...)`.

    Each takes further arrays with one entry per row: `weights` (counts or shares), `clusters` (rows of one cluster
    depend on each other), `groups` (segments), `ids` (names of rows) and `features` (n, d), input of the last layer.

    They own their arrays: what is given is copied, unless it is read-only, so a buffer may be used again.
    `values` (n, k) are the scores, and `score_type` says which: "logits" or "probs". Binary scores are the second
    column, and so are confidences, as the probability of being right. Rows without labels (`labels=None`) can be
    calibrated; whatever needs labels raises an InputError then.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> p.confidence, p.correct
    (array([0.9, 0.6]), array([ True, False]))
    """

    given_scores: Floats  # (n, k), or (n,) where rows have one score, the probability of their event
    given_labels: Integers | npt.NDArray[np.bool_] | None  # outcomes beside scores (n,); None without labels
    score_type: ScoreType
    row_data: RowData

    @classmethod
    @spell_out_keywords(DEFAULTS)
    def from_logits(
        cls, logits: npt.ArrayLike, labels: npt.ArrayLike | None, **options: Unpack[ScoreOptions]
    ) -> "Predictions":
        """Build predictions from scores before the softmax (log-probabilities are logits too).

        `mask` (or logits of -inf) says which options a row has. `axis` is that of the classes in an array with more
        axes, as networks give it: (N, C, H, W) with axis=1, (N, T, V) with axis=-1; rows labelled `ignore` are dropped.
        `labels=None` is for rows without labels, which can be calibrated but not measured.
        """
        return cls._from_valid(*parse_scores(logits, labels, "logits", **options))

    @classmethod
    @spell_out_keywords(DEFAULTS)
    def from_probs(
        cls, probs: npt.ArrayLike, labels: npt.ArrayLike | None, **options: Unpack[ScoreOptions]
    ) -> "Predictions":
        """Build predictions from probabilities: rows inside [0, 1] that sum to one. Options as of `from_logits`."""
        return cls._from_valid(*parse_scores(probs, labels, "probs", **options))

    @classmethod
    @spell_out_keywords(DEFAULTS)
    def binary(
        cls,
        scores: npt.ArrayLike,
        labels: npt.ArrayLike | None,
        *,
        positive: Any = None,
        **options: Unpack[EventOptions],
    ) -> "Predictions":
        """Build binary predictions from P(positive), or its logit with `logits=True`.

        Labels are 0 and 1, or any two with `positive` named.

        Scores and labels may have any number of axes, as masks (N, H, W) have: each image is a cluster then.
        `labels=None` is for rows without labels.

        >>> p = Predictions.binary([0.9, 0.2, 0.6], ["malignant", "benign", "benign"], positive="malignant")
        >>> p.score, p.outcome
        (array([0.9, 0.2, 0.6]), array([ True, False, False]))
        """
        return cls._from_valid(*parse_event("binary", scores, labels, positive=positive, **options))

    @classmethod
    @spell_out_keywords(DEFAULTS)
    def from_confidence(
        cls, confidence: npt.ArrayLike, correct: npt.ArrayLike | None, **options: Unpack[EventOptions]
    ) -> "Predictions":
        """Build predictions from confidences in [0, 1] and whether each answer was right, None where that is not known.

        >>> p = Predictions.from_confidence([0.9, 0.4], correct=[1, 1])
        >>> p.score, p.outcome, p.task
        (array([0.9, 0.4]), array([ True,  True]), 'confidence')
        """
        return cls._from_valid(*parse_event("confidence", confidence, correct, **options))

    @classmethod
    @spell_out_keywords(Columns)
    def from_frame(
        cls,
        frame: Any,
        *,
        labels: LabelRule = "required",
        allow_few_rows: bool = False,
        **columns: Unpack[ColumnOptions],
    ) -> "Predictions":
        """Build predictions from columns of a pandas or polars frame: those named here, else those with standard names.

        >>> import polars as pl
        >>> answers = pl.DataFrame({"stated": [0.9, 0.6, None], "correct": [1, 0, 1]})
        >>> p = Predictions.from_frame(answers, confidence="stated", missing="drop")
        >>> p.confidence, str(p.missing)
        (array([0.9, 0.6]), '1 of 3 rows (33.3 %) has no confidence and was left out.')
        """
        return cls.from_table(read_frame(frame, Columns(**columns), labels=labels), allow_few_rows=allow_few_rows)

    @classmethod
    @spell_out_keywords(Columns)
    def load(
        cls,
        path: str | Path,
        *,
        per_character: bool = False,
        labels: LabelRule = "required",
        allow_few_rows: bool = False,
        **columns: Unpack[ColumnOptions],
    ) -> "Predictions":
        """Load an .npz, .parquet, .csv or .jsonl file, also compressed (.gz); "-" is standard input. Runs no code.

        Columns are those named here, else those with the standard names (docs/files.md), as in `from_frame`. With
        `labels="optional"` a file without labels is read too. Sample files of lm-evaluation-harness are read as they
        are; `per_character=True` divides each log-likelihood by the length of its option, as its acc_norm does.
        """
        table = load_scores(path, Columns(**columns, per_character=per_character), labels=labels)
        return cls.from_table(table, allow_few_rows=allow_few_rows)

    @classmethod
    def from_table(cls, table: ScoreTable, *, allow_few_rows: bool = False) -> "Predictions":
        """Build predictions from the scores that `core.io` reads from a file or a frame."""
        return cls._from_valid(*parse_table(table, allow_few_rows=allow_few_rows))

    def save(self, path: str | Path) -> None:
        """Write an .npz, .parquet, .csv or .jsonl file, whole or not at all."""
        if not np.isfinite(self.values).all():
            fix = "check the map that they come from: it is damaged, or its numbers are too large"
            raise InputError(str(path), expected="finite predictions", got="NaN or infinity", fix=fix)
        save_predictions(self, path)

    @classmethod
    def _from_valid(
        cls,
        scores: Floats,
        labels: Integers | npt.NDArray[np.bool_] | None,
        score_type: ScoreType,
        row_data: RowData | None = None,
        softmax_stats: SoftmaxStats | None = None,
    ) -> "Predictions":
        """Predictions of valid arrays that nobody else writes to: they are neither checked nor copied.

        Scores (n,), one per row in float64, come with booleans for labels. `softmax_stats` is what the pass that
        checked the logits has found.
        """
        p, row_data = object.__new__(cls), row_data or RowData()
        vars(p).update(given_scores=scores, given_labels=labels, score_type=score_type, row_data=row_data)
        if softmax_stats is not None:
            vars(p).update(softmax_stats=softmax_stats)
        lock(scores, *(() if labels is None else (labels,)), *row_data.arrays().values())
        return p

    def __init__(self, *_: object, **__: object) -> None:
        raise InputError(
            "Predictions",
            expected="a constructor that says what the scores are",
            got="Predictions(...)",
            fix="use Predictions.from_logits, from_probs, binary or from_confidence",
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"predictions never change: build new ones instead of setting {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what they were built from, for another process; cached views are computed again."""
        return Predictions._from_valid, (self.given_scores, self.given_labels, self.score_type, self.row_data)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        task = "" if self.task == "multiclass" else f", {self.task}"
        labels = "" if self.labelled else ", without labels"
        return f"Predictions(n={self.n}, k={self.k}, from {self.score_type}{task}{labels})"

    def _repr_html_(self) -> str:
        from calibrant.core.text.number_format import percent
        from calibrant.core.text.table import html_table
        from calibrant.core.text.vocabulary import vocabulary_of

        words = vocabulary_of(self.row_data.task)
        rows = [("rows", f"{self.n:,}"), (words.says_on_average, percent(self.mean(self.score)))]
        rows += [(words.rate_on_average, percent(self.mean(self.outcome)))] if self.labelled else []
        rows += [("classes", f"{self.k:,}")] if self.row_data.task == "multiclass" else []
        rows += [("note", note) for note in self.notes]
        return html_table(repr(self), ("", ""), rows)

    # -- other predictions from these ------------------------------------------------------------

    def take(self, index: npt.ArrayLike) -> "Predictions":
        """The rows of `index` (integers or a mask), in that order; repeats are allowed."""
        rows = row_numbers(index, self.n)
        return self._rows(rows, self.row_data.take(rows))

    def slice_rows(self, rows: slice) -> "Predictions":
        """Rows that follow each other, without a copy; clusters keep their numbers."""
        return self._rows(rows, self.row_data.slice_rows(rows))

    def _rows(self, rows: slice | Ints, row_data: RowData) -> "Predictions":
        labels = None if self.given_labels is None else self.given_labels[rows]
        return Predictions._from_valid(self.given_scores[rows], labels, self.score_type, row_data)

    def map_chunks(
        self, function: Callable[["Predictions"], npt.NDArray[Any]], dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[Any]:
        """Compute one number per row; of very many rows part by part, so that only the result has their length."""
        if not self.is_long:
            return function(self)
        numbers = np.empty(self.n, dtype=dtype)

        def work(rows: slice) -> None:
            numbers[rows] = function(self.slice_rows(rows))

        run_pieces(work, pieces(self.n, constants.PART_ROWS), self.n * self.k)
        return numbers

    def split(self, fraction: float = 0.5, *, seed: int = 0) -> tuple["Predictions", "Predictions"]:
        """Two disjoint random parts, the first holding `fraction` of the rows."""
        first, second = split_rows(self.n, fraction, seed, self.clusters)
        return self.take(first), self.take(second)

    def with_values(self, values: Floats, score_type: ScoreType, row_data: RowData | None = None) -> "Predictions":
        """Predictions of the same rows, and labels if any, with other valid scores (n, k). For internal use."""
        labels = self.labels if self.one_score and self.labelled else self.given_labels
        return Predictions._from_valid(values, labels, score_type, row_data or self.row_data)

    def with_temperature(self, T: float) -> "Predictions":
        """Predictions with every logit divided by the temperature T, in float64."""
        if not T > 0:
            raise InputError("temperature", expected="a number above 0", got=str(T), fix="use for instance 1.5")
        with np.errstate(over="ignore"):
            cooled = clip_logits(self.logits / np.float64(T))
        if self.row_data.option_mask is not None:  # however hot, options that are not there stay out
            cooled = mask_options(cooled, self.row_data.option_mask)
        return self.with_values(cooled, "logits")

    def with_confidence(self, q: npt.ArrayLike) -> "Predictions":
        """Predictions with other confidences (n,): the other classes are rescaled to share what is left.

        The predictions are carried along, because where q is small another class may have the larger probability. Of
        binary predictions q is the new P(positive), and the prediction is whatever q says.
        """
        confidence = np.asarray(q, dtype=np.float64)
        if confidence.shape != (self.n,) or not np.all((confidence >= 0) & (confidence <= 1)):  # NaN is not either
            got = (
                f"shape {confidence.shape}"
                if confidence.shape != (self.n,)
                else f"{np.min(confidence):g} to {np.max(confidence):g}"
            )
            fix = "give one probability per row"
            raise InputError("with_confidence", expected=f"{self.n} numbers from 0 to 1", got=got, fix=fix)
        if self.task == "binary":
            both = np.stack([1 - confidence, confidence], axis=1)
            return self.with_values(both, "probs", replace(self.row_data, predicted=None))
        probs, predicted, exists = self.probs, self.predicted, self.row_data.option_mask
        probs = probs if probs.flags.writeable else probs.copy()  # large predictions of logits compute them anew

        def work(rows: slice) -> None:
            options = None if exists is None else exists[rows]
            set_top_probability_(probs[rows], predicted[rows], confidence[rows], options)

        run_pieces(work, pieces(self.n, self.chunk_rows), probs.size)
        return self.with_values(probs, "probs", replace(self.row_data, predicted=predicted))

    # -- data of rows ----------------------------------------------------------------------------

    @property
    def task(self) -> Task:
        """The task: multiclass, binary, confidence or choice."""
        return self.row_data.task

    @property
    def weights(self) -> Array | None:
        return self.row_data.weights

    @property
    def clusters(self) -> Integers | None:
        return self.row_data.shared_clusters

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; empty where they have none."""
        return self.row_data.classes

    @property
    def missing(self) -> MissingCount | None:
        """The number of rows of the file without a score, and the policy for them; None where all have one."""
        return self.row_data.missing

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how the file was read, for readers of the numbers."""
        return (*((str(self.missing),) if self.missing is not None else ()), *self.row_data.notes)

    @property
    def features(self) -> Floats | None:
        return self.row_data.features

    @property
    def ids(self) -> npt.NDArray[Any] | None:
        return self.row_data.ids

    @property
    def groups(self) -> npt.NDArray[Any] | None:
        return self.row_data.groups

    # -- arrays ----------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return len(self.given_scores)

    @property
    def k(self) -> int:
        return 2 if self.one_score else int(self.given_scores.shape[1])

    @property
    def one_score(self) -> bool:
        """Whether rows have one score, from which both columns of `values` are made."""
        return self.given_scores.ndim == 1

    @property
    def labelled(self) -> bool:
        """Whether the true labels are known. Without them rows can be calibrated, but not measured."""
        return self.given_labels is not None

    @property
    def known_labels(self) -> Integers | npt.NDArray[np.bool_]:
        """The labels as they are kept; an error where there are none."""
        if self.given_labels is None:
            raise InputError(
                "predictions",
                expected="labels, which measuring and fitting need",
                got=f"{self.n:,} rows without labels",
                fix="give the labels; without them a fitted map can still be applied",
            )
        return self.given_labels

    @view
    def values(self) -> Floats:
        """The scores, (n, k)."""
        return self._values_of(slice(None))

    @view
    def labels(self) -> Ints:
        """The true classes, (n,); an error where they are not known."""
        return self.known_labels.astype(np.int64, copy=False)

    def block(self, rows: slice) -> tuple[Floats, Ints]:
        """Some rows of `values` and `labels`."""
        return self._values_of(rows), self.known_labels[rows].astype(np.int64, copy=False)

    def _values_of(self, rows: slice) -> Floats:
        s = self.given_scores[rows]
        return np.stack([1 - s, s], axis=1) if self.one_score else s

    # -- rows and their weights ------------------------------------------------------------------

    def mean(self, rows: npt.ArrayLike) -> float:
        """Mean of one number per row, by the rows' weights."""
        values, w = np.asarray(rows, dtype=np.float64), self.row_data.weights
        return float(np.add.reduce(values) / len(values)) if w is None else float(w @ values / w.sum())

    @view
    def n_effective(self) -> float:
        """The effective number of rows: the sum of weights that count rows, else by Kish's formula."""
        return effective_rows(self.row_data.weights, self.n)

    @view
    def counts(self) -> Array | None:
        """The number of rows that each row is worth, (n,), with the sum `n_effective`; None where all count alike."""
        w = self.row_data.weights
        return None if w is None else np.asarray(w * (self.n_effective / w.sum()))

    def uniform(self, rows: slice = slice(None)) -> Array:
        """The uniform distribution over the options that each row has, (b, k)."""
        if self.row_data.option_mask is None:
            return np.broadcast_to(1 / self.k, self.values[rows].shape)
        exists = self.row_data.option_mask[rows]
        return np.asarray(exists / exists.sum(axis=1, keepdims=True))

    # -- views -----------------------------------------------------------------------------------

    score = view(outcomes.score)
    outcome = view(outcomes.outcome)
    confidence = view(outcomes.confidence)
    predicted = view(outcomes.predicted)
    correct = view(outcomes.correct)

    curve = view(curves.curve)
    top_label = view(curves.top_label)
    ranking = view(curves.ranking)
    top_ranking = view(curves.top_ranking)
    score_keys = view(curves.score_keys, keep="never")
    confidence_keys = view(curves.confidence_keys, keep="never")
    width_bins = curves.width_bins

    softmax_stats = view(probabilities.softmax_stats)
    probs = view(probabilities.probs, keep="small")
    log_probs = view(probabilities.log_probs, keep="never")
    logits = view(probabilities.logits, keep="never")
    log_values = view(probabilities.log_values)
    largest_logit = view(probabilities.largest_logit, keep="never")
    true_prob = view(probabilities.true_prob)
    true_log_prob = view(probabilities.true_log_prob)
    squared_probs_sum = view(probabilities.squared_probs_sum, keep="never")
    entropy = view(probabilities.entropy, keep="never")
    prob_rows = probabilities.blocks

    def logits_of(self, classes: Ints) -> Array:
        """Logits of some classes, (n, len(classes)), in float64, without computing the others."""
        values = self.values[:, classes].astype(np.float64)
        return values if self.score_type == "logits" else np.log(np.maximum(values, constants.PROBABILITY_FLOOR))

    def class_curves(self) -> Iterator[ClassCurves | WeightedCurves]:
        """Curves of each class, its probability against its presence, in blocks of classes; kept when small."""
        return iter(self._kept_curves) if self.is_small else curves.class_curves(self)

    @view
    def _kept_curves(self) -> list[ClassCurves | WeightedCurves]:
        return list(curves.class_curves(self))

    def release(self) -> None:
        """Drop the cached views: they are computed again when they are needed. Frees memory of large predictions."""
        for name in vars(self).keys() - Predictions.__annotations__.keys():
            vars(self).pop(name, None)

    # -- size: what is kept, and what is done part by part ---------------------------------------

    @property
    def is_small(self) -> bool:
        """Whether probabilities and class curves stay in memory."""
        return self.n * self.k <= constants.KEEP_ELEMENTS

    @property
    def is_long(self) -> bool:
        """Whether the rows are so many that memory counts."""
        return self.n >= LONG

    @property
    def chunk_rows(self) -> int:
        """Rows that are processed at a time, so that they stay in the processor's cache."""
        return max(1, constants.CHUNK_ELEMENTS // self.k)
