"""Changes from the command line, `--override epochs=5`, as a table: each text is read as the type of its field."""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args, get_origin

from calibrant.core.config.convert import fields_of, parse_text
from calibrant.core.config.toml import MOST_DEEP, Keys, Table, show_value
from calibrant.core.errors import InputError


def read_changes(cls: type, changes: Iterable[str], option: str = "--override") -> Table:
    """`--override epochs=5` and others as a table for a dataclass; a text that does not fit is left to `build`."""
    merged = Table()
    for change in changes:
        key, equals, text = change.partition("=")
        names = _names(key) if equals else []
        if not names or len(names) > MOST_DEEP:
            raise InputError(option, expected="key=value", got=show_value(change), fix=f"write {option} epochs=5")
        value = parse_text(_hint_at(cls, names), text.strip())
        places: dict[Keys, str] = {tuple(names[:n]): f"{option} {change}" for n in range(1, len(names) + 1)}
        merged = Table(nest(names, value), places).over(merged)
    return merged


def nest(names: Sequence[str], value: Any) -> dict[str, Any]:
    """The value wrapped in the tables of its dotted key.

    >>> nest(["data", "limit"], 5)
    {'data': {'limit': 5}}
    """
    for name in reversed(names):
        value = {name: value}
    tree: dict[str, Any] = value
    return tree


def _names(key: str) -> list[str]:
    """The parts of a dotted key as TOML reads them; none if it is not one."""
    try:
        tree: Any = tomllib.loads(f"{key.strip()} = 0")
    except (ValueError, RecursionError):
        return []
    names = []
    while isinstance(tree, Mapping):
        if len(tree) != 1:
            return []
        ((name, tree),) = tree.items()
        names.append(name)
    return names


def _hint_at(hint: Any, names: Iterable[str]) -> Any:
    """The type of a field by its dotted key; Any where there is no such field."""
    for name in names:
        if dataclasses.is_dataclass(hint):
            hint = fields_of(hint).get(name, ("", Any))[1]
        else:
            hint = get_args(hint)[1] if get_origin(hint) is dict else Any
    return hint
