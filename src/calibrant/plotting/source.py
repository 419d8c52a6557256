"""Sources of figures: predictions or tables in files, or numbers measured for them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError, visible
from calibrant.core.io.formats import existing
from calibrant.core.io.tables import read_table
from calibrant.core.json import read_json
from calibrant.core.predictions import Predictions
from calibrant.figures import Figure, TableFigure
from calibrant.measures import make
from calibrant.measuring.decompose import decompose
from calibrant.measuring.measure import measure
from calibrant.monitoring.watch import Watch
from calibrant.streaming.accumulator import Accumulator
from calibrant.streaming.accumulators import Accumulators

if TYPE_CHECKING:
    import polars as pl

COMPARED = ("ece", "nll", "brier")


def source_of(
    figure: Figure,
    files: Mapping[str, Path],
    load: Callable[[Path], Predictions],
    resamples: int | None,
    seed: int,
) -> "Mapping[str, Predictions] | pl.DataFrame":
    if states := [file for file in files.values() if file.suffix == ".json"]:
        return _of_states(figure, files, states, load)
    of_predictions = is_measured(figure) and all(file.suffix == ".npz" for file in files.values())
    if isinstance(figure, TableFigure) and not of_predictions:
        return _tables(files)
    models = {key: load(file) for key, file in files.items()}
    return measure_table(figure, models, resamples=resamples, seed=seed) if of_predictions else models


def _of_states(
    figure: Figure, files: Mapping[str, Path], states: list[Path], load: Callable[[Path], Predictions]
) -> "Mapping[str, Predictions] | pl.DataFrame":
    """Rows that stand for the sums of accumulators, or the evidence of a watch."""
    if name_of(figure) == "watch_evidence":
        return evidence_table({name: Watch.load(file) for name, file in files.items()})
    if isinstance(figure, TableFigure):
        fix = "draw reliability of it, or watch_evidence of a watch"
        raise InputError(str(states[0]), expected="a table (.parquet or .csv)", got="a state", fix=fix)
    models: dict[str, Predictions] = {}
    for name, file in files.items():
        if file in states:
            models |= _stand_ins(name, file)
        else:
            models[name] = load(file)
    return models


def _stand_ins(name: str, file: Path) -> dict[str, Predictions]:
    document = read_json(file, expected="a state of an accumulator", fix="write it with measure --stream --state")
    if isinstance(document, dict) and "calibrant_accumulators" in document:
        return {visible(", ".join(key)): sums.to_predictions() for key, sums in Accumulators.load(file).items()}
    return {name: Accumulator.load(file).to_predictions()}


def evidence_table(watches: Mapping[str, Watch]) -> "pl.DataFrame":
    """The evidence of every segment over time, as the figure reads it."""
    import polars as pl

    rows = []
    for name, watch in watches.items():
        for segment in watch.segments:
            own = "all rows" if segment is None else visible(segment)
            model = own if len(watches) == 1 else name if segment is None else f"{name}, {own}"
            rows += [{"model": model, **point} for point in watch.history(segment)]
    if not rows:
        raise InputError("watch", expected="at least one row", got="none", fix="update the watch first")
    return pl.DataFrame(rows)


def is_measured(figure: Figure) -> bool:
    """Whether the table of a figure can be measured from predictions."""
    return name_of(figure) in ("decomposition", "before_after")


def measure_table(
    figure: Figure, models: Mapping[str, Predictions], *, resamples: int | None = None, seed: int = 0
) -> "pl.DataFrame":
    """Measure the table of such a figure from predictions."""
    if name_of(figure) == "decomposition":
        return _decomposition(models)
    return _before_after(models, resamples, seed)


def _tables(files: Mapping[str, Path]) -> "pl.DataFrame":
    """Read one table, or join several with the file's name in the column model."""
    import polars as pl

    tables = {name: _read(file) for name, file in files.items()}
    if len(tables) == 1:
        return next(iter(tables.values()))
    for name, table in tables.items():
        if "model" in table.columns:
            raise InputError(
                str(files[name]),
                expected="no column named model, for several files are told apart by it",
                got="one",
                fix="put the tables into one file",
            )
    named = [table.with_columns(pl.lit(name).alias("model")) for name, table in tables.items()]
    return pl.concat(named, how="diagonal_relaxed")


def _read(file: Path) -> "pl.DataFrame":
    if existing(file).suffix == ".npz":
        raise InputError(str(file), expected="a table (.parquet or .csv)", got=".npz", fix="this figure draws a table")
    return read_table(file)


def _decomposition(models: Mapping[str, Predictions]) -> "pl.DataFrame":
    """NLL and Brier score of each model as calibration and refinement, by temperature."""
    import polars as pl

    rows = []
    for name, p in models.items():
        terms = decompose(p)["losses"]
        for score in ("nll, temperature", "brier, temperature"):
            for part in ("calibration", "refinement"):
                rows.append({"model": name, "score": score, "part": part, "value": terms[score][part]})
    return pl.DataFrame(rows)


def _before_after(models: Mapping[str, Predictions], resamples: int | None, seed: int) -> "pl.DataFrame":
    """The usual measures of each model, with intervals."""
    import polars as pl

    better = {"down": "lower", "up": "higher"}
    rows = []
    binary = all(p.task == "binary" for p in models.values())
    for name_of_measure in (*COMPARED, "roc_auc" if binary else "auroc_correct"):
        for name, p in models.items():
            m = measure(p, name_of_measure, resamples=resamples, seed=seed)
            known = {"model": name, "measure": name_of_measure, "better": better[make(name_of_measure).direction]}
            rows.append(known | {"value": m.value, "low": m.low, "high": m.high})
    return pl.DataFrame(rows, infer_schema_length=None)
