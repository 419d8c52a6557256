"""Before and after a repair: calibration, and beside it what must not suffer, accuracy and refinement."""

from dataclasses import dataclass
from typing import Any

from calibrant.calibrators import CATALOGUE
from calibrant.core.errors import InputError
from calibrant.core.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.measures import make
from calibrant.measuring.compare import Comparison, compare
from calibrant.repairing.choose import cross_fit, may_take_part
from calibrant.repairing.fit import fit

SHOWN = ("nll", "brier", "ece", "classwise", "accuracy", "auroc_correct")
SHOWN_BINARY = ("nll", "brier", "ece", "accuracy", "roc_auc")


@dataclass(frozen=True)
class Repair:
    """A fitted map and what it changed on the rows it was judged on."""

    map: Map
    judged_on: str  # "other rows", "cross-fitted rows" or "the fitting rows"
    changes: list[Comparison]  # a is before, b is after

    def to_dict(self) -> dict[str, Any]:
        m = self.map
        rows = []
        for c in self.changes:
            row = c.to_dict()
            rows.append({"measure": row["measure"], "before": row["a"], "after": row["b"]} | {k: row[k] for k in KEPT})
        return {
            "calibrator": m.calibrator,
            "parameters": m.to_dict()["parameters"],
            "converged": m.fit.converged,
            "diagnosis": m.fit.diagnosis,
            "gradient": m.fit.gradient,
            "keeps_argmax": m.keeps_argmax,
            "judged_on": self.judged_on,
            "measures": rows,
        }


KEPT = ("difference", "low", "high", "p_value", "n", "k", "definition")


def repair(
    m: Map, val: Predictions, *, test: Predictions | None = None, folds: int = 0, resamples: int = 200, seed: int = 0
) -> Repair:
    """Judge a map on other rows if there are any, else by cross-fitting, else on its own rows (and say so)."""
    before, after, rows = (
        (val, m.apply(val), "the fitting rows") if test is None else (test, m.apply(test), "other rows")
    )
    if test is None and folds:
        after, rows = cross_fit(val, m.calibrator, folds=min(folds, max(2, val.n)), seed=seed)[0], "cross-fitted rows"
    elif m.fingerprint is not None and m.fingerprint.seen(before) > 0:
        rows = "the fitting rows"
    changes = [compare(before, after, measure, resamples=resamples, seed=seed) for measure in shown_for(before)]
    return Repair(m, rows, changes)


def shown_for(p: Predictions) -> list[str]:
    """The measures of the table that predictions of this shape can answer."""
    return [name for name in (SHOWN_BINARY if p.shape == "binary" else SHOWN) if p.shape in make(name).shapes]


@dataclass(frozen=True)
class Entry:
    """One line of the table of all calibrators."""

    calibrator: str
    values: dict[str, float]
    seconds: float
    keeps_argmax: bool
    diagnosis: str


def every_calibrator(
    val: Predictions, test: Predictions, *, keep_argmax: bool = False, on_each: Any = None
) -> list[Entry]:
    """Fit every calibrator of the catalogue on val and measure it on test; failures are lines, not crashes."""
    import time

    if val.shape != test.shape:
        raise InputError("test", expected=shape_words(val.shape), got=shape_words(test.shape), fix="give both alike")
    if val.k != test.k and val.shape != "choices":
        raise InputError("test", expected=f"{val.k} classes", got=f"{test.k}", fix="predict with the same model")
    rows = []
    for name in CATALOGUE.names():
        recipe = CATALOGUE.make(name)
        if not may_take_part(name, val, keep_argmax=keep_argmax):
            continue
        begin = time.perf_counter()
        try:
            m = fit(val, name)
            seconds, q = time.perf_counter() - begin, m.apply(test)
            values, diagnosis = {measure: make(measure)(q) for measure in shown_for(q)}, m.fit.diagnosis
        except InputError as error:
            seconds, values, diagnosis = time.perf_counter() - begin, {}, str(error)
        rows.append(Entry(name, values, seconds, recipe.keeps(val.shape), diagnosis))
        if on_each:
            on_each(1)
    return sorted(rows, key=lambda row: row.values.get("nll", float("inf")))
