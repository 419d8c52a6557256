"""Base class of measures: a number about predictions, with its facts, its noise and its interval."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import check_options, spec_of
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.estimate import Draws, Estimate, Noise, Parts, subtract
from calibrant.core.statistics.sampling import PARTS, Sampling
from calibrant.core.text.vocabulary import describe_task, vocabulary_of

UNDEFINED = "undefined on these rows"
NO_WIDTH = "no interval: every row gives the same value, so that these rows do not show how far it may be off"
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
    other_names: ClassVar[tuple[str, ...]] = ()  # what others call it, or what is near it: an error names this entry
    name_hint: ClassVar[str] = ""  # how it differs from what others call so
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

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        """The value with the noise that sampling the rows gave it: from parts of very many rows, or from resamples."""
        return self.resampled_estimate(p, self(p), rows)

    def estimate_difference(self, a: Predictions, b: Predictions, rows: tuple[Sampling, Sampling]) -> Estimate:
        """The difference b - a, or that of the distances from the ideal; `rows` are those of `Sampling.pair`."""
        of_a, of_b = (own.known.get(self) or self.estimate(p, own) for p, own in zip((a, b), rows, strict=True))
        return subtract(of_a, of_b, self.ideal)

    def draws_if_calibrated(self, p: Predictions, rows: Sampling) -> Array:
        """The measure on labels drawn from the probabilities, again and again.

        Rows of one cluster share their noise, which no label drawn alone can show: there each draw turns the residuals
        of whole clusters around at random, and a measure that is not made of residuals cannot be drawn at all.
        """
        size = rows.affordable(self.resamples)
        if p.clusters is not None:
            noise = self.estimate(p, replace(rows, draws=size, subtracted=True, calibrated=True)).noise
            assert isinstance(noise, Draws)
            assert noise.null is not None
            return noise.null()
        rng = np.random.default_rng(rows.seed)
        labels = (_draw_labels(p, rng) for _ in range(size))
        return np.array([self(Predictions._from_valid(p.values, drawn, p.score_type, p.row_data)) for drawn in labels])

    # -- for families of measures -----------------------------------------------------------------

    def with_noise(self, value: float, noise: Noise) -> Estimate:
        """The estimate of this value, inside the bounds."""
        return Estimate(value=value, noise=noise, bounds=self.bounds, no_width=NO_WIDTH)

    def resampled_estimate(self, p: Predictions, value: float, rows: Sampling) -> Estimate:
        """The estimate of a value whose noise nothing else tells: from parts of very many rows, or from resamples."""
        if rows.calibrated:
            expected = "a calibration error, whose residuals can be drawn by cluster"
            raise InputError(spec_of(self), expected=expected, got="rows in clusters", fix="use for instance ece")
        if not np.isfinite(value):
            return Estimate(value=value, reason=UNDEFINED)
        if rows.in_parts and not self.of_calibration:
            return self.with_noise(value, Parts(values=self._values_on_parts(p, rows)))
        return self.with_noise(value, self._bootstrap_noise(p, value, rows))

    def _bootstrap_noise(self, p: Predictions, value: float, rows: Sampling) -> Draws:
        """The noise of the basic bootstrap.

        Near zero the bootstrap cannot see that noise alone makes a calibration error. So where it shows much bias, zero
        is ruled out only if models that are calibrated by construction rarely reach the value.
        """
        resampled = self._values_on_resamples(p, rows)
        biased = self.of_calibration and np.mean(resampled) - value > SUSPECT_BIAS * value
        null = (lambda: self.draws_if_calibrated(p, replace(rows, resamples=len(resampled)))) if biased else None
        method, freedom = f"basic bootstrap, {len(resampled):,} resamples", np.inf
        if p.clusters is not None:
            freedom, method = rows.freedom, f"{method}, Student's distribution for few clusters"
        return Draws.from_resamples(value, resampled, method, null, freedom)

    def _values_on_resamples(self, p: Predictions, rows: Sampling) -> Array:
        return rows.resample(lambda counts: self.resample(p, counts), self.resamples)

    def _values_on_parts(self, p: Predictions, rows: Sampling) -> Array:
        values = []
        for part in range(PARTS):
            values.append(self(p.take(np.flatnonzero(rows.part_of == part))))
            rows.step(1)
        return np.array(values)

    @property
    def ideal(self) -> float | None:
        """The best value of a measure for which neither low nor high values are best."""
        return IDEALS.get(self.direction)


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
