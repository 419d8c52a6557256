"""Files damaged at random: what a bad disk, a cut connection or somebody with a hex editor leaves behind."""

import numpy as np


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with one to four kinds of damage."""
    for _ in range(rng.integers(1, 5)):
        data = DAMAGES[rng.integers(len(DAMAGES))](data, rng)
    return data


def _place(data, rng, size=1):
    """A random place; the ends, where formats keep their signatures and tables, more often."""
    last = max(len(data) - size, 0)
    near = min(last, 64)
    return int([rng.integers(last + 1), rng.integers(near + 1), last - rng.integers(near + 1)][rng.integers(3)])


def _flip(data, rng):
    if not data:
        return data
    place = _place(data, rng)
    return data[:place] + bytes([data[place] ^ (1 << rng.integers(8))]) + data[place + 1 :]


def _replace(data, rng):
    size = int(rng.integers(1, 17))
    place = _place(data, rng, size)
    return data[:place] + rng.bytes(size) + data[place + size :]


def _extreme(data, rng):
    """A length or a count becomes nothing, everything or minus one."""
    number = EXTREMES[rng.integers(len(EXTREMES))]
    place = _place(data, rng, len(number))
    return data[:place] + number + data[place + len(number) :]


def _cut(data, rng):
    return data[: _place(data, rng)]


def _drop(data, rng):
    size = int(rng.integers(1, 100))
    place = _place(data, rng, size)
    return data[:place] + data[place + size :]


def _insert(data, rng):
    place = _place(data, rng)
    return data[:place] + rng.bytes(int(rng.integers(1, 100))) + data[place:]


def _double(data, rng):
    size = int(rng.integers(1, 200))
    place = _place(data, rng, size)
    return data[: place + size] + data[place:]


def _swap(data, rng):
    size = int(rng.integers(1, 50))
    first, second = sorted((_place(data, rng, size), _place(data, rng, size)))
    if second < first + size:
        return data
    parts = (data[second : second + size], data[first + size : second], data[first : first + size])
    return data[:first] + b"".join(parts) + data[second + size :]


def _text(data, rng):
    """Something that means more in text than its bytes."""
    word = WORDS[rng.integers(len(WORDS))]
    place = _place(data, rng, len(word))
    return data[:place] + word + data[place + len(word) * int(rng.integers(2)) :]


EXTREMES = [
    bytes(4), b"\xff" * 4, b"\xff\xff\xff\x7f", bytes(8), b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\x80", b"\x01\x00",
]  # fmt: skip
WORDS = [
    b'"', b"'", b",", b"\n", b"\r", b"\x00", b"\xef\xbb\xbf", b"nan", b"inf", b"-1", b"1e999", b"\xff\xfe", b"[/a]",
    b"\x1b[2J", "²".encode(), b"(" * 200, b"PK\x03\x04", b"PAR1", b"\x93NUMPY", b"__import__('os')",
]  # fmt: skip
DAMAGES = [_flip, _replace, _extreme, _cut, _drop, _insert, _double, _swap, _text]
