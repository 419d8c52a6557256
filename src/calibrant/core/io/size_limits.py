"""Size limits: a small file that unpacks to a huge one is refused before it is unpacked."""

import os
from pathlib import Path

from calibrant.core.errors import InputError

FREE_BYTES = 1 << 30  # may always be unpacked
MOST_TIMES = 100  # the size of its file: predictions are noise in their last digits and never shrink this much
BATCH_CELLS = 1 << 24  # of a table, read at a time
LINE_BYTES = 1 << 26  # of one line of a CSV file, and of one quoted cell
JSON_BYTES = 1 << 24  # of one line of a JSONL file: what is read from it takes many times its room
MOST_COLUMNS = 1 << 17  # of a JSONL file, whose lines may each name others


def check_unpacked(file: Path, size: int) -> None:
    """Refuse a file that says it holds more bytes than 100 times its own, beyond 1 GiB, or than this machine has."""
    most, memory = most_bytes(file), _memory()
    if size > most:
        whose = "the memory of this machine" if most == memory else f"{MOST_TIMES} times its size"
        raise InputError(
            str(file),
            expected=f"at most {_gib(most)} of numbers ({whose})",
            got=f"{_gib(size)}",
            fix="write the file again; measure --stream reads Parquet, CSV and JSONL of any length",
        )


def most_bytes(file: Path) -> int:
    """The number of bytes that a file may take in memory."""
    return min(max(FREE_BYTES, MOST_TIMES * file.stat().st_size), _memory())


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system without these names
        return 1 << 62


def _gib(size: int) -> str:
    """
    >>> _gib(3 << 29)
    '1.5 GiB'
    """
    return f"{size / (1 << 30):,.1f} GiB"
