"""Read JSONL files: each line is a JSON object and a row of a table.

Written by hand because errors of polars' NDJSON reader do not name the line, and it reads no indented lists.
"""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from calibrant.core.errors import InputError
from calibrant.core.io.size_limits import BATCH_CELLS, JSON_BYTES, MOST_COLUMNS, check_unpacked

if TYPE_CHECKING:
    import polars as pl

    from calibrant.core.io.batch_rules import BatchLog

Wants = Callable[[str], bool]
Row = tuple[int, dict[str, Any]]  # the number of its line, and what stands there

KINDS: dict[type, str] = {
    bool: "true or false",
    int: "numbers",
    float: "numbers",
    str: "text",
    list: "lists",
    dict: "objects",
}
BLOCK_ROWS = 1 << 16
SPARSE_CELLS = 1 << 18  # of a block that may be empty, beside eight for each that is not: keeps the time linear
ROWS = "\0rows"  # a column that keeps the height of a table without columns


def json_objects(file: Path, growing: "BatchLog | None" = None) -> Iterator[Row]:
    """Every object of the file. Old versions of some tools write one indented list of objects; that is read too.

    With `growing`, a last line that is not finished is not read but logged there.
    """
    with file.open("rb") as stream:
        numbered = enumerate(iter(lambda: stream.readline(JSON_BYTES), b""), start=1)
        for number, line in numbered:
            if growing is not None and _is_unfinished(line):
                growing.unfinished_line = True
                return
            text = _text(file, number, line)
            if number == 1 and text.strip() == "[":
                yield from _read_indented(file, numbered)
                return
            if not text.isspace() and text:
                yield number, _object(file, number, text)


def read_jsonl(file: Path, wants: Wants) -> tuple["pl.DataFrame", list[str]]:
    """The columns for which `wants` is true, as one table, and the names of all."""
    import polars as pl

    names: dict[str, None] = {}
    columns: set[str] = set()
    parts, height = [], 0
    for part in jsonl_blocks(file, BLOCK_ROWS, wants, names):
        columns |= set(part.columns)
        height += part.height
        check_unpacked(file, height * len(columns) * 8)
        parts.append(part)
    if not parts:
        return pl.DataFrame(), list(names)
    return pl.concat(parts, how="diagonal_relaxed").drop(ROWS), list(names)


def jsonl_blocks(
    file: Path, rows: int, wants: Wants, names: dict[str, None] | None = None, growing: "BatchLog | None" = None
) -> Iterator["pl.DataFrame"]:
    """Blocks of at most so many rows, fewer where rows are long; `names` collects those of all columns."""
    kinds: dict[str, tuple[str, int]] = {}
    block: list[Row] = []
    columns: dict[str, None] = {}
    filled, wanted = 0, lru_cache(maxsize=MOST_COLUMNS)(wants)  # asked once a name, not once a row
    for number, record in json_objects(file, growing):
        if names is not None and len(names) < MOST_COLUMNS:
            names.update(dict.fromkeys(record))
        fields = {name: value for name, value in record.items() if wanted(name)}
        columns.update(dict.fromkeys(fields))
        if len(columns) > MOST_COLUMNS:
            fix = "put the scores of a row into one list"
            raise InputError(str(file), expected=f"at most {MOST_COLUMNS:,} names", got="more", fix=fix)
        block.append((number, fields))
        filled += len(fields)
        cells = len(block) * (len(columns) + 1)
        if len(block) >= rows or cells > BATCH_CELLS or cells > SPARSE_CELLS + 8 * filled:
            yield _frame(file, block, columns, kinds)
            block, columns, filled = [], {}, 0
    if block:
        yield _frame(file, block, columns, kinds)


def _frame(file: Path, block: list[Row], columns: dict[str, None], kinds: dict[str, tuple[str, int]]) -> "pl.DataFrame":
    import polars as pl

    series = [pl.Series(ROWS, [0] * len(block), dtype=pl.Int8)]
    for name in columns:
        values = [row.get(name) for _, row in block]
        if name == "classes":  # the one list of text, as tables have it
            values = [json.dumps(value) if isinstance(value, list) else value for value in values]
        kind = _kind(file, name, values, block, kinds)
        series.append(_series(file, name, values, block, kind))
    return pl.DataFrame(series)


def _kind(file: Path, name: str, values: list[Any], block: list[Row], kinds: dict[str, tuple[str, int]]) -> str:
    """The one kind that all values of a column have, in this block and in those before."""
    present = {KINDS[kind] for kind in set(map(type, values)) - {type(None)}}
    if not present:
        return "nothing"
    first, line = kinds.setdefault(name, _first(values, block))
    if present != {first}:
        other, at = next((KINDS[type(v)], n) for v, (n, _) in zip(values, block, strict=True) if _differs(v, first))
        got = f"{other} in line {at}, {first} in line {line}"
        raise InputError(f"{file}, {name}", expected="values of one kind", got=got, fix="correct the lines")
    return first


