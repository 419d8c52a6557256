"""The columns of a table as the arrays of predictions: label, logit_0.. or prob_0.., and what else is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.limits import check_unpacked

if TYPE_CHECKING:
    import polars as pl

NAMED = {"id": "ids", "group": "groups", "predicted": "predicted", "seen": "seen"}  # in tables -> in Predictions
STEMS = ("logit", "prob")


def arrays_of(frame: "pl.DataFrame", file: Path) -> dict[str, Any]:
    """Columns label and logit_0.. or prob_0.. (or one list column logits or probs); id and feature_0.. if there."""
    names, arrays = set(frame.columns), dict[str, Any]()
    for stem in STEMS:
        if f"{stem}s" in names:
            arrays[f"{stem}s"] = _list_column(frame, f"{stem}s", file)
        elif f"{stem}_0" in names:
            arrays[f"{stem}s"] = _numbered(frame, stem, file)
    label = "label" if "label" in names else "labels"
    for column, array in {label: "labels", **NAMED}.items():
        if column in names:
            arrays[array] = plain_column(frame[column], file)
    if "feature_0" in names:
        arrays["features"] = _numbered(frame, "feature", file)
    return arrays


def is_score(column: str) -> bool:
    """Whether measures need this column."""
    return column in ("label", "labels", "logits", "probs", "predicted") or any(_is_numbered(column, s) for s in STEMS)


def plain_column(series: "pl.Series", file: Path) -> npt.NDArray[Any]:
    """One column of numbers or text without gaps."""
    import polars as pl

    _no_gaps(series, file)
    dtype = series.dtype
    if dtype.is_integer():
        for whole in (pl.Int64, pl.UInt64):
            if not (cast := series.cast(whole, strict=False)).null_count():
                return cast.to_numpy()
        raise _wrong(series, file, "integers of at most 64 bits", f"type {dtype} with larger ones", "number them anew")
    if dtype.is_float() or dtype == pl.Boolean:
        return series.to_numpy()
    if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
        longest = max((len(value) for value in series.unique().to_list()), default=0)
        check_unpacked(file, len(series) * longest * 4)  # numpy gives every text the room of the longest
        return np.array(series.to_list())
    raise _wrong(series, file, "integers, numbers or text", f"type {dtype}", "convert it")


def _numbered(frame: "pl.DataFrame", stem: str, file: Path) -> Any:
    """Columns stem_0, stem_1, ... as one array (n, k)."""
    import polars as pl

    have = {column for column in frame.columns if _is_numbered(column, stem)}
    columns = [f"{stem}_{i}" for i in range(len(have))]
    if missing := next((column for column in columns if column not in have), None):
        raise missing_from(str(file), f"a column named {missing}", sorted(have - set(columns)))
    chosen = frame.select(columns)
    for column, dtype in chosen.schema.items():
        if not dtype.is_numeric():
            raise _wrong(chosen[column], file, "numbers", f"type {dtype}", "check the cells")
    for series in chosen:
        _no_gaps(series, file)
    kinds = set(chosen.dtypes)
    same = len(kinds) == 1 and next(iter(kinds)).is_float()
    return (chosen if same else chosen.cast(pl.Float64)).to_numpy()


def _list_column(frame: "pl.DataFrame", column: str, file: Path) -> Any:
    """One column of lists of numbers, all of one length, as one array (n, k)."""
    import polars as pl

    series, stem = frame[column], column.removesuffix("s")
    if isinstance(series.dtype, pl.Array):
        series = series.arr.to_list()
    if not isinstance(series.dtype, pl.List):
        fix = f"use a list column, or columns {stem}_0, {stem}_1, ..."
        raise _wrong(series, file, "a list of numbers in every row", f"type {series.dtype}", fix)
    _no_gaps(series, file)
    inner: Any = series.dtype.inner
    if not inner.is_numeric():
        raise _wrong(series, file, "lists of numbers", f"lists of type {inner}", "check the cells")
    lengths = series.list.len()
    if lengths.min() != lengths.max():
        fix = "every row needs one number per class"
        raise _wrong(series, file, "lists of one length", "lists of different lengths", fix)
    k = int(lengths[0])
    flat = series.explode()
    if k and flat.null_count():
        raise _wrong(series, file, "numbers", "missing values", "fill or drop them")
    values = (flat if inner.is_float() else flat.cast(pl.Float64)).to_numpy()
    return values.reshape(len(series), k) if k else np.empty((len(series), 0))


def _no_gaps(series: "pl.Series", file: Path) -> None:
    if gaps := series.null_count():
        raise _wrong(series, file, "a value in every row", f"{gaps} empty cells", "fill or drop them")


def _wrong(series: "pl.Series", file: Path, expected: str, got: str, fix: str) -> InputError:
    return InputError(f"{file}, column {series.name}", expected=expected, got=got, fix=fix)


def _is_numbered(column: str, stem: str) -> bool:
    return column.startswith(f"{stem}_") and column.removeprefix(f"{stem}_").isdigit()


def missing_from(name: str, what: str, names: list[str]) -> InputError:
    """The error for an array or a column that is not there, beside those that are."""
    shown = ", ".join(name[:40] for name in names[:8]) + (", ..." if len(names) > 8 else "")
    return InputError(name, expected=what, got=f"only {shown or 'nothing'}", fix="rename or add it")
