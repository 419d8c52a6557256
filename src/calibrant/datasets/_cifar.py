"""CIFAR-10 and CIFAR-100 in the three forms they come in: binary, Python (pickled) and Parquet."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.catalogue import name_of
from calibrant.core.files import damage_error, read_bytes
from calibrant.datasets._base import Bytes, Dataset, Part
from calibrant.datasets._decode import Picture
from calibrant.datasets._files import absence_error, first_file, place
from calibrant.datasets._parquet import columns_of, files_of, images_of, labels_of
from calibrant.datasets._unpickle import read_pickled

SIDE = 32
PIXELS = 3 * SIDE * SIDE  # red plane, green plane, blue plane
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True, kw_only=True)
class CifarFiles:
    """File names of one of the two sets, and the place of the label in a record."""

    batches: Mapping[str, tuple[str, ...]]  # the names of the Python version; the binary one appends .bin
    folders: tuple[str, ...]
    label_bytes: int  # before the pixels of a record; the last one is the label
    key: str  # of the labels in the Python version
    column: str  # of the labels in the Parquet version
    classes: tuple[str, ...]


def read_cifar(dataset: Dataset, part: str, layout: CifarFiles) -> Part:
    where = place(dataset)
    folders = [where, *(where / folder for folder in layout.folders)]
    batches = layout.batches[part]
    if (binary := first_file(folders, [f"{batches[0]}.bin"])) is not None:
        pairs = [_binary(_batch(dataset, binary, f"{name}.bin"), layout.label_bytes) for name in batches]
    elif (pickled := first_file(folders, [batches[0]])) is not None and pickled.is_file():
        pairs = [_read_python(_batch(dataset, pickled, name), layout.key) for name in batches]
    elif files := files_of(where, part) if where.exists() else []:
        columns = columns_of(files[0], label=layout.column)
        labels = labels_of(files, columns)
        images = images_of(name_of(dataset), files, columns, len(labels), Picture(SIDE, SIDE, 3))
        return Part(images, labels, layout.classes)
    else:
        raise absence_error(
            dataset, f"{batches[0]}.bin (binary), {batches[0]} (Python) or {part}*.parquet (Hugging Face)"
        )
    pixels = np.concatenate([pixels for pixels, _ in pairs])
    planes = pixels.reshape(-1, 3, SIDE, SIDE)
    images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))  # a row is then one piece of memory
    return Part(images, np.concatenate([labels for _, labels in pairs]), layout.classes)


def _batch(dataset: Dataset, first: Path, name: str) -> Path:
    """Find a file beside the first one, or raise an error."""
    file = first.with_name(name)
    if not file.exists():
        raise absence_error(dataset, name, first.parent)
    return file


def _binary(file: Path, label_bytes: int) -> tuple[Bytes, Ints]:
    content = np.frombuffer(read_bytes(file), dtype=np.uint8)
    record = label_bytes + PIXELS
    if len(content) == 0 or len(content) % record:
        raise damage_error(file, f"records of {record} bytes", f"{len(content)} bytes")
    records = content.reshape(-1, record)
    return records[:, label_bytes:], records[:, label_bytes - 1].astype(np.int64)


def _read_python(file: Path, key: str) -> tuple[Bytes, Ints]:
    return pixels_and_labels(file, read_pickled(file), key, PIXELS)


def pixels_and_labels(file: Path, content: Mapping[str, object], key: str, pixels: int) -> tuple[Bytes, Ints]:
    """The arrays of a pickled batch: `data`, a row an image, and its labels."""
    if missing := [name for name in ("data", key) if name not in content]:
        raise damage_error(file, f"an entry {missing[0]}", f"only {', '.join(map(str, content))}")
    try:
        data, labels = np.asarray(content["data"]), np.asarray(content[key])
    except (ValueError, OverflowError) as error:  # lists of unequal length, numbers of any size
        raise damage_error(file, f"arrays data and {key}", str(error)) from None
    if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != pixels:
        raise damage_error(file, f"data of type uint8 and shape (n, {pixels})", f"{data.dtype} {data.shape}")
    if labels.shape != (len(data),) or labels.dtype.kind not in "iu":
        raise damage_error(file, f"{len(data)} whole numbers in {key}", f"{labels.dtype} {labels.shape}")
    return data, labels.astype(np.int64)
