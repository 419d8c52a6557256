"""A table of networks in the columns that questions know: ours, or the CSV files of the benchmark study's authors."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.measuring.harmonic_score import harmonic_score
from calibrant.nas import spaces

if TYPE_CHECKING:
    import polars as pl

NAMES = {"config": "index", "acc": "accuracy"}
FGSM = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 255.0)  # eps x 255 of the elements of a cell
OTHERS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0)
ATTACKS = {"fgsm": FGSM, "pgd": OTHERS, "apgd": OTHERS, "square": OTHERS}
CORRUPTIONS = (
    *("brightness", "contrast", "defocus_blur", "elastic_transform", "fog", "frost", "gaussian_noise", "glass_blur"),
    *("impulse_noise", "jpeg_compression", "motion_blur", "pixelate", "shot_noise", "snow", "zoom_blur"),
)
SEVERITY = 3  # of the five in a cell
SPACES = {"tss": "topology", "topology": "topology", "sss": "size", "size": "size"}
CLASS = "class of networks"  # a column while files are put together
DATA = {"cifar100": "cifar100", "cifar10": "cifar10", "imagenet": "ImageNet16-120"}


def in_our_columns(table: "pl.DataFrame", name: str) -> "pl.DataFrame":
    """Rename and convert a table to the columns of questions; a file's name may say space and data set."""
    import polars as pl

    table = table.rename({old: new for old, new in NAMES.items() if old in table.columns and new not in table.columns})
    for column in table.columns:
        table = _spread(table, column)
    for key, known in (("space", SPACES), ("data", DATA)):
        if key not in table.columns:
            table = table.with_columns(pl.lit(_in_name(name, key, known)).alias(key))
    table = _mark(_check_columns(table, name))
    shares = [c for c in table.columns if c == "accuracy" or re.match(r"(fgsm|pgd|apgd|square|corrupt)_", c)]
    for column in shares:
        most = table[column].max() if table[column].dtype.is_numeric() else None
        if isinstance(most, int | float) and most > 1:  # no share is: percent
            table = table.with_columns(pl.col(column) / 100)
    if "unique" in table.columns:
        table = _with_class(table)
    if "hcs" not in table.columns and {"accuracy", "pre_ECE_15"} <= set(table.columns):
        values = [table[c].cast(pl.Float64).fill_null(0.0).to_numpy() for c in ("accuracy", "pre_ECE_15")]
        table = table.with_columns(pl.Series("hcs", np.asarray(harmonic_score(*values))))
    return table


def mark_networks(table: "pl.DataFrame") -> "pl.DataFrame":
    """Mark the rows of all files together: one row of each class of equal networks is unique; add their copies."""
    import polars as pl

    if CLASS in table.columns:
        first = pl.struct("space", "data", CLASS, "unique").is_first_distinct()
        table = table.with_columns(unique=pl.col("unique").fill_null(value=False) & first).drop(CLASS)
    return _with_copies(table)


def _with_class(table: "pl.DataFrame") -> "pl.DataFrame":
    """Add the class of networks that compute the same functions, as text; `unique` becomes true or false."""
    import polars as pl

    if table["unique"].dtype.is_integer():  # the index of the first of its class
        return table.with_columns(pl.col("unique").cast(pl.String).alias(CLASS), unique=pl.lit(value=True))
    known = "arch" if "arch" in table.columns else "index"
    return table.with_columns(pl.col(known).cast(pl.String).alias(CLASS)) if known in table.columns else table


def _check_columns(table: "pl.DataFrame", name: str) -> "pl.DataFrame":
    """Check the types of columns; a number that is not finite becomes null."""
    import polars as pl

    kinds: dict[str, tuple[str, Callable[[pl.DataType], bool]]] = {
        **dict.fromkeys(("space", "data", "arch"), ("words", lambda kind: kind == pl.String)),
        "constant": ("true or false", lambda kind: kind == pl.Boolean),
        "unique": ("true or false, or whole numbers", lambda kind: kind == pl.Boolean or kind.is_integer()),
        **dict.fromkeys(("index", "copies"), ("whole numbers", lambda kind: kind.is_integer())),
        **dict.fromkeys(("accuracy", "pre_ECE_15", "hcs"), ("numbers", lambda kind: kind.is_numeric())),
    }
    for column, (expected, right) in kinds.items():
        if column in table.columns and not right(kind := table[column].dtype) and kind != pl.Null:
            raise InputError(
                f"table {name}, column {column}", expected=expected, got=f"type {kind}", fix="check the cells"
            )
    for column in ("space", "data", "arch"):
        if column in table.columns and (missing := table[column].null_count()):
            got = f"{missing:,} rows without one"
            raise InputError(
                f"table {name}, column {column}", expected="a name in every row", got=got, fix="drop these rows"
            )
    floats = [column for column, kind in table.schema.items() if kind.is_float()]
    return table.with_columns(pl.when(pl.col(c).is_finite()).then(pl.col(c)).alias(c) for c in floats)


