"""Checks of the options and tables of figures, and how numbers are read out of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.figures._base import Row

if TYPE_CHECKING:
    import polars as pl

MOST_COLUMNS = 40  # labels of more could not be read


def require(figure: str, table: "pl.DataFrame", columns: Sequence[str], numeric: Sequence[str] = ()) -> None:
    """Refuse a table without rows or without these columns; those of `numeric` must hold numbers."""
    if missing := [column for column in columns if column not in table.columns]:
        raise InputError(
            f"table of {figure}",
            expected=f"columns {', '.join(columns)}",
            got=f"no {', '.join(missing)} among {shorten(table.columns)}",
            fix="rename or add them",
        )
    if not table.height:
        raise InputError(f"table of {figure}", expected="at least one row", got="none", fix="fill the table")
    for column in numeric:
        if not table[column].dtype.is_numeric():
            raise InputError(
                f"table of {figure}, column {column}",
                expected="numbers",
                got=f"type {table[column].dtype}",
                fix="check the cells",
            )


def choose_columns(figure: str, table: "pl.DataFrame", of: str | None, not_of: Sequence[str] = ()) -> list[str]:
    """The numeric columns named in `of` ("ece+nll"), or all of them but those in `not_of`."""
    if of is not None:
        columns = [column.strip() for column in of.split("+")]
        require(figure, table, columns, numeric=columns)
    else:
        columns = [s.name for s in table if s.dtype.is_numeric() and s.name not in not_of]
        require(figure, table, columns)
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise InputError(
            f"table of {figure}",
            expected=f"1 to {MOST_COLUMNS} columns of numbers",
            got=f"{len(columns)} among {shorten(table.columns)}",
            fix=f"name those to draw: {figure}:of=first+second",
        )
    return columns


def some(figure: str, rows: list[Row]) -> list[Row]:
    """Refuse to draw where no row is left; else return the rows."""
    if not rows:
        raise InputError(
            f"table of {figure}", expected="at least one number", got="missing values only", fix="check the cells"
        )
    return rows


def numbers(series: "pl.Series") -> Array:
    """The values of a column in float64; what is missing or infinite is NaN."""
    import polars as pl

    values = series.cast(pl.Float64).to_numpy().astype(np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def text(series: "pl.Series") -> list[str]:
    """The values of a column as words, numbers without needless zeros."""
    return [_word(value) for value in series.to_list()]


def plain(value: Any) -> float | None:
    """A Python float, or None where there is no number: JSON has no NaN."""
    number = float(value)
    return number if np.isfinite(number) else None


def shorten(names: Sequence[str]) -> str:
    return (", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")) or "no columns"


def _word(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
