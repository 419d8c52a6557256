"""What a figure is drawn from: predictions or tables in files, or numbers measured for it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.core.files import existing
from calibrant.core.predictions import Predictions
from calibrant.core.tables import read_table
from calibrant.figures import Figure, TableFigure
from calibrant.measures import make
from calibrant.measuring.decompose import decompose
from calibrant.measuring.measure import measure

if TYPE_CHECKING:
    import polars as pl

COMPARED = ("ece", "nll", "brier")


def source_of(
    made: Figure,
    files: Mapping[str, Path],
    load: Callable[[Path], Predictions],
    resamples: int | None,
    seed: int,
) -> "Mapping[str, Predictions] | pl.DataFrame":
    of_predictions = is_measured(made) and all(file.suffix == ".npz" for file in files.values())
    if isinstance(made, TableFigure) and not of_predictions:
        return _tables(files)
    models = {key: load(file) for key, file in files.items()}
    return measured(made, models, resamples=resamples, seed=seed) if of_predictions else models


def is_measured(made: Figure) -> bool:
    """Whether the table of a figure can be measured from predictions."""
    return spec_of(made).partition(":")[0] in ("decomposition", "before_after")


def measured(
    made: Figure, models: Mapping[str, Predictions], *, resamples: int | None = None, seed: int = 0
) -> "pl.DataFrame":
    """The table of such a figure."""
    if spec_of(made).startswith("decomposition"):
        return _decomposition(models)
    return _before_after(models, resamples, seed)


def _tables(files: Mapping[str, Path]) -> "pl.DataFrame":
    """One table; several become one, with the file's name in the column model."""
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
    binary = all(p.shape == "binary" for p in models.values())
    for what in (*COMPARED, "roc_auc" if binary else "auroc_correct"):
        for name, p in models.items():
            m = measure(p, what, resamples=resamples, seed=seed)
            known = {"model": name, "measure": what, "better": better[make(what).direction]}
            rows.append(known | {"value": m.value, "low": m.low, "high": m.high})
    return pl.DataFrame(rows, infer_schema_length=None)
