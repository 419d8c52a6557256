"""Contents of a report by the task of the predictions: its measures, its figures, and what it cannot answer."""

from calibrant.core.catalogue import spec_of
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.text import number_format as fmt
from calibrant.measures.ece import ECE
from calibrant.measures.mce import MCE

SHOWN = 5  # numbers on the page at first sight; the others are folded
BESIDE_BINS = "corp"
FIGURES = (BESIDE_BINS, "smooth_reliability", "confidence_density", "risk_coverage", "correctness_roc", "bins_sweep")
BESIDE_COSTS = "decision_curve"
FIGURES_OF_POSITIVES = (
    BESIDE_BINS,
    "roc",
    "precision_recall",
    "smooth_reliability",
    "confidence_density",
    "bins_sweep",
)


def refinement(task: Task) -> str:
    """The measure of ranking: how well scores tell outcomes apart, whatever their values."""
    return "roc_auc" if task == "binary" else "auroc_correct"


def ece_spec(bins: int) -> str:
    """The spec of the headline error, as the catalogue names it."""
    return spec_of(ECE(bins=bins))


def mce_spec(bins: int) -> str:
    """The spec of the error of the worst of the same bins."""
    return spec_of(MCE(bins=bins))


def specs(task: Task, bins: int) -> tuple[str, ...]:
    """The specs of the measures of a report, the five most important first."""
    ece, mass, mce = ece_spec(bins), spec_of(ECE(bins=bins, scheme="mass")), mce_spec(bins)
    if task == "binary":
        return (ece, "gap", "nll", "roc_auc", "average_precision", "accuracy", mass, mce, "smooth", "brier")
    of_classes = ("classwise",) if task == "multiclass" else ()
    return ("accuracy", "gap", ece, "nll", "auroc_correct", mass, mce, "smooth", *of_classes, "brier", "aurc")


def figures(task: Task, *, costs: bool = False) -> tuple[str, ...]:
    """The names of the figures of a report; where mistakes have costs, the decision curve comes first."""
    if task != "binary":
        return FIGURES
    return (*((BESIDE_COSTS,) if costs else ()), *FIGURES_OF_POSITIVES)


def notes(p: Predictions) -> tuple[str, ...]:
    """Notes on the rows: weights, clusters, and questions that they cannot answer."""
    sentences = (_balance(p), _missing(p), *p.row_data.notes, _weights(p), _clusters(p), _left_out_words(p))
    return tuple(note for note in sentences if note)


def _balance(p: Predictions) -> str:
    if p.task != "binary":
        return ""
    name = f" ({p.classes[1]})" if p.classes else ""
    share = fmt.percent(p.mean(p.outcome))
    return f"Class balance: {share} of the rows are positive{name}, {int(p.outcome.sum()):,} of {p.n:,}."


def _missing(p: Predictions) -> str:
    return "" if p.row_data.missing is None else str(p.row_data.missing)


def _weights(p: Predictions) -> str:
    if p.weights is None:
        return ""
    if is_whole(p.weights):
        return f"Rows are counted by their weights: {p.n:,} rows stand for {p.curve.total:,.0f}."
    worth = p.curve.total * p.curve.weight_unit
    return (
        f"Rows carry weights, and every number here is weighted: {p.n:,} rows tell as much as {worth:,.0f} equal ones."
    )


def _clusters(p: Predictions) -> str:
    if p.clusters is None:
        return ""
    count = int(p.clusters.max()) + 1
    return f"Rows come in {fmt.count(count, 'cluster')}, which are resampled whole."


def _left_out_words(p: Predictions) -> str:
    if p.task == "confidence":
        return "Nothing is said of single classes: these rows hold a confidence and right or wrong, no probabilities."
    if p.task == "choice":
        return "Nothing is said of single classes: option 2 of one question is not option 2 of another."
    return ""
