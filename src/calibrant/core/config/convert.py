"""The one converter of type hints: TOML, JSON documents and options as text become frozen dataclasses.

The fields say what is allowed: `epochs: Annotated[int, Bounds(least=1)] = 30`. Nested dataclasses are tables,
`dict[str, X]` is a table of any names, `list[X]` and `tuple[X, ...]` are lists, arrays are nested lists of numbers,
`X | Y` is either, `Any` is not looked at, and another class asks for its instances. A field whose name ends in `_` is
written without it (`is_` is `is`). Written by hand because errors quote the line of a TOML file and say what to write,
which msgspec and cattrs cannot.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibrant.core.config.toml import Keys, Table, parse_toml_value, show_value
from calibrant.core.errors import InputError, unknown_name

T = TypeVar("T")
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "nothing"}
BITS = 63  # a whole number fits into 64 bits with its sign


@dataclass(frozen=True)
class Bounds:
    """The bounds of a number.

    >>> 1.0 in Bounds(least=0, below=1), str(Bounds(least=0, below=1)), str(Bounds(above=0)), str(Bounds(1, 5))
    (False, '0 or more and less than 1', 'more than 0', '1 to 5')
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{self.least:,} to {self.most:,}"
        low = [f"{self.least:,} or more"] if self.least is not None else []
        low += [f"more than {self.above:,}"] if self.above is not None else []
        high = [f"at most {self.most:,}"] if self.most is not None else []
        return " and ".join([*low, *high, *([f"less than {self.below:,}"] if self.below is not None else [])])


Count = Annotated[int, Bounds(0, 10**12)]
Seed = Annotated[int, Bounds(0, 2**BITS - 1)]
NotNegative = Annotated[float, Bounds(least=0)]
Positive = Annotated[float, Bounds(above=0)]


def build(cls: type[T], table: Table) -> T:
    """A dataclass (or another type, `dict[str, list[str]]` say) from a table."""
    value: T = _Converter(table).read(cls, table.values, ())
    return value


def from_json(cls: type[T], state: Any) -> T:
    """A dataclass from the JSON document that `plain` made of it; call it inside `whole`."""
    value: T = _Converter(any_text=True).read(cls, state, ())
    return value


def read_value(hint: Any, value: Any, name: str) -> Any:
    """A value of a document as any type, `Literal["logits", "probs"]` say; an error calls it by its name."""
    return _Converter(any_text=True).read(hint, value, (name,))


def read_option(hint: Any, text: str, name: str) -> Any:
    """The value of an option given as text, `ece:bins=30` say; `name` is `ece:bins`.

    >>> read_option(int | None, "30", "ece:bins"), read_option(int | None, "none", "ece:bins")
    (30, None)
    """
    return _Converter(any_text=True, equals="=").read(hint, parse_text(hint, text), (name,))


