"""Before and after a repair: calibration, and beside it what must not suffer, accuracy and refinement."""

from dataclasses import dataclass
from typing import Any

from calibrant.calibrators import CATALOGUE
from calibrant.core.errors import InputError
from calibrant.core.map import Map
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measuring.compare import Comparison, compare
from calibrant.repairing.choose import cross_fit
from calibrant.repairing.fit import fit

SHOWN = ("nll", "brier", "ece", "classwise", "accuracy", "auroc_correct")


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
    changes = [compare(before, after, measure, resamples=resamples, seed=seed) for measure in SHOWN]
    return Repair(m, rows, changes)


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

    if val.k != test.k:
        raise InputError("test", expected=f"{val.k} classes", got=f"{test.k}", fix="predict with the same model")
    rows = []
    for name in CATALOGUE.names():
        recipe = CATALOGUE.make(name)
        if (recipe.binary and val.k != 2) or (keep_argmax and not recipe.keeps_argmax):
            continue
        begin = time.perf_counter()
        try:
            m = fit(val, name)
            seconds, q = time.perf_counter() - begin, m.apply(test)
            values, diagnosis = {measure: make(measure)(q) for measure in SHOWN}, m.fit.diagnosis
        except InputError as error:
            seconds, values, diagnosis = time.perf_counter() - begin, {}, str(error)
        rows.append(Entry(name, values, seconds, recipe.keeps_argmax, diagnosis))
        if on_each:
            on_each(1)
    return sorted(rows, key=lambda row: row.values.get("nll", float("inf")))
