"""Files of data sets: where they are, and errors where they are absent or damaged."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError
from calibrant.core.files import damage_error, read_bytes
from calibrant.core.io import npz
from calibrant.datasets._base import Bytes, Dataset
from calibrant.datasets._image_cache import cache_folder

IDX_OF_BYTES = 0x0800  # the start of an idx file: two zeros, the type (8 = unsigned byte), the number of dimensions


def place(dataset: Dataset) -> Path:
    """The folder or file of a data set: its root, else <CALIBRANT_DATA>/<name>, else ~/.cache/calibrant/data/<name>."""
    if dataset.root:
        return Path(dataset.root).expanduser()
    data = os.environ.get("CALIBRANT_DATA")
    return (Path(data).expanduser() if data else cache_folder() / "data") / name_of(dataset)


def first_file(folders: Sequence[Path], names: Sequence[str]) -> Path | None:
    """The first of these names that is there, in the first folder that has one."""
    candidates = (folder / name for folder in folders for name in names)
    return next((file for file in candidates if file.exists()), None)


def find_file(dataset: Dataset, *names: str, also: Sequence[Path] = ()) -> Path:
    """The file itself when the root is a file; else the first of these names in its folder or the others."""
    where = place(dataset)
    if where.is_file():
        return where
    file = first_file([where] if dataset.root else [where, *also], names)
    if file is None:
        raise absence_error(dataset, " or ".join(names))
    return file


def no_root(dataset: Dataset, owner: str) -> None:
    if dataset.root:
        raise InputError(
            f"{name_of(dataset)}:root", expected=f"none: it comes with {owner}", got=dataset.root, fix="leave root out"
        )


def absence_error(dataset: Dataset, expected: str, where: Path | None = None) -> InputError:
    """The error for a data set that is not there: what was looked for, and where to get it."""
    folder, name = where or place(dataset), name_of(dataset)
    get = f"get it from {dataset.source} and put it there" if dataset.source else "put it there"
    return InputError(
        f"data set {name}",
        expected=f"{expected} in {folder}",
        got=_contents(folder),
        fix=f"{get}, or say where it is: {name}:root=FOLDER",
    )


def read_idx(file: Path, dimensions: int) -> Bytes:
    """An array from an idx file of unsigned bytes, plain or .gz."""
    content = read_bytes(file)
    start = 4 + 4 * dimensions
    header = np.frombuffer(content[:start], dtype=">u4") if len(content) >= start else np.zeros(1, dtype=">u4")
    if header[0] != IDX_OF_BYTES + dimensions:
        raise damage_error(file, f"an idx file of bytes in {dimensions} dimensions", "another start of the file")
    shape = tuple(int(size) for size in header[1:])
    if len(content) - start != np.prod(shape, dtype=np.int64):
        size = " x ".join(map(str, shape))
        raise damage_error(file, f"{size} bytes after its header", f"{len(content) - start}")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def read_npy(file: Path) -> npt.NDArray[Any]:
    """The array of a .npy file, read from disk when it is asked for."""
    try:
        array: npt.NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except npz.BROKEN as error:
        raise damage_error(file, "an array in a .npy file", error) from error
    if not isinstance(array, np.ndarray):
        raise damage_error(file, "one array in a .npy file", "an archive")
    return array


def read_npz(file: Path, names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """The named arrays of a .npz file. Nothing is unpickled."""
    arrays, there = npz.read_npz(file, names)
    if missing := [name for name in names if name not in arrays]:
        raise damage_error(file, f"an array named {missing[0]}", f"only {', '.join(there) or 'nothing'}")
    return [arrays[name] for name in names]


def _contents(folder: Path) -> str:
    if not folder.exists():
        return "no such folder"
    if not folder.is_dir():
        return "a file"
    names = sorted(file.name for file in folder.iterdir())
    return f"a folder with {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}" if names else "an empty folder"
