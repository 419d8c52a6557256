"""Arrays from the columns of a table. An empty cell among scores of classes is an option that the row lacks."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.io.column_names import ColumnRoles, is_numbered, missing_from
from calibrant.core.io.missing import MissingCount, MissingPolicy, apply_policy
from calibrant.core.io.size_limits import check_unpacked

if TYPE_CHECKING:
    import polars as pl

Place = Path | str  # a file, or the name of what is in memory

NO_NUMBER = ("nan", "na", "n/a", "null", "none", "-")  # what programs write for a missing number


def arrays_of(frame: "pl.DataFrame", place: Place, roles: ColumnRoles) -> dict[str, Any]:
    """The scores, the mask of options where some rows lack some, and every other array, by the names of their roles."""
    arrays: dict[str, Any] = {}
    if roles.per_class:
        values, exists = _scores(frame, roles.score, place)
        arrays[roles.content] = values
        if exists is not None:
            arrays["mask"] = exists
    else:
        arrays[roles.content] = _numbers(frame[roles.score], place)
    for array, column in roles.named.items():
        if array == "features":
            arrays[array] = _scores(frame, column, place, gaps=False)[0]
        elif array == "classes":
            arrays[array] = _class_names(frame[column])
        elif array == "task":
            arrays[array] = np.array("choice" if _is_always(frame[column], "choice") else "")
        elif array == "about":
            arrays[array] = _one_text(frame[column])
        else:
            arrays[array] = plain_column(frame[column], place)
    return arrays


def parse_numbers(frame: "pl.DataFrame", place: Place, roles: ColumnRoles) -> "pl.DataFrame":
    """Turn scores that are text, because some of them are "nan" or "NA", into numbers; other words are refused."""
    import polars as pl

    for name in frame.columns:
        series = frame[name]
        if series.dtype != pl.String or not (name == roles.score or is_numbered(name, roles.score)):
            continue
        words = series.str.strip_chars()
        numbers = words.cast(pl.Float64, strict=False)
        none = numbers.is_null() & words.is_not_null()
        strange = none & ~words.str.to_lowercase().is_in(NO_NUMBER)
        if strange.any():
            row = strange.arg_true()[0]
            got = f"'{words[row]:.40}' in row {row} ({strange.sum():,} of {len(words):,} rows hold such words)"
            raise _wrong(series, place, "numbers", got, "correct the cells, or name another column")
        numbers = numbers.set(none, np.nan)
        frame = frame.with_columns(numbers.alias(name))
    return frame


def resolve_missing(
    frame: "pl.DataFrame", place: Place, roles: ColumnRoles, policy: MissingPolicy
) -> tuple["pl.DataFrame", MissingCount | None]:
    """The rows that have a score, or all rows where a missing score counts as wrong."""
    import polars as pl

    gaps = rows_without_score(frame, roles)
    where = f"{place}, column {roles.score}"
    missing = apply_policy(where, roles.noun, int(gaps.sum()), frame.height, policy)
    if missing is None:
        return frame, None
    if policy == "drop":
        return frame.filter(~gaps), missing
    right = frame[roles.named["labels"]] if "labels" in roles.named else None
    zero = [pl.when(gaps).then(0.0).otherwise(pl.col(roles.score)).alias(roles.score)]
    if right is not None and (right.dtype.is_numeric() or right.dtype == pl.Boolean):
        none = pl.lit(0).cast(right.dtype)
        zero.append(pl.when(gaps).then(none).otherwise(pl.col(right.name)).alias(right.name))
    return frame.with_columns(zero), missing


def rows_without_score(frame: "pl.DataFrame", roles: ColumnRoles) -> "pl.Series":
    """A boolean per row: whether it has no score at all."""
    import polars as pl

    if roles.score in frame.columns:
        series = frame[roles.score]
        if series.dtype == pl.Null:  # lines of JSON that all lack it
            return series.is_null().rename("gaps")
        if isinstance(series.dtype, pl.List):
            return (series.list.len().fill_null(0) == 0).rename("gaps")
        if isinstance(series.dtype, pl.Array):
            return series.is_null().rename("gaps")
        return (series.is_null() | series.is_nan() if series.dtype.is_float() else series.is_null()).rename("gaps")
    columns = [column for column in frame.columns if is_numbered(column, roles.score)]
    return frame.select(pl.all_horizontal(pl.col(columns).is_null()).alias("gaps"))["gaps"]


def plain_column(series: "pl.Series", place: Place) -> npt.NDArray[Any]:
    """One column of numbers or text without gaps."""
    import polars as pl

    _no_gaps(series, place)
    dtype = series.dtype
    if dtype.is_integer():
        for whole in (pl.Int64, pl.UInt64):
            if not (cast := series.cast(whole, strict=False)).null_count():
                return cast.to_numpy()
        raise _wrong(series, place, "integers of at most 64 bits", f"type {dtype} with larger ones", "renumber them")
    if dtype.is_float() or dtype == pl.Boolean:
        return series.to_numpy()
    if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
        longest = max((len(value) for value in series.unique().to_list()), default=0)
        _check_size(place, len(series) * longest * 4)  # numpy gives every text the room of the longest
        return np.array(series.to_list())
    raise _wrong(series, place, "integers, numbers or text", f"type {dtype}", "convert it")


def _numbers(series: "pl.Series", place: Place) -> npt.NDArray[Any]:
    """One column of numbers without gaps."""
    import polars as pl

    if not series.dtype.is_numeric():
        raise _wrong(series, place, "numbers", f"type {series.dtype}", "check the cells, or name another column")
    return (series if series.dtype.is_float() else series.cast(pl.Float64)).to_numpy()


def _scores(
    frame: "pl.DataFrame", name: str, place: Place, *, gaps: bool = True
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """One column of lists, or numbered ones, as one array (n, k); and which of its cells are there, if not all."""
    if name in frame.columns:
        return _list_column(frame[name], place, gaps)
    return _stack_numbered(frame, name, place, gaps)


def _stack_numbered(
    frame: "pl.DataFrame", stem: str, place: Place, gaps: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Columns stem_0, stem_1, ... as one array (n, k)."""
    import polars as pl

    have = {column for column in frame.columns if is_numbered(column, stem)}
    columns = [f"{stem}_{i}" for i in range(len(have))]
    if missing := next((column for column in columns if column not in have), None):
        raise missing_from(str(place), f"a column named {missing}", sorted(have - set(columns)))
    chosen = frame.select(columns)
    for column, dtype in chosen.schema.items():
        if not dtype.is_numeric():
            raise _wrong(chosen[column], place, "numbers", f"type {dtype}", "check the cells")
    kinds = set(chosen.dtypes)
    same = len(kinds) == 1 and next(iter(kinds)).is_float()
    exists = None
    for series in chosen:
        if series.null_count() and gaps:
            exists = _two_options(chosen.select(pl.all().is_not_null()).to_numpy(), series, place)
            break
        _no_gaps(series, place)
    values = (chosen if same else chosen.cast(pl.Float64)).fill_null(0).to_numpy()
    return values, exists


