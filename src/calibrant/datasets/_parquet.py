"""Images as the Hugging Face hub stores them: Parquet files with a column of encoded images and one of labels."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.core.files import damage_error
from calibrant.core.io.tables import readable
from calibrant.datasets._base import Bytes
from calibrant.datasets._decode import LOOKED_AT, Colour, Encoded, Fit, Picture, picture_of
from calibrant.datasets._decoded_images import decode_images

WORDS = {
    "train": ("train", "training"),
    "val": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing"),
}


def files_of(root: Path, part: str, config: str = "") -> list[Path]:
    """The Parquet files of a part, by the words in their names: `data/train-00000-of-00002.parquet` is for train."""
    files = [root] if root.is_file() else sorted(root.rglob("*.parquet"))
    base = root.parent.parent if root.is_file() else root  # the folder of a file may say its part: train/0000.parquet
    chosen = [
        file
        for file in files
        if _part_of(file.relative_to(base)) == part and config in ("", *file.relative_to(base).parts)
    ]
    folders = sorted({str(_outer(file.relative_to(base))) for file in chosen})
    if len(folders) > 1:
        raise InputError(
            str(root),
            expected=f"the files of one data set for the part {part}",
            got=f"files in {', '.join(folders[:5])}",
            fix=f"choose one: config={Path(folders[0]).name}",
        )
    return chosen


@dataclass(frozen=True)
class Columns:
    """The columns of images and labels, and the names of the classes where the file knows them."""

    image: str
    label: str
    encoded: pl.Expr
    classes: tuple[str, ...]


def columns_of(file: Path, image: str = "", label: str = "") -> Columns:
    """The columns of a Parquet file; those without a name are found by their type."""
    with readable(file), file.open("rb") as stream:
        schema = dict(pl.scan_parquet(stream).collect_schema())
    images = [name for name, kind in schema.items() if _holds_images(kind)]
    labels = [name for name, kind in schema.items() if kind.is_integer()]
    image = _one_column(file, "image", image, images, list(schema))
    label = _one_column(file, "label", label, labels, list(schema))
    column = pl.col(image)
    encoded = column if schema[image] == pl.Binary else column.struct.field("bytes")
    return Columns(image, label, encoded.alias(image), _class_names(file, label))


def labels_of(files: Sequence[Path], columns: Columns) -> Ints:
    frames = [_column(file, pl.col(columns.label)) for file in files]
    for file, series in zip(files, frames, strict=True):
        if series.null_count():
            raise damage_error(
                file, f"a label in every row of column {columns.label}", f"{series.null_count()} empty ones"
            )
    return np.concatenate([series.to_numpy() for series in frames]).astype(np.int64)


def images_of(name: str, files: Sequence[Path], columns: Columns, n: int, picture: "Picture | Guess") -> Bytes:
    """The images of these files, decoded once."""
    options = f"{columns.image} {picture}"
    return decode_images(
        name,
        files,
        options,
        n,
        picture if isinstance(picture, Guess) else lambda: picture,
        lambda: _read_encoded(files, columns),
    )


@dataclass(frozen=True)
class Guess:
    """The size and channels of images, judged by those of one file when they have to be decoded."""

    file: Path
    columns: Columns
    size: int
    colour: Colour
    fit: Fit

    def __call__(self) -> Picture:
        examples = list(_read_encoded([self.file], self.columns, at_most=LOOKED_AT))
        return picture_of(examples, self.size, self.colour, self.fit)

    def __str__(self) -> str:
        return f"{self.file} {self.size} {self.colour} {self.fit}"


def _read_encoded(files: Sequence[Path], columns: Columns, at_most: int = 0) -> Iterator[Encoded]:
    """All images of these files, or about as many of each as told."""
    for file in files:
        column = _column(file, columns.encoded)
        step = max(1, len(column) // at_most) if at_most else 1
        for row, content in enumerate(column.gather_every(step)):
            what = f"{file}, column {columns.image}, row {row * step}"
            if content is None:
                raise InputError(
                    what, expected="the bytes of an image", got="none", fix="use files that hold the images themselves"
                )
            yield what, partial(bytes, content)


def _column(file: Path, column: pl.Expr) -> pl.Series:
    with readable(file), file.open("rb") as stream:
        return pl.scan_parquet(stream).select(column).collect().to_series()


def _holds_images(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.Struct):
        return any(field.name == "bytes" and field.dtype == pl.Binary for field in kind.fields)
    return kind == pl.Binary


def _one_column(file: Path, role: str, chosen: str, fitting: list[str], names: list[str]) -> str:
    preferred = [name for name in fitting if name == role]
    if chosen in fitting or (not chosen and len(preferred or fitting) == 1):
        return chosen or (preferred or fitting)[0]
    kind = {"image": "encoded images", "label": "whole numbers"}[role]
    if chosen:
        got = f"other values in '{chosen}'" if chosen in names else f"no column '{chosen}'"
    else:
        got = ", ".join(fitting) or "none"
    known = ", ".join(fitting or names)
    raise InputError(str(file), expected=f"one column of {kind}", got=got, fix=f"say which, {role}=NAME, of {known}")


def _class_names(file: Path, label: str) -> tuple[str, ...]:
    """Class names from the note that the hub leaves in the file; none where there is no such note."""
    try:
        with file.open("rb") as stream:
            note: Any = json.loads(pl.read_parquet_metadata(stream)["huggingface"])
        names = note["info"]["features"][label]["names"]
        return tuple(str(name) for name in (names.values() if isinstance(names, dict) else names))
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _part_of(file: Path) -> str:
    """The part (train, val or test) of a file, by its own name first, then by its folders."""
    for name in reversed(file.parts):
        parts = re.split(r"[^a-z]+", name.lower())
        for part, words in WORDS.items():
            if any(word in parts for word in words):
                return part
    return ""


def _outer(file: Path) -> Path:
    """The folder of a file, without a folder that only says the part."""
    folder = file.parent
    return folder.parent if _part_of(Path(folder.name)) else folder
