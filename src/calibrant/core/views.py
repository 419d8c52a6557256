"""Views of predictions: what measures, calibrators and figures read, each computed once."""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, lock
from calibrant.core.class_curves import ClassCurves
from calibrant.core.curve import Curve
from calibrant.core.extras import Extras
from calibrant.core.parallel import pieces
from calibrant.core.range import without_absent
from calibrant.core.softmax import Top, curves_of, entropy_of, softmax_of, top_of
from calibrant.core.weighted import WeightedCurves, effective_rows, sort_curve

Kind = Literal["logits", "probs"]

PROBABILITY_FLOOR = 1e-12  # the smallest probability whose logarithm is taken
KEEP_ELEMENTS = 1 << 22  # n * k up to which probabilities and class curves stay in memory
CHUNK_ELEMENTS = 1 << 16  # elements worked on at a time, so that they stay in the processor's cache


class Views:
    """Everything that is computed from scores (n, k) and labels (n,), whatever their shape."""

    kind: Kind
    extras: Extras
    alone: (
        Array | None
    )  # (n,) where rows have one score, the probability of their event: `values` is made when asked for
    happened: npt.NDArray[np.bool_]  # (n,) beside it

    @cached_property
    def values(self) -> Floats:
        """What was given, (n, k)."""
        return lock(self.block(slice(None))[0])

    @cached_property
    def labels(self) -> Ints:
        return lock(self.happened.astype(np.int64))

    @property
    def n(self) -> int:
        return len(self.labels if self.alone is None else self.alone)

    @property
    def k(self) -> int:
        return int(self.values.shape[1]) if self.alone is None else 2

    def block(self, rows: slice) -> tuple[Floats, Ints]:
        """Some rows of `values` and `labels`."""
        if self.alone is None:
            return self.values[rows], self.labels[rows]
        s = self.alone[rows]
        return np.stack([1 - s, s], axis=1), self.happened[rows].astype(np.int64)

    # -- what is judged: a score in [0, 1] and whether its event happened ------------------------

    @cached_property
    def score(self) -> Array:
        """P(positive) of binary predictions, the confidence of all others, (n,)."""
        return lock(self._event_prob) if self.extras.shape == "binary" else self.confidence

    @cached_property
    def hit(self) -> npt.NDArray[np.bool_]:
        """Whether the row is positive (binary predictions), or predicted right (all others)."""
        if self.extras.shape != "binary":
            return self.correct
        return lock(self.labels == 1) if self.alone is None else self.happened

    @cached_property
    def curve(self) -> Curve:
        """Score against hit, sorted once: what binned, kernel and ranking measures read."""
        if self.extras.shape != "binary":
            return self.top_label
        return sort_curve(self.score, self.hit, self.extras.weights)

    @cached_property
    def top_label(self) -> Curve:
        """Confidence against correctness, sorted once."""
        return sort_curve(self.confidence, self.correct, self.extras.weights)

    @cached_property
    def _event_prob(self) -> Array:
        """Of class 1 of two, without losing digits where it is small."""
        if self.alone is not None:
            return self.alone
        if self.kind == "probs":
            return self.values[:, 1].astype(np.float64)
        return np.exp(self.values[:, 1] - self._top.largest) / self._top.total

    def mean(self, rows: npt.ArrayLike) -> float:
        """Mean of one number per row, by the rows' weights."""
        values, w = np.asarray(rows, dtype=np.float64), self.extras.weights
        return float(values.mean()) if w is None else float(w @ values / w.sum())

    @cached_property
    def effective(self) -> float:
        """The rows that these are worth: weights that count rows sum to them, shares by Kish's formula."""
        return effective_rows(self.extras.weights, self.n)

    @cached_property
    def counts(self) -> Array | None:
        """How many rows each row is worth, (n,), which sum to `effective`; None where all count alike."""
        w = self.extras.weights
        return None if w is None else lock(w * (self.effective / w.sum()))

    def uniform(self, rows: slice = slice(None)) -> Array:
        """The uniform distribution over the options that each row has, (b, k)."""
        if self.extras.exists is None:
            return np.broadcast_to(1 / self.k, self.values[rows].shape)
        exists = self.extras.exists[rows]
        return np.asarray(exists / exists.sum(axis=1, keepdims=True))

    # -- the largest score ----------------------------------------------------------------------

    @cached_property
    def confidence(self) -> Array:
        return self.alone if self.alone is not None and self.extras.shape == "confidence" else self._top.confidence

    @cached_property
    def predicted(self) -> Ints:
        """The class of the largest score (the lowest index wins a tie), unless the rows carry another prediction."""
        return self._top.predicted

    @cached_property
    def correct(self) -> npt.NDArray[np.bool_]:
        if self.alone is not None and self.extras.shape == "confidence":
            return self.happened
        return lock(self.predicted == self.labels)

    # -- probabilities --------------------------------------------------------------------------

    @property
    def logits(self) -> Floats:
        """The logits as given, or the logarithm of the probabilities as given (floored at 1e-12)."""
        return self.values if self.kind == "logits" else self._log_values

    @cached_property
    def _log_values(self) -> Array:
        logs = np.log(np.maximum(self.values, PROBABILITY_FLOOR), dtype=np.float64)
        return lock(logs if self.extras.exists is None else without_absent(logs, self.extras.exists))

    @cached_property
    def true_prob(self) -> Array:
        """Probability given to the true class, (n,)."""
        if self.kind == "probs":
            return lock(self._at_label.astype(np.float64))
        return lock(np.exp(self.true_log_prob))

    @cached_property
    def true_log_prob(self) -> Array:
        """Its logarithm, without a floor when it comes from logits."""
        if self.kind == "logits":
            with np.errstate(over="ignore"):
                return lock(self._at_label - self._top.largest - np.log(self._top.total))
        return lock(np.log(np.maximum(self._at_label, PROBABILITY_FLOOR)))

    @property
    def entropy(self) -> Array:
        """Of the distribution of every row, in nats, (n,)."""
        values = np.empty(self.n)
        for rows, probs in self.prob_rows():
            values[rows] = entropy_of(probs)
        return np.maximum(values, 0.0)

    @property
    def log_probs(self) -> Array:
        """(n, k); computed anew at each call."""
        if self.kind == "probs":
            return self._log_values
        return self.values - self._top.largest[:, None] - np.log(self._top.total)[:, None]

    @property
    def probs(self) -> Array:
        """(n, k) in float64; kept when small, computed anew when large."""
        if self._kept_probs is not None:
            return self._kept_probs
        return np.concatenate([block for _, block in self.prob_rows()])

    def logits_of(self, classes: Ints) -> Array:
        """Logits of some classes, (n, len(classes)), in float64, without computing the others."""
        values = self.values[:, classes].astype(np.float64)
        return values if self.kind == "logits" else np.log(np.maximum(values, PROBABILITY_FLOOR))

    def prob_rows(self) -> Iterator[tuple[slice, Array]]:
        """Probabilities in chunks of rows, so that 50,000 x 1000 needs no second copy."""
        for rows in pieces(self.n, self._chunk_rows):
            yield rows, self._probs(rows)

    def class_curves(self) -> Iterator[ClassCurves | WeightedCurves]:
        """For each class its probability against its presence, in blocks of classes."""
        if self._kept_curves is not None:
            return iter(self._kept_curves)
        return self._make_curves()

    # -- how the views are made -----------------------------------------------------------------

    @property
    def _small(self) -> bool:
        return self.n * self.k <= KEEP_ELEMENTS

    @property
    def _chunk_rows(self) -> int:
        return max(1, CHUNK_ELEMENTS // self.k)

    @cached_property
    def _at_label(self) -> Floats:
        return self.values[np.arange(self.n), self.labels]

    @cached_property
    def _top(self) -> Top:
        return top_of(self.values, self.kind == "logits", self._carried, self._chunk_rows)

    @property
    def _carried(self) -> Ints | None:
        """Predictions that are not the class of the largest score; a bare confidence is that of being right."""
        return np.ones(self.n, dtype=np.int64) if self.extras.shape == "confidence" else self.extras.predicted

    @cached_property
    def _kept_probs(self) -> Array | None:
        if not self._small:
            return None
        if self.kind == "probs":
            return lock(self.values.astype(np.float64, copy=False))
        probs = np.empty((self.n, self.k))
        # The same numbers, whichever view is asked for first.
        self.__dict__["_top"] = top_of(self.values, True, self._carried, self._chunk_rows, probs)
        return lock(probs)

    def _probs(self, rows: slice, classes: slice = slice(None)) -> Array:
        if self._kept_probs is not None:
            return self._kept_probs[rows, classes]
        block = self.values[rows, classes]
        if self.kind == "probs":
            return block.astype(np.float64)
        return softmax_of(block, self._top.largest[rows], self._top.total[rows])

    def _repr_html_(self) -> str:
        from calibrant.core.notebook import html_table
        from calibrant.core.spoken import spoken
        from calibrant.core.wording import percent

        words, notes = spoken(self.extras.shape), self.extras.notes
        gone = self.extras.missing
        says, right = self.mean(self.score), self.mean(self.hit)
        rows = [
            ("rows", f"{self.n:,}"),
            (words.says_on_average, percent(says)),
            (words.rate_on_average, percent(right)),
        ]
        rows += [("classes", f"{self.k:,}")] if self.extras.shape == "classes" else []
        rows += [("note", note) for note in (*((str(gone),) if gone else ()), *notes)]
        return html_table(repr(self), ("", ""), rows)

    @cached_property
    def _kept_curves(self) -> list[ClassCurves | WeightedCurves] | None:
        return list(self._make_curves()) if self._small else None

    def _make_curves(self) -> Iterator[ClassCurves | WeightedCurves]:
        """Blocks of at most KEEP_ELEMENTS."""
        _ = self._kept_probs, self._top  # made here once, not by the first thread that needs them
        block, at_once = max(1, KEEP_ELEMENTS // self.n), max(1, 4 * CHUNK_ELEMENTS // self.n)
        if self.extras.weights is not None:
            for classes in pieces(self.k, block):
                yield WeightedCurves.of(self._probs(slice(None), classes), self.labels, classes, self.extras.weights)
            return
        yield from curves_of(self.labels, self.k, lambda some: self._probs(slice(None), some), block, at_once)
