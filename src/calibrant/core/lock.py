"""One process at a time in a folder, or with a file: a lock that ends with the process that holds it.

Written by hand because filelock neither says which process holds a lock nor works without locks of the file system.
"""

import errno
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from calibrant.core.errors import InputError

NAME = ".lock"
Kind = Literal["folder", "file"]


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[None]:
    """Hold a folder, which is made if need be; where another process holds it, an InputError says which one.

    The system keeps the lock and drops it when the process ends, so a killed one leaves no lock, only the small file
    `.lock`, which says who had it. A folder that was made here and is still empty in the end is removed. A file system
    without locks (some clusters) gives a warning instead.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, lock_folder(folder):
    ...     try:
    ...         with lock_folder(folder):
    ...             pass
    ...     except InputError as error:
    ...         print("no other process" in str(error))
    True
    """
    file = Path(folder) / NAME
    new = not file.parent.exists()
    try:
        with _hold(file, str(folder), "folder"):
            yield
    finally:
        if new:
            with suppress(OSError):  # not empty
                file.parent.rmdir()


@contextmanager
def lock_file(path: str | Path) -> Iterator[None]:
    """Hold a file that is read, changed and written again, as `lock_folder` holds a folder; `.NAME.lock` is beside it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, lock_file(Path(folder) / "state.json"):
    ...     try:
    ...         with lock_file(Path(folder) / "state.json"):
    ...             pass
    ...     except InputError as error:
    ...         print("choose another file" in str(error))
    True
    """
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)  # as writing the file would
    with _hold(real.with_name(f".{real.name}{NAME}"), str(path), "file"):
        yield


@contextmanager
def _hold(file: Path, place: str, kind: Kind) -> Iterator[None]:
    handle = _take(file, place, kind)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows keeps a file that is open; without a lock on it, it does no harm
            file.unlink()
        os.close(handle)


def _take(file: Path, place: str, kind: Kind) -> int:
    """Open and lock the file."""
    while True:
        try:
            if kind == "folder":
                file.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            got, fix = error.strerror or str(error), f"choose another {kind}"
            raise InputError(place, expected=f"a {kind} that can be written", got=got, fix=fix) from None
        if not _lock(handle, file):
            holder = os.read(handle, 200).decode(errors="replace").strip()
            os.close(handle)
            raise InputError(
                place,
                expected=f"a {kind} in which no other process is at work",
                got=f"one that {holder or 'another process'} holds",
                fix=f"wait until it has ended, or choose another {kind}",
            )
        if _is_still(handle, file):
            break
        os.close(handle)  # the holder before removed the file after we had opened it: a lock on it is worth nothing
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
    return handle


def _lock(handle: int, file: Path) -> bool:
    """Try to lock the file; whether it succeeded."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(handle, 1 << 30, os.SEEK_SET)  # a byte that nobody reads: Windows forbids reading a locked one
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            os.lseek(handle, 0, os.SEEK_SET)
            return False
        words = f"{file.parent}: its file system has no locks; make sure that no other process works in this folder"
        warnings.warn(words, stacklevel=5)
    return True


def _is_still(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False
