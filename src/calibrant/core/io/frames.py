"""Read a polars or pandas frame. pandas is never imported: its columns are read as arrays."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.io.column_names import Columns, LabelRule
from calibrant.core.io.load import from_frame
from calibrant.core.io.score_table import ScoreTable

if TYPE_CHECKING:
    import polars as pl


def read_frame(frame: Any, columns: Columns, *, labels: LabelRule = "required") -> ScoreTable:
    """The scores of a polars or pandas frame, or of a mapping of names to columns."""
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    table = from_frame(plain_frame(frame, columns.wants), "frame", columns, _names(frame), labels=labels)
    return replace(table, shared=True)


def plain_frame(frame: Any, wants: Callable[[str], bool]) -> "pl.DataFrame":
    """The columns for which `wants` is true as a polars frame; a polars frame is returned whole."""
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    wanted = {name: _series(name, frame[name]) for name in _names(frame) if wants(name)}
    lengths = {name: len(series) for name, series in wanted.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} has {n}" for name, n in list(lengths.items())[:4])
        raise InputError("frame", expected="columns of one length", got=got, fix="give one value per row")
    return pl.DataFrame(list(wanted.values()))


def _names(frame: Any) -> list[str]:
    columns = getattr(frame, "columns", None)
    if columns is None and hasattr(frame, "keys"):
        columns = frame.keys()
    if columns is None:
        got = type(frame).__name__
        raise InputError("frame", expected="a pandas or polars frame", got=got, fix="for arrays use from_probs")
    return [str(name) for name in columns]


def _series(name: str, column: Any) -> "pl.Series":
    """One column; NaN, None and NA of pandas become empty cells."""
    import polars as pl

    if isinstance(column, pl.Series):
        return column.alias(name)
    array = np.asarray(column)
    if array.dtype.kind == "f":
        return pl.Series(name, array, nan_to_null=True)
    if array.dtype.kind in "iub":
        return pl.Series(name, array)
    values = [_cell(value) for value in array.tolist()]
    try:
        return pl.Series(name, values)
    except (TypeError, pl.exceptions.PolarsError):
        got = ", ".join(sorted({type(value).__name__ for value in values})[:4])
        raise InputError(
            f"frame, column {name}", expected="values of one kind", got=got, fix="convert the column first"
        ) from None


def _cell(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, str | int | bool | list | tuple) or value is None:
        return value
    return None if value != value or type(value).__name__ in ("NAType", "NaTType") else value
