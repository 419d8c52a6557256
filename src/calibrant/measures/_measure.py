"""Base class of measures: a number about predictions, with its facts, its noise and its interval."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import check_options, spec_of
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.bootstrap import Interval, basic_interval
from calibrant.core.statistics.residual_noise import Sampling, Spread
from calibrant.core.text.vocabulary import describe_task, vocabulary_of

SUSPECT_BIAS = 0.1  # of the value; a calibrated model shows about 0.4

TASKS: tuple[Task, ...] = ("multiclass", "binary", "confidence", "choice")
Direction = Literal["down", "up", "zero", "one", "none"]
IDEALS = {"zero": 0.0, "one": 1.0}  # the value that is best, where neither low nor high values are
Unit = Literal["percent", "number"]
Streams = Literal["rows", "bins", "ranking", "no"]


@dataclass(frozen=True)
class Measure:
    """A number about predictions: pure, blind to the order of rows and to a constant added to a row of logits."""

    aliases: ClassVar[tuple[str, ...]] = ()  # other names it is found by
    title: ClassVar[str]
    reference: ClassVar[str]
    direction: ClassVar[Direction] = "down"  # which way is better
    unit: ClassVar[Unit] = "number"  # "percent": a share, printed as 6.81 %
    meaning: ClassVar[str] = ""  # one plain sentence for somebody who never saw the number
    meaning_binary: ClassVar[str] = ""  # the same about P(positive), where that differs
    streams: ClassVar[Streams] = "no"  # the sums that it is computed from, batch by batch
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    resamples: ClassVar[int] = 1000  # how many the interval takes unless told otherwise
    tasks: ClassVar[tuple[Task, ...]] = TASKS  # of predictions that it can be computed of
    blind_to: ClassVar[str] = ""  # what a test of calibration by it does not see
    covers: ClassVar[str] = ""  # what a 95 % interval covers, where that is not 93 to 99 %
    of_calibration: ClassVar[bool] = False  # zero for a perfectly calibrated model of infinitely many rows
    needs_both: ClassVar[bool] = False  # NaN unless some predictions are right and some wrong
    undefined_for: ClassVar[str] = ""  # rows on which it raises UndefinedMeasureError, in words
    of_share: ClassVar[bool] = False  # the mean of zeros and ones, by the outcome of each row
    of_ratio: ClassVar[bool] = False  # its interval is symmetric in the logarithm
    without_interval: ClassVar[str] = ""  # why it has none, where no interval is known that holds
    fixed_maps: ClassVar[bool] = False  # fits maps, and resamples do not fit them again

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, p: Predictions) -> float:
        raise TypeError(f"{type(self).__name__} does not say how it is computed: define __call__")

    @property
    def definition(self) -> str:
        """The definition of the number in words, with the options that matter."""
        return self.title

    def explain(self, task: str) -> str:
        """The meaning of the number in plain words; the first line of the class where none is given."""
        own = self.meaning_binary if task == "binary" else ""
        return own or self.meaning or (type(self).__doc__ or self.title).strip().partition("\n")[0]

    @property
    def streamed_from(self) -> Streams:
        """The sums that the measure with these options is computed from."""
        return self.streams

    def definition_for(self, p: Predictions) -> str:
        """The definition for the task of these predictions."""
        words = self.definition
        for top, own in vocabulary_of(p.task).in_definitions.items():
            words = words.replace(top, own)
        return words

    def check_shape(self, p: Predictions) -> None:
        """Refuse what are not predictions, and predictions that this measure cannot be computed of."""
        check_predictions(p)
        if p.task not in self.tasks:
            raise InputError(
                spec_of(self),
                expected=" or ".join(map(describe_task, self.tasks)),
                got=describe_task(p.task),
                fix="ask for a measure that needs no more, for instance ece",
            )

    def resample(self, p: Predictions, counts: Ints) -> Array:
        """The measure on resamples: row i of the data occurs counts[r, i] times in resample r."""
        rows = np.arange(p.n)
        return np.array([self(p.take(np.repeat(rows, c))) for c in counts])

    def simulate(self, p: Predictions, rng: np.random.Generator) -> float:
        """The measure if the probabilities were exactly right: labels drawn from them."""
        return self(Predictions(p.values, _draw_labels(p, rng), p.score_type, p.row_data))

    def under_calibration(self, p: Predictions, resamples: int, seed: int) -> Array:
        """The measure on labels drawn from the probabilities, again and again.

        Rows of one cluster share their noise, which no label drawn alone can show: there each draw turns the residuals
        of whole clusters around at random, and a measure that is not made of residuals cannot be drawn at all.
        """
        if p.clusters is not None:
            turned = Sampling(
                n=p.n, draws=resamples, seed=seed, weights=p.weights, clusters=p.clusters, calibrated=True
            )
            spread = self.spread(p, turned)
            if spread is None:
                expected = "a calibration error, whose residuals can be drawn by cluster"
                raise InputError(spec_of(self), expected=expected, got="rows in clusters", fix="use for instance ece")
            return spread.floor
        rng = np.random.default_rng(seed)
        return np.array([self.simulate(p, rng) for _ in range(resamples)])

    def spread(self, p: Predictions, rows: Sampling) -> Spread | None:
        """The noise that sampling the rows gives the measure, where that is known without resampling them."""
        return None

    def influence(self, p: Predictions) -> Array | None:
        """The influence of each row on the value, to first order, (n,); None where only resamples can tell."""
        return None

    @property
    def ideal(self) -> float | None:
        """The best value of a measure for which neither low nor high values are best."""
        return IDEALS.get(self.direction)

    def bootstrap(self, p: Predictions, draws: Array, tail: float, seed: int) -> Interval:
        """The interval of the measure by the basic bootstrap, from its values on resampled rows (`draws`).

        Near zero the bootstrap cannot see that noise alone makes a calibration error. So where it shows much bias, zero
        is ruled out only if models that are calibrated by construction rarely reach the value.
        """
        value = self(p)
        interval = basic_interval(value, draws, 1 - 2 * tail, self.bounds)
        suspect = self.of_calibration and interval.low > 0 and np.mean(draws) - value > SUSPECT_BIAS * value
        if suspect and np.mean(self.under_calibration(p, len(draws), seed) >= value) > tail:
            return Interval(self.bounds[0], interval.high)
        return interval


def check_predictions(p: object) -> None:
    """Refuse arrays and other values that do not say what their scores are."""
    if not isinstance(p, Predictions):
        raise InputError(
            "predictions",
            expected="a Predictions object, which says what the scores are",
            got=type(p).__name__,
            fix="write for instance Predictions.from_probs(scores, labels=y), or .from_logits, .binary",
        )


def _draw_labels(p: Predictions, rng: np.random.Generator) -> Ints:
    labels = np.empty(p.n, dtype=np.int64)
    for rows, probs in p.prob_rows():
        cumulative = probs.cumsum(axis=1)
        heights = rng.random(len(probs)) * cumulative[:, -1]
        labels[rows] = (cumulative < heights[:, None]).sum(axis=1)
    return labels