def _differs(value: Any, kind: str) -> bool:
    return value is not None and KINDS[type(value)] != kind


def _first(values: list[Any], block: list[Row]) -> tuple[str, int]:
    return next((KINDS[type(v)], n) for v, (n, _) in zip(values, block, strict=True) if v is not None)


def _series(file: Path, name: str, values: list[Any], block: list[Row], kind: str) -> "pl.Series":
    import polars as pl

    try:
        if kind == "numbers":
            whole = all(type(value) is not float for value in values)
            return pl.Series(name, values, dtype=pl.Int64 if whole else pl.Float64, strict=whole)
        if kind == "lists":
            _check_lists(file, name, values, block)
            floats = [None if value is None else [None if x is None else float(x) for x in value] for value in values]
            return pl.Series(name, floats, dtype=pl.List(pl.Float64))
    except (OverflowError, TypeError) as error:
        raise InputError(
            f"{file}, {name}", expected="whole numbers of at most 64 bits", got="larger ones", fix="write them as text"
        ) from error
    dtypes: dict[str, Any] = {"text": pl.String, "true or false": pl.Boolean, "nothing": pl.Null}
    if kind == "objects":
        got = f"an object in line {_first(values, block)[1]}"
        raise InputError(f"{file}, {name}", expected="numbers, text or a list", got=got, fix="name another field")
    return pl.Series(name, values, dtype=dtypes[kind])


def _check_lists(file: Path, name: str, values: list[Any], block: list[Row]) -> None:
    allowed = {int, float, type(None)}
    for value, (line, _) in zip(values, block, strict=True):
        if value is not None and not allowed.issuperset(map(type, value)):
            got = f"something else in line {line}"
            raise InputError(f"{file}, {name}", expected="lists of numbers", got=got, fix="correct the line")


def _read_indented(file: Path, numbered: Iterator[tuple[int, bytes]]) -> Iterator[Row]:
    """The objects of one list, each from a line that is an opening brace to its closing one, indented alike."""
    lines: list[str] = []
    size, opened, end = 0, 0, ""
    for number, line in numbered:
        text = _text(file, number, line).rstrip()
        if not lines:
            if text == "]":
                return
            if text.lstrip() != "{":
                raise _no_object(file, number, "a list that is not indented")
            opened, end, size = number, text[:-1] + "}", 0
        lines.append(text)
        size += len(text)
        if size > JSON_BYTES:
            raise _too_long(file, opened)
        if text.rstrip(",") == end:
            yield opened, _object(file, opened, "\n".join(lines).rstrip(","))
            lines = []
    raise _no_object(file, opened, "a list without an end")


def _is_unfinished(line: bytes) -> bool:
    """Whether a line has no line break and is not a whole JSON object."""
    if line.endswith(b"\n") or not line.strip() or len(line) >= JSON_BYTES:
        return False
    try:
        return not isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return True


def _text(file: Path, number: int, line: bytes) -> str:
    if len(line) >= JSON_BYTES:
        raise _too_long(file, number)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise _no_object(file, number, "bytes that are not valid UTF-8") from None
    return text.removeprefix("\ufeff") if number == 1 else text


def _object(file: Path, number: int, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "one too deep" if isinstance(error, RecursionError) else f"'{text.strip()[:40]}'"
        raise _no_object(file, number, reason) from None
    if not isinstance(record, dict):
        raise _no_object(file, number, f"'{text.strip()[:40]}'")
    if "\\ud" in text.lower() and not _is_text(record):  # half a character, which only an escape can write
        raise _no_object(file, number, "half of a surrogate pair, which is not valid UTF-8")
    return record


def _is_text(record: dict[str, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _no_object(file: Path, number: int, got: str) -> InputError:
    fix = "write one JSON object on each line"
    return InputError(f"{file}, line {number}", expected="a JSON object", got=got, fix=fix)


def _too_long(file: Path, number: int) -> InputError:
    expected = f"less than {JSON_BYTES >> 20} MiB"
    return InputError(f"{file}, line {number}", expected=expected, got="a longer one", fix="write shorter lines")


def write_jsonl(stream: IO[bytes], columns: dict[str, list[Any]]) -> None:
    """One object a line; what is None is left out."""
    for row in zip(*columns.values(), strict=True):
        record = {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        stream.write(json.dumps(record, allow_nan=False, ensure_ascii=False).encode() + b"\n")
