"""The table of many networks: the one that comes with calibrant, or a user's own."""

from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError
from calibrant.data import NAS

if TYPE_CHECKING:
    import polars as pl


def open_table(file: str | Path | None = None) -> "pl.DataFrame":
    """The table in a .parquet or .csv file, or that of the package."""
    import polars as pl

    path = NAS if file is None else Path(file)
    if not path.exists():
        expected = "the table that comes with calibrant" if file is None else "a .parquet or .csv file"
        fix = "make one with calibrant nas train or nas measure, and give it: --table OUT/nas.parquet"
        raise InputError(str(file or "nas.parquet"), expected=expected, got="no such file", fix=fix)
    content = path.read_bytes()  # a path with [ in it would be a pattern
    try:
        return pl.read_csv(content, infer_schema_length=None) if path.suffix == ".csv" else pl.read_parquet(content)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        fix = "give a table that calibrant nas has written"
        raise InputError(str(path), expected="a table in a .parquet or .csv file", got=reason, fix=fix) from None
