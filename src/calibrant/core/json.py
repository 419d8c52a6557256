"""Read and check JSON documents, and turn values into plain JSON. Damaged documents are an InputError."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibrant.core.errors import InputError

T = TypeVar("T")
NOT_IN_JSON = {"json": False}  # metadata of a field that `plain` leaves out


def plain(value: Any) -> Any:
    """The value as numbers, strings, lists and dicts; undefined numbers become None, because JSON has no NaN.

    >>> plain({"ece": float("nan"), "bins": (1, np.int64(2))})
    {'ece': None, 'bins': [1, 2]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in dataclasses.fields(value) if f.metadata.get("json", True)]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()  # with its NaN, if it has one: an array of parameters must not lose numbers quietly
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def in_script(value: Any) -> str:
    """JSON for a script element of HTML: no string in it can end the element.

    >>> in_script({"name": "</script>"})
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


DEEPEST = 50  # how deep lists and objects may lie inside each other


@contextmanager
def whole(what: str, *, fix: str) -> Iterator[None]:
    """Raise the error for a damaged document where its fields have errors inside this block.

    >>> with whole("map", fix="refit"):
    ...     {"n": 3}["k"]
    Traceback (most recent call last):
    calibrant.core.errors.InputError: map: expected a whole one, got a damaged one ('k' is missing). To fix it: refit.
    """
    try:
        yield
    except KeyError as error:
        raise _damage_error(what, f"{error} is missing", fix) from error
    except InputError as error:  # how to fix one field is of no use to the reader of a file
        raise _damage_error(what, error.problem[:200], fix) from error
    except (TypeError, ValueError, AttributeError, OverflowError, IndexError, RuntimeError) as error:
        raise _damage_error(what, str(error).partition("\n")[0][:200], fix) from error


def read_json(path: str | Path, *, expected: str, fix: str) -> Any:
    """The JSON in a file, or a clear error."""
    file = Path(path)
    if not file.is_file():
        got = "a folder" if file.is_dir() else "a pipe or a device" if file.exists() else "no such file"
        raise InputError(str(path), expected=expected, got=got, fix="check the path")
    try:
        return parse_json(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of JSON, or of its encoding
        raise InputError(str(path), expected=f"{expected}, in JSON", got="something else", fix=fix) from error


def load_json(path: str | Path, build: Callable[[Any], T], *, expected: str, fix: str) -> T:
    """The value that `build` makes of the JSON in a file; its errors name the file."""
    document = read_json(path, expected=expected, fix=fix)
    try:
        return build(document)
    except InputError as error:
        raise InputError.inside(str(path), error) from None


def load_state(path: str | Path, parse: Callable[[str], T], *, expected: str) -> T:
    """The value that `parse` makes of the text in a file that `save` wrote; its errors name the file."""
    file = Path(path)
    if not file.is_file():
        raise InputError(str(path), expected=expected, got="no such file", fix="check the path")
    try:
        return parse(file.read_text(encoding="utf-8", errors="replace"))
    except InputError as error:
        raise InputError.inside(str(path), error) from None


def parse_json(text: str) -> Any:
    """Parse JSON without NaN, infinite numbers or deep nesting; a ValueError otherwise."""
    try:
        document = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    _check_depth(document, DEEPEST)
    return document


def write_state(what: str, version: int, content: Mapping[str, Any]) -> str:
    """The text of a state: its fields, with the version of its format and a checksum of both.

    >>> parse_state(write_state("watch", 1, {"n": 3}), "watch", 1, written_by="Watch.save", fix="save it again")
    {'n': 3}
    """
    state = {f"calibrant_{what}": version, **content}
    return json.dumps(state | {"sha256": _checksum(state)}, allow_nan=False)


def parse_state(text: str, what: str, version: int, *, written_by: str, fix: str) -> Any:
    """The fields of a saved state, as they were saved; an InputError for anything else."""
    try:
        state = parse_json(text)
        got = state.pop(f"calibrant_{what}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(what, expected=f"JSON written by {written_by}", got="something else", fix=fix) from error
    if type(got) is not int or got != version:
        fix = "use the version of calibrant that wrote it, or start again"
        raise InputError(what, expected=f"version {version}", got=f"{got!r:.40}", fix=fix)
    if state.pop("sha256", None) != _checksum({f"calibrant_{what}": version, **state}):
        got = "a file that was changed or damaged: its checksum is another"
        raise InputError(what, expected="a state as it was saved", got=got, fix=fix)
    return state


def _checksum(state: Mapping[str, Any]) -> str:
    """SHA-256 of the content, whatever the order of its keys and the space between them."""
    return hashlib.sha256(json.dumps(state, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_typed(state: Any, name: str, kind: type) -> Any:
    """A field of a document, which must be of exactly this type (true is not a number)."""
    value = state[name]
    if type(value) is not kind:
        raise ValueError(f"{name} is {value!r:.40}")
    return value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def _check_depth(value: Any, left: int) -> None:
    if not isinstance(value, dict | list):
        return
    if not left:
        raise ValueError("nested too deep")
    for item in value.values() if isinstance(value, dict) else value:
        _check_depth(item, left - 1)


def _damage_error(what: str, why: str, fix: str) -> InputError:
    return InputError(what, expected="a whole one", got=f"a damaged one ({why})", fix=fix)
