"""A cache of decoded images: a file of bytes that later loads read straight from disk."""

import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.io.npz import BROKEN

Bytes = npt.NDArray[np.uint8]
Blocks = Generator[Bytes, None, None]  # (some images, height, width, channels)
OnProgress = Callable[[int, int], None]  # images done, images in all

_on_progress: ContextVar[OnProgress | None] = ContextVar("on_progress", default=None)


def cache_folder() -> Path:
    """The folder for everything that can be made or fetched again."""
    return Path(os.environ.get("CALIBRANT_CACHE") or "~/.cache/calibrant").expanduser()


@contextmanager
def progress_to(on_progress: OnProgress) -> Iterator[None]:
    """Call `on_progress(done, total)` while images are decoded inside this block."""
    token = _on_progress.set(on_progress)
    try:
        yield
    finally:
        _on_progress.reset(token)


def cached_images(
    name: str,
    sources: Iterable[Path],
    options: str,
    n: int,
    make: Callable[[], tuple[tuple[int, int, int], Blocks]],
) -> Bytes:
    """The images of these files, (n, height, width, channels), from the cache or, the first time, made into it.

    `make` gives the shape of an image, and blocks of images. The cache belongs to files of this size and age read with
    these options; a file that changed is read again. Processes that make images at the same time write a file each, and
    the last one to finish stays.
    """
    if n == 0:  # which cannot be mapped into memory
        return np.zeros((0, 1, 1, 1), dtype=np.uint8)
    file = cache_folder() / "decoded" / f"{name}-{_key(sources, options)}.npy"
    if (images := _open_cached(file, n)) is not None:
        return images
    image, blocks = make()
    shape = (n, *image)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(file.parent).free) < np.prod(shape, dtype=np.int64):
            raise OSError(f"{free / 2**20:,.0f} MB free")
        write_whole(file, lambda stream: _write(stream, shape, blocks))
    except OSError as error:
        raise InputError(
            str(file.parent),
            expected=f"a folder with {np.prod(shape, dtype=np.int64) / 2**20:,.0f} MB of space for decoded images",
            got=str(error),
            fix="make space, or set CALIBRANT_CACHE to another folder",
        ) from error
    opened = _open_cached(file, n)
    assert opened is not None
    return opened


def _key(sources: Iterable[Path], options: str) -> str:
    digest = sha256(options.encode())
    for source in sources:
        facts = source.stat()
        digest.update(os.fsencode(f"\n{os.path.abspath(source)} {facts.st_size} {facts.st_mtime_ns}"))
    return digest.hexdigest()[:32]


def _open_cached(file: Path, n: int) -> Bytes | None:
    """The cached images, or None when they are not there or not whole."""
    try:
        images = np.load(file, mmap_mode="r", allow_pickle=False)
    except BROKEN:
        return None
    whole = isinstance(images, np.memmap) and images.dtype == np.uint8 and images.ndim == 4 and len(images) == n
    return images if whole and images.offset + images.nbytes == file.stat().st_size else None


def _write(stream: IO[bytes], shape: tuple[int, ...], blocks: Blocks) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    done, on_progress = 0, _on_progress.get()
    with closing(blocks):  # and with it the threads that make them, also when the disk is full
        for block in blocks:
            stream.write(block.data)
            done += len(block)
            if on_progress:
                on_progress(done, shape[0])