def _list_column(
    series: "pl.Series", place: Place, gaps: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """One column of lists of numbers; where some are shorter, their last options do not exist."""
    import polars as pl

    stem = series.name.removesuffix("s")
    if isinstance(series.dtype, pl.Array):
        series = series.arr.to_list()
    if not isinstance(series.dtype, pl.List):
        fix = f"use a list column, or columns {stem}_0, {stem}_1, ..."
        raise _wrong(series, place, "a list of numbers in every row", f"type {series.dtype}", fix)
    _no_gaps(series, place)
    inner: Any = series.dtype.inner
    if not inner.is_numeric():
        raise _wrong(series, place, "lists of numbers", f"lists of type {inner}", "check the cells")
    lengths = series.list.len().to_numpy().astype(np.int64)
    k = int(lengths.max()) if len(lengths) else 0
    _check_size(place, len(series) * k * 8)
    flat = series.filter(pl.Series(lengths > 0)).explode() if k else series.head(0).cast(pl.List(pl.Float64)).explode()
    there = flat.is_not_null().to_numpy()
    values = (flat if inner.is_float() else flat.cast(pl.Float64)).fill_null(0).to_numpy()
    if there.all() and (lengths == k).all():
        return (values.reshape(len(series), k) if k else np.empty((len(series), 0))), None
    if not gaps:
        raise _wrong(series, place, "lists of one length without gaps", "others", "give one number for each")
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    cells = (np.repeat(np.arange(len(series)), lengths), np.arange(len(values)) - starts)
    padded, exists = np.zeros((len(series), k), dtype=values.dtype), np.zeros((len(series), k), dtype=bool)
    padded[cells], exists[cells] = values, there
    return padded, _two_options(exists, series, place)


def _two_options(exists: npt.NDArray[np.bool_], series: "pl.Series", place: Place) -> npt.NDArray[np.bool_]:
    """Treat empty cells as options that a row does not have; every row needs two options."""
    few = np.flatnonzero(exists.sum(axis=1) < 2)
    if len(few):
        got = f"{exists.size - int(exists.sum())} empty cells, one of them in row {few[0]}"
        raise _wrong(series, place, "at least two scores in every row", got, "fill them, or drop these rows")
    return exists


def _is_always(series: "pl.Series", word: str) -> bool:
    """Whether every cell is this word; a column of anything else is ignored."""
    import polars as pl

    return series.dtype == pl.String and bool((series == word).fill_null(False).all())


def _one_text(series: "pl.Series") -> npt.NDArray[Any]:
    """The only text of a column, which stands in one row or in all; an empty array where there is none."""
    import polars as pl

    texts = series.drop_nulls().unique().to_list() if series.dtype == pl.String else []
    return np.array(texts if len(texts) == 1 else [], dtype=str)


def _class_names(series: "pl.Series") -> tuple[str, ...]:
    """The names of all classes, written once: a JSON list in the first row. A column of anything else is ignored."""
    text = _one_text(series)
    try:
        names = json.loads(str(text[0])) if len(text) else None
    except (ValueError, TypeError, RecursionError):
        names = None
    return tuple(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()


def _no_gaps(series: "pl.Series", place: Place) -> None:
    if gaps := series.null_count():
        raise _wrong(series, place, "a value in every row", f"{gaps} empty cells", "fill or drop them")


def _check_size(place: Place, size: int) -> None:
    if isinstance(place, Path):
        check_unpacked(place, size)


def _wrong(series: "pl.Series", place: Place, expected: str, got: str, fix: str) -> InputError:
    return InputError(f"{place}, column {series.name}", expected=expected, got=got, fix=fix)
