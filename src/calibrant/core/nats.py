"""The networks of NATS-Bench as text: cells of six operations (topology space), rows of five widths (size space)."""

import random
import re
from collections.abc import Sequence
from functools import cache
from itertools import product

from calibrant.core.errors import InputError, unknown_name

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))  # from, to: the order of a cell's text
BEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
WIDTHS = tuple(range(8, 65, 8))
LAYERS = 5  # numbers of a network in the size space


def read_cell(cell: str) -> tuple[str, ...]:
    """The six operations of a cell, in the order of EDGES; a malformed one is refused where it goes wrong."""
    nodes = cell.split("+")
    if len(nodes) != 3:
        raise _malformed_error("cell", "three nodes joined by +, as in |a~0|+|b~0|c~1|+|d~0|e~1|f~2|", f"{len(nodes)}")
    operations: list[str] = []
    for to, node in enumerate(nodes, 1):
        terms = node.split("|")[1:-1]
        if len(terms) != to or node != f"|{'|'.join(terms)}|":
            shape = "|".join(f"{letter}~{source}" for source, letter in zip(range(to), "abc", strict=False))
            raise _malformed_error(f"cell, node {to}", f"|{shape}|", f"'{node}'")
        operations += [_operation(term, source, to) for source, term in enumerate(terms)]
    return tuple(operations)


def _operation(term: str, source: int, to: int) -> str:
    name, tilde, number = term.partition("~")
    where = f"cell, edge {source} to {to}"
    if not tilde or number != str(source):
        raise _malformed_error(where, f"operation~{source}", f"'{term}'")
    if name not in OPERATIONS:
        raise unknown_name(where, name, OPERATIONS)
    return name


def write_cell(operations: Sequence[str]) -> str:
    """The text of a cell."""
    nodes: dict[int, str] = {}
    for name, (source, to) in zip(operations, EDGES, strict=True):
        nodes[to] = f"{nodes.get(to, '|')}{name}~{source}|"
    return "+".join(nodes.values())


@cache
def cells() -> tuple[str, ...]:
    """Every cell, in the order of the benchmark's index.

    >>> cells()[9]
    '|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_3x3~2|'
    """
    ordered = [write_cell(operations) for operations in product(OPERATIONS, repeat=len(EDGES))]
    random.Random(88).shuffle(ordered)  # how the benchmark numbered its cells
    return tuple(ordered)


def find_cell(cell: str) -> str:
    """The text of a cell that is given as text or as index."""
    return cells()[_index("cell", cell, len(cells()))] if cell.isdecimal() else write_cell(read_cell(cell))


@cache
def sizes() -> tuple[str, ...]:
    """Every row of widths, in the order of the benchmark's index.

    >>> len(sizes()), sizes()[1]
    (32768, '8:8:8:8:16')
    """
    return tuple(":".join(map(str, widths)) for widths in product(WIDTHS, repeat=LAYERS))


def read_widths(channels: str) -> tuple[int, ...]:
    """The five numbers of a text, joined by : or -; a malformed one is refused where it goes wrong."""
    parts = re.split("[-:]", channels)
    if len(parts) != LAYERS:
        raise _malformed_error("channels", "five widths joined by : or -, as in 8:8:8:16:32", f"'{channels}'")
    for place, part in enumerate(parts, 1):
        if not part.isdecimal() or int(part) not in WIDTHS:
            raise _malformed_error(f"channels, number {place}", f"one of {', '.join(map(str, WIDTHS))}", f"'{part}'")
    return tuple(map(int, parts))


def find_size(channels: str) -> str:
    """The text, joined by :, of widths that are given as text or as index."""
    if channels.isdecimal():
        return sizes()[_index("channels", channels, len(sizes()))]
    return ":".join(map(str, read_widths(channels)))


def _index(what: str, text: str, count: int) -> int:
    if int(text) >= count:
        raise InputError(what, expected=f"an index in 0..{count - 1}", got=text, fix="give a smaller one")
    return int(text)


def _malformed_error(what: str, expected: str, got: str) -> InputError:
    return InputError(what, expected=expected, got=got, fix="correct it there")
