"""Predictions: what a classifier said and what was true, validated once, never changed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.held import Held
from calibrant.core.range import hold, without_absent
from calibrant.core.rows import row_numbers, split_rows
from calibrant.core.softmax import shared_out

if TYPE_CHECKING:
    from calibrant.core.missing import How
    from calibrant.core.shapes import Ignore


class Predictions(Held):
    """Scores and what was true, valid once built and never changed, in one of four shapes.

    - classes: logits or probabilities (n, k) and labels (n,), from `from_logits` or `from_probs`;
    - binary: P(positive) or its logit (n,) and labels, from `binary`;
    - confidence: a confidence and whether the prediction was right, from `from_confidence`;
    - choices: as classes, but with options that some rows do not have, from `from_logits(..., mask=...)`.

    Arrays of float32 or float64 are not copied: do not change them afterwards.
    `values` (n, k) is what was given, and `kind` says which: "logits" or "probs". Binary scores stand in its second
    column, and so do bare confidences, as the probability of being right.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> p.confidence, p.correct
    (array([0.9, 0.6]), array([ True, False]))
    """

    @classmethod
    def from_logits(
        cls,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        ids: Any = None,
        groups: Any = None,
        weights: Any = None,
        clusters: Any = None,
        mask: Any = None,
        axis: int | None = None,
        ignore: "Ignore" = (),
        classes: Sequence[str] | None = None,
        few_rows: bool = False,
    ) -> "Predictions":
        """From scores before the softmax (log-probabilities are logits too).

        `mask` (or logits of -inf) says which options a row has. `axis` is that of the classes in an array with more
        axes, as networks give it: (N, C, H, W) with axis=1, (N, T, V) with axis=-1; rows labelled `ignore` are dropped.
        """
        from calibrant.core.shapes import from_scores

        rows = {"features": features, "ids": ids, "groups": groups, "weights": weights, "clusters": clusters}
        options = {"mask": mask, "axis": axis, "ignore": ignore, "classes": classes, "few_rows": few_rows}
        return cls(*from_scores(logits, labels, "logits", rows=rows, **options))

    @classmethod
    def from_probs(
        cls,
        probs: Any,
        labels: Any,
        *,
        features: Any = None,
        ids: Any = None,
        groups: Any = None,
        weights: Any = None,
        clusters: Any = None,
        mask: Any = None,
        axis: int | None = None,
        ignore: "Ignore" = (),
        classes: Sequence[str] | None = None,
        few_rows: bool = False,
    ) -> "Predictions":
        """From probabilities: every row inside [0, 1] and summing to one. Options as of `from_logits`."""
        from calibrant.core.shapes import from_scores

        rows = {"features": features, "ids": ids, "groups": groups, "weights": weights, "clusters": clusters}
        options = {"mask": mask, "axis": axis, "ignore": ignore, "classes": classes, "few_rows": few_rows}
        return cls(*from_scores(probs, labels, "probs", rows=rows, **options))

    @classmethod
    def binary(
        cls,
        scores: Any,
        labels: Any,
        *,
        positive: Any = None,
        logits: bool = False,
        features: Any = None,
        ids: Any = None,
        groups: Any = None,
        weights: Any = None,
        clusters: Any = None,
        missing: "How" = "refuse",
    ) -> "Predictions":
        """From P(positive), or its logit with `logits=True`. Labels are 0 and 1, or any two with `positive` named.

        >>> p = Predictions.binary([0.9, 0.2, 0.6], ["malignant", "benign", "benign"], positive="malignant")
        >>> p.score, p.hit
        (array([0.9, 0.2, 0.6]), array([ True, False, False]))
        """
        from calibrant.core.shapes import from_binary

        rows = {"features": features, "ids": ids, "groups": groups, "weights": weights, "clusters": clusters}
        return cls(*from_binary(scores, labels, positive=positive, logits=logits, rows=rows, missing=missing))

    @classmethod
    def from_confidence(
        cls,
        confidence: Any,
        correct: Any,
        *,
        logits: bool = False,
        features: Any = None,
        ids: Any = None,
        groups: Any = None,
        weights: Any = None,
        clusters: Any = None,
        missing: "How" = "refuse",
    ) -> "Predictions":
        """From a confidence in [0, 1] and whether the prediction was right: nothing else of it need be known.

        >>> p = Predictions.from_confidence([0.9, 0.4], correct=[1, 1])
        >>> p.score, p.hit, p.shape
        (array([0.9, 0.4]), array([ True,  True]), 'confidence')
        """
        from calibrant.core.shapes import from_confidence

        rows = {"features": features, "ids": ids, "groups": groups, "weights": weights, "clusters": clusters}
        return cls(*from_confidence(confidence, correct, logits=logits, rows=rows, missing=missing))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        score: str | None = None,
        label: str | None = None,
        confidence: str | None = None,
        correct: str | None = None,
        logits: bool = False,
        positive: Any = None,
        classes: Sequence[str] = (),
        weight: str | None = None,
        cluster: str | None = None,
        group: str | None = None,
        id: str | None = None,
        missing: "How" = "refuse",
        few_rows: bool = False,
    ) -> "Predictions":
        """From the columns of a pandas or polars frame: as told, else by the standard names of files.

        >>> import polars as pl
        >>> answers = pl.DataFrame({"stated": [0.9, 0.6, None], "correct": [1, 0, 1]})
        >>> p = Predictions.from_frame(answers, confidence="stated", missing="drop")
        >>> p.confidence, str(p.missing)
        (array([0.9, 0.6]), '1 of 3 rows (33.3 %) has no confidence and was left out.')
        """
        from calibrant.core.frames import read_frame
        from calibrant.core.naming import Columns

        told: dict[str, Any] = {"score": score, "label": label, "confidence": confidence, "correct": correct}
        told |= {"weight": weight, "cluster": cluster, "group": group, "id": id, "missing": missing}
        columns = Columns(**told, logits=logits, positive=positive, classes=tuple(classes))
        return read_frame(frame, columns, few_rows=few_rows)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        score: str | None = None,
        label: str | None = None,
        confidence: str | None = None,
        correct: str | None = None,
        logits: bool = False,
        positive: Any = None,
        classes: Sequence[str] = (),
        weight: str | None = None,
        cluster: str | None = None,
        group: str | None = None,
        id: str | None = None,
        missing: "How" = "refuse",
        per_character: bool = False,
        few_rows: bool = False,
    ) -> "Predictions":
        """From an .npz, .parquet, .csv or .jsonl file; never runs code from the file.

        Columns go by their standard names (docs/files.md), or as told, as in `from_frame`. Sample files of
        lm-evaluation-harness are read as they are; `per_character=True` divides each log-likelihood by the length of
        its option, as its acc_norm does.
        """
        from calibrant.core.files import load_predictions
        from calibrant.core.naming import Columns

        told: dict[str, Any] = {"score": score, "label": label, "confidence": confidence, "correct": correct}
        told |= {"weight": weight, "cluster": cluster, "group": group, "id": id, "missing": missing}
        told |= {"logits": logits, "positive": positive, "per_character": per_character}
        return load_predictions(path, few_rows=few_rows, columns=Columns(**told, classes=tuple(classes)))

    def save(self, path: str | Path) -> None:
        """To an .npz, .parquet, .csv or .jsonl file, whole or not at all."""
        from calibrant.core.written import save_predictions

        if not np.isfinite(self.values).all():
            fix = "look at the map that made them: it is damaged, or its numbers are too large"
            raise InputError(str(path), expected="finite predictions", got="NaN or infinity", fix=fix)
        save_predictions(self, path)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        shape = "" if self.shape == "classes" else f", {self.shape}"
        return f"Predictions(n={self.n}, k={self.k}, from {self.kind}{shape})"

    def take(self, index: npt.ArrayLike) -> "Predictions":
        """The rows of `index` (integers or a mask), in that order; repeats are allowed."""
        rows = row_numbers(index, self.n)
        if self.alone is not None:
            return Predictions(self.alone[rows], self.happened[rows], self.kind, self.extras.take(rows))
        return Predictions(self.values[rows], self.labels[rows], self.kind, self.extras.take(rows))

    def split(self, fraction: float = 0.5, *, seed: int = 0) -> tuple["Predictions", "Predictions"]:
        """Two disjoint random parts, the first holding `fraction` of the rows."""
        first, second = split_rows(self.n, fraction, seed, self.clusters)
        return self.take(first), self.take(second)

    def tempered(self, T: float) -> "Predictions":
        """Every logit divided by the temperature T, in float64."""
        if not T > 0:
            raise InputError("temperature", expected="a number above 0", got=str(T), fix="use for instance 1.5")
        with np.errstate(over="ignore"):
            cooled = hold(self.logits / np.float64(T))
        if self.extras.exists is not None:  # however hot, options that are not there stay out
            cooled = without_absent(cooled, self.extras.exists)
        return Predictions(cooled, self.labels, "logits", self.extras)

    def with_confidence(self, q: npt.ArrayLike) -> "Predictions":
        """The same predictions with other confidences (n,): the other classes are rescaled to share what is left.

        The predictions are carried along, because where q is small another class may have the larger probability. Of
        binary predictions q is the new P(positive), and the prediction is whatever q says.
        """
        given = np.asarray(q, dtype=np.float64)
        if given.shape != (self.n,) or not np.all((given >= 0) & (given <= 1)):  # NaN is not either
            got = f"shape {given.shape}" if given.shape != (self.n,) else f"{np.min(given):g} to {np.max(given):g}"
            fix = "give one probability per row"
            raise InputError("with_confidence", expected=f"{self.n} numbers from 0 to 1", got=got, fix=fix)
        if self.shape == "binary":
            both = np.stack([1 - given, given], axis=1)
            return Predictions(both, self.labels, "probs", replace(self.extras, predicted=None))
        probs = shared_out(self.probs, self.predicted, given, self.extras.exists)
        return Predictions(probs, self.labels, "probs", replace(self.extras, predicted=self.predicted))
