"""Excerpts of a model that several formats show: its name in tables, numbers side by side, bars of a small diagram."""

from typing import Any

from calibrant.core.catalogue import name_of
from calibrant.core.curves.curve import Curve
from calibrant.core.text import number_format as fmt
from calibrant.measures import BinOptions, make
from calibrant.measuring.measure import Measurement
from calibrant.repairing.rule import UNCALIBRATED
from calibrant.reporting import contents_by_task
from calibrant.reporting.calibration_state import bins_of
from calibrant.reporting.parts import CalibratorTrial, Model

SIDE_BY_SIDE = ("ece", "gap", "nll", "accuracy")
MINI = 100  # width and height of the diagrams before and after
LABELS = {"identity": "uncalibrated"}
SHORT = {
    "ece": "ECE",
    "gap": "gap",
    "nll": "loss (NLL)",
    "accuracy": "accuracy",
    "auroc_correct": "AUROC",
    "roc_auc": "ROC AUC",
    "brier": "Brier",
}


def label(calibrator: str) -> str:
    return LABELS.get(calibrator, calibrator)


def facts(measure: str, task: str) -> dict[str, str]:
    """The title of a measure, the direction that is better, and its meaning in plain words.

    >>> facts("ece:scheme=mass", "multiclass")["title"]
    'Expected calibration error, equal mass'
    """
    chosen = make(measure)
    mass = ", equal mass" if isinstance(chosen, BinOptions) and chosen.scheme == "mass" else ""
    return {
        "title": f"{chosen.title}{mass}",
        "better": fmt.BETTER[chosen.direction],
        "meaning": chosen.explain(task),
    }


def side_by_side(m: Model) -> list[Measurement]:
    """One number per column: the first of its measure."""
    by_stem: dict[str, Measurement] = {}
    for n in m.numbers:
        by_stem.setdefault(name_of(n.measure), n)
    return [by_stem[stem] for stem in (*SIDE_BY_SIDE, contents_by_task.refinement(m.task))]


def cost_of_best(m: Model) -> list[str]:
    """The actual cost per row with the recommended calibration, where costs are given."""
    return [] if m.cost is None else [fmt.number(c.actual_cost) for c in m.cost.rows if c.calibrator == m.best]


def order_trials(m: Model) -> list[CalibratorTrial]:
    """Trials to show first: no calibration, the one to use, and that of the other option; the rest is folded."""
    if m.ruling is None:
        return []
    names = {UNCALIBRATED, m.best, m.ruling.chosen, m.ruling.otherwise}
    first = [t for t in m.trials if t.calibrator in names]
    return first if len(m.trials) - len(first) > 1 else list(m.trials)


def mini(curve: Curve, bins: int) -> list[dict[str, Any]]:
    """The bars of a small diagram that needs no script."""
    filled = [b for b in bins_of(curve, bins) if b.n]
    most = max(b.n for b in filled)
    return [
        {
            "x": MINI * b.low,
            "width": MINI * (b.high - b.low),
            "y": MINI * (1 - max(b.says, b.right)),
            "height": MINI * abs(b.says - b.right),
            "right": MINI * (1 - b.right),
            "side": "over" if b.says > b.right else "under",
            "strength": 0.3 + 0.6 * (b.n / most) ** 0.5,
        }
        for b in filled
    ]
