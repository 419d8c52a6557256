"""Compare predictions before and after a repair: calibration, and accuracy and refinement, which must not suffer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from calibrant.calibrators import CATALOGUE
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import MANY_ROWS
from calibrant.core.text.vocabulary import describe_task
from calibrant.measures import make
from calibrant.measuring.compare import Comparison, compare
from calibrant.repairing.choose import cross_fit_candidate, may_take_part
from calibrant.repairing.cross_fit import choose_folds, cross_fit
from calibrant.repairing.fit import fit

MEASURES = ("nll", "brier", "ece", "classwise", "accuracy", "auroc_correct")
MEASURES_BINARY = ("nll", "brier", "ece", "accuracy", "roc_auc")
RESAMPLES = 200
OF_COMPARISON = ("difference", "low", "high", "p_value", "n", "k", "definition")

JudgedOn = Literal["held_out", "cross_fitted", "fitting_rows"]  # the rows that calibrators are judged on


@dataclass(frozen=True)
class Repair:
    """A fitted map and the changes of measures on the rows it was judged on."""

    map: Map
    judged_on: JudgedOn
    changes: list[Comparison]  # a is before, b is after

    def to_dict(self) -> dict[str, Any]:
        m = self.map
        rows = []
        for c in self.changes:
            row = c.to_dict()
            values = {"measure": row["measure"], "before": row["a"], "after": row["b"]}
            rows.append(values | {key: row[key] for key in OF_COMPARISON})
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


def repair(
    m: Map,
    val: Predictions,
    *,
    test: Predictions | None = None,
    folds: int = 0,
    resamples: int | None = None,  # RESAMPLES, or parts of very many rows
    seed: int = 0,
) -> Repair:
    """Judge a map on held-out rows if there are any, else by cross-fitting, else on its own rows (and say so)."""
    before = val if test is None else test
    rows: JudgedOn = "held_out"
    if test is None and folds:
        after, rows = _cross_fit(m, val, min(folds, max(2, val.n)), seed), "cross_fitted"
    else:
        after = m.apply(before)
        if test is None or (m.fingerprint is not None and m.fingerprint.share_seen(before) > 0):
            rows = "fitting_rows"
    size = RESAMPLES if resamples is None and before.n < MANY_ROWS else resamples
    changes = [compare(before, after, measure, resamples=size, seed=seed) for measure in measures_for(before)]
    return Repair(m, rows, changes)


def _cross_fit(m: Map, p: Predictions, folds: int, seed: int) -> Predictions:
    """Cross-fit rows as this map was fitted: with the bound of a recommended map, or without."""
    if "bound" in m.parameters:
        return cross_fit_candidate(p, m.calibrator, choose_folds(p, folds, seed))
    return cross_fit(p, m.calibrator, folds=folds, seed=seed)


def measures_for(p: Predictions) -> list[str]:
    """The measures of the table that predictions of this task have."""
    return [name for name in (MEASURES_BINARY if p.task == "binary" else MEASURES) if p.task in make(name).tasks]


@dataclass(frozen=True)
class CalibratorLine:
    """One line of the table of all calibrators."""

    calibrator: str
    values: dict[str, float]
    seconds: float
    keeps_argmax: bool
    diagnosis: str


def every_calibrator(
    val: Predictions, test: Predictions, *, keep_argmax: bool = False, on_each: Callable[[int], None] | None = None
) -> list[CalibratorLine]:
    """Fit every calibrator of the catalogue on val and measure it on test; failures are lines, not crashes."""
    if val.task != test.task:
        raise InputError("test", expected=describe_task(val.task), got=describe_task(test.task), fix="give both alike")
    if val.k != test.k and val.task != "choice":
        raise InputError("test", expected=f"{val.k} classes", got=f"{test.k}", fix="predict with the same model")
    rows = []
    for name in CATALOGUE.load_all()[0]:
        if not may_take_part(name, val, keep_argmax=keep_argmax):
            continue
        begin, values = time.perf_counter(), dict[str, float]()
        try:
            m = fit(val, name)
            seconds, q = time.perf_counter() - begin, m.apply(test)
            values = {measure: make(measure)(q) for measure in measures_for(q)}
            diagnosis = m.fit.diagnosis
        except InputError as error:
            seconds, diagnosis = time.perf_counter() - begin, str(error)
        rows.append(
            CalibratorLine(
                calibrator=name,
                values=values,
                seconds=seconds,
                keeps_argmax=CATALOGUE.make(name).keeps(val.task),
                diagnosis=diagnosis,
            )
        )
        if on_each:
            on_each(1)
    return sorted(rows, key=lambda row: row.values.get("nll", float("inf")))
