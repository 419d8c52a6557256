"""Predictions: what a classifier said and what was true, validated once, with cached views for every measure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, pieces, run_pieces
from calibrant.core.curve import ClassCurves, Curve
from calibrant.core.errors import InputError

Kind = Literal["logits", "probs"]

PROBABILITY_FLOOR = 1e-12  # the smallest probability whose logarithm is taken
SUM_TOLERANCE = 1e-3  # how far a row of probabilities may be from one: float16 files are
KEEP_ELEMENTS = 1 << 22  # n * k up to which probabilities and class curves stay in memory
CHUNK_ELEMENTS = 1 << 16  # elements worked on at a time, so that they stay in the processor's cache


@dataclass(frozen=True)
class Extras:
    """What else may be known about the rows; every array has one entry per row."""

    features: Floats | None = None  # (n, d) input of the last layer
    ids: npt.NDArray[Any] | None = None  # integers or strings that name the rows
    groups: npt.NDArray[Any] | None = None  # integers or strings: the segment a row belongs to
    predicted: Ints | None = None  # the prediction, where it is not the class of the largest score
    seen: float = 0.0  # share of the rows that the map which made them was fitted on

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        named = {name: getattr(self, name) for name in ("features", "ids", "groups", "predicted")}
        return {name: array for name, array in named.items() if array is not None}

    def take(self, rows: Ints) -> "Extras":
        return Extras(**{name: array[rows] for name, array in self.arrays().items()}, seen=self.seen)


class Predictions:
    """Logits or probabilities (n, k) and labels (n,), valid once built and never changed.

    Arrays of float32 or float64 are not copied: do not change them afterwards.
    `values` is what was given, and `kind` says which: "logits" or "probs".

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> p.confidence, p.correct
    (array([0.9, 0.6]), array([ True, False]))
    """

    values: Floats
    labels: Ints
    kind: Kind
    extras: Extras

    def __init__(self, values: Floats, labels: Ints, kind: Kind, extras: Extras | None = None) -> None:
        """For use inside: takes valid arrays as they are. Users call `from_logits` or `from_probs`."""
        extras = extras or Extras()
        self.__dict__.update(values=values, labels=labels, kind=kind, extras=extras)
        _lock(values, labels, *extras.arrays().values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"predictions never change: build new ones instead of setting {name}")

    @classmethod
    def from_logits(
        cls,
        logits: Any,
        labels: Any,
        *,
        features: Any = None,
        ids: Any = None,
        groups: Any = None,
        few_rows: bool = False,
    ) -> "Predictions":
        """From scores before the softmax (log-probabilities are logits too)."""
        from calibrant.core.validate import check_extras, check_logits

        values, whole = check_logits(logits, labels, few_rows)
        return cls(values, whole, "logits", check_extras(len(whole), features, ids, groups))

    @classmethod
    def from_probs(
        cls,
        probs: Any,
        labels: Any,
        *,
        features: Any = None,
        ids: Any = None,
        groups: Any = None,
        few_rows: bool = False,
    ) -> "Predictions":
        """From probabilities: every row inside [0, 1] and summing to one."""
        from calibrant.core.validate import check_extras, check_probs

        values, whole = check_probs(probs, labels, few_rows)
        return cls(values, whole, "probs", check_extras(len(whole), features, ids, groups))

    @classmethod
    def load(cls, path: str | Path, *, few_rows: bool = False) -> "Predictions":
        """From an .npz, .parquet or .csv file; never runs code from the file."""
        from calibrant.core.files import load_predictions

        return load_predictions(path, few_rows=few_rows)

    def save(self, path: str | Path) -> None:
        """To an .npz, .parquet or .csv file, whole or not at all."""
        from calibrant.core.files import save_predictions

        save_predictions(self, path)

    # -- size and shape -------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def k(self) -> int:
        return int(self.values.shape[1])

    @property
    def features(self) -> Floats | None:
        return self.extras.features

    @property
    def ids(self) -> npt.NDArray[Any] | None:
        return self.extras.ids

    @property
    def groups(self) -> npt.NDArray[Any] | None:
        return self.extras.groups

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Predictions(n={self.n}, k={self.k}, from {self.kind})"

    def take(self, index: npt.ArrayLike) -> "Predictions":
        """The rows of `index` (integers or a mask), in that order; repeats are allowed."""
        i = np.asarray(index)
        if i.ndim != 1 or (i.dtype == bool and len(i) != self.n):
            raise InputError(
                "take", expected=f"row numbers or a mask of {self.n}", got=f"shape {i.shape}", fix="give one list"
            )
        rows = np.flatnonzero(i) if i.dtype == bool else i
        if len(rows) == 0:
            raise InputError("take", expected="at least one row", got="none", fix="give a longer index")
        return Predictions(self.values[rows], self.labels[rows], self.kind, self.extras.take(rows))

    def split(self, fraction: float = 0.5, *, seed: int = 0) -> tuple["Predictions", "Predictions"]:
        """Two disjoint random parts, the first holding `fraction` of the rows."""
        first = round(self.n * fraction)
        if not 0 < first < self.n:
            raise InputError(
                "split",
                expected="a fraction that leaves rows on both sides",
                got=f"{fraction} of {self.n} rows",
                fix="use a fraction strictly between 0 and 1",
            )
        shuffled = np.random.default_rng(seed).permutation(self.n)
        return self.take(np.sort(shuffled[:first])), self.take(np.sort(shuffled[first:]))

    def tempered(self, T: float) -> "Predictions":
        """Every logit divided by the temperature T, in float64."""
        if not T > 0:
            raise InputError("temperature", expected="a number above 0", got=str(T), fix="use for instance 1.5")
        return Predictions(self.logits / np.float64(T), self.labels, "logits", self.extras)

    def with_confidence(self, q: npt.ArrayLike) -> "Predictions":
        """The same answers with other confidences (n,): the other classes are rescaled to share what is left.

        The answers are carried along, because where q is small another class may have the larger probability.
        """
        given = np.asarray(q, dtype=np.float64)
        wrong = given.shape != (self.n,) or not np.all((given >= 0) & (given <= 1))  # NaN is not either
        if wrong:
            got = f"shape {given.shape}" if given.shape != (self.n,) else f"{np.min(given):g} to {np.max(given):g}"
            fix = "give one probability per row"
            raise InputError("with_confidence", expected=f"{self.n} numbers from 0 to 1", got=got, fix=fix)
        rows = np.arange(self.n)
        probs = self.probs.copy()
        probs[rows, self.predicted] = 0.0
        rest = probs.sum(axis=1)  # and not 1 - confidence, which keeps no digits when the confidence is nearly 1
        probs *= np.divide(1 - given, rest, out=np.zeros_like(rest), where=rest > 0)[:, None]
        spread = rest <= 0  # nothing to rescale: the others share alike
        probs[spread] = ((1 - given[spread]) / (self.k - 1))[:, None]
        probs[rows, self.predicted] = given
        return Predictions(probs, self.labels, "probs", replace(self.extras, predicted=self.predicted))

    # -- views, each computed once --------------------------------------------------------------

    @property
    def logits(self) -> Floats:
        """The logits as given, or the logarithm of the probabilities as given (floored at 1e-12)."""
        return self.values if self.kind == "logits" else self._log_values

    @cached_property
    def _log_values(self) -> Array:
        return _lock(np.log(np.maximum(self.values, PROBABILITY_FLOOR), dtype=np.float64))

    @cached_property
    def confidence(self) -> Array:
        return self._top[0]

    @cached_property
    def predicted(self) -> Ints:
        """The class of the largest score (the lowest index wins a tie), unless the rows carry another prediction."""
        return self._top[1]

    @cached_property
    def correct(self) -> npt.NDArray[np.bool_]:
        return _lock(self.predicted == self.labels)

    @cached_property
    def true_prob(self) -> Array:
        """Probability given to the true class, (n,)."""
        if self.kind == "probs":
            return _lock(self._at_label.astype(np.float64))
        return _lock(np.exp(self.true_log_prob))

    @cached_property
    def true_log_prob(self) -> Array:
        """Its logarithm, without a floor when it comes from logits."""
        if self.kind == "logits":
            _, _, largest, total = self._top
            with np.errstate(over="ignore"):
                return _lock(self._at_label - largest - np.log(total))
        return _lock(np.log(np.maximum(self._at_label, PROBABILITY_FLOOR)))

    @property
    def log_probs(self) -> Array:
        """(n, k); computed anew at each call."""
        if self.kind == "probs":
            return self._log_values
        _, _, largest, total = self._top
        return self.values - largest[:, None] - np.log(total)[:, None]

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

    @cached_property
    def top_label(self) -> Curve:
        """Confidence against correctness, sorted once."""
        return Curve.sort(self.confidence, self.correct.astype(np.float64))

    def class_curves(self) -> Iterator[ClassCurves]:
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
    def _top(self) -> tuple[Array, Ints, Array, Array]:
        return self._pass(None)

    def _pass(self, probs: Array | None) -> tuple[Array, Ints, Array, Array]:
        """One pass over the rows: confidence, prediction, largest logit and sum of exp(logit - largest).

        Probabilities go into `probs` when it is given: measures of all classes then need no second pass.
        """
        confidence, predicted = np.empty(self.n), np.empty(self.n, dtype=np.int64)
        largest, total = np.empty(self.n), np.ones(self.n)
        given = self.extras.predicted

        def work(rows: slice) -> None:
            values = self.values[rows]
            top = values.argmax(axis=1)
            most = values[np.arange(len(top)), top]
            largest[rows] = most
            if given is not None:
                top = given[rows]
            predicted[rows] = top
            if self.kind == "probs":
                confidence[rows] = most if given is None else values[np.arange(len(top)), top]
                return
            with np.errstate(over="ignore"):  # logits of 1e308: a difference of -inf is a probability of 0
                e = np.subtract(values, most[:, None], out=None if probs is None else probs[rows], dtype=np.float64)
            np.exp(e, out=e).sum(axis=1, out=total[rows])
            of_top = 1.0 if given is None else e[np.arange(len(top)), top]
            np.divide(of_top, total[rows], out=confidence[rows])
            if probs is not None:
                e /= total[rows, None]

        run_pieces(work, pieces(self.n, self._chunk_rows), self.n * self.k)
        _lock(confidence, predicted)
        return confidence, predicted, largest, total

    @cached_property
    def _kept_probs(self) -> Array | None:
        if not self._small:
            return None
        if self.kind == "probs":
            return _lock(self.values.astype(np.float64, copy=False))
        probs = np.empty((self.n, self.k))
        self.__dict__["_top"] = self._pass(probs)  # the same numbers, whichever view is asked for first
        return _lock(probs)

    def _probs(self, rows: slice, classes: slice = slice(None)) -> Array:
        if self._kept_probs is not None:
            return self._kept_probs[rows, classes]
        block = self.values[rows, classes]
        if self.kind == "probs":
            return block.astype(np.float64)
        _, _, largest, total = self._top
        with np.errstate(over="ignore"):
            block = np.subtract(block, largest[rows, None], dtype=np.float64)
        np.exp(block, out=block)
        block /= total[rows, None]
        return np.asarray(block, dtype=np.float64)

    @cached_property
    def _kept_curves(self) -> list[ClassCurves] | None:
        return list(self._make_curves()) if self._small else None

    def _make_curves(self) -> Iterator[ClassCurves]:
        """Sorted class columns in blocks of at most KEEP_ELEMENTS; two threads sort the halves of a block."""
        by_class = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[by_class], np.arange(self.k + 1))
        _ = self._kept_probs, self._top  # made here once, not by the first thread that needs them
        for block in pieces(self.k, max(1, KEEP_ELEMENTS // self.n)):
            columns = np.empty((block.stop - block.start, self.n))  # (b, n)
            positives: list[Array] = [columns[0]] * len(columns)

            def work(
                part: slice,
                block: slice = block,
                columns: Array = columns,
                positives: list[Array] = positives,
            ) -> None:
                first = block.start
                columns[part] = self._probs(slice(None), slice(first + part.start, first + part.stop)).T
                for row in range(part.start, part.stop):
                    members = by_class[starts[first + row] : starts[first + row + 1]]
                    positives[row] = np.sort(columns[row, members])
                columns[part].sort(axis=1)

            run_pieces(work, pieces(len(columns), max(1, 4 * CHUNK_ELEMENTS // self.n)), columns.size)
            yield ClassCurves(columns, positives)


def _lock(first: npt.NDArray[Any], *more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make arrays read-only, so that nobody spoils a view that others share; returns the first."""
    for array in (first, *more):
        array.flags.writeable = False
    return first
