"""Seeded damage to JSON files and to archives of arrays with facts: bytes, fields, numbers, shapes."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

Rng = np.random.Generator
Place = tuple[Any, ...]

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, "", "words", "nan", "1", "./evil.py", "../evil.py:x=1", "os:system", "\x00", "é"),
    *(0, 1, -1, 2, 3, 7, 1.5, -0.5, 1e-320, 1e30, 1e308, -1e308, 10**20, 10**400, 2**53, 2**63),
    *([], {}, [[]], [None], [1, "a"], [[0.1], [0.2, 0.3]], {"a": 1}, [1e308] * 3, float("nan"), float("inf")),
)


def mutated_text(text: str, rng: Rng) -> bytes:
    """One to three kinds of damage to a JSON text."""
    state = json.loads(text)
    for _ in range(rng.integers(1, 4)):
        _pick(rng, (_replace, _delete, _rename, _nudge, _nudge, _swap, _repeat))(state, rng)
    try:
        data = json.dumps(state).encode("utf-8", "surrogatepass")
    except ValueError:  # a number too long to write
        data = text.encode()
    return mutated_bytes(data, rng) if rng.random() < 0.3 else data


def mutated_bytes(data: bytes, rng: Rng) -> bytes:
    """Bytes flipped, cut, doubled, left out or put in."""
    damaged = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(damaged) + 1))
        to = min(len(damaged), at + int(rng.integers(1, 40)))
        match rng.integers(0, 6):
            case 0:
                damaged[at : at + 1] = bytes([int(rng.integers(0, 256))])
            case 1:
                del damaged[at:to]
            case 2:
                damaged[at:at] = damaged[at:to]
            case 3:
                del damaged[at:]
            case 4:
                damaged[at:at] = rng.bytes(int(rng.integers(1, 9)))
            case _:
                damaged[at : at + 1] = b'0123456789.-e[]{}",:'[int(rng.integers(0, 20)) :][:1]
    return bytes(damaged)


def mutated_npz(data: bytes, rng: Rng) -> bytes:
    """Damage to the archive itself, to an array in it, or to its facts."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if rng.random() < 0.5:
        facts = mutated_text(str(arrays["facts"]), rng).decode("utf-8", "replace")
        arrays["facts"] = np.array(facts.replace("\0", " "))  # numpy's text ends there
    else:
        name = _pick(rng, [name for name in arrays if name != "facts"])
        damaged = _damage(arrays[name], rng)
        if damaged is None:
            del arrays[name]
        else:
            arrays[name] = damaged
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _damage(array: Any, rng: Rng) -> Any:
    """An array with another shape, type or value; None to leave it out."""
    values = np.array(array)
    match rng.integers(0, 9):
        case 0:
            return None
        case 1:
            return values[:0]
        case 2:
            return values.ravel()
        case 3:
            return values.astype(_pick(rng, (str, complex, bool, np.int8, np.float16)))
        case 4:
            return values[: max(1, len(values) // 2)]
        case 5:
            return np.concatenate([values, values])
        case 6:
            return values[None]
        case _:
            values = values.astype(np.float64)
            values.flat[int(rng.integers(0, values.size))] = _pick(
                rng, (np.nan, np.inf, -np.inf, -1.0, 1e308, 1e-320, 0.5)
            )
            if array.dtype.kind == "f" or rng.random() < 0.7:
                return values
            with np.errstate(invalid="ignore"):  # 1e308 has no int8: whatever comes is hostile enough
                return np.nan_to_num(values).astype(np.int8)


# -- places in a tree -----------------------------------------------------------------------------


def _places(value: Any, at: Place = ()) -> Iterator[Place]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from _places(one, (*at, key))


def _at(state: Any, rng: Rng, kind: Callable[[Any], bool] = lambda _: True) -> tuple[Any, Any] | None:
    """A container and a key in it, at random, whose value is of this kind."""
    results = []
    for place in _places(state):
        inner = state
        for key in place[:-1]:
            inner = inner[key]
        if kind(inner[place[-1]]):
            results.append((inner, place[-1], len(place)))
    if not results:
        return None
    shallow = min(depth for *_, depth in results)
    near = [one for one in results if one[2] <= shallow + 1]
    inner, key, _ = _pick(rng, near if rng.random() < 0.5 else results)
    return inner, key


def _replace(state: Any, rng: Rng) -> None:
    if where := _at(state, rng):
        where[0][where[1]] = _pick(rng, HOSTILE)


def _delete(state: Any, rng: Rng) -> None:
    if where := _at(state, rng):
        del where[0][where[1]]


def _rename(state: Any, rng: Rng) -> None:
    where = _at(state, rng)
    if where and isinstance(where[0], dict):
        where[0][f"{where[1]}x"] = where[0].pop(where[1])


def _nudge(state: Any, rng: Rng) -> None:
    """A number that is another number: the damage that is hardest to see."""
    where = _at(state, rng, lambda one: type(one) in (int, float))
    if where:
        inner, key = where
        by = _pick(rng, (2, -1, 10, 1e3, 0.5, 1e-3, 1.1))
        with suppress(OverflowError, ValueError):  # a number put there before that no float holds
            number = inner[key]
            inner[key] = type(number)(number * by) if rng.random() < 0.7 else number + _pick(rng, (1, -1, 0.5))


def _swap(state: Any, rng: Rng) -> None:
    one, other = _at(state, rng), _at(state, rng)
    if one and other and not any(isinstance(inner[key], dict | list) for inner, key in (one, other)):
        one[0][one[1]], other[0][other[1]] = other[0][other[1]], one[0][one[1]]


def _repeat(state: Any, rng: Rng) -> None:
    where = _at(state, rng, lambda one: isinstance(one, list) and len(one) > 0)
    if where:
        inner, key = where
        inner[key] = [*inner[key], inner[key][-1]] if rng.random() < 0.5 else inner[key][:-1]


def _pick(rng: Rng, of: Any) -> Any:
    return of[int(rng.integers(0, len(of)))]
