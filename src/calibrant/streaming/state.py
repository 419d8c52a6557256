"""The state of an accumulator on disk: the type of every field, and sums as lists of numbers."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array
from calibrant.core.config.convert import Bounds, Count
from calibrant.core.curves.weighted import is_whole
from calibrant.core.json import read_typed
from calibrant.core.predictions.row_data import Task
from calibrant.measures import CATALOGUE
from calibrant.streaming.cursor import Cursor
from calibrant.streaming.sums import FINE

VERSION = 4
LARGEST_COUNT = 2.0**53  # that a float64 counts to
LARGEST_SUM = 1e100  # whose square is finite; sums of rows are far smaller

Weight = Annotated[float, Bounds(least=0, most=LARGEST_SUM)]


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """The fields of the file."""

    measures: tuple[str, ...]
    n: Count  # rows
    k: Count
    task: Task | None
    total: Weight  # sum of the weights: the number of rows, where they have no weights
    square: Weight  # sum of squared weights
    units: Count  # clusters, and rows without
    unit_square: Weight  # sum of squared weights of clusters, and of rows without
    weighted: bool  # whether rows have weights
    counts: bool  # whether every weight is a whole number
    clustered: bool  # whether rows are in clusters
    open_reason: str | None  # why it is unknown which rows form a cluster
    clusters: str  # hashes of their names, 8 bytes each, in base64
    files: dict[str, Cursor]  # how far each file has been read
    sums: dict[str, Any]

    def __post_init__(self) -> None:
        filled = self.task is not None and self.k >= 2 and min(self.total, self.square, self.unit_square) > 0
        if filled != (self.n > 0) or len(set(self.measures)) != len(self.measures):
            raise ValueError(f"{self.n} rows of {self.k} classes, weight {self.total:g}")


def check_named(specs: Sequence[str], trusted_files: Sequence[str]) -> None:
    """Refuse measures that would run a file of Python code, unless the user has named that file."""
    for spec in specs:
        if spec not in trusted_files:
            CATALOGUE.make_named(spec)


def hash_names(names: npt.NDArray[Any]) -> frozenset[int]:
    """A hash of 8 bytes for each name."""
    digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in names.tolist())
    return frozenset(int.from_bytes(digest, "big") for digest in digests)


def hashes_to_text(hashes: frozenset[int]) -> str:
    return b64encode(np.array(sorted(hashes), dtype=">u8").tobytes()).decode()


def hashes_from_text(text: str) -> frozenset[int]:
    return frozenset(np.frombuffer(b64decode(text, validate=True), dtype=">u8").tolist())


def sums_to_json(sums: Mapping[str, Array]) -> dict[str, Any]:
    """Sums as nested lists; of fine histograms only the bins that are not empty, and their values."""
    return {name: _sparse(part) if part.shape == (2, FINE) else part.tolist() for name, part in sums.items()}


def sums_from_json(sums: Mapping[str, Any]) -> dict[str, Array]:
    return {name: _dense(part) if isinstance(part, dict) else _numbers(name, part) for name, part in sums.items()}


def check_shapes(sums: Mapping[str, Array], needed: dict[str, tuple[int, ...]], known: dict[str, Any]) -> None:
    """Check that sums are those that the measures need, and no others."""
    shapes = {name: part.shape for name, part in sums.items()}
    if needed.items() - shapes.items() or shapes.items() - known.items():
        raise ValueError("sums are not those of the measures")


def _sparse(fine: Array) -> dict[str, Any]:
    filled = np.flatnonzero(fine.any(axis=0))
    values = fine[:, filled]
    counts = is_whole(values) and bool((np.abs(values) < LARGEST_COUNT).all())
    return {"bins": filled.tolist(), "values": (values.astype(np.int64) if counts else values).tolist()}


def _dense(part: dict[str, Any]) -> Array:
    bins = read_typed(part, "bins", list)
    if any(type(place) is not int or not 0 <= place < FINE for place in bins):
        raise ValueError(f"bins are not those of {FINE}")
    fine = np.zeros((2, FINE))
    fine[:, bins] = _numbers("values", read_typed(part, "values", list)).reshape(2, len(bins))
    return fine


def _numbers(name: str, value: Any) -> Array:
    array = np.array(value)
    if (array.dtype.kind not in "if" and array.size) or not (np.abs(array.astype(np.float64)) <= LARGEST_SUM).all():
        raise ValueError(f"sums of {name:.40} are not numbers")
    return array.astype(np.float64)
