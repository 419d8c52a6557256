"""A PDF with its objects in one order: the converter writes the same figure in another order every time.

By hand: no dependency of ours rewrites PDF files, and a library for them would come for this file alone.
"""

import re

REFERENCE = re.compile(rb"(?<![\d.])(\d+) 0 R\b")
RESOURCES = re.compile(rb"(^ +/[A-Za-z]+\d+ \d+ 0 R\n){2,}", re.MULTILINE)  # a list of names: its order says nothing
TABLE = re.compile(
    rb"xref\n0 (\d+)\n((?:\d{10} \d{5} [nf][ \r]\n)+)(trailer\n.*?)startxref\n(\d+)\n%%EOF\s*", re.DOTALL
)
ENTRY = 20  # bytes


def in_order(pdf: bytes) -> bytes:
    """The PDF with its objects numbered as they are reached from the root, and a new table of their places.

    A file that is built in another way than the converter's is given back as it is.
    """
    places = [int(match[1]) for match in re.finditer(rb"startxref\n(\d+)\n", pdf)]
    table = TABLE.fullmatch(pdf, places[-1]) if places and places[-1] < len(pdf) else None
    if table is None:
        return pdf
    objects = _objects(pdf, table[2], table.start())
    trailer, order = RESOURCES.sub(_sort_names, table[3]), list[int]()
    left = _references(trailer)[::-1]
    while left:  # depth first, each once
        number = left.pop()
        if number in order:
            continue
        if number not in objects:
            return pdf
        order.append(number)
        left += _references(objects[number][0])[::-1]
    numbers = {old: new for new, old in enumerate(order, 1)}
    return _write(pdf[: min(_starts(table[2]).values())], [objects[old] for old in order], trailer, numbers)


def _starts(entries: bytes) -> dict[int, int]:
    """Numbers of objects and where each begins."""
    lines = [entries[at : at + ENTRY] for at in range(0, len(entries), ENTRY)]
    return {number: int(line[:10]) for number, line in enumerate(lines) if line[17:18] == b"n"}


def _objects(pdf: bytes, entries: bytes, end: int) -> dict[int, tuple[bytes, bytes]]:
    """The content of each object without its number, and the stream behind it as it is."""
    starts = _starts(entries)
    ends = dict(zip(sorted(starts.values()), [*sorted(starts.values())[1:], end], strict=True))
    objects = {}
    for number, start in starts.items():
        content = pdf[start : ends[start]].partition(b" obj\n")[2]
        words, stream, rest = content.partition(b"\nstream\n")
        objects[number] = RESOURCES.sub(_sort_names, words), stream + rest
    return objects


def _sort_names(match: re.Match[bytes]) -> bytes:
    """Lines by their names alone: the numbers are what is going to change."""
    lines: list[bytes] = match[0].splitlines(keepends=True)
    lines.sort(key=lambda line: (len(line.split()[0]), line))
    return b"".join(lines)


def _references(words: bytes) -> list[int]:
    return [int(match[1]) for match in REFERENCE.finditer(words)]


def _write(start: bytes, objects: list[tuple[bytes, bytes]], trailer: bytes, numbers: dict[int, int]) -> bytes:
    def renumber(words: bytes) -> bytes:
        return REFERENCE.sub(lambda match: b"%d 0 R" % numbers[int(match[1])], words)

    pdf, places = bytearray(start), []
    for number, (words, stream) in enumerate(objects, 1):
        places.append(len(pdf))
        pdf += b"%d 0 obj\n" % number + renumber(words) + stream
    size, place = len(objects) + 1, len(pdf)
    pdf += b"xref\n0 %d\n0000000000 65535 f \n" % size + b"".join(b"%010d 00000 n \n" % at for at in places)
    trailer = re.sub(rb"/Size \d+", b"/Size %d" % size, renumber(trailer))
    return bytes(pdf + trailer + b"startxref\n%d\n%%%%EOF" % place)
