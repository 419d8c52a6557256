"""Calibrators fitted on the validation rows, and every measure on every test set, before and after."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant import calibrators
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.repairing.fit import fit
from calibrant.studying.job_kinds import Row


def entries(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the rows."""
    for name in options["calibrators"]:
        yield from (("calibrators", one) for one in (calibrators.names() if name == "auto" else [name]))
    yield from (("measures", name) for name in options["measures"])


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Measure every rescorer, calibrator and set, one row per measure; a calibrator that cannot be fitted says why."""
    trained, *others = needs
    shifts = dict(zip(options["shifts"], others, strict=False))
    rescored = dict(zip(options["rescorers"], others[len(shifts) :], strict=True))
    val = _load(trained / "val.npz")
    sets = {"test": Predictions.load(trained / "test.npz", allow_few_rows=True)}
    sets |= {name: Predictions.load(place / "test.npz", allow_few_rows=True) for name, place in shifts.items()}
    rows: list[Row] = []
    for calibrator in options["calibrators"]:
        began = time.process_time()
        calibrated = dict(_calibrate(calibrator, val, sets))
        spent = time.process_time() - began  # of the fit and of all sets: a column that no table of results has
        for name, p in calibrated.items():
            labels: Row = {"rescorer": "", "calibrator": calibrator, "set": name, "cpu_seconds": spent}
            rows += _judge(p, labels, options["measures"])
    for rescorer, place in rescored.items():
        p = Predictions.load(place / "test.npz", allow_few_rows=True)
        rows += _judge(p, {"rescorer": rescorer, "calibrator": "identity", "set": "test"}, options["measures"])
    return rows


def _calibrate(
    calibrator: str, val: Predictions | None, sets: Mapping[str, Predictions]
) -> Iterator[tuple[str, Predictions | str]]:
    if calibrator == "identity":
        yield from sets.items()
        return
    fixed = calibrator.startswith("fixed_temperature")
    if val is None and not fixed:
        yield from ((name, "no validation rows to fit on") for name in sets)
        return
    try:
        fitted_map = fit(val if val is not None else next(iter(sets.values())), calibrator)
    except InputError as error:
        yield from ((name, str(error)) for name in sets)
        return
    for name, p in sets.items():
        yield name, fitted_map.apply(p)


def _judge(p: Predictions | str, labels: Row, measures: list[str]) -> list[Row]:
    if isinstance(p, str):
        return [{**labels, "measure": m, "value": None, "n": 0, "k": 0, "why": p} for m in measures]
    return [{**labels, "measure": m, "value": float(make(m)(p)), "n": p.n, "k": p.k, "why": ""} for m in measures]


def _load(file: Path) -> Predictions | None:
    return Predictions.load(file, allow_few_rows=True) if file.exists() else None
