"""The papers' own numbers, as printed, so that every table shows ours beside theirs.

Columns: dataset, model, method, metric, mean, std, unit, direction. Values become the measure's own scale here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.core.errors import unknown_name
from calibrant.data import FOLDER

if TYPE_CHECKING:
    import polars as pl

PAPERS = {
    "dark-side": "Singh, Bay, Sengupta, Mirabile: On the Dark Side of Calibration for Modern Neural Networks",
    "meta": "Wang, Golebiowski: Towards Unbiased Calibration using Meta-Regularization",
    "clamping": "Tang, Chen, Ho: Neural Clamping",
}
MEASURES = {  # as printed -> as named here
    "Error": "error",
    "NLL": "nll",
    "ECE": "ece",
    "MCE": "mce",
    "ACE": "ece:scheme=mass",
    "AECE": "ece:scheme=mass",
    "Classwise ECE": "classwise",
    "SCE": "classwise",
    "Brier": "brier",
    "AUROC": "auroc_correct",
    "Accuracy": "accuracy",
    "Entropy": "entropy",
}
UNITS = {"percent": 0.01, "x100": 0.01, "nats": 1.0, "x1e-2": 0.01, "x1e-3": 0.001}

Key = tuple[str, str, str, str]  # data, model, entry, measure


@dataclass(frozen=True)
class PublishedNumber:
    """A number of a paper, and its spread over runs if it is printed."""

    mean: float
    sd: float | None


def names() -> list[str]:
    return sorted(file.stem for file in (FOLDER / "published").glob("*.csv"))


def load_published(name: str) -> "pl.DataFrame":
    """A printed table: data, model, entry, measure, mean and sd in the measure's own scale, and what was printed."""
    import polars as pl

    if name not in names():
        raise unknown_name("published", name, names())
    table = pl.read_csv(FOLDER / "published" / f"{name}.csv", infer_schema=False, glob=False)
    factor = pl.col("unit").replace_strict(UNITS, return_dtype=pl.Float64)
    return table.select(
        pl.col("dataset").alias("data"),
        "model",
        pl.col("method").alias("entry"),
        pl.col("metric").replace_strict(MEASURES).alias("measure"),
        (pl.col("mean").cast(pl.Float64) * factor).alias("mean"),
        (pl.col("std").replace("", None).cast(pl.Float64) * factor).alias("sd"),
        pl.col("mean").alias("printed"),
        "unit",
    )


def lookup(name: str) -> dict[Key, PublishedNumber]:
    """All numbers of a printed table, by data set, model, entry and measure."""
    return {
        (row["data"], row["model"], row["entry"], row["measure"]): PublishedNumber(row["mean"], row["sd"])
        for row in load_published(name).to_dicts()
    }
