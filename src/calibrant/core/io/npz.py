"""Read arrays of an .npz archive. Nothing is unpickled, and nothing is unpacked before its size is checked."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import is_text
from calibrant.core.errors import DamagedFileError, InputError
from calibrant.core.io.size_limits import check_unpacked

BROKEN = (
    zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError, KeyError, IndexError, AttributeError,
    NotImplementedError, RuntimeError, MemoryError, OverflowError, SyntaxError, tokenize.TokenError,
)  # fmt: skip  # what zipfile and numpy raise on bytes that are no archive or no array


def read_npz(file: Path, names: Sequence[str] | None = None) -> tuple[dict[str, npt.NDArray[Any]], list[str]]:
    """The arrays of these names that the file has (by default all arrays), and the names of all."""
    with open_npz(file) as archive:
        return archive.read(archive.names if names is None else names), archive.names


@dataclass(frozen=True)
class NpzArchive:
    """An open archive: its names are known, its arrays are unpacked when they are read."""

    file: Path
    archive: zipfile.ZipFile

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def read(self, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """The arrays of these names that the archive has."""
        wanted = {name: info for name, info in self._members.items() if name in names}
        check_unpacked(self.file, sum(info.file_size for info in wanted.values()))
        return {name: _array(self.file, self.archive, info) for name, info in wanted.items()}

    def shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shape and the type of every array, by its header."""
        shapes = {}
        for name, info in self._members.items():
            with _open(self.archive, info) as stream:
                shape, dtype = _header(stream)
            shapes[name] = shape, str(dtype)
        return shapes

    @property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        return {info.filename.removesuffix(".npy"): info for info in self.archive.infolist()}


@contextmanager
def open_npz(file: Path) -> Iterator[NpzArchive]:
    with _readable(file), file.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        yield NpzArchive(file, archive)


def _array(file: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> npt.NDArray[Any]:
    with _open(archive, info) as stream:
        shape, dtype = _header(stream)
        if dtype.hasobject:
            raise InputError(
                str(file),
                expected="plain arrays",
                got="pickled Python objects, which could run code",
                fix="save arrays of numbers or text, as in np.savez(path, logits=..., labels=...)",
            )
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or dtype.itemsize == 0 or size != info.file_size - stream.tell():
            raise ValueError(f"{info.filename} does not hold the {size} bytes that its header declares")
    with _open(archive, info) as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    if dtype.kind == "U" and not is_text(array):
        raise ValueError(f"{info.filename} declares text and holds other bytes")
    return array


def _open(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open an array that numpy may have written: of other compressions zipfile unpacks more than it is asked for."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{info.filename} is compressed by method {info.compress_type}, which np.savez never takes")
    return archive.open(info)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:
        raise ValueError(f"version {version} of the format of arrays, which holds no numbers")
    shape, _, dtype = read[version](stream)
    return shape, dtype


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Turn any error inside into the error for a damaged file."""
    try:
        yield
    except InputError:
        raise
    except BROKEN as error:
        raise DamagedFileError.from_reason(file, "a readable .npz file", error, "write the file again") from error
