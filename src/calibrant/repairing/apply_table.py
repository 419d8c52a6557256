"""Add calibrated columns to a table and leave its other columns alone."""

from collections.abc import Callable
from pathlib import Path
from typing import IO

from calibrant.core.arrays import Ints
from calibrant.core.files import write_whole
from calibrant.core.io.tables import read_table
from calibrant.core.predictions import Predictions

TABLES = (".csv", ".parquet", ".jsonl")
COLUMN, DECISION = "calibrated", "decision"


def add_calibrated(q: Predictions, file: str | Path, out: str | Path, decided: Ints | None = None) -> bool:
    """Write the table `file` with the calibrated probabilities of its rows; False where either is no such table.

    The new column is `calibrated` for one score per row, else `calibrated_0`, `calibrated_1`, ...; decisions are in a
    column `decision`. Rows that have been left out on reading (missing scores) have no place in a table of all rows:
    then nothing is written here.
    """
    if Path(file).suffix not in TABLES or Path(out).suffix not in TABLES:
        return False
    import polars as pl

    frame = read_table(Path(file))
    if frame.height != q.n:
        return False
    if q.task in ("binary", "confidence"):
        columns = [pl.Series(COLUMN, q.score)]
    else:
        columns = [pl.Series(f"{COLUMN}_{c}", q.probs[:, c]) for c in range(q.k)]
    if decided is not None:
        columns.append(pl.Series(DECISION, decided))
    frame = frame.with_columns(columns)
    writers: dict[str, Callable[[IO[bytes]], object]] = {
        ".csv": frame.write_csv,
        ".parquet": frame.write_parquet,
        ".jsonl": frame.write_ndjson,
    }
    write_whole(out, writers[Path(out).suffix])
    return True