def parse_text(hint: Any, text: str) -> Any:
    """Text of the command line as a type; text that is none stays text, for the reader to refuse."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return parse_text(inside[0], text)
    if origin in (Union, UnionType):
        if text == "none" and NoneType in inside:
            return None
        tries = ((part, parse_text(part, text)) for part in inside if part is not NoneType)
        return next((value for part, value in tries if part is str or not isinstance(value, str)), text)
    if origin in (list, tuple):
        return [parse_text(inside[0], part) for part in text.strip("[]").replace(",", " ").split()]
    try:
        if hint is bool:
            return {"true": True, "false": False}[text.lower()]
        if hint in (int, float):
            return int(text) if hint is int else _number(text)
        return parse_toml_value(text) if hint is Any or origin is dict else text
    except (ValueError, KeyError, RecursionError, ZeroDivisionError):
        return text


def check_fields(entry: Any, of: str = "") -> None:
    """Refuse wrong values in a dataclass made in Python, where nothing has read them: for its `__post_init__`.

    Errors name a field as `of.field`.
    """
    reader = _Converter(any_text=bool(of))
    for key, (name, hint) in fields_of(type(entry)).items():
        reader.read(hint, getattr(entry, name), (of, key) if of else (key,))


class _Converter:
    """Convert values of a table to types; errors quote the lines of the table.

    Text of a TOML file must be printable, because it becomes names; that of a JSON document may hold any character.
    """

    def __init__(self, table: Table | None = None, *, any_text: bool = False, equals: str = " = ") -> None:
        self.table, self.any_text, self.equals = table or Table(), any_text, equals

    def read(self, hint: Any, value: Any, keys: Keys) -> Any:
        origin, inside = get_origin(hint), get_args(hint)
        if hint is Any:
            return deepcopy(value)
        if origin is Annotated:
            return self._within(inside[1], self.read(inside[0], value, keys), keys)
        if origin in (Union, UnionType):
            return self._either(hint, value, keys)
        if origin is Literal:
            if not any(isinstance(value, type(word)) and value == word for word in inside):
                raise self._error(keys, unknown_name(_join_keys(keys), str(value)[:80], map(str, inside)))
            return value
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return value if isinstance(value, hint) else self._build(hint, value, keys)
        if origin is dict and isinstance(value, Mapping):
            return {
                self.read(str, key, keys): self.read(inside[1], below, (*keys, key)) for key, below in value.items()
            }
        if origin in (list, tuple) and isinstance(value, list | tuple):
            return self._list(origin, inside, value, keys)
        if origin is np.ndarray and (array := _array(value)) is not None:
            return array
        if hint in KINDS and _is_like(hint, value) and (hint is not str or self.any_text or _is_printable(value)):
            return None if value is None else _scalar(hint, value)
        if origin is Callable and callable(value):  # a function given in Python; no file holds one
            return value
        if origin is None and hint not in KINDS and isinstance(value, hint):
            return value
        raise self._wrong(hint, value, keys)

    def _build(self, cls: Any, value: Any, keys: Keys) -> Any:
        if not isinstance(value, Mapping):
            raise self._wrong(cls, value, keys)
        fields = fields_of(cls)
        for key in value:
            if key not in fields:
                error = unknown_name("key", _join_keys((*keys, key)), [_join_keys((*keys, name)) for name in fields])
                raise self._error((*keys, key), error)
        arguments = {fields[key][0]: self.read(fields[key][1], below, (*keys, key)) for key, below in value.items()}
        missing = [f.name for f in dataclasses.fields(cls) if _is_required(f) and f.name not in arguments]
        if missing:
            key = _join_keys((*keys, missing[0].rstrip("_")))
            fix = f"write {key}{self.equals}..."
            raise self._error(keys, InputError(key, expected="a value", got="none", fix=fix))
        try:
            return cls(**arguments)
        except InputError as error:  # a rule between fields: the line of the one it names
            below = (int(part) if part.isdigit() else part for part in error.what.split("."))
            raise self._error((*keys, *below), error) from None

    def _list(self, origin: Any, inside: tuple[Any, ...], value: Any, keys: Keys) -> Any:
        if origin is tuple and inside[-1] is not ... and len(inside) != len(value):
            error = InputError(
                _join_keys(keys), expected=f"{len(inside)} values", got=f"{len(value)}", fix="give one value for each"
            )
            raise self._error(keys, error)
        hints = inside if origin is tuple and inside[-1] is not ... else (inside[0],) * len(value)
        return origin(
            self.read(hint, below, (*keys, i)) for i, (hint, below) in enumerate(zip(hints, value, strict=True))
        )

    def _either(self, either: Any, value: Any, keys: Keys) -> Any:
        fitting = [hint for hint in get_args(either) if _is_like(hint, value)]
        if len(fitting) == 1:  # its own error says more than "neither"
            return self.read(fitting[0], value, keys)
        for hint in fitting:
            try:
                return self.read(hint, value, keys)
            except InputError:
                continue
        raise self._wrong(either, value, keys)

    def _within(self, bounds: Any, value: Any, keys: Keys) -> Any:
        if isinstance(bounds, Bounds) and value not in bounds:
            fix = f"give {_join_keys(keys)} another value"
            raise self._error(keys, InputError(_join_keys(keys), expected=str(bounds), got=show_value(value), fix=fix))
        return value

    def _wrong(self, hint: Any, value: Any, keys: Keys) -> InputError:
        key = _join_keys(keys) or "the file"
        table = dataclasses.is_dataclass(hint) or get_origin(hint) is dict
        fix = f"write [{key}] and its keys below" if table else f"write {key}{self.equals}{_example(hint)}"
        finite = "finite " if isinstance(value, float) and not math.isfinite(value) else ""
        expected = _kind(hint).replace("a number", f"a {finite}number")
        return self._error(keys, InputError(key, expected=expected, got=show_value(value), fix=fix))

    def _error(self, keys: Keys, error: InputError) -> InputError:
        place = self.table.place(keys)
        return InputError.inside(place, error) if place else error


def fields_of(cls: Any) -> dict[str, tuple[str, Any]]:
    """Fields of a dataclass: each key with the field's name and type."""
    return _fields_of(cls)


