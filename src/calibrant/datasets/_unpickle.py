"""Data out of files that were published as pickles, without running anything in them.

A pickle is a small program. Here it is read as data: numbers, texts, lists, sets, dictionaries and numpy arrays
are understood, and the few names by which numpy describes an array and torch a tensor. A file that names anything
else is refused.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.files import damage_error, read_bytes
from calibrant.core.pickles import GETS, PUTS, check_nesting, instructions

EXPECTED = "data in a pickle: numbers, texts, lists, dictionaries and arrays"
NAMES = {  # what numpy of all ages calls itself, and how Python 3 writes bytes for Python 2
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    *(("numpy", "dtype"), ("numpy", "ndarray"), ("_codecs", "encode")),
    *((module, name) for module in ("__builtin__", "builtins") for name in ("bytes", "bytearray", "set")),
    *(("collections", "OrderedDict"), ("torch._utils", "_rebuild_tensor_v2"), ("torch.storage", "_load_from_bytes")),
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor as it lies in a file: `content` is a torch file of its numbers, not read here (nas)."""

    content: bytes
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def read_pickled(file: Path) -> dict[str, Any]:
    """The dictionary in a pickle file; its keys as text."""
    content = read_bytes(file)
    try:
        check_nesting(io.BytesIO(content))
        document = _PickleReader(str(file)).read(content)
        if not isinstance(document, dict):
            raise damage_error(file, "a dictionary", f"a {type(document).__name__}")
        return {key.decode("latin-1") if isinstance(key, bytes) else str(key): item for key, item in document.items()}
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError, MemoryError) as error:
        raise damage_error(file, "a whole pickle file", error) from error


@dataclass(frozen=True)
class _Name:
    """A name in the file, which is compared with known ones, never imported or called."""

    text: str


class _Mark:
    pass


@dataclass
class _Array:
    """A numpy array described first; a later BUILD gives its contents."""

    array: npt.NDArray[Any] | None = None


@dataclass
class _Type:
    """An element type; a later BUILD says its byte order."""

    dtype: np.dtype[Any]


@dataclass(frozen=True)
class _Storage:
    """The numbers of a tensor, in a torch file that has not been read yet."""

    content: bytes


