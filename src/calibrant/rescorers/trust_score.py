"""TrustScore: how much nearer a row's features are to the class it was given than to any other."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.config.convert import from_json
from calibrant.core.errors import InputError
from calibrant.core.json import whole
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.parallel import pieces, threads
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.logistic import platt_of
from calibrant.rescorers._base import (
    REFIT,
    Rescorer,
    TrainedRun,
    check_arrays,
    features_of,
    load_arrays,
    matrix,
    replace_confidence,
    save_arrays,
)

TINY = 1e-12  # added to the distance that is divided by
CHUNK_ROWS = 500  # asked at a time, so that a bar moves and (rows, k) distances stay small

OnRows = Callable[[int], None]


@dataclass(frozen=True)
class TrustScore(Rescorer):
    """Distance to the nearest other class over distance to the predicted class, in features of training images.

    It ranks and nothing else: a score of 3 is no probability. `calibrate` makes one of it, on held-out rows.
    `neighbour` says which neighbour of a class counts; the second, because the first of a training image is itself.
    `alpha` drops that share of each class's images before: those whose `among`-th neighbour (itself counted as the
    first) is farthest.

    >>> train = [[0.0], [1.0], [5.0], [6.0]]
    >>> fitted = TrustScore(neighbour="first").fit(train, [0, 0, 1, 1])
    >>> fitted.score([[2.0], [2.0]], [0, 1]).round(3)  # 3 to class 1 and 1 to class 0, and the reverse
    array([3.   , 0.333])
    """

    neighbour: Literal["second", "first"] = "second"
    alpha: float = 0.0
    among: int = 10

    title: ClassVar[str] = "TrustScore"
    reference: ClassVar[str] = "Jiang, Kim, Guan, Gupta, NeurIPS 2018"
    fitted_on: ClassVar[tuple[str, ...]] = ("train", "val")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha < 1:
            fix = "use for instance 0.05"
            raise InputError("alpha", expected="a share from 0 to below 1", got=str(self.alpha), fix=fix)
        if self.among < 2:
            raise InputError("among", expected="at least 2 neighbours", got=str(self.among), fix="use 10")

    def fit(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> "FittedTrustScore":
        """Keep the features (n, d) of labelled training images, the densest of each class."""
        x = matrix(features, "TrustScore")
        y = _whole(labels, len(x), "labels")
        dense = np.concatenate([self._dense(x, np.flatnonzero(y == c), int(c)) for c in np.unique(y)])
        if len(np.unique(y)) < 2:
            raise InputError("TrustScore", expected="training rows of two classes", got="one", fix="give all of them")
        return FittedTrustScore(options=self, known=x[dense], labels=y[dense])

    def rescore(self, run: TrainedRun) -> Predictions:
        known = run.predictions("train")
        fitted = self.fit(features_of(known, "TrustScore"), known.labels).calibrate(run.predictions("val"))
        return fitted.predict(run.predictions("test"))

    @property
    def rank(self) -> int:
        return 2 if self.neighbour == "second" else 1

    def _dense(self, x: Array, rows: Ints, name: int) -> Ints:
        """The rows of one class without those in its thinnest surroundings."""
        least = self.among if self.alpha > 0 else self.rank
        if len(rows) < least:
            easier = "alpha=0" if self.alpha > 0 else "neighbour='first'"
            fix = f"give more rows, leave the class out, or use {easier}"
            raise InputError(f"class {name}", expected=f"at least {least} training rows", got=str(len(rows)), fix=fix)
        if self.alpha == 0:
            return rows
        radius = _tree(x[rows]).query(x[rows], k=[self.among], workers=threads())[0][:, 0]
        keep = len(rows) - int(self.alpha * len(rows) + 1e-9)  # 0.29 * 100 is a little below 29
        return np.sort(rows[np.argsort(radius, kind="stable")[: max(keep, self.rank)]])


@dataclass(frozen=True)
class _SavedSigmoid:
    """The sigmoid in a file: its coefficients."""

    slope: float | None
    offset: float


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedTrustScore:
    """The training features, and after `calibrate` the sigmoid that makes a probability of the score."""

    options: TrustScore
    known: Array  # (m, d)
    labels: Ints  # (m,)
    slope: float | None = None  # q = sigmoid(slope ln(score) + offset)
    offset: float = 0.0
    fingerprint: Fingerprint | None = None  # of the rows that gave slope and offset

    def score(self, features: npt.ArrayLike, predicted: npt.ArrayLike, *, on_rows: OnRows | None = None) -> Array:
        """The trust score of every row: a ratio from 0 up.

        A row given a class without training rows gets 0: nothing speaks for it. So does one that lies on images of
        its own and of another class alike.
        """
        x = matrix(features, "TrustScore", self.known.shape[1])
        classes = _whole(predicted, len(x), "predicted")
        scores = np.empty(len(x))
        for rows in pieces(len(x), CHUNK_ROWS):
            scores[rows] = self._ratio(x[rows], classes[rows])
            if on_rows is not None:
                on_rows(rows.stop - rows.start)
        return scores

    def calibrate(self, p: Predictions, *, on_rows: OnRows | None = None) -> "FittedTrustScore":
        """Fit a sigmoid of ln(score) by exact log loss on held-out rows; the order of rows does not change."""
        if p.correct.all() or not p.correct.any():
            got = "none wrong" if p.correct.all() else "none right"
            fix = "give more held-out rows"
            raise InputError("TrustScore", expected="right and wrong predictions among the rows", got=got, fix=fix)
        platt = platt_of(self._logs(p, on_rows), p.correct.astype(np.float64))
        slope = float(platt.slopes[0])
        if slope <= 0:
            raise InputError(
                "TrustScore",
                expected="higher scores for right predictions than for wrong ones",
                got=f"a slope of {slope:.3g} on these {p.n} rows",
                fix="this score says nothing about this network: keep the softmax confidence, or look at it with --raw",
            )
        return replace(self, slope=slope, offset=platt.offset, fingerprint=Fingerprint.of(p))

    def predict(self, p: Predictions, *, on_rows: OnRows | None = None) -> Predictions:
        """Predictions with the score as confidence: a probability after `calibrate`, before it only a ranking.

        Without `calibrate` the confidence is score / (1 + score): its AUROC means something, its ECE does not.
        """
        from scipy.special import expit

        slope, offset = (1.0, 0.0) if self.slope is None else (self.slope, self.offset)
        q = expit(slope * self._logs(p, on_rows) + offset)
        return replace_confidence(p, np.asarray(q, dtype=np.float64), self.fingerprint)

    # -- on disk --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Save to one .npz file, whole or not at all."""
        print_ = None if self.fingerprint is None else self.fingerprint.to_dict()
        facts: dict[str, Any] = {"options": asdict(self.options), "slope": self.slope, "offset": self.offset}
        arrays = {"known": self.known, "labels": self.labels}
        save_arrays(path, "TrustScore", arrays, {**facts, "fingerprint": print_})

    @classmethod
    def load(cls, path: str | Path) -> "FittedTrustScore":
        arrays, facts = load_arrays(path, "TrustScore")
        with whole(str(path), fix=REFIT):
            options = from_json(TrustScore, facts["options"])
            sigmoid = from_json(_SavedSigmoid, {name: facts[name] for name in ("slope", "offset")})
            check_arrays(arrays, {"known": (None, None), "labels": (len(arrays["known"]),)})
            known, labels = arrays["known"].astype(np.float64), _whole(arrays["labels"], len(arrays["known"]), "labels")
            rows = np.unique(labels, return_counts=True)[1]
            if len(rows) < 2 or rows.min() < options.rank:
                raise ValueError("it holds too few rows of a class")
            if sigmoid.slope is not None and not sigmoid.slope > 0:
                raise ValueError(f"slope is {sigmoid.slope}")
            return cls(
                options=options,
                known=known,
                labels=labels,
                slope=sigmoid.slope,
                offset=sigmoid.offset,
                fingerprint=Fingerprint.from_dict(facts["fingerprint"]),
            )

    # -- distances ------------------------------------------------------------------------------

    @cached_property
    def _trees(self) -> dict[int, Any]:
        return {int(c): _tree(self.known[self.labels == c]) for c in np.unique(self.labels)}

    def _ratio(self, x: Array, classes: Ints) -> Array:
        ranks = [self.options.rank]
        to = np.column_stack([tree.query(x, k=ranks, workers=threads())[0][:, 0] for tree in self._trees.values()])
        own = np.array(list(self._trees)) == classes[:, None]  # (n, classes); no column for an unknown class
        to_own = np.where(own, to, np.inf).min(axis=1)
        to_other = np.where(own, np.inf, to).min(axis=1)
        return np.asarray(to_other / (to_own + TINY))

    def _logs(self, p: Predictions, on_rows: OnRows | None) -> Array:
        """Logarithms of the scores; a score of 0 stays below all others without being infinite."""
        return np.asarray(np.log(self.score(features_of(p, "TrustScore"), p.predicted, on_rows=on_rows) + TINY))


@dataclass(frozen=True)
class _TrustScoreFile:
    """The facts in a file of a trust score."""

    options: TrustScore
    slope: float | None
    offset: float


def _tree(points: Array) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(points)


def _whole(values: npt.ArrayLike, n: int, what: str) -> Ints:
    numbers = np.asarray(values)
    if numbers.shape != (n,) or not np.issubdtype(numbers.dtype, np.integer) or (n and numbers.min() < 0):
        got = f"{numbers.dtype} of shape {numbers.shape}"
        raise InputError(what, expected=f"{n} class numbers from 0 up", got=got, fix="give one integer per row")
    return numbers.astype(np.int64)
