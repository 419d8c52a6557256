"""Instructions of a pickle, read as data, and a check of how deep and how large the values are that they make.

Nothing is built here: a few bytes can describe a tuple of 2^40 items, which would be hashed item by item.
"""

import codecs
import io
import pickletools
from collections.abc import Iterator
from typing import Any, NamedTuple

OPERATIONS = {operation.code: operation for operation in pickletools.opcodes}
PUTS, GETS = {"PUT", "BINPUT", "LONG_BINPUT"}, {"GET", "BINGET", "LONG_BINGET"}
FILLING = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}  # put values into the one before them
MOST_DEPTH = 100  # of values inside values
MOST_ITEMS = 10_000_000  # in a value and all that is inside it, each as often as it occurs


def instructions(stream: io.BytesIO) -> Iterator[tuple[str, Any]]:
    """Name and value of each instruction, up to the end of the pickle at which the stream stands."""
    while (code := stream.read(1)) != b".":
        operation = OPERATIONS.get(code.decode("latin-1"))
        if operation is None:
            raise ValueError("a pickle that is cut short" if code == b"" else f"no instruction {code!r}")
        if operation.name == "STRING":  # pickletools takes it for ASCII; Python 2 wrote the bytes of arrays so
            quoted = pickletools.read_stringnl(stream, decode=False)
            yield operation.name, codecs.escape_decode(quoted)[0].decode("latin-1")
        else:
            yield operation.name, operation.arg.reader(stream) if operation.arg else None


class _Size(NamedTuple):
    """Depth and number of items of a value that is not built."""

    depth: int = 0
    items: int = 1


def check_nesting(stream: io.BytesIO) -> None:
    """Raise a ValueError for a pickle whose values are nested too deep, or hold too many items.

    >>> import pickle
    >>> check_nesting(io.BytesIO(pickle.dumps({"a": [1, (2, 3)]})))
    >>> check_nesting(io.BytesIO(b")" + 200 * b"\\x85" + b"."))  # a tuple in a tuple in a tuple ...
    Traceback (most recent call last):
    ...
    ValueError: values nested more than 100 deep
    """
    stack: list[_Size | None] = []  # None is a mark
    memory: dict[int, _Size] = {}
    by_name = {operation.name: operation for operation in pickletools.opcodes}
    for name, value in instructions(stream):
        if name in GETS:
            stack.append(memory.get(int(value), _Size()))
        elif name in PUTS or name == "MEMOIZE":
            memory[len(memory) if name == "MEMOIZE" else int(value)] = _top(stack)
        elif name == "DUP":
            stack.append(_top(stack))
        else:
            operation = by_name[name]
            taken = _take(stack, operation)
            filled = taken.pop() if name in FILLING and taken else _Size()
            for made in operation.stack_after:
                stack.append(None if made is pickletools.markobject else _around(taken, filled))


def _take(stack: list[_Size | None], operation: pickletools.OpcodeInfo) -> list[_Size]:
    """Take the values that an instruction uses off the stack."""
    taken: list[_Size] = []
    for used in reversed(operation.stack_before):
        if used is pickletools.stackslice:
            while stack and stack[-1] is not None:
                taken.append(_top(stack))
                stack.pop()
        elif stack:
            item = stack.pop()
            taken += [] if item is None else [item]
    return taken


def _around(taken: list[_Size], filled: _Size) -> _Size:
    """The size of a container, new or already filled, that takes these values in."""
    depth = max(filled.depth, 1 + max((size.depth for size in taken), default=-1))
    items = filled.items + sum(size.items for size in taken)
    if depth > MOST_DEPTH:
        raise ValueError(f"values nested more than {MOST_DEPTH} deep")
    if items > MOST_ITEMS:
        raise ValueError(f"a value of more than {MOST_ITEMS:,} items")
    return _Size(depth, items)


def _top(stack: list[_Size | None]) -> _Size:
    if not stack or stack[-1] is None:
        raise ValueError("an instruction without its values")
    return stack[-1]
