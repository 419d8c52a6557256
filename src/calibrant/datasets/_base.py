"""Base class of data sets: parts of uint8 images with labels, verified once when they are loaded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, cast

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Ints
from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.parallel import pieces

Bytes = npt.NDArray[np.uint8]
Window = Callable[[int, int], tuple[int, int, int, int]]  # height and width of an image to top, left, height, width


class ImageRows(Protocol):
    """Images that can be picked by number: an array, a memory map, or files decoded when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:  # (n, height, width, channels)
        ...

    def __getitem__(self, rows: Ints) -> Bytes: ...


class Originals(ImageRows, Protocol):
    """Images read from larger ones: a window of each original can be cut out instead, at the same size."""

    def cut(self, rows: Ints, windows: Sequence[Window]) -> Bytes: ...


@dataclass(frozen=True)
class Part:
    """One part (train, val, test) of a data set."""

    images: ImageRows  # uint8 (n, height, width, channels)
    labels: Ints  # (n,)
    classes: tuple[str, ...]
    ids: Ints = field(default=None)  # type: ignore[arg-type]  # (n,) position in the published file

    def __post_init__(self) -> None:
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self.labels)))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Ints) -> "Part":
        return Part(_RowSubset(self.images, rows), self.labels[rows], self.classes, self.ids[rows])

    def shrink(self, by: int) -> "Part":
        """Smaller images: every square of `by` x `by` pixels becomes its mean, rounded.

        >>> one = Part(np.array([[[[0], [1]], [[2], [5]]]], dtype=np.uint8), np.array([0]), ("a",))
        >>> one.shrink(2).images.tolist()  # the mean of 0, 1, 2, 5
        [[[[2]]]]
        """
        n, height, width, channels = self.images.shape
        if by < 1 or height % by or width % by:
            fix = "use a number that divides the sides"
            raise InputError("shrink", expected=f"1 or more, dividing {height} and {width}", got=str(by), fix=fix)
        images = np.empty((n, height // by, width // by, channels), dtype=np.uint8)
        for rows in pieces(n, 4096):
            block = self.images[np.arange(rows.start, rows.stop)]
            total = np.zeros((len(block), *images.shape[1:]), dtype=np.float32)  # whole numbers: sums are exact
            for row in range(by):
                for column in range(by):
                    total += block[:, row::by, column::by]
            images[rows] = np.rint(total / by**2)
        return Part(images, self.labels, self.classes, self.ids)

    @property
    def originals(self) -> Originals | None:
        """The images, where windows can be cut out of what they were read from."""
        inner = self.images.images if isinstance(self.images, _RowSubset) else self.images
        return cast(Originals, self.images) if hasattr(inner, "cut") else None


class _RowSubset:
    """A subset of rows of images; nothing is copied before it is asked for."""

    def __init__(self, images: ImageRows, rows: Ints) -> None:
        self.images: ImageRows = images
        self.rows = rows
        if isinstance(images, _RowSubset):  # rows of rows are rows
            self.images, self.rows = images.images, images.rows[rows]
        self.shape = (len(rows), *images.shape[1:])

    def __getitem__(self, rows: Ints) -> Bytes:
        return self.images[self.rows[rows]]

    def cut(self, rows: Ints, windows: Sequence[Window]) -> Bytes:
        return cast(Originals, self.images).cut(self.rows[rows], windows)


@dataclass(frozen=True)
class Dataset:
    """A recipe for reading a data set: options only. `load(part)` reads and verifies one of its parts.

    An entry defines `read(part)`, which is only asked for the parts it names.
    """

    root: str = ""  # its folder or file; by default <CALIBRANT_DATA or ~/.cache/calibrant/data>/<name>
    shrink: int = 1  # pixels a side that become one, by their mean: 2 makes 32 x 32 images 16 x 16

    title: ClassVar[str]
    reference: ClassVar[str]
    source: ClassVar[str] = ""  # where to get it
    licence: ClassVar[str] = ""
    parts: ClassVar[tuple[str, ...]] = ("train", "test")
    mean: ClassVar[tuple[float, ...]] = (0.5,)  # per channel, on [0, 1]: one pair per data set, for every part
    std: ClassVar[tuple[float, ...]] = (0.25,)  # one number stands for every channel
    may_miss: ClassVar[tuple[str, ...]] = ()  # parts in which a class may be absent

    def __post_init__(self) -> None:
        check_options(self)
        if self.shrink < 1:
            raise InputError("shrink", expected="1 or more", got=str(self.shrink), fix="use 2 for half the size")

    def load(self, part: str) -> Part:
        if part not in self.parts:
            raise unknown_name(f"part of {self.title}", part, self.parts)
        whole = verify(self.read(part), f"{self.title}, part {part}", every_class=part not in self.may_miss)
        return whole if self.shrink == 1 else whole.shrink(self.shrink)

    def read(self, part: str) -> Part:
        raise TypeError(f"{type(self).__name__} does not say how it is read: define read")


def verify(part: Part, what: str, *, every_class: bool = True) -> Part:
    """The part, if images and labels fit together and, unless told otherwise, every class occurs."""
    images, labels, k = part.images, part.labels, len(part.classes)
    fix = "get the files again; the set may be incomplete or corrupt"
    if len(labels) == 0:
        raise InputError(what, expected="at least one image", got="none", fix=fix)
    if len(images.shape) != 4 or getattr(images, "dtype", np.uint8) != np.uint8:
        got = f"{getattr(images, 'dtype', 'uint8')} {images.shape}"
        raise InputError(what, expected="uint8 images (n, height, width, channels)", got=got, fix=fix)
    if images.shape[0] != len(labels):
        raise InputError(what, expected=f"a label for each of {images.shape[0]} images", got=f"{len(labels)}", fix=fix)
    if labels.min() < 0 or labels.max() >= k:
        worst = int(labels.min() if labels.min() < 0 else labels.max())
        raise InputError(what, expected=f"labels in 0..{k - 1}", got=f"{worst}", fix=fix)
    empty = np.flatnonzero(np.bincount(labels, minlength=k) == 0)
    if len(empty) and every_class:
        names = ", ".join(part.classes[i] for i in empty[:5])
        raise InputError(what, expected="images of every class", got=f"none of {names}", fix=fix)
    return part
