"""Tables of many networks: the one that comes with calibrant, or a user's own files as one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError
from calibrant.core.io.tables import read_table
from calibrant.data import NAS

if TYPE_CHECKING:
    import polars as pl


def open_tables(files: Sequence[Path] = ()) -> "pl.DataFrame":
    """The rows of all files, or those of the package; a row that is in two files counts once."""
    import polars as pl

    if len(files) < 2:
        return open_table(files[0] if files else None)
    tables = [open_table(file) for file in files]
    return without_copies(pl.concat(tables, how="diagonal_relaxed"), tables)


def without_copies(table: "pl.DataFrame", parts: "Sequence[pl.DataFrame]") -> "pl.DataFrame":
    """Drop rows that are equal in every column that all parts have; other seeds are other trainings, and stay."""
    shared = [name for name in table.columns if all(name in part.columns for part in parts)]
    return table.unique(subset=shared, keep="first", maintain_order=True) if shared else table


def open_table(file: str | Path | None = None) -> "pl.DataFrame":
    """The table in a .parquet or .csv file, or that of the package."""
    path = NAS if file is None else Path(file)
    if not path.exists():
        expected = "the table that comes with calibrant" if file is None else "a .parquet or .csv file"
        fix = "make one with calibrant nas train or nas measure, and give it: --table OUT/nas.parquet"
        raise InputError(str(file or "nas.parquet"), expected=expected, got="no such file", fix=fix)
    try:
        if path.suffix not in (".parquet", ".csv"):
            raise InputError(str(path), expected=".parquet or .csv", got=f"'{path.suffix}'", fix="convert the table")
        return read_table(path)
    except InputError as error:
        got, fix = f"another ({error})", "give a table that calibrant nas has written"
        raise InputError(str(path), expected="a table in a .parquet or .csv file", got=got, fix=fix) from None
