"""Measures of a stream: a state of fixed size, updated by batches, merged over processes or days, saved as JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.parallel import one_blas_thread
from calibrant.core.predictions import Predictions
from calibrant.core.schema import whole
from calibrant.core.shapes import shape_words
from calibrant.core.weighted import is_whole
from calibrant.measures import Binned, ClassMeasure, CurveMeasure, RowMeasure
from calibrant.measures.roc_auc import ROCAUC
from calibrant.measuring.state import (
    State,
    check_bins,
    check_named,
    check_ranking,
    check_rows,
    check_same,
    check_shapes,
)
from calibrant.measuring.streamable import (
    HISTOGRAM,
    RANKINGS,
    TOP,
    given_weights,
    state_name,
    sums_shape,
    usual,
)
from calibrant.measuring.summed import Summed
from calibrant.measuring.sums import SUMS, class_sums, fine_sums, row_sums, score_sums

if TYPE_CHECKING:
    import altair as alt

    from calibrant.measuring.check import Check
    from calibrant.measuring.compare import Comparison


class Accumulator(Summed):
    """Sums that measures with fixed bins, and means over rows, can be computed from exactly.

    >>> a = Accumulator(["ece:bins=2", "accuracy"])
    >>> a.update(Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1]))
    >>> round(a.measure("ece:bins=2").value, 3)
    0.25
    """

    def __init__(self, measures: Sequence[str] | None = None) -> None:
        self._asked = measures is not None
        super().__init__(usual(None) if measures is None else measures)

    def update(self, p: Predictions | None) -> None:
        """Add a batch of any size; None adds nothing."""
        if p is None:
            return
        self._same_kind(p.shape, p.k)
        for m in self._measures.values():
            m.check_shape(p)
        w = given_weights(p)
        with one_blas_thread():  # its products are small: a second thread mostly waits
            for name, part in self._parts(p, w):
                self._add(name, part)
        self.n += p.n
        self.total += p.n if w is None else float(w.sum())
        self.square += p.n if w is None else float(w @ w)
        self.weighted |= w is not None
        self.counts &= w is None or is_whole(w)
        self.clustered |= p.extras.clusters is not None  # which may go on in the next batch

    def merge(self, other: "Accumulator") -> "Accumulator":
        """The accumulator of both streams; neither is changed."""
        filled = [part for part in (self, other) if part.n]
        if (filled or (self, other))[0].specs != (filled or (self, other))[-1].specs:
            raise InputError(
                "merge",
                expected=f"the same measures ({', '.join(self.specs)})",
                got=", ".join(other.specs),
                fix="build both accumulators with the same list",
            )
        both = Accumulator(filled[0].specs if filled else self.specs)
        for part in filled:
            both._same_kind(part.shape, part.k)
            both.n, both.total, both.square = both.n + part.n, both.total + part.total, both.square + part.square
            both.weighted, both.clustered = both.weighted or part.weighted, both.clustered or part.clustered
            both.counts = both.counts and part.counts
            for name, sums in part.sums.items():
                both._add(name, sums)
        return both

    def check(
        self, what: str, *, limit: float, side: Literal["max", "min"] = "max", confidence: float = 0.95
    ) -> "Check":
        """A limit for one of the measures, as `cal.check` judges it: broken on evidence, not on noise."""
        from calibrant.measuring.from_sums import check_sums

        return check_sums(self, what, limit, side, confidence)

    def compare(self, other: "Accumulator", what: str, *, confidence: float = 0.95, seed: int = 0) -> "Comparison":
        """The other minus this one, from different rows, as `cal.compare(..., paired=False)` finds it."""
        from calibrant.measuring.from_sums import compare_sums

        return compare_sums(self, other, what, confidence, seed)

    def to_predictions(self) -> Predictions:
        """Weighted rows that stand for all of them, for figures: scores are rounded to the bins they fell into.

        Their values are close to those of `measure`; their intervals are not to be trusted, since rows are gone.
        """
        from calibrant.measuring.from_sums import stand_ins

        return stand_ins(self)

    def plot(self, figure: str = "reliability") -> "alt.TopLevelMixin":
        """A figure of the stand-in rows; it shows itself in a notebook, and `save` writes it."""
        from calibrant.measuring.from_sums import plot_sums

        return plot_sums({"all rows": self}, figure)

    # -- on disk --------------------------------------------------------------------------------

    def to_json(self) -> str:
        return self._state().to_json()

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulator":
        """What `to_json` gave. A state may name measures of the catalogue, and files only if you name them in `own`."""
        state = State.from_json(text)
        check_named(state.measures, own)
        with whole("accumulator", fix="save it again"):
            made = cls(state.measures)
            made.n, made.k, made.shape, made.sums = state.n, state.k, state.shape, state.sums
            made.total, made.square = state.total, state.square
            made.weighted, made.counts, made.clustered = state.weighted, state.counts, state.clustered
            made._check(state)
            return made

    def save(self, path: str | Path) -> None:
        from calibrant.core.disk import write_whole

        write_whole(path, lambda stream: stream.write(self.to_json().encode()))

    @classmethod
    def load(cls, path: str | Path, *, own: Sequence[str] = ()) -> "Accumulator":
        """From a file that `save` wrote; `own` as for `from_json`."""
        file = Path(path)
        if not file.is_file():
            raise InputError(str(path), expected="a saved accumulator", got="no such file", fix="check the path")
        try:
            return cls.from_json(file.read_text(encoding="utf-8", errors="replace"), own=own)
        except InputError as error:
            raise InputError.inside(str(path), error) from None

    # -- how it works ---------------------------------------------------------------------------

    def _state(self) -> State:
        about = self.n, self.k, self.shape, self.total, self.square, self.weighted, self.counts, self.clustered
        return State(self.specs, *about, self.sums)

    def _parts(self, p: Predictions, w: Array | None) -> Iterator[tuple[str, Array]]:
        """What a batch adds to each state. Measures with the same bins share one state."""
        event = p.score, p.hit.astype(np.float64)
        yield "histogram", score_sums(*event, w, HISTOGRAM, "right")
        names = {state_name(m, spec): m for spec, m in self._measures.items()}
        for name, m in names.items():
            scores, hits = event
            if isinstance(m, CurveMeasure) and m.scope == "top":
                scores, hits = p.confidence, p.correct.astype(np.float64)
            elif isinstance(m, ROCAUC) and p.shape != "binary":  # of two classes the second is the positive one
                scores, hits = p.probs[:, 1], (p.labels == 1).astype(np.float64)
            if isinstance(m, ClassMeasure):
                yield name, class_sums(p, w, m)
            elif isinstance(m, Binned):
                yield name, score_sums(scores, hits, w, m.bins, m.closed)
            elif isinstance(m, RANKINGS):
                yield name, fine_sums(scores, hits, w)
            elif isinstance(m, RowMeasure):
                yield name, row_sums(m.rows(p).astype(np.float64), w)

    def _check(self, state: State) -> None:
        """Refuse sums that no predictions have."""
        kinds = {"histogram": None, **{state_name(m, spec): m for spec, m in self._measures.items()}}
        check_shapes(state, {name: sums_shape(m, self.k) for name, m in kinds.items()})
        for name, sums in state.sums.items():
            m = kinds[name]
            if m is None or isinstance(m, Binned):
                check_bins(name, sums, state)
            elif isinstance(m, RANKINGS):
                check_ranking(name, sums, state)
            else:
                check_rows(name, sums, state, m.bounds)
        if self.n:
            alike = {
                name: s for name, s in state.sums.items() if s.shape[0] == SUMS and s.ndim == 2 and TOP not in name
            }
            check_same(alike, state)

    def _add(self, name: str, part: Array) -> None:
        self.sums[name] = self.sums[name] + part if name in self.sums else part

    def _same_kind(self, shape: Shape | None, k: int) -> None:
        if self.shape is not None and shape is not None and self.shape != shape:
            expected, fix = f"{shape_words(self.shape)} as before", "use one accumulator for each kind of predictions"
            raise InputError("accumulator", expected=expected, got=shape_words(shape), fix=fix)
        if self.k not in (0, k) and shape != "choices":
            raise InputError(
                "accumulator",
                expected=f"{self.k} classes as before",
                got=str(k),
                fix="use one model per accumulator",
            )
        if self.shape is None and not self._asked:  # of the usual ones, those that this shape can answer
            self._set_measures(usual(shape))
        self.shape, self.k = shape, max(self.k, k)
