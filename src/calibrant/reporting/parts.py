"""Parts of a report: frozen values, ready for JSON. `build` computes them; pages and tables only read them."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from calibrant.core.curves.curve import Curve
from calibrant.core.json import NOT_IN_JSON
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.vocabulary import Vocabulary, vocabulary_of
from calibrant.measuring.compare import Comparison
from calibrant.repairing.judge import JudgedOn
from calibrant.repairing.rule import UNCALIBRATED, Ruling

CalibrationState = Literal[
    "calibrated", "close", "inconclusive", "perhaps_over", "perhaps_under", "over", "under", "mixed", "untested"
]
Outcome = Literal["uncalibrated", "better", "inconclusive", "worse", "failed"]  # of a calibrator, by the loss


@dataclass(frozen=True, kw_only=True)
class Number:
    """One measure with its interval, its definition, and its meaning in plain words."""

    measure: str
    title: str
    value: float
    low: float | None
    high: float | None
    better: str
    definition: str
    meaning: str


@dataclass(frozen=True)
class Noise:
    """ECE and gap of a perfectly calibrated model on as many rows: the effect of chance alone."""

    observed: float
    expected: float
    upper: float  # 95 of 100 perfectly calibrated models stay below
    p_value: float  # how often chance alone makes an ECE as large
    gap_p_value: float  # how often it makes a gap as large


@dataclass(frozen=True)
class Verdict:
    """The verdict in one line and one paragraph."""

    state: CalibrationState
    headline: str
    text: str
    action: str = ""  # what to do, in one line


@dataclass(frozen=True, kw_only=True)
class CalibratorTrial:
    """One calibrator: its fitted parameters, and its changes on the rows it is judged on."""

    calibrator: str
    outcome: Outcome
    words: str
    learned: str
    parameters: dict[str, float]
    keeps_argmax: bool
    predictions_changed: int
    values: dict[str, float]
    changes: tuple[Comparison, ...]  # a is before, b is after
    curve: Curve | None = field(default=None, metadata=NOT_IN_JSON, compare=False)


@dataclass(frozen=True)
class Bin:
    """One bar of the reliability diagram."""

    low: float
    high: float
    n: int
    says: float
    right: float


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment of the rows: mean confidence and accuracy there, and whether their gap is more than noise."""

    name: str
    n: int
    says: float
    right: float
    gap: float
    low: float
    high: float
    p_value: float
    beyond_noise: bool
    gap_after: float | None  # with the repair, where there is one


@dataclass(frozen=True)
class Segments:
    """All segments of one kind, the worst first."""

    by: str
    words: str
    beyond_noise: int
    rows: tuple[Segment, ...]


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """Cost per row of using these probabilities: expected by the model's own confidence, and actual."""

    calibrator: str
    accepted: float  # share of rows whose prediction is used
    error: float  # share of the accepted predictions that are wrong; NaN where none is accepted
    expected_cost: float
    actual_cost: float
    low: float  # of the actual cost
    high: float
    change: float  # of the actual cost, against no calibration, on the same rows
    change_low: float
    change_high: float
    missed: float | None = None  # share of the positives that are not called, where there are positives


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Costs of decisions; `accepts` says whether `accepted` counts predictions used or rows called positive."""

    rule: str
    headline: str  # the money in one line
    words: str
    accepts: str
    fn: float | None  # costs of a missed positive and of a false alarm, where rows are called positive
    fp: float | None
    threshold: float | None
    rows: tuple[CostRow, ...]


@dataclass(frozen=True)
class Certainty:
    """Precision of the numbers, and how many rows would settle what is open."""

    half_width: float  # of the interval of the gap
    rows_wanted: int | None  # in all, to settle the open question or to sharpen the number
    words: tuple[str, ...]


@dataclass(frozen=True)
class FigureData:
    """A static figure: its rows, and its description in words."""

    figure: str
    title: str
    words: str
    rows: list[dict[str, Any]] = field(metadata=NOT_IN_JSON, compare=False)
    svg: Future[str] | None = field(default=None, metadata=NOT_IN_JSON, compare=False, repr=False)  # if drawn ahead


@dataclass(frozen=True, kw_only=True)
class Model:
    """The part of a report on the predictions of one model."""

    name: str
    task: Task
    n: int
    k: int
    says: float
    right: float
    verdict: Verdict
    numbers: tuple[Number, ...]
    noise: Noise | None  # None where rows come in clusters and no test holds
    bins: tuple[Bin, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what the rows are, and what they cannot answer
    # What takes rows; an accumulator keeps sums only.
    judged_on: JudgedOn | None = None
    trials: tuple[CalibratorTrial, ...] = ()  # "identity" first
    best: str = UNCALIBRATED  # the calibrator to use
    ruling: Ruling | None = None  # why
    not_tried: tuple[str, ...] = ()  # candidates that would have taken too long here
    classes: Segments | None = None  # of predictions that have classes
    groups: Segments | None = None
    cost: Cost | None = None
    certainty: Certainty | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.task)

    @property
    def repair(self) -> str | None:
        """The calibrator to use; None where predictions are used uncalibrated."""
        return None if self.best == UNCALIBRATED else self.best

    def after(self, calibrator: str) -> CalibratorTrial:
        return next(t for t in self.trials if t.calibrator == calibrator)


@dataclass(frozen=True)
class Pair:
    """Two models on the same rows, one comparison per measure."""

    a: str
    b: str
    changes: tuple[Comparison, ...]


@dataclass(frozen=True)
class Ranking:
    """Models from the best down by their loss with the recommended calibration; pairs are compared with it too."""

    measure: str
    order: tuple[str, ...]
    pairs: tuple[Pair, ...]
    words: str
    cost_words: str = ""  # which costs least, where costs are given


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A set of rows that went in. `sha256` is of the file, or of the numbers where there was none."""

    name: str
    role: str
    n: int
    k: int
    kind: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Provenance of the report: enough to make it again and to see that it is the same."""

    date: str
    command: str | None
    seed: int
    resamples: str
    versions: dict[str, str]
    sources: tuple[SourceFile, ...]
