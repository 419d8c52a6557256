"""What a report looks at, by the shape of the predictions: its measures, its figures, and what it cannot answer."""

from calibrant.core import wording
from calibrant.core.extras import Shape
from calibrant.core.predictions import Predictions
from calibrant.core.weighted import is_whole

SHOWN = 5  # numbers on the page at first sight; the others are folded
FIGURES = ("smooth_reliability", "confidence_density", "risk_coverage", "correctness_roc", "bins_sweep")
FIGURES_OF_POSITIVES = ("roc", "precision_recall", "smooth_reliability", "confidence_density", "bins_sweep")


def refinement(shape: Shape) -> str:
    """The measure of how well scores rank, whatever they say."""
    return "roc_auc" if shape == "binary" else "auroc_correct"


def specs(shape: Shape, ece: str) -> tuple[str, ...]:
    """The measures, the five that say most first."""
    mass = f"{ece}{',' if ':' in ece else ':'}scheme=mass"
    mce = ece.replace("ece", "mce")
    if shape == "binary":
        return (ece, "gap", "nll", "roc_auc", "average_precision", "accuracy", mass, mce, "smooth", "brier")
    of_classes = ("classwise",) if shape == "classes" else ()
    return ("accuracy", "gap", ece, "nll", "auroc_correct", mass, mce, "smooth", *of_classes, "brier", "aurc")


def figures(shape: Shape) -> tuple[str, ...]:
    return FIGURES_OF_POSITIVES if shape == "binary" else FIGURES


def notes(p: Predictions) -> tuple[str, ...]:
    """What the rows are, and what they leave open."""
    said = (_balance(p), _missing(p), *p.extras.notes, _weights(p), _clusters(p), _left_out(p))
    return tuple(note for note in said if note)


def _balance(p: Predictions) -> str:
    if p.shape != "binary":
        return ""
    name = f" ({p.classes[1]})" if p.classes else ""
    share = wording.percent(p.mean(p.hit))
    return f"Class balance: {share} of the rows are positive{name}, {int(p.hit.sum()):,} of {p.n:,}."


def _missing(p: Predictions) -> str:
    return "" if p.extras.missing is None else str(p.extras.missing)


def _weights(p: Predictions) -> str:
    if p.weights is None:
        return ""
    if is_whole(p.weights):
        return f"Rows are counted by their weights: {p.n:,} rows stand for {p.curve.total:,.0f}."
    worth = p.curve.total * p.curve.effective
    return (
        f"Rows carry weights, and every number here is weighted: {p.n:,} rows tell as much as {worth:,.0f} equal ones."
    )


def _clusters(p: Predictions) -> str:
    if p.clusters is None:
        return ""
    count = int(p.clusters.max()) + 1
    return (
        f"Rows come in {wording.count(count, 'cluster')}, which are resampled whole; only the test of the ECE against "
        "chance takes rows for independent, so it is too sure where they are not."
    )


def _left_out(p: Predictions) -> str:
    if p.shape == "confidence":
        return "Nothing is said of single classes: these rows hold a confidence and right or wrong, no probabilities."
    if p.shape == "choices":
        return "Nothing is said of single classes: option 2 of one question is not option 2 of another."
    return ""