def _mark(table: "pl.DataFrame") -> "pl.DataFrame":
    """Add the text, the class and the constant mark of each architecture, where the table lacks them."""
    import polars as pl

    missing = [column for column in ("arch", "unique", "constant") if column not in table.columns]
    if not missing or not {"arch", "index"} & set(table.columns):
        return table
    if not table.height:
        fix = "give a table with other rows"
        raise InputError("table", expected="networks of a space that calibrant has", got="no row is left", fix=fix)
    known = "arch" if "arch" in table.columns else "index"
    parts = []
    for (space,), own in table.group_by("space", maintain_order=True):
        family = spaces.make(str(space))
        archs = {key: family.find(str(key)) for key in own[known].unique().to_list()}
        facts: dict[str, dict[Any, Any]] = {
            "arch": archs,
            "unique": {key: family.index(family.unique(arch)) for key, arch in archs.items()},
            "constant": {key: family.is_constant(arch) for key, arch in archs.items()},
        }
        kinds = {"arch": pl.String, "unique": pl.Int64, "constant": pl.Boolean}
        columns = [pl.Series(name, [facts[name][key] for key in own[known].to_list()], kinds[name]) for name in missing]
        parts.append(own.with_columns(columns))
    return pl.concat(parts)


def _with_copies(table: "pl.DataFrame") -> "pl.DataFrame":
    """Add the number of cells of the topology space that each row stands for: 1 where the table holds the copies.

    Else a network stands for its copies, and a random one also for those that were not drawn; the extremes of a sample
    are in every sample, and stand for no others.
    """
    import polars as pl

    if "copies" in table.columns:
        return table.with_columns(pl.col("copies").fill_null(1))
    if not {"arch", "data", "unique"} <= set(table.columns):
        return table
    if not table["unique"].all():
        return table.with_columns(copies=pl.lit(1, dtype=pl.Int64))
    space = spaces.make("topology")
    known, extremes = _copies(), {space.unique(arch) for arch in space.extremes}
    here = set(table["arch"])
    sampled = all({space.find(arch), space.unique(arch)} & here for arch in space.extremes)
    certain = extremes if sampled else set[str]()  # a sample without extremes: all of it is random
    random = pl.col("arch").is_in([arch for arch in space.uniques() if arch not in certain])
    others = (len(space.uniques()) - len(certain)) / random.sum().over("data")
    cells = pl.col("arch").replace_strict(known, default=1, return_dtype=pl.Float64)
    return table.with_columns(copies=(cells * pl.when(random).then(others).otherwise(1.0)).round().cast(pl.Int64))


@cache
def _copies() -> dict[str, int]:
    return spaces.make("topology").copies()


def _spread(table: "pl.DataFrame", column: str) -> "pl.DataFrame":
    """Split a column of lists into columns, one per strength; or rename a column."""
    import polars as pl

    stem = column.removeprefix("aa_").partition("@")[0].removesuffix("-ce")
    if stem in CORRUPTIONS:
        named = {SEVERITY - 1: f"corrupt_{stem}"}
    elif re.fullmatch(rf"({'|'.join(ATTACKS)})_\d+", column):  # pgd_1: the strength as a whole number
        return table.rename({column: f"{column}.0"})
    elif stem in ATTACKS:
        named = {i: f"{stem}_{eps}" for i, eps in enumerate(ATTACKS[stem])}
    else:
        return table
    if table[column].dtype.is_numeric():  # one strength, already chosen
        return table.rename({column: named[SEVERITY - 1]}) if stem in CORRUPTIONS else table
    cells = [_list(cell, column) for cell in table[column].to_list()]
    columns = [
        pl.Series(name, [cell[i] if i < len(cell) else None for cell in cells], dtype=pl.Float64)
        for i, name in named.items()
    ]
    return table.drop(column).with_columns(columns)


def _list(cell: Any, column: str) -> list[float]:
    if cell is None:
        return []
    try:
        values = json.loads(cell) if isinstance(cell, str) else list(cell)
        return [float(value) for value in values]
    except (ValueError, TypeError):
        raise InputError(
            f"table, column {column}", expected="lists of numbers", got=f"'{cell}'", fix="check the cells"
        ) from None


def _in_name(name: str, key: str, known: dict[str, str]) -> str:
    for word, value in known.items():
        if word in name.lower():
            return value
    raise InputError(
        f"table {name}",
        expected=f"a column {key}, or a file name that says it ({', '.join(known)})",
        got="neither",
        fix="add the column or rename the file",
    )
