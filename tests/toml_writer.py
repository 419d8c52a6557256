"""Plain values as TOML text, for tests that write recipes and plans; the package itself only reads TOML."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def write_toml(values: Mapping[str, Any]) -> str:
    """TOML text of plain values: tables, lists, text, numbers, true and false; None is left out.

    >>> print(write_toml({"epochs": 3, "data": {"name": "digits"}}), end="")
    epochs = 3
    <BLANKLINE>
    [data]
    name = "digits"
    """
    return "\n".join(_write(values, "")).lstrip("\n") + "\n"


def _write(values: Mapping[str, Any], header: str) -> Iterator[str]:
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lists = {key: value for key, value in values.items() if _list_of_tables(value)}
    for key, value in values.items():
        if key not in tables and key not in lists and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in tables.items():
        yield f"\n[{header}{_key(key)}]"
        yield from _write(value, f"{header}{_key(key)}.")
    for key, rows in lists.items():
        for row in rows:
            yield f"\n[[{header}{_key(key)}]]"
            yield from _write(row, f"{header}{_key(key)}.")


def _list_of_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