@cache
def _fields_of(cls: Any) -> dict[str, tuple[str, Any]]:  # finding types takes longer than reading a recipe
    hints = get_type_hints(cls, include_extras=True)
    return {f.name.rstrip("_"): (f.name, hints[f.name]) for f in dataclasses.fields(cls) if f.init}


def _is_required(f: "dataclasses.Field[Any]") -> bool:
    return f.init and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _number(text: str) -> float:
    above, slash, below = text.partition("/")
    if slash:  # as people write the size of an attack, 1/255
        return float(above) / float(below)
    try:
        return int(text)
    except ValueError:
        return float(text)


def _array(value: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """A list of numbers as an array; None where it holds anything but numbers."""
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        return None
    return array.astype(np.float64) if array.dtype.kind in "if" or not array.size else None


def _scalar(hint: Any, value: Any) -> Any:
    """The value as text, number or truth value; None if it is not one."""
    if hint is bool:
        return value if isinstance(value, bool) else None
    if hint is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number that no float holds
        return None
    if hint is float:
        return number if math.isfinite(number) else None
    whole = int(value) if isinstance(value, Integral) else int(number) if number.is_integer() else None
    return whole if whole is not None and abs(whole) < 2**BITS else None


def _is_printable(text: str) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in text)


def _is_like(hint: Any, value: Any) -> bool:
    """Whether a value is of the same kind as this type (a table, a list, a number or a text)."""
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    origin = get_origin(hint)
    if dataclasses.is_dataclass(hint) or origin is dict:
        return isinstance(value, Mapping) or dataclasses.is_dataclass(value)
    if origin in (list, tuple, np.ndarray):
        return isinstance(value, list | tuple | np.ndarray)
    if origin is Literal:
        return isinstance(value, tuple({type(word) for word in get_args(hint)}))
    if hint is Any or hint is NoneType:
        return hint is Any or value is None
    return _scalar(hint, value) is not None if hint in KINDS else isinstance(value, hint)


def _kind(hint: Any) -> str:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _kind(inside[0])
    if origin in (Union, UnionType):
        return " or ".join(_kind(part) for part in inside if part is not NoneType)
    if dataclasses.is_dataclass(hint) or origin is dict:
        return "a table"
    if origin is Literal:
        return f"one of {', '.join(map(str, inside))}"
    if origin is np.ndarray:
        return "numbers"
    return f"a list, each {_kind(inside[0])}" if origin in (list, tuple) else KINDS.get(hint) or f"a {hint.__name__}"


def _example(hint: Any) -> str:
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Annotated, Union, UnionType):
        return _example(inside[0])
    if origin in (list, tuple):
        return f"[{_example(inside[0])}]"
    return {int: "5", float: "0.5", bool: "true", str: '"text"'}.get(hint, "...")


def _join_keys(keys: Keys) -> str:
    return ".".join(map(str, keys))
