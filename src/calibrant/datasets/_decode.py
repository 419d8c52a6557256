"""Decode image files (PNG, JPEG, WebP, BMP, TIFF, GIF) to arrays of bytes."""

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.core.files import read_regular
from calibrant.core.parallel import threads
from calibrant.datasets._base import Bytes, Window

Colour = Literal["auto", "grey", "rgb"]
Fit = Literal["crop", "squash"]
Encoded = tuple[str, Callable[[], bytes]]  # what to call an image in errors, and how to get its bytes
GREY_MODES = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F")
LOOKED_AT = 256  # images; enough to see whether a set has colours
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF")  # no other: Pillow would start Ghostscript for an EPS
DAMAGED = (OSError, EOFError, ValueError, SyntaxError, IndexError, struct.error, zlib.error)


@dataclass(frozen=True)
class Picture:
    """Size, channels and resizing of every image of a set."""

    height: int
    width: int
    channels: int  # 1: grey, 3: red, green, blue
    fit: Literal["exact", "crop", "squash"] = "exact"  # squash: the whole image, whatever its proportions
    margin: float = 1.0  # crop: the shorter side becomes margin x size, then the centre is taken

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels


def decode(encoded: Encoded, picture: Picture, window: Window | None = None) -> Bytes:
    """One image, (height, width, channels), or a window of it resized to that."""
    with _open_image(encoded) as image:
        whole = _convert_channels(image, picture.channels)
        fitted = _fit_size(whole, picture, encoded[0]) if window is None else _cut(whole, picture, window)
    return np.asarray(fitted, dtype=np.uint8).reshape(picture.shape)


def decode_many(
    images: Sequence[Encoded],
    picture: Picture,
    pool: ThreadPoolExecutor | None = None,
    windows: Sequence[Window] | None = None,
) -> Bytes:
    """Images, (n, height, width, channels); pillow lets threads decode at once."""
    if pool is None:
        with ThreadPoolExecutor(threads()) as pool:
            return decode_many(images, picture, pool, windows)
    decoded, count = np.empty((len(images), *picture.shape), dtype=np.uint8), threads()

    def work(first: int) -> None:
        for row in range(first, len(images), count):
            decoded[row] = decode(images[row], picture, windows[row] if windows else None)

    list(pool.map(work, range(count)))  # a task an image would cost as much as decoding a small one
    return decoded


def picture_of(images: Sequence[Encoded], size: int, colour: Colour, fit: Fit) -> Picture:
    """The kind of images of a set without a description, judged by some of them."""
    step = max(1, len(images) // LOOKED_AT)
    sizes = [_size_and_mode(image) for image in images[::step]]
    grey = colour == "grey" or (colour == "auto" and all(mode in GREY_MODES for _, mode in sizes))
    channels = 1 if grey else 3
    if size:
        return Picture(size, size, channels, fit)
    width, height = sizes[0][0]
    return Picture(height, width, channels)


class ImageFiles:
    """Rows of image files, decoded when they are asked for."""

    def __init__(self, folder: Path, names: Sequence[str], picture: Picture) -> None:
        self.folder, self.picture = folder, picture
        self.names = np.array([os.fsencode(name) for name in names])  # a fifth of the memory of a list of texts
        self.shape = (len(names), *picture.shape)

    def __getitem__(self, rows: Ints) -> Bytes:
        return decode_many([self.read_encoded(name) for name in self.names[rows]], self.picture)

    def cut(self, rows: Ints, windows: Sequence[Window]) -> Bytes:
        return decode_many([self.read_encoded(name) for name in self.names[rows]], self.picture, windows=windows)

    def read_encoded(self, name: bytes) -> Encoded:
        file = self.folder / os.fsdecode(name)
        return str(file), partial(read_regular, file)


@contextmanager
def _open_image(encoded: Encoded) -> Iterator[Any]:
    """Open the image of these bytes; any damage is an InputError."""
    what, read = encoded
    pillow = _pillow()
    try:
        with pillow.open(io.BytesIO(read()), formats=FORMATS) as image:
            yield image
    except InputError:
        raise
    except pillow.DecompressionBombError as error:
        most = f"{2 * pillow.MAX_IMAGE_PIXELS:,}"
        fix = "leave it out, or make it smaller: it may be built to fill the memory"
        raise InputError(what, expected=f"an image of at most {most} pixels", got="a larger one", fix=fix) from error
    except pillow.UnidentifiedImageError as error:
        expected = "an image (PNG, JPEG, WebP, BMP, TIFF or GIF)"
        fix = "get the file again, or convert it"
        raise InputError(what, expected=expected, got="a damaged file or another format", fix=fix) from error
    except DAMAGED as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        got = f"a damaged one ({reason})"
        raise InputError(what, expected="an image", got=got, fix="get the file again") from error


def _fit_size(image: Any, picture: Picture, what: str) -> Any:
    width, height = image.size
    if (height, width) == (picture.height, picture.width):
        return image
    if picture.fit == "exact":
        raise InputError(
            what,
            expected=f"an image of {picture.height} x {picture.width} pixels",
            got=f"{height} x {width}",
            fix=f"give all images one size, with size={min(picture.height, picture.width)} say, where the set has it",
        )
    bilinear = _pillow().Resampling.BILINEAR
    if picture.fit == "squash":
        return image.resize((picture.width, picture.height), bilinear)
    short = round(picture.margin * picture.height)
    scale = short / min(width, height)
    width, height = max(short, int(width * scale)), max(short, int(height * scale))
    left, top = round((width - picture.width) / 2), round((height - picture.height) / 2)
    return image.resize((width, height), bilinear).crop((left, top, left + picture.width, top + picture.height))


def _cut(image: Any, picture: Picture, window: Window) -> Any:
    top, left, height, width = window(image.height, image.width)
    box = (left, top, left + width, top + height)
    return image.resize((picture.width, picture.height), _pillow().Resampling.BILINEAR, box=box)


def _convert_channels(image: Any, channels: int) -> Any:
    if image.mode.startswith("I"):  # 16 bits a pixel, which pillow would clip instead of scale
        image = _pillow().fromarray((np.asarray(image) // 257).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("L" if channels == 1 else "RGB")


def _size_and_mode(encoded: Encoded) -> tuple[tuple[int, int], str]:
    with _open_image(encoded) as image:
        return image.size, image.mode


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError(
            "images",
            expected="pillow, which decodes JPEG and PNG",
            got="no such package",
            fix='pip install "calibrant[train]"',
        ) from error
    return Image
