"""Read Parquet, CSV and JSONL files, whole or in batches. Files are opened here: polars would expand patterns."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from calibrant.core.errors import DamagedFileError, InputError
from calibrant.core.io.formats import file_format
from calibrant.core.io.jsonl import ROWS, Wants, jsonl_blocks, read_jsonl
from calibrant.core.io.size_limits import BATCH_CELLS, LINE_BYTES, check_unpacked

if TYPE_CHECKING:
    import polars as pl

    from calibrant.core.io.batch_rules import BatchLog

CELL_BYTES = 8  # of a number in memory
SHORT_CELLS, SHORT_TIMES = 1 << 20, 4  # cells of a block, in all and for each of its bytes, that rows may lack
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
}
COMPRESSED |= {b"x\x01": "zlib", b"x\x9c": "zlib", b"x\xda": "zlib"}


def read_table(file: Path, columns: Sequence[str] | None = None) -> "pl.DataFrame":
    """A Parquet, CSV or JSONL file, or some columns of it."""
    import polars as pl

    if file_format(file) == ".jsonl":
        return read_jsonl(file, lambda name: columns is None or name in columns)[0]
    with readable(file), file.open("rb") as stream:
        if file_format(file) == ".parquet":
            with _quiet():
                lazy = pl.scan_parquet(stream)
                names = lazy.collect_schema().names() if columns is None else columns
                check_unpacked(file, lazy.select(pl.len()).collect().item() * len(names) * CELL_BYTES)
                return lazy.select(names).collect()
        _check_csv(file, stream)
        return pl.read_csv(stream, columns=columns, infer_schema_length=None)


def column_names(file: Path) -> list[str]:
    """The names of the columns of a Parquet, CSV or JSONL file."""
    import polars as pl

    if file_format(file) == ".jsonl":
        return read_jsonl(file, lambda name: False)[1]
    with readable(file), file.open("rb") as stream:
        if file_format(file) == ".parquet":
            with _quiet():
                return pl.scan_parquet(stream).collect_schema().names()
        return pl.read_csv(BytesIO(_header(file, stream)), n_rows=0).columns


def read_wanted(file: Path, wants: Wants) -> tuple["pl.DataFrame", list[str]]:
    """The columns for which `wants` is true, and the names of all."""
    if file_format(file) == ".jsonl":
        return read_jsonl(file, wants)
    names = column_names(file)
    wanted = [name for name in names if wants(name)]
    return read_table(file, wanted or names), names


def table_batches(file: Path, rows: int, wants: Wants, growing: "BatchLog | None" = None) -> Iterator["pl.DataFrame"]:
    """The columns for which `wants` is true, at most `rows` rows at a time, in constant memory.

    With `growing`, an unfinished last line is not read but logged there.
    """
    if file_format(file) == ".jsonl":
        yield from (block.drop(ROWS) for block in jsonl_blocks(file, rows, wants, growing=growing))
        return
    for frame in _parquet_batches(file, rows) if file_format(file) == ".parquet" else _csv_batches(file, rows, growing):
        yield frame.select(series for series in frame if wants(series.name))


@contextmanager
def readable(file: Path) -> Iterator[None]:
    """Turn errors of Polars inside into the error for a damaged file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
        expected = f"a readable {file_format(file)} file"
        raise DamagedFileError.from_reason(file, expected, error, "write the file again") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back the output to stderr, and drop it on an error: on a damaged file Polars prints pages of Rust."""
    try:
        stderr = os.dup(2)
    except OSError:  # there is none
        yield
        return
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        output.seek(0)
        if text := output.read():
            os.write(2, text)


def _parquet_batches(file: Path, rows: int) -> Iterator["pl.DataFrame"]:
    import polars as pl

    with readable(file), file.open("rb") as stream:
        with _quiet():
            lazy = pl.scan_parquet(stream)
            total = lazy.select(pl.len()).collect().item()
            step = _step(rows, len(lazy.collect_schema()))
        for start in range(0, total, step):
            with _quiet():
                frame = lazy.slice(start, step).collect()
            yield frame


def _csv_batches(file: Path, rows: int, growing: "BatchLog | None") -> Iterator["pl.DataFrame"]:
    """Blocks of lines, each parsed with the header in front: the file is read once, from top to bottom."""
    import polars as pl

    with readable(file), file.open("rb") as stream:
        header = _header(file, stream)
        columns = header.count(b",") + 1
        for block in _blocks(file, stream, _step(rows, columns), growing):
            _check_row_length(file, block, columns)
            yield pl.read_csv(BytesIO(header + block), infer_schema_length=None)


def _step(rows: int, columns: int) -> int:
    return max(1, min(rows, BATCH_CELLS // max(columns, 1)))


def _blocks(file: Path, stream: IO[bytes], rows: int, growing: "BatchLog | None" = None) -> Iterator[bytes]:
    """So many lines at a time, or as many as fill LINE_BYTES; a line break inside quotes ends no line."""
    lines: list[bytes] = []
    closed, size, quoted, complete = (
        True,
        0,
        0,
        0,
    )  # bytes: block, open quote; lines: whole rows
    while line := stream.readline(LINE_BYTES):
        lines.append(line)
        size += len(line)
        closed = line.count(b'"') % 2 == (quoted > 0)
        quoted = 0 if closed else quoted + len(line)
        if quoted >= LINE_BYTES or len(line) == LINE_BYTES:
            raise InputError(
                str(file),
                expected=f"lines and quoted cells of less than {LINE_BYTES >> 20} MiB",
                got="a longer one; is a quote not closed?" if quoted else "a longer one",
                fix="correct the file",
            )
        if closed and (len(lines) >= rows or size >= LINE_BYTES):
            yield b"".join(lines)
            lines, size, complete = [], 0, 0
        elif closed and line.endswith(b"\n"):
            complete = len(lines)
    if growing is not None and lines and not (closed and lines[-1].endswith(b"\n")):
        growing.unfinished_line = True
        lines = lines[:complete]
    if lines:
        yield b"".join(lines)


def _check_row_length(file: Path, block: bytes, columns: int) -> None:
    """Refuse blocks whose rows are far shorter than the header: Polars fills up every row, in time and in memory.

    A complete row has at least one byte for each column.
    """
    cells = block.count(b"\n") * columns
    if cells > SHORT_CELLS and cells > SHORT_TIMES * len(block):
        raise InputError(
            str(file),
            expected=f"rows with a cell for each of {columns:,} columns",
            got=f"rows of {columns * len(block) / cells:.0f} characters on average",
            fix="check the separator, or write the file again",
        )


def _header(file: Path, stream: IO[bytes]) -> bytes:
    """The first line of plain text; a compressed file, which Polars would unpack without a limit, is refused."""
    start = stream.read(6)
    if kind := next((kind for mark, kind in COMPRESSED.items() if start.startswith(mark)), None):
        raise InputError(str(file), expected="plain text", got=f"a {kind} archive", fix="unpack it first")
    stream.seek(0)
    return next(_blocks(file, stream, 1), b"")


def _check_csv(file: Path, stream: IO[bytes]) -> None:
    """Refuse a CSV file that would not fit into memory: rows may be shorter than the header."""
    columns = _header(file, stream).count(b",") + 1
    lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b"")) + 1
    check_unpacked(file, lines * columns * CELL_BYTES)
    stream.seek(0)
