"""Parts of a report: frozen values, ready for JSON. `build` computes them; pages and tables only read them."""

from dataclasses import dataclass, field
from typing import Any, Literal

from calibrant.core.curves.curve import Curve
from calibrant.core.json import NOT_IN_JSON
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.vocabulary import Vocabulary, vocabulary_of
from calibrant.measuring.compare import Comparison
from calibrant.measuring.measure import Measurement
from calibrant.repairing.judge import JudgedOn
from calibrant.repairing.rule import UNCALIBRATED, Ruling

CalibrationState = Literal[
    "calibrated", "close", "inconclusive", "perhaps_over", "perhaps_under", "over", "under", "mixed", "untested"
]
Outcome = Literal["uncalibrated", "better", "inconclusive", "worse", "failed"]  # of a calibrator, by the loss
RefinementLevel = Literal["none", "barely", "clear", "reversed", "unclear", "unknown"]
RepairState = Literal[
    "stopped",  # scores are reversed, or rows are too few: nothing is recommended
    "not_tried",
    "nothing_to_fit",  # all outcomes are alike
    "not_needed",
    "hopeless",  # calibrated, but confidence says nothing of the outcome
    "none_helps",
    "worsens",  # the one chosen on the fitting set makes these rows worse
    "inconclusive",  # the one chosen has no significant effect on these rows, and they are not calibrated after it
    "better",  # but still off by more than chance
    "solved",  # what is left is no more than chance, or less than a point
]
Money = Literal["pays", "inconclusive", "loses"]  # decisions with this model, against always and never acting
Colour = Literal["green", "amber", "red", "grey"]

MOST_USELESS = 0.65  # upper end of an interval around .5 from which on rows are too few to call a model useless
LEAST_CLEAR = 0.6  # AUROC below which confidence barely tells outcomes apart


@dataclass(frozen=True)
class Noise:
    """ECE and gap of a perfectly calibrated model on as many rows: the effect of chance alone."""

    observed: float
    expected: float
    upper: float  # 95 of 100 perfectly calibrated models stay below
    p_value: float  # how often chance alone makes an ECE as large
    gap_p_value: float  # how often it makes a gap as large


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
    p_value_after: float | None = None
    beyond_noise_after: bool = False
    worse_after: bool = False  # significantly further from 0 than before, and by at least a point

    @property
    def left(self) -> float:
        """The gap that is left: with the repair, where there is one."""
        return self.gap if self.gap_after is None else self.gap_after

    @property
    def off(self) -> bool:
        """Whether the gap that is left is more than noise."""
        return self.beyond_noise if self.gap_after is None else self.beyond_noise_after


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
    decisions_changed: int  # by the rule, against no calibration
    against_trivial: Money | None = None  # against the cheaper of always and never acting
    always: float | None = None  # cost per row of calling every row positive
    never: float | None = None
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

    def row(self, calibrator: str) -> CostRow:
        return next(row for row in self.rows if row.calibrator == calibrator)


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


def refinement_level(auroc: Measurement | None) -> RefinementLevel:
    """How well scores tell outcomes apart, by an area under the ROC and its interval."""
    if auroc is None or auroc.value != auroc.value:
        return "unknown"
    if auroc.low is None or auroc.high is None:
        return "none" if auroc.value == 0.5 else "unknown"  # exactly one half where all scores are alike
    if auroc.high < 0.5:
        return "reversed"
    if auroc.low <= 0.5:
        return "none" if auroc.high <= MOST_USELESS else "unclear"
    return "barely" if auroc.value < LEAST_CLEAR else "clear"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The state of the calibration and the numbers it follows from."""

    state: CalibrationState
    n: int
    says: float  # mean confidence, or mean P(positive)
    right: float  # accuracy, or the share of positives
    noise: Noise
    gap_low: float  # ends of the 95 % interval of the gap
    gap_high: float
    bins: tuple[Bin, ...] = field(metadata=NOT_IN_JSON)
    task: Task = "multiclass"
    total: float | None = None  # rows, where weights count them; None where weights are shares
    refinement: Measurement | None = None  # auroc_correct or roc_auc

    @property
    def gap(self) -> float:
        return self.says - self.right

    @property
    def level(self) -> RefinementLevel:
        return refinement_level(self.refinement)


@dataclass(frozen=True, kw_only=True)
class UnlikeRows:
    """Rows to fit on whose outcomes differ significantly from those of the rows to judge."""

    fitted_on: float  # accuracy, or the share of positives
    judged_on: float
    z: float
    T_fitted: float | None  # the best temperature of either
    T_judged: float | None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The state of a verdict and its numbers, from which all its sentences are made."""

    now: Assessment
    repair: RepairState
    colour: Colour
    calibrator: str = UNCALIBRATED
    after: Assessment | None = None  # of the rows repaired by that calibrator
    of_groups: bool = False  # whether `worst` and `harmed` are groups that the user named, or predicted classes
    worst: Segment | None = None  # the segment that is off most of all that are off by more than noise
    harmed: Segment | None = None  # the one that the repair makes worse, where there is any
    unlike: UnlikeRows | None = None
    money: Money | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict: what it is now, what a repair does, for whom it does not hold; and a paragraph."""

    state: CalibrationState
    colour: Colour
    headline: str  # the calibration now, in one line
    text: str
    action: str = ""  # what to do, in one line
    exception: str = ""  # for whom this does not hold, in one line
    lines: tuple[str, ...] = ()  # the three lines; with costs, the money is the first
    finding: Finding


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
    numbers: tuple[Measurement, ...]
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