class _PickleReader:
    """Interpreter of the pickle instructions that only hold data, with their stack and memory."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def read(self, content: bytes) -> Any:
        for name, value in instructions(io.BytesIO(content)):
            if name in VALUES:
                self.stack.append(value)
            elif name in PUTS:
                self.memory[int(value)] = self.stack[-1]
            elif name in GETS:
                self.stack.append(self.memory[int(value)])
            elif name in CONSTANTS:
                self.stack.append(CONSTANTS[name])
            elif name not in IGNORED:
                self._gather(name, value)
        return _finish(self.stack.pop())

    def _gather(self, name: str, value: Any) -> None:
        stack = self.stack
        if name == "MARK":
            stack.append(_Mark())
        elif name == "MEMOIZE":
            self.memory[len(self.memory)] = stack[-1]
        elif name in EMPTY:
            stack.append(EMPTY[name]())
        elif name in TUPLES:
            stack.append(tuple(_finish(item) for item in self._pop(TUPLES[name])))
        elif name in ("TUPLE", "LIST"):
            items = [_finish(item) for item in self._pop_marked()]
            stack.append(tuple(items) if name == "TUPLE" else items)
        elif name in ("APPEND", "APPENDS"):
            items = self._pop(1) if name == "APPEND" else self._pop_marked()
            stack[-1].extend(_finish(item) for item in items)
        elif name == "ADDITEMS":
            items = self._pop_marked()
            stack[-1].update(items)
        elif name == "DICT":
            stack.append(_pairs(self._pop_marked()))
        elif name in ("SETITEM", "SETITEMS"):
            items = self._pop(2) if name == "SETITEM" else self._pop_marked()
            stack[-1].update(_pairs(items))
        elif name == "POP":
            stack.pop()
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "POP_MARK":
            self._pop_marked()
        else:
            self._describe(name, value)

    def _describe(self, name: str, value: Any) -> None:
        """Run the instructions that make objects: numpy's arrays, and nothing else."""
        if name == "GLOBAL":
            self.stack.append(self._look_up(*value.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            self.stack.append(self._look_up(*self._pop(2)))
        elif name == "REDUCE":
            called, arguments = self._pop(2)
            if not isinstance(called, _Name):
                raise self._refusal(f"a call of a {type(called).__name__}")
            self.stack.append(self._build(called.text, arguments))
        elif name == "BUILD":
            state = self.stack.pop()
            self._fill(self.stack[-1], state)
        else:
            raise self._refusal(f"the instruction {name}")

    def _look_up(self, module: object, name: object) -> _Name:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name that is no text")
        if (module, name) not in NAMES:
            raise self._refusal(f"{module}.{name}")
        return _Name(name)

    def _build(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "_reconstruct":
            return _Array()
        if name == "dtype":
            return _Type(self._plain(np.dtype(_text(arguments[0]))))
        if name == "_frombuffer":
            buffer, kind, shape, order = arguments
            return np.frombuffer(buffer, dtype=kind.dtype).reshape(shape, order=_text(order))
        if name == "scalar":
            return np.frombuffer(_raw(arguments[1]), dtype=arguments[0].dtype)[0]
        if name == "encode" and arguments[1:] in ((), ("latin1",), ("latin-1",)):
            return arguments[0].encode("latin-1")
        if name == "OrderedDict":
            return dict(*arguments)
        if name == "set":
            return set(*arguments)
        if name == "_load_from_bytes" and len(arguments) == 1 and isinstance(arguments[0], bytes):
            return _Storage(arguments[0])
        if name == "_rebuild_tensor_v2" and isinstance(arguments[0], _Storage):
            return StoredTensor(
                arguments[0].content, int(arguments[1]), tuple(map(int, arguments[2])), tuple(map(int, arguments[3]))
            )
        if name in ("bytes", "bytearray") and all(isinstance(argument, bytes) for argument in arguments):
            return b"".join(arguments)
        raise self._refusal(f"a call of {name}")

    def _fill(self, target: object, state: Any) -> None:
        if isinstance(target, _Array):
            _, shape, kind, fortran, content = state
            target.array = np.frombuffer(_raw(content), dtype=kind.dtype).reshape(shape, order="F" if fortran else "C")
        elif isinstance(target, _Type) and state[2] is None and state[3] is None and state[4] is None:
            target.dtype = self._plain(target.dtype.newbyteorder(_text(state[1])))
        elif not isinstance(target, dict):  # attributes of an ordered dictionary are no data
            raise self._refusal(f"a state for a {type(target).__name__.strip('_')}")

    def _plain(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if dtype.kind not in "biufSU":
            raise self._refusal(f"an array of {dtype}")
        return dtype

    def _pop(self, count: int) -> list[Any]:
        items = self.stack[len(self.stack) - count :]
        if len(items) < count or any(isinstance(item, _Mark) for item in items):
            raise ValueError("an instruction without its values")
        del self.stack[len(self.stack) - count :]
        return items

    def _pop_marked(self) -> list[Any]:
        """Pop everything down to the last mark."""
        items = []
        while not isinstance(item := self.stack.pop(), _Mark):
            items.append(item)
        return items[::-1]

    def _refusal(self, got: str) -> InputError:
        return InputError(
            self.what,
            expected=EXPECTED,
            got=f"{got}: this file contains code, and code is never run",
            fix="get the published file again; use the binary or Parquet version of the data set where there is one",
        )


def _finish(value: Any) -> Any:
    return value.array if isinstance(value, _Array) else value


def _pairs(items: list[Any]) -> dict[Any, Any]:
    return {key: _finish(value) for key, value in zip(items[::2], items[1::2], strict=True)}


def _raw(content: Any) -> bytes:
    """The bytes of an array: Python 2 wrote them as text."""
    if not isinstance(content, str | bytes | bytearray):
        raise ValueError("an array whose contents are no bytes")
    return content.encode("latin-1") if isinstance(content, str) else bytes(content)


def _text(value: Any) -> Any:
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    if not isinstance(text, str):
        raise ValueError("a description of an array that is no text")
    return text


VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
IGNORED = {"PROTO", "FRAME", "READONLY_BUFFER"}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
EMPTY: dict[str, Any] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": set}
