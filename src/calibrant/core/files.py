"""Write files completely or not at all; read compressed files; errors for damaged files."""

import bz2
import errno
import gzip
import os
import re
import socket
import stat
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from calibrant.core.errors import InputError
from calibrant.core.io.size_limits import check_unpacked, most_bytes

_HOST = re.sub(r"\W", "", socket.gethostname())[:40]
_OURS = re.compile(rf"\.calibrant-{_HOST}-(\d+)-[0-9a-f]{{12}}\.part")  # a temporary file of a process on this host

READER_SECONDS = 10.0  # that a pipe may be without a reader


def write_whole(path: str | Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write to a temporary name beside `path`, then rename: a reader never sees half a file, nor does a power cut.

    What a symbolic link points to is replaced, the link stays; an existing file keeps its mode. A pipe or a device
    such as /dev/null is written through. Whatever cannot be written is an InputError, and leaves nothing behind.
    """
    try:
        if _is_stream(Path(path)):
            whole = BytesIO()
            write(whole)
            with open(path, "wb", opener=_open_stream) as stream:
                stream.write(whole.getbuffer())
        else:
            _replace(Path(os.path.realpath(path)), write)
    except Exception as error:
        number = _number_of(error)
        if number is None:
            raise
        raise _unwritable(path, number) from error


def write_text(path: str | Path, text: str) -> None:
    """Write text in UTF-8, as `write_whole` does."""
    write_whole(path, lambda stream: stream.write(text.encode()))


def check_place(path: str | Path) -> None:
    """Refuse a path that is a folder, a socket or the like, before the work whose result would be written there."""
    try:
        _is_stream(Path(path))
    except OSError as error:
        raise _unwritable(path, error.errno or errno.EIO) from error


def _open_stream(path: str, flags: int) -> int:
    """Open a pipe or a device; a pipe that nobody comes to read is an error, where waiting might never end."""
    last = time.monotonic() + READER_SECONDS
    while True:
        try:
            opened = os.open(path, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > last:
                raise
            time.sleep(0.01)
        else:
            os.set_blocking(opened, True)
            return opened


def fault_point() -> None:
    """End the process here, as `kill -9` would, when it is the n-th call and the environment has CALIBRANT_FAULT_AT=n.

    A hook for tests (CONTRIBUTING.md). `write_whole` passes here twice a file: when the temporary file is whole, and
    when it has been renamed. A test that starts the same work for n = 1, 2, ... until it ends by itself has killed it
    between any two writes.
    """
    global _passed
    at = os.environ.get("CALIBRANT_FAULT_AT", "")
    _passed += 1
    if at.isdecimal() and int(at) == _passed:
        os._exit(137)


_passed = 0


def damage_error(file: Path, expected: str, got: object) -> InputError:
    """The error for a file with wrong content."""
    reason = (str(got).strip() or type(got).__name__).splitlines()[0]
    return InputError(
        str(file), expected=expected, got=reason, fix="get the file again; it is damaged or a different file"
    )


def read_bytes(file: Path) -> bytes:
    """The bytes of a file, unpacked when its name ends in .gz, .bz2 or .pbz2."""
    packed: Any = {".gz": gzip.open, ".bz2": bz2.open, ".pbz2": bz2.open}.get(file.suffix)
    try:
        if packed is None:
            return read_regular(file)
        with packed(BytesIO(read_regular(file))) as stream:
            whole: bytes = stream.read(most_bytes(file) + 1)
        check_unpacked(file, len(whole))
        return whole
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise damage_error(file, "a whole file", error) from error


def read_regular(file: Path) -> bytes:
    """The bytes of a regular file; a pipe or device, which might never end, is an InputError."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            fix = "replace it by a file"
            raise InputError(str(file), expected="a regular file", got="a pipe or device", fix=fix)
        return stream.read()


def _is_stream(file: Path) -> bool:
    """Whether this is a pipe or a character device; what is neither that nor a regular file is refused."""
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    return not stat.S_ISREG(mode)


def _replace(file: Path, write: Callable[[IO[bytes]], Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    _clean(file.parent)
    before = file.stat() if file.exists() else None
    if before and not os.access(file, os.W_OK):  # a rename would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    mode = stat.S_IMODE(before.st_mode) if before else 0o666  # less the umask, which the system itself takes off
    temporary = file.parent / f".calibrant-{_HOST}-{os.getpid()}-{os.urandom(6).hex()}.part"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            if os.name == "posix":
                _lock(handle)  # see _clean
            write(stream)
            stream.flush()
            os.fsync(handle)
            if before:
                os.chmod(temporary, mode)
            fault_point()
            os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(file.parent)
    fault_point()


def _sync_folder(folder: Path) -> None:
    """Make the rename last through a power cut, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file, if nobody holds it; the lock ends with the process, wherever it runs."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks
        return False
    return True


def _clean(folder: Path) -> None:
    """Remove what a killed process of this host left here: no process has its number, and nobody holds it.

    The number is not enough: a process of another container may share the folder and the name of the host.
    """
    if os.name != "posix":  # elsewhere asking whether a process lives would end it
        return
    with os.scandir(folder) as entries:
        left = [(entry.path, match) for entry in entries if (match := _OURS.fullmatch(entry.name))]
    for path, match in left:
        try:
            os.kill(int(match[1]), 0)
        except ProcessLookupError:
            with suppress(OSError), open(path, "rb") as stream:
                if _lock(stream.fileno()):
                    os.unlink(path)
        except (OSError, OverflowError):
            continue  # it lives, and is somebody else's


def _number_of(error: Exception) -> int | None:
    """The number of the system's error, which Polars has in its sentence alone."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match[1]) if match else None


def _unwritable(path: str | Path, number: int) -> InputError:
    full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return InputError(
        str(path),
        expected="room for the whole file" if full else "a file that can be written",
        got=os.strerror(number),
        fix="free some space, or write elsewhere; nothing was written" if full else "write to another name or folder",
    )
