"""Images decoded once: a file of bytes that later loads read straight from disk."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.npz import BROKEN
from calibrant.core.parallel import threads
from calibrant.datasets._base import Bytes
from calibrant.datasets._decode import Encoded, Picture, decode_many
from calibrant.datasets._files import cache_folder

OnProgress = Callable[[int, int], None]  # images done, images in all
VERSION = 1  # of what decoding does: another number, and every cache is made again
AT_ONCE = 256

_on_progress: ContextVar[OnProgress | None] = ContextVar("on_progress", default=None)


@contextmanager
def progress_to(on_progress: OnProgress) -> Iterator[None]:
    """Inside, `on_progress(done, total)` is called while images are decoded."""
    token = _on_progress.set(on_progress)
    try:
        yield
    finally:
        _on_progress.reset(token)


def decoded(
    name: str,
    sources: Iterable[Path],
    options: str,
    n: int,
    picture: Callable[[], Picture],
    images: Callable[[], Iterable[Encoded]],
) -> Bytes:
    """The images of these files, (n, height, width, channels), from the cache or, the first time, decoded into it.

    The cache belongs to files of this size and age read with these options; a file that changed is decoded again.
    Processes that decode at the same time write a file each, and the last one to finish stays.
    """
    if n == 0:  # which cannot be mapped into memory
        return np.zeros((0, 1, 1, 1), dtype=np.uint8)
    file = cache_folder() / "decoded" / f"{name}-{_key(sources, options)}.npy"
    if (found := _opened(file, n)) is not None:
        return found
    made = picture()
    shape = (n, *made.shape)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(file.parent).free) < np.prod(shape, dtype=np.int64):
            raise OSError(f"{free / 2**20:,.0f} MB free")
        write_whole(file, lambda stream: _write(stream, shape, made, images()))
    except OSError as error:
        raise InputError(
            str(file.parent),
            expected=f"a folder with {np.prod(shape, dtype=np.int64) / 2**20:,.0f} MB of space for decoded images",
            got=str(error),
            fix="make space, or set CALIBRANT_CACHE to another folder",
        ) from error
    opened = _opened(file, n)
    assert opened is not None
    return opened


def _key(sources: Iterable[Path], options: str) -> str:
    digest = sha256(f"{VERSION} {options}".encode())
    for source in sources:
        facts = source.stat()
        digest.update(os.fsencode(f"\n{os.path.abspath(source)} {facts.st_size} {facts.st_mtime_ns}"))
    return digest.hexdigest()[:32]


def _opened(file: Path, n: int) -> Bytes | None:
    """The cached images, or None when they are not there or not whole."""
    try:
        found = np.load(file, mmap_mode="r", allow_pickle=False)
    except BROKEN:
        return None
    whole = isinstance(found, np.memmap) and found.dtype == np.uint8 and found.ndim == 4 and len(found) == n
    return found if whole and found.offset + found.nbytes == file.stat().st_size else None


def _write(stream: IO[bytes], shape: tuple[int, ...], picture: Picture, images: Iterable[Encoded]) -> None:
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    done, on_progress, rest = 0, _on_progress.get(), iter(images)
    with ThreadPoolExecutor(threads()) as pool:
        while some := list(islice(rest, AT_ONCE)):
            stream.write(decode_many(some, picture, pool).data)
            done += len(some)
            if on_progress:
                on_progress(done, shape[0])
