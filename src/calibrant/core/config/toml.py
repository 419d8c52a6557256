"""TOML files as tables that remember where every key was written, so that an error can quote the line."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError

Keys = tuple[str | int, ...]  # the way to a value: names of tables, numbers in lists
MOST_BYTES = 256 * 1024  # people write files by hand; a hundred times our largest one
MOST_DEEP = 16  # tables in tables
MOST_TRIED = 1_000_000  # characters of values over many lines looked at again; beyond it, lines are not quoted
SHOWN = 80  # characters of a line in an error


@dataclass(frozen=True)
class Table:
    """Values by key, and the place each was written at; `places[()]` is the whole.

    >>> base = Table({"epochs": 3, "data": {"name": "digits"}}, {("epochs",): "a.toml, line 1"})
    >>> top = Table({"data": {"limit": 5}}, {("data",): "--override data.limit=5"})
    >>> both = top.over(base)
    >>> both.values, both.place(("data", "limit"))
    ({'epochs': 3, 'data': {'name': 'digits', 'limit': 5}}, '--override data.limit=5')
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[Keys, str] = field(default_factory=dict)

    def place(self, keys: Keys) -> str:
        """The line where these keys were written, or that of the nearest table around them."""
        return next((self.places[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in self.places), "")

    def over(self, base: "Table") -> "Table":
        """This table laid over another one: tables are joined, other values replaced."""
        return Table(_merge(base.values, self.values), {**base.places, **self.places})

    def at(self, *names: str) -> "Table":
        """The table inside, which may be absent and is then empty; what stands there must be a table."""
        values: Any = self.values
        for depth, name in enumerate(names, 1):
            values = values.get(name, {})
            if not isinstance(values, Mapping):
                error = InputError(name, expected="a table", got=show_value(values), fix=f"write [{'.'.join(names)}]")
                raise InputError.inside(self.place(names[:depth]), error)
        n = len(names)
        inside = {keys[n:]: place for keys, place in self.places.items() if len(keys) > n and keys[:n] == names}
        return Table(values, inside)

    def without(self, *names: str) -> "Table":
        return Table({key: value for key, value in self.values.items() if key not in names}, self.places)


def read_toml(file: Path) -> Table:
    """The table in a file; whatever else the file holds, the error is an `InputError`."""
    return _parse(file, _text(file))


def parse_toml_value(text: str) -> Any:
    """One value of TOML; a ValueError or RecursionError if the text is none.

    >>> parse_toml_value("[1, 2]")
    [1, 2]
    """
    return tomllib.loads(f"x = {text}")["x"]


def show_value(value: Any) -> str:
    """A value in an error: short, and tables by their kind."""
    if isinstance(value, Mapping):
        return "a table"
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


@lru_cache(maxsize=64)
def _parse(file: Path, text: str) -> Table:
    try:
        values = tomllib.loads(text + "\n")  # else an error in the last line has no number
    except ValueError as error:  # also a number of thousands of digits
        line = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = _place(file, int(line[1]), text.split("\n")) if line else str(file)
        got = str(error).replace(line[0], f"in column {line[2]}") if line else str(error)
        several = line and text.split("\n")[int(line[1]) - 1][int(line[2]) - 1 :].startswith(";")
        fix = "write each key on a line of its own" if several else "correct the line; see https://toml.io"
        raise InputError(place, expected="TOML", got=got, fix=fix) from None
    except RecursionError:
        raise _too_deep(file) from None
    if _depth_above(values, MOST_DEEP):
        raise _too_deep(file)
    lines = text.replace("\r\n", "\n").split("\n")
    places: dict[Keys, str] = {(): str(file)}
    for keys, number in _line_numbers(lines):
        for n in range(1, len(keys) + 1):
            places.setdefault(keys[:n], _place(file, number, lines))
    return Table(values, places)


def _text(file: Path) -> str:
    try:
        if not file.is_file():  # a pipe or a device could be read for ever
            got = "something else" if file.exists() else "no such file"
            raise InputError(str(file), expected="a TOML file", got=got, fix="check the path")
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(file)!a}", expected="a TOML file", got=str(error), fix="check the path") from None
    if len(content) > MOST_BYTES:
        got = f"more than {MOST_BYTES // 1024} KB"
        raise InputError(str(file), expected="a TOML file written by hand", got=got, fix="check which file it is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        got = f"the byte 0x{content[error.start]:02x} in line {line}"
        raise InputError(str(file), expected="text in UTF-8", got=got, fix="save it as UTF-8") from None


def _place(file: Path, number: int, lines: Sequence[str]) -> str:
    line = lines[number - 1].strip() if number <= len(lines) else ""
    line = line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."
    return f"{file}, line {number} ({line if line.isprintable() else ascii(line)[1:-1]})"


def _line_numbers(lines: Sequence[str]) -> Iterator[tuple[Keys, int]]:
    """The keys of a valid document with the line each begins on: statement by statement, as tomllib itself reads it."""
    table: Keys = ()
    counts: dict[Keys, int] = {}  # of [[tables]] so far
    piece, start, tried = "", 1, 0
    for number, line in enumerate(lines, 1):
        piece, start = (f"{piece}\n{line}", start) if piece else (line, number)
        try:
            tables = tomllib.loads(piece)
        except (ValueError, RecursionError):  # not yet a whole statement
            tried += len(piece)
            if tried > MOST_TRIED:
                return
            continue
        if piece.lstrip().startswith("["):
            table = ()
            for keys, value in _ways(tables):
                table = (*table, keys[-1])
                if isinstance(value, list):
                    counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table]) if table in counts else table
                if isinstance(value, list):
                    break
            yield table, start
        else:
            yield from (((*table, *keys), start) for keys, _ in _ways(tables))
        piece = ""


def _ways(values: Any) -> Iterator[tuple[Keys, Any]]:
    """Every nested value with the keys that lead to it, from the outside in."""
    inside = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for key, value in inside:
        yield (key,), value
        yield from (((key, *keys), below) for keys, below in _ways(value))


def _merge(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merge(base[key], top[key]) for key in base if _are_tables(base[key], top.get(key))}
    return {**base, **top, **both}


def _are_tables(*values: Any) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _depth_above(values: Any, most: int) -> bool:
    inside = values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else ()
    return most < 0 or any(_depth_above(value, most - 1) for value in inside)


def _too_deep(file: Path) -> InputError:
    got = "deeper ones"
    return InputError(str(file), expected=f"at most {MOST_DEEP} tables in each other", got=got, fix="flatten the file")
