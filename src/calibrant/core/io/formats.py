"""The format of a file by its name; compressed files and standard input as plain files."""

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from calibrant.core.errors import DamagedFileError, InputError
from calibrant.core.io.size_limits import LINE_BYTES, check_unpacked

SUFFIXES = (".npz", ".parquet", ".csv", ".jsonl")
STDIN = "-"
COPY_BYTES = 1 << 20
FIRST_BYTES = {b"PK": ".npz", b"PAR1": ".parquet", b"{": ".jsonl", b"[": ".jsonl"}  # CSV where none of them fits


def file_format(path: str | Path) -> str:
    """The suffix that says the format, also of compressed and of rotated files.

    >>> file_format("scores.csv.gz"), file_format("log.jsonl.1"), file_format("log.jsonl.2.gz")
    ('.csv', '.jsonl', '.jsonl')
    """
    return Path(re.sub(r"\.\d+$", "", Path(path).name.removesuffix(".gz"))).suffix


@contextmanager
def plain_file(path: str | Path) -> Iterator[Path]:
    """A file that can be read from disk: the file itself, or a temporary copy of standard input or a .gz file."""
    if str(path) != STDIN and not str(path).endswith(".gz"):
        yield existing(path)
        return
    with TemporaryDirectory(prefix="calibrant-") as folder:
        name = display_name(path)
        copy = _copy_stdin(Path(folder)) if str(path) == STDIN else _unpack(existing(path), Path(folder))
        try:
            yield copy
        except InputError as error:  # names the file that the user knows
            raise InputError.with_name(error, str(copy), name) from None


def display_name(path: str | Path) -> str:
    """The name of an input in messages."""
    return "standard input" if str(path) == STDIN else str(path)


def existing(path: str | Path, *, any_format: bool = False) -> Path:
    """The path of a file that exists, is not empty, and has a format of predictions unless any will do."""
    file = Path(path)
    if not file.exists():
        near = sorted(f.name for s in SUFFIXES for f in file.parent.glob(f"*{s}"))[:5]
        raise InputError(
            str(path),
            expected="a file of predictions",
            got="no such file",
            fix=f"this folder has {', '.join(near)}" if near else "check the path",
        )
    if file.is_dir():
        raise InputError(str(path), expected="a file", got="a folder", fix="name a file inside it")
    if not file.is_file():
        raise InputError(
            str(path), expected="a file", got="a pipe or a device", fix="write it to a file first, or use - for stdin"
        )
    if not any_format:
        check_format(file, file_format(file))
    if file.stat().st_size == 0:
        raise DamagedFileError(str(path), expected="predictions", got="an empty file", fix="write the file again")
    return file


def check_format(file: Path, suffix: str) -> None:
    if suffix not in SUFFIXES:
        raise InputError(
            str(file),
            expected=f"a name that ends in {', '.join(SUFFIXES)}",
            got=f"'{file.suffix or file.name}'",
            fix="save the predictions in one of these formats",
        )


def file_parts(path: str | Path) -> Iterator[Path]:
    """A file that can be read from disk, or for text on standard input a file of each block of lines as it arrives."""
    if str(path) != STDIN:
        with plain_file(path) as file:
            yield file
        return
    with TemporaryDirectory(prefix="calibrant-") as folder:
        yield from _stdin_parts(Path(folder))


def _copy_stdin(folder: Path) -> Path:
    """Standard input as a file; its first bytes say the format."""
    return _copy_rest(folder, sys.stdin.buffer.read(COPY_BYTES))


def _copy_rest(folder: Path, first: bytes) -> Path:
    copy = folder / f"stdin{_stdin_suffix(first)}"
    with copy.open("wb") as stream:
        while first:
            stream.write(first)
            first = sys.stdin.buffer.read(COPY_BYTES)
    return copy


def _stdin_suffix(first: bytes) -> str:
    if not first.strip():
        raise InputError("standard input", expected="predictions", got="nothing", fix="pipe a file into the command")
    start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"\x1f\x8b"):
        raise InputError("standard input", expected="plain data", got="a gzip archive", fix="use zcat in the pipe")
    return next((suffix for mark, suffix in FIRST_BYTES.items() if start.startswith(mark)), ".csv")


def _stdin_parts(folder: Path) -> Iterator[Path]:
    """One file after the other, in the same place: whole lines, of CSV below the header."""
    text = _first_line()
    suffix = _stdin_suffix(text)
    if suffix not in (".csv", ".jsonl") or text.lstrip().startswith(b"["):
        yield _copy_rest(folder, text)
        return
    head, part, has_part = b"", folder / f"stdin{suffix}", False
    if suffix == ".csv":
        end = text.find(b"\n") + 1 or len(text)
        head, text = text[:end], text[end:]
    more = b"\n"
    while more:
        end = _end_of_rows(text, suffix)
        if end:
            part.write_bytes(head + text[:end])
            text, has_part = text[end:], True
            yield part
        more = sys.stdin.buffer.read1(COPY_BYTES)  # type: ignore[union-attr]
        text += more
    if text or not has_part:
        part.write_bytes(head + text)
        yield part


def _first_line() -> bytes:
    text = b""
    while b"\n" not in text.lstrip() and len(text) < LINE_BYTES:
        more = sys.stdin.buffer.read1(COPY_BYTES)  # type: ignore[union-attr]
        if not more:
            break
        text += more
    return text


def _end_of_rows(text: bytes, suffix: str) -> int:
    """The position behind the last whole row; a line break inside quotes ends no row of CSV."""
    end = text.rfind(b"\n") + 1
    if len(text) >= LINE_BYTES:
        return end or len(text)
    return 0 if suffix == ".csv" and text[:end].count(b'"') % 2 else end


def _unpack(file: Path, folder: Path) -> Path:
    copy, size = folder / file.name.removesuffix(".gz"), 0
    try:
        with gzip.open(file, "rb") as packed, copy.open("wb") as stream:
            while block := packed.read(COPY_BYTES):
                size += len(block)
                check_unpacked(file, size)
                stream.write(block)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFileError.from_reason(file, "a readable .gz file", error, "write the file again") from error
    if size == 0:
        raise DamagedFileError(str(file), expected="predictions", got="an empty file", fix="write the file again")
    return copy
