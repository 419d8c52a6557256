"""Predictions: what a classifier said and what was true, validated once, with cached views for every measure."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, lock
from calibrant.core.curve import ClassCurves, Curve
from calibrant.core.errors import InputError
from calibrant.core.extras import Extras
from calibrant.core.parallel import pieces
from calibrant.core.range import hold
from calibrant.core.views import Top, curves_of, entropy_of, shared_out, softmax_of, top_of

Kind = Literal["logits", "probs"]

PROBABILITY_FLOOR = 1e-12  # the smallest probability whose logarithm is taken
SUM_TOLERANCE = 1e-3  # how far a row of probabilities may be from one: float16 files are
KEEP_ELEMENTS = 1 << 22  # n * k up to which probabilities and class curves stay in memory
CHUNK_ELEMENTS = 1 << 16  # elements worked on at a time, so that they stay in the processor's cache


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
        """For internal use: takes valid arrays without looking at them. Users call `from_logits` or `from_probs`."""
        extras = extras or Extras()
        self.__dict__.update(values=values, labels=labels, kind=kind, extras=extras)
        lock(values, labels, *extras.arrays().values())

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

        if not np.isfinite(self.values).all():
            fix = "look at the map that made them: it is damaged, or its numbers are too large"
            raise InputError(str(path), expected="finite predictions", got="NaN or infinity", fix=fix)
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
        with np.errstate(over="ignore"):
            cooled = self.logits / np.float64(T)
        return Predictions(hold(cooled), self.labels, "logits", self.extras)

    def with_confidence(self, q: npt.ArrayLike) -> "Predictions":
        """The same predictions with other confidences (n,): the other classes are rescaled to share what is left.

        The predictions are carried along, because where q is small another class may have the larger probability.
        """
        given = np.asarray(q, dtype=np.float64)
        wrong = given.shape != (self.n,) or not np.all((given >= 0) & (given <= 1))  # NaN is not either
        if wrong:
            got = f"shape {given.shape}" if given.shape != (self.n,) else f"{np.min(given):g} to {np.max(given):g}"
            fix = "give one probability per row"
            raise InputError("with_confidence", expected=f"{self.n} numbers from 0 to 1", got=got, fix=fix)
        probs = shared_out(self.probs, self.predicted, given)
        return Predictions(probs, self.labels, "probs", replace(self.extras, predicted=self.predicted))

    # -- views, each computed once --------------------------------------------------------------

    @property
    def logits(self) -> Floats:
        """The logits as given, or the logarithm of the probabilities as given (floored at 1e-12)."""
        return self.values if self.kind == "logits" else self._log_values

    @cached_property
    def _log_values(self) -> Array:
        return lock(np.log(np.maximum(self.values, PROBABILITY_FLOOR), dtype=np.float64))

    @cached_property
    def confidence(self) -> Array:
        return self._top.confidence

    @cached_property
    def predicted(self) -> Ints:
        """The class of the largest score (the lowest index wins a tie), unless the rows carry another prediction."""
        return self._top.predicted

    @cached_property
    def correct(self) -> npt.NDArray[np.bool_]:
        return lock(self.predicted == self.labels)

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
    def _top(self) -> Top:
        return top_of(self.values, self.kind == "logits", self.extras.predicted, self._chunk_rows)

    @cached_property
    def _kept_probs(self) -> Array | None:
        if not self._small:
            return None
        if self.kind == "probs":
            return lock(self.values.astype(np.float64, copy=False))
        probs = np.empty((self.n, self.k))
        # The same numbers, whichever view is asked for first.
        self.__dict__["_top"] = top_of(self.values, True, self.extras.predicted, self._chunk_rows, probs)
        return lock(probs)

    def _probs(self, rows: slice, classes: slice = slice(None)) -> Array:
        if self._kept_probs is not None:
            return self._kept_probs[rows, classes]
        block = self.values[rows, classes]
        if self.kind == "probs":
            return block.astype(np.float64)
        return softmax_of(block, self._top.largest[rows], self._top.total[rows])

    @cached_property
    def _kept_curves(self) -> list[ClassCurves] | None:
        return list(self._make_curves()) if self._small else None

    def _make_curves(self) -> Iterator[ClassCurves]:
        """Blocks of at most KEEP_ELEMENTS."""
        _ = self._kept_probs, self._top  # made here once, not by the first thread that needs them
        block, at_once = max(1, KEEP_ELEMENTS // self.n), max(1, 4 * CHUNK_ELEMENTS // self.n)
        return curves_of(self.labels, self.k, lambda classes: self._probs(slice(None), classes), block, at_once)
