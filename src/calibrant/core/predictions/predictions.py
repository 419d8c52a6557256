"""Predictions: the scores of a classifier and the true labels, validated once, never changed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Integers, Ints, lock
from calibrant.core.cached_property import cached_property
from calibrant.core.curves import native
from calibrant.core.curves.binning import Closed
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import LONG, Bins, Curve, Outcomes, pair_up
from calibrant.core.curves.keys import keys_of, log_odds_of_classes
from calibrant.core.curves.native import Top
from calibrant.core.curves.softmax import curves_of, entropy_of, set_top_probability_, softmax_of, top_of, width_bins
from calibrant.core.curves.weighted import WeightedCurves, effective_rows, sort_curve
from calibrant.core.errors import InputError
from calibrant.core.io.column_names import ColumnOptions, Columns, LabelRule
from calibrant.core.io.frames import read_frame
from calibrant.core.io.load import load_scores
from calibrant.core.io.missing import MissingCount, MissingPolicy
from calibrant.core.io.save import save_predictions
from calibrant.core.io.score_table import ScoreTable
from calibrant.core.keywords import spell_out_keywords
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions.constants import CHUNK_ELEMENTS, KEEP_ELEMENTS, PART_ROWS, PROBABILITY_FLOOR
from calibrant.core.predictions.logit_range import clip_logits, without_absent
from calibrant.core.predictions.row_data import RowData, Rows, ScoreType, Task
from calibrant.core.predictions.rows import row_numbers, split_rows
from calibrant.core.predictions.tasks import Ignore, from_binary, from_confidence, from_scores, from_table


class Predictions:
    """Scores and labels of one of four tasks, valid once built and never changed.

    - multiclass: logits or probabilities (n, k) and labels (n,), from `from_logits` or `from_probs`;
    - binary: P(positive) or its logit (n,) and labels, from `binary`;
    - confidence: a confidence and whether the prediction was right, from `from_confidence`;
    - choice: as multiclass, but with options that some rows do not have, from `from_logits(..., mask=...)`.

    Each takes further arrays with one entry per row: `weights` (counts or shares), `clusters` (rows of one cluster
    depend on each other), `groups` (segments), `ids` (names of rows) and `features` (n, d), input of the last layer.

    Arrays of float32 or float64 are not copied: do not change them afterwards.
    `values` (n, k) are the scores, and `score_type` says which: "logits" or "probs". Binary scores are the second
    column, and so are confidences, as the probability of being right. Rows without labels (`labels=None`) can be
    calibrated; whatever needs labels raises an InputError then.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> p.confidence, p.correct
    (array([0.9, 0.6]), array([ True, False]))
    """

    score_type: ScoreType
    row_data: RowData
    _score_only: Array | None  # (n,) where rows have one score, the probability of their event; `values` is derived
    _given_labels: Integers | npt.NDArray[np.bool_] | None  # or outcomes beside _score_only; None without labels

    @classmethod
    @spell_out_keywords()
    def from_logits(
        cls,
        logits: npt.ArrayLike,
        labels: npt.ArrayLike | None,
        *,
        mask: npt.ArrayLike | None = None,
        axis: int | None = None,
        ignore: Ignore = (),
        classes: Sequence[str] | None = None,
        allow_few_rows: bool = False,
        **rows: Unpack[Rows],
    ) -> "Predictions":
        """Build predictions from scores before the softmax (log-probabilities are logits too).

        `mask` (or logits of -inf) says which options a row has. `axis` is that of the classes in an array with more
        axes, as networks give it: (N, C, H, W) with axis=1, (N, T, V) with axis=-1; rows labelled `ignore` are dropped.
        `labels=None` is for rows without labels, which can be calibrated but not measured.
        """
        arrays = from_scores(
            logits,
            labels,
            "logits",
            rows=rows,
            mask=mask,
            axis=axis,
            ignore=ignore,
            classes=classes,
            allow_few_rows=allow_few_rows,
        )
        return cls(*arrays)

    @classmethod
    @spell_out_keywords()
    def from_probs(
        cls,
        probs: npt.ArrayLike,
        labels: npt.ArrayLike | None,
        *,
        mask: npt.ArrayLike | None = None,
        axis: int | None = None,
        ignore: Ignore = (),
        classes: Sequence[str] | None = None,
        allow_few_rows: bool = False,
        **rows: Unpack[Rows],
    ) -> "Predictions":
        """Build predictions from probabilities: rows inside [0, 1] that sum to one. Options as of `from_logits`."""
        arrays = from_scores(
            probs,
            labels,
            "probs",
            rows=rows,
            mask=mask,
            axis=axis,
            ignore=ignore,
            classes=classes,
            allow_few_rows=allow_few_rows,
        )
        return cls(*arrays)

    @classmethod
    @spell_out_keywords()
    def binary(
        cls,
        scores: npt.ArrayLike,
        labels: npt.ArrayLike | None,
        *,
        positive: Any = None,
        logits: bool = False,
        missing: MissingPolicy = "error",
        allow_few_rows: bool = False,
        **rows: Unpack[Rows],
    ) -> "Predictions":
        """Build binary predictions from P(positive), or its logit with `logits=True`.

        Labels are 0 and 1, or any two with `positive` named.

        Scores and labels may have any number of axes, as masks (N, H, W) have: each image is a cluster then.
        `labels=None` is for rows without labels.

        >>> p = Predictions.binary([0.9, 0.2, 0.6], ["malignant", "benign", "benign"], positive="malignant")
        >>> p.score, p.outcome
        (array([0.9, 0.2, 0.6]), array([ True, False, False]))
        """
        arrays = from_binary(
            scores, labels, positive=positive, logits=logits, rows=rows, missing=missing, allow_few_rows=allow_few_rows
        )
        return cls(*arrays)

    @classmethod
    @spell_out_keywords()
    def from_confidence(
        cls,
        confidence: npt.ArrayLike,
        correct: npt.ArrayLike | None,
        *,
        logits: bool = False,
        missing: MissingPolicy = "error",
        allow_few_rows: bool = False,
        **rows: Unpack[Rows],
    ) -> "Predictions":
        """Build predictions from confidences in [0, 1] and whether each answer was right, None where that is not known.

        >>> p = Predictions.from_confidence([0.9, 0.4], correct=[1, 1])
        >>> p.score, p.outcome, p.task
        (array([0.9, 0.4]), array([ True,  True]), 'confidence')
        """
        arrays = from_confidence(
            confidence, correct, logits=logits, rows=rows, missing=missing, allow_few_rows=allow_few_rows
        )
        return cls(*arrays)

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
        return cls(*from_table(table, allow_few_rows=allow_few_rows))

    def save(self, path: str | Path) -> None:
        """Write an .npz, .parquet, .csv or .jsonl file, whole or not at all."""
        if not np.isfinite(self.values).all():
            fix = "check the map that they come from: it is damaged, or its numbers are too large"
            raise InputError(str(path), expected="finite predictions", got="NaN or infinity", fix=fix)
        save_predictions(self, path)

    def __init__(
        self,
        values: Floats,
        labels: Integers | npt.NDArray[np.bool_] | None,
        score_type: ScoreType,
        row_data: RowData | None = None,
        top: Top | None = None,
    ) -> None:
        """For internal use: takes valid arrays without checking them. Users call `from_logits` or `from_probs`.

        One score per row, (n,) in float64, comes with booleans for labels. `labels` is None for unlabelled rows. `top`
        is what the pass that checked the logits has computed.
        """
        row_data = row_data or RowData()
        self.__dict__.update(_given_labels=labels, score_type=score_type, row_data=row_data)
        self.__dict__.update({"_score_only": values} if values.ndim == 1 else {"_score_only": None, "values": values})
        if top is not None:
            self.__dict__["_top"] = top
        lock(values, *(() if labels is None else (labels,)), *row_data.arrays().values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"predictions never change: build new ones instead of setting {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what they were built from, for another process; cached views are computed again."""
        scores = self.values if self._score_only is None else self._score_only
        return type(self), (scores, self._given_labels, self.score_type, self.row_data)

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
        values = self.values if self._score_only is None else self._score_only
        labels = None if self._given_labels is None else self._given_labels[rows]
        return Predictions(values[rows], labels, self.score_type, self.row_data.take(rows))

    def part(self, rows: slice) -> "Predictions":
        """Rows that follow each other, without a copy; clusters keep their numbers."""
        values = self.values if self._score_only is None else self._score_only
        labels = None if self._given_labels is None else self._given_labels[rows]
        return Predictions(values[rows], labels, self.score_type, self.row_data.part(rows))

    def by_parts(
        self, of: Callable[["Predictions"], npt.NDArray[Any]], dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[Any]:
        """Compute one number per row; of very many rows part by part, so that only the result has their length."""
        if self.n < LONG:
            return of(self)
        numbers = np.empty(self.n, dtype=dtype)

        def work(rows: slice) -> None:
            numbers[rows] = of(self.part(rows))

        run_pieces(work, pieces(self.n, PART_ROWS), self.n * self.k)
        return numbers

    def split(self, fraction: float = 0.5, *, seed: int = 0) -> tuple["Predictions", "Predictions"]:
        """Two disjoint random parts, the first holding `fraction` of the rows."""
        first, second = split_rows(self.n, fraction, seed, self.clusters)
        return self.take(first), self.take(second)

    def with_values(self, values: Floats, score_type: ScoreType, row_data: RowData | None = None) -> "Predictions":
        """Predictions of the same rows, and labels if any, with other valid scores (n, k). For internal use."""
        labels = self._given_labels if self._score_only is None or self._given_labels is None else self.labels
        return Predictions(values, labels, score_type, row_data or self.row_data)

    def with_temperature(self, T: float) -> "Predictions":
        """Predictions with every logit divided by the temperature T, in float64."""
        if not T > 0:
            raise InputError("temperature", expected="a number above 0", got=str(T), fix="use for instance 1.5")
        with np.errstate(over="ignore"):
            cooled = clip_logits(self.logits / np.float64(T))
        if self.row_data.exists is not None:  # however hot, options that are not there stay out
            cooled = without_absent(cooled, self.row_data.exists)
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
        probs, predicted, exists = np.empty((self.n, self.k)), self.predicted, self.row_data.exists
        _ = self._kept_probs  # here once, not in every thread

        def work(rows: slice) -> None:
            probs[rows] = self._probs(rows)
            set_top_probability_(
                probs[rows], predicted[rows], confidence[rows], None if exists is None else exists[rows]
            )

        run_pieces(work, pieces(self.n, self._chunk_rows), probs.size)
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

    @cached_property
    def values(self) -> Floats:
        """The scores, (n, k)."""
        return lock(self._values_of(slice(None)))

    @property
    def labelled(self) -> bool:
        """Whether the true labels are known. Without them rows can be calibrated, but not measured."""
        return self._given_labels is not None

    @cached_property
    def labels(self) -> Ints:
        """The true classes, (n,); an error where they are not known."""
        return lock(self._known_labels.astype(np.int64, copy=False))

    @property
    def _known_labels(self) -> Integers | npt.NDArray[np.bool_]:
        if self._given_labels is None:
            raise InputError(
                "predictions",
                expected="labels, which measuring and fitting need",
                got=f"{self.n:,} rows without labels",
                fix="give the labels; without them a fitted map can still be applied",
            )
        return self._given_labels

    @property
    def n(self) -> int:
        return len(self.values if self._score_only is None else self._score_only)

    @property
    def k(self) -> int:
        return int(self.values.shape[1]) if self._score_only is None else 2

    def block(self, rows: slice) -> tuple[Floats, Ints]:
        """Some rows of `values` and `labels`."""
        return self._values_of(rows), self._known_labels[rows].astype(np.int64, copy=False)

    def _values_of(self, rows: slice) -> Floats:
        if self._score_only is None:
            return self.values[rows]
        s = self._score_only[rows]
        return np.stack([1 - s, s], axis=1)

    # -- the score in [0, 1] that is judged, and its outcome -------------------------------------

    @cached_property
    def score(self) -> Array:
        """P(positive) of binary predictions, the confidence of all others, (n,)."""
        return lock(self._event_prob) if self.row_data.task == "binary" else self.confidence

    @cached_property
    def outcome(self) -> npt.NDArray[np.bool_]:
        """Whether the row is positive (binary predictions), or predicted right (all others)."""
        if self.row_data.task != "binary":
            return self.correct
        labels = self._known_labels
        return lock(labels == 1) if self._score_only is None else lock(labels.astype(bool, copy=False))

    @cached_property
    def curve(self) -> Curve:
        """Score against outcome, sorted once: the input of binned, kernel and ranking measures."""
        if self.row_data.task != "binary":
            return self.top_label
        return self._sort_curve(lambda p: (p.score, p.outcome))

    @cached_property
    def top_label(self) -> Curve:
        """Confidence against correctness, sorted once."""
        return self._sort_curve(lambda p: (p.confidence, p.correct))

    @cached_property
    def ranking(self) -> Curve:
        """As `curve`, with rows told apart by their logits where these are given: the input of measures of ranking."""
        if self.row_data.task != "binary":
            return self.top_ranking
        return self._sort_keys(lambda p: (p.score_keys, p.outcome)) if self.score_type == "logits" else self.curve

    @cached_property
    def top_ranking(self) -> Curve:
        """As `top_label`, with rows told apart by their logits where these are given."""
        if self.score_type != "logits":
            return self.top_label
        return self._sort_keys(lambda p: (p.confidence_keys, p.correct))

    @property
    def score_keys(self) -> Array:
        """What orders rows by `score`: keys of logits, or the scores themselves (core/curves/keys.py)."""
        if self.row_data.task != "binary":
            return self.confidence_keys
        return self._keys(self.score, np.ones(self.n, dtype=np.int64))

    @property
    def confidence_keys(self) -> Array:
        """What orders rows by `confidence`."""
        return self._keys(self.confidence, self.predicted)

    def _keys(self, scores: Array, classes: Ints) -> Array:
        if self.score_type != "logits":
            return scores
        return keys_of(scores, lambda rows: log_odds_of_classes(self.values, classes, rows))

    def _sort_keys(self, pairs: Callable[["Predictions"], tuple[Array, Outcomes]]) -> Curve:
        return self._sort_curve(pairs).read_keys()

    def _sort_curve(self, pairs: Callable[["Predictions"], tuple[Array, Outcomes]]) -> Curve:
        if self.n < LONG or self.row_data.weights is not None:
            return sort_curve(*pairs(self), self.row_data.weights)
        rows = self.part(slice(None))  # which keeps nothing of what is computed here
        return Curve.sort_pairs(lambda: rows.by_parts(lambda p: pair_up(*pairs(p)), np.uint64))

    @cached_property
    def _event_prob(self) -> Array:
        """Probability of class 1 of two, without losing digits where it is small, (n,)."""
        if self._score_only is not None:
            return self._score_only
        if self.score_type == "probs":
            return self.values[:, 1].astype(np.float64)
        return self.by_parts(lambda p: np.exp(p.values[:, 1] - p._top.largest) / p._top.total)

    def mean(self, rows: npt.ArrayLike) -> float:
        """Mean of one number per row, by the rows' weights."""
        values, w = np.asarray(rows, dtype=np.float64), self.row_data.weights
        return float(np.add.reduce(values) / len(values)) if w is None else float(w @ values / w.sum())

    @cached_property
    def effective(self) -> float:
        """The effective number of rows: the sum of weights that count rows, else by Kish's formula."""
        return effective_rows(self.row_data.weights, self.n)

    @cached_property
    def counts(self) -> Array | None:
        """The number of rows that each row is worth, (n,), with the sum `effective`; None where all count alike."""
        w = self.row_data.weights
        return None if w is None else lock(w * (self.effective / w.sum()))

    def uniform(self, rows: slice = slice(None)) -> Array:
        """The uniform distribution over the options that each row has, (b, k)."""
        if self.row_data.exists is None:
            return np.broadcast_to(1 / self.k, self.values[rows].shape)
        exists = self.row_data.exists[rows]
        return np.asarray(exists / exists.sum(axis=1, keepdims=True))

    # -- the largest score ----------------------------------------------------------------------

    @cached_property
    def confidence(self) -> Array:
        if self._score_only is not None and self.row_data.task == "confidence":
            return self._score_only
        return lock(self.by_parts(lambda p: p._top.confidence))

    @cached_property
    def predicted(self) -> Ints:
        """The class of the largest score (the lowest index wins a tie), unless the rows carry another prediction."""
        return lock(self.by_parts(lambda p: p._top.predicted, np.int64))

    @cached_property
    def correct(self) -> npt.NDArray[np.bool_]:
        if self._score_only is not None and self.row_data.task == "confidence":
            return lock(self._known_labels.astype(bool, copy=False))
        if self._score_only is not None and self.row_data.predicted is None:
            return lock((self._score_only > 1 - self._score_only) == self._known_labels)
        return lock(self.by_parts(lambda p: p.predicted == p._known_labels, np.bool_))

    @property
    def largest_logit(self) -> Floats:
        """The largest logit of every row, (n,)."""
        if self.score_type == "logits" and "_top" in self.__dict__:  # without a pass over the rows of its own
            return self._top.largest
        return np.asarray(self.logits.max(axis=1))

    # -- probabilities --------------------------------------------------------------------------

    @property
    def logits(self) -> Floats:
        """The logits as given, or the logarithm of the probabilities as given (floored at 1e-12)."""
        return self.values if self.score_type == "logits" else self._log_values

    @cached_property
    def _log_values(self) -> Array:
        logs = np.log(np.maximum(self.values, PROBABILITY_FLOOR), dtype=np.float64)
        return lock(logs if self.row_data.exists is None else without_absent(logs, self.row_data.exists))

    @cached_property
    def true_prob(self) -> Array:
        """Probability given to the true class, (n,)."""
        if self.score_type == "probs":
            return lock(self._at_label.astype(np.float64))
        return lock(self.by_parts(Predictions._true_softmax))

    @cached_property
    def true_log_prob(self) -> Array:
        """Log-probability of the true class, (n,); without a floor when it comes from logits."""
        if self.score_type == "logits":
            return lock(self.by_parts(Predictions._true_log_softmax))
        logs = np.maximum(self._at_label, PROBABILITY_FLOOR)
        return lock(np.log(logs, out=logs))

    def _true_softmax(self) -> Array:
        if self._top.true_prob is not None:
            return self._top.true_prob
        with np.errstate(over="ignore"):
            z = np.subtract(self._at_label, self._top.largest, dtype=np.float64)
        np.exp(z, out=z)
        z /= self._top.total
        return z

    def _true_log_softmax(self) -> Array:
        if self._top.true_log_prob is not None:
            return self._top.true_log_prob
        with np.errstate(over="ignore"):
            return np.asarray(self._at_label - self._top.largest - np.log(self._top.total))

    @property
    def squared_probs_sum(self) -> Array:
        """The sum of the squared probabilities of every row, (n,)."""
        if self.score_type == "logits" and self._top.square is not None:
            return self._top.square
        sums = np.empty(self.n)
        for rows, probs in self.prob_rows():
            sums[rows] = np.einsum("ik,ik->i", probs, probs)
        return sums

    @property
    def entropy(self) -> Array:
        """Entropy of the distribution of every row in nats, (n,)."""
        values = np.empty(self.n)
        for rows, probs in self.prob_rows():
            values[rows] = entropy_of(probs)
        return np.maximum(values, 0.0)

    @property
    def log_probs(self) -> Array:
        """Log-probabilities (n, k); computed anew at each call."""
        if self.score_type == "probs":
            return self._log_values
        return self.values - self._top.largest[:, None] - np.log(self._top.total)[:, None]

    @property
    def probs(self) -> Array:
        """Probabilities (n, k) in float64; kept when small, computed anew when large."""
        if self._kept_probs is not None:
            return self._kept_probs
        if self.score_type == "probs":
            return np.asarray(self.values, dtype=np.float64)
        return self._softmax()

    def logits_of(self, classes: Ints) -> Array:
        """Logits of some classes, (n, len(classes)), in float64, without computing the others."""
        values = self.values[:, classes].astype(np.float64)
        return values if self.score_type == "logits" else np.log(np.maximum(values, PROBABILITY_FLOOR))

    def prob_rows(self) -> Iterator[tuple[slice, Array]]:
        """Probabilities in chunks of rows, so that 50,000 x 1000 needs no second copy."""
        for rows in pieces(self.n, self._chunk_rows):
            yield rows, self._probs(rows)

    def class_curves(self) -> Iterator[ClassCurves | WeightedCurves]:
        """Curves of each class, its probability against its presence, in blocks of classes."""
        if self._kept_curves is not None:
            return iter(self._kept_curves)
        return self._make_curves()

    def width_bins(self, count: int, closed: Closed) -> Bins | None:
        """Equal-width bins of every class without a sort, (k, count); None where sorted curves are needed."""
        if self.row_data.weights is not None:
            return None
        if self._score_only is None:
            top = self._top if self.score_type == "logits" else None
            return width_bins(self.values, top, self.labels, count, closed)
        sums: Bins | None = None
        for rows in pieces(self.n, KEEP_ELEMENTS):  # both columns of some rows at a time
            values, labels = self.block(rows)
            known_bins = width_bins(values, None, labels, count, closed)
            if known_bins is None:
                return None
            sums = known_bins if sums is None else sums + known_bins
        return sums

    # -- cached views ---------------------------------------------------------------------------

    def release(self) -> None:
        """Drop the cached views: they are computed again when they are needed. Frees memory of large predictions."""
        arguments = {"_given_labels", "_score_only", "score_type", "row_data"}
        arguments |= {"values"} if self._score_only is None else set()
        for name in self.__dict__.keys() - arguments:
            self.__dict__.pop(name, None)

    @property
    def _small(self) -> bool:
        return self.n * self.k <= KEEP_ELEMENTS

    @property
    def _chunk_rows(self) -> int:
        return max(1, CHUNK_ELEMENTS // self.k)

    @property
    def _at_label(self) -> Floats:
        if self._score_only is not None:  # the same numbers as in `values`, without building it
            return np.where(self._known_labels, self._score_only, 1 - self._score_only)
        if self.values.flags.c_contiguous:  # twice as fast
            return self.values.reshape(-1).take(np.arange(self.n) * self.k + self.labels)
        return self.values[np.arange(self.n), self.labels]

    @cached_property
    def _top(self) -> Top:
        if self._score_only is not None and self._carried is None:  # without building both columns
            s = self._score_only
            positive = s > 1 - s
            confidence = lock(np.where(positive, s, 1 - s))
            total = np.broadcast_to(1.0, s.shape)
            return Top(confidence, lock(positive.astype(np.int64)), confidence, total)
        return top_of(
            self.values, self.score_type == "logits", self._carried, self._chunk_rows, labels=self._given_labels
        )

    @property
    def _carried(self) -> Ints | None:
        """Predictions that are not the class of the largest score; a confidence is that of class 1, right."""
        return np.ones(self.n, dtype=np.int64) if self.row_data.task == "confidence" else self.row_data.predicted

    @cached_property
    def _kept_probs(self) -> Array | None:
        if not self._small:
            return None
        if self.score_type == "probs":
            return lock(self.values.astype(np.float64, copy=False))
        return lock(self._softmax())

    def _softmax(self) -> Array:
        """Probabilities (n, k) of logits."""
        probs, top = np.empty((self.n, self.k)), self._top  # here once, not in every thread

        def work(rows: slice) -> None:
            probs[rows] = softmax_of(self.values[rows], top.largest[rows], top.total[rows])

        run_pieces(work, pieces(self.n, self._chunk_rows), probs.size)
        return probs

    def _probs(self, rows: slice, classes: slice = slice(None)) -> Array:
        if self._kept_probs is not None:
            return self._kept_probs[rows, classes]
        block = self.values[rows, classes]
        if self.score_type == "probs":
            return block.astype(np.float64, copy=False)
        return softmax_of(block, self._top.largest[rows], self._top.total[rows])

    @cached_property
    def _kept_curves(self) -> list[ClassCurves | WeightedCurves] | None:
        return list(self._make_curves()) if self._small else None

    def _make_curves(self) -> Iterator[ClassCurves | WeightedCurves]:
        """Build the class curves in blocks of at most KEEP_ELEMENTS."""
        _ = self._top if native.is_available() else self._kept_probs  # here once, not in every thread
        block, at_once = max(1, KEEP_ELEMENTS // self.n), max(1, 4 * CHUNK_ELEMENTS // self.n)
        if self.row_data.weights is not None:
            for classes in pieces(self.k, block):
                yield WeightedCurves.of(self._probs(slice(None), classes), self.labels, classes, self.row_data.weights)
            return
        yield from curves_of(self.labels, self.k, self._columns_into, block, at_once)

    def _columns_into(self, classes: slice, columns: Array) -> None:
        """Fill the columns with probabilities of some classes, (classes, n)."""
        if self.score_type == "logits" and native.is_available():
            native.prob_columns(self.values[:, classes], self._top.largest, self._top.total, columns)
        else:
            columns[:] = self._probs(slice(None), classes).T
