"""What a hostile file says where a name belongs, and TOML, tables and tensors with damage that still parses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mutate_json as mutate
import numpy as np
import polars as pl
from toml_writer import write_toml

from calibrant.core.errors import InputError

MARK = "it ran"
CODE = (
    "./evil.py", "evil.py:x=1", "evil.{title}", "os:system?command=touch 'it ran'", "pathlib:Path.touch?self=it ran",
    "hf:somebody/something", "ce + 0.5*./evil.py", "mixup:base=evil.py", "corrupt ./evil.py", " ./evil.py ", "evil.PY",
)  # fmt: skip
NAMES = ("resnet8", "digits", "ce", "nll", "ece:bins=5", "temperature", "clamping", "corrupt fog:severity=2", "{seed}")


def place_evil(folder: Path) -> None:
    """A Python file in the working folder that leaves a mark when it runs."""
    (folder / "evil.py").write_text(f"open({MARK!r}, 'w').close()\n")


def nothing_ran(folder: Path) -> bool:
    return not (folder / MARK).exists()


def ended(look: Callable[[], object]) -> str:
    """How a look at a file ended: with what it checks itself, or with one line that names what is wrong."""
    try:
        look()
    except InputError as error:
        message = str(error)
    else:
        return "right"
    assert "\n" not in message, message
    assert "To fix it: " in message, message
    return "refused"


def pick(rng: np.random.Generator, of: Any) -> Any:
    return of[int(rng.integers(len(of)))]


def mutated_toml(values: dict[str, Any], rng: np.random.Generator) -> bytes:
    """Other values, names of code where names belong, keys that moved; or damaged bytes; a fifth is as it was."""
    kind = rng.integers(5)
    text = json.dumps(values)
    if kind == 0:
        return write_toml(values).encode()
    if kind == 1:
        return mutate.mutated_bytes(write_toml(values).encode(), rng)
    try:
        state = json.loads(mutate.mutated_text(text, rng) if kind == 2 else text)
        if kind > 2:
            for _ in range(rng.integers(1, 3)):
                put_word(state, rng)
        return write_toml(state).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, RecursionError):  # damage that TOML cannot hold
        return mutate.mutated_bytes(write_toml(values).encode(), rng)


def put_word(state: Any, rng: np.random.Generator) -> None:
    """A name of code, or another name of a catalogue, in place of a text."""
    texts = [place for place in mutate._places(state) if isinstance(_at(state, place), str)]
    if texts:
        place = pick(rng, texts)
        _at(state, place[:-1])[place[-1]] = pick(rng, CODE if rng.random() < 0.6 else NAMES)


def _at(state: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        state = state[key]
    return state


def mutated_frame(frame: pl.DataFrame, rng: np.random.Generator, odd: list[Any]) -> pl.DataFrame:
    """One or two columns of other values, another name, or none."""
    for _ in range(rng.integers(1, 3)):
        name, values = pick(rng, frame.columns), pick(rng, odd)
        match rng.integers(4):
            case 0 if frame.width > 1:
                frame = frame.drop(name)
            case 1:
                frame = frame.rename({name: f"{name}x"})
            case _:
                try:
                    column = pl.Series(name, [values[i % len(values)] for i in range(frame.height)], strict=False)
                except (pl.exceptions.PolarsError, TypeError, OverflowError):
                    continue
                frame = frame.with_columns(column)
    return frame.head(int(rng.integers(3))) if rng.integers(10) == 0 else frame


def mutated_tensors(arrays: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Valid tensors that are odd: another type, shape or value, another name, or none."""
    results = dict(arrays)
    name = pick(rng, list(results))
    array = np.array(results[name])
    match rng.integers(6):
        case 0:
            del results[name]
        case 1:
            results[f"{name}x"] = results.pop(name)
        case 2:
            results[name] = array.astype(pick(rng, (np.int64, np.bool_, np.float16, np.float64, np.uint8)))
        case 3:
            results[name] = array.reshape(-1)[: max(0, array.size - 1)]
        case 4:
            results[name] = array[None]
        case _:
            array = array.astype(np.float32).reshape(array.shape)
            array.reshape(-1)[: int(rng.integers(1, array.size + 1))] = pick(
                rng, (np.nan, np.inf, -1e38, 1e38, 0, -1, 3e-45)
            )
            results[name] = array
    return results
