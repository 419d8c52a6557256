"""The first rows of a file of predictions as text, whatever its columns are: for asking which column is what."""

from dataclasses import dataclass
from pathlib import Path

from calibrant.core.errors import visible
from calibrant.core.io.formats import file_format, plain_file
from calibrant.core.io.npz import open_npz
from calibrant.core.io.tables import column_names, table_batches

MOST_COLUMNS = 12
MOST_CHARACTERS = 24  # of a cell


@dataclass(frozen=True)
class Preview:
    """The names of all columns or arrays, and a small table that shows what they hold."""

    names: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def preview(path: str | Path, rows: int = 5) -> Preview:
    """The first rows of a table, or the shapes of the arrays of an .npz file."""
    with plain_file(path) as file:
        if file_format(file) == ".npz":
            with open_npz(file) as archive:
                shapes = archive.shapes()
            lines = [(_cell(name), " x ".join(map(str, shape)), kind) for name, (shape, kind) in shapes.items()]
            return Preview(tuple(shapes), ("array", "shape", "type"), tuple(lines[:MOST_COLUMNS]))
        names = column_names(file)
        columns = names[:MOST_COLUMNS]
        first = next(table_batches(file, rows, lambda name: name in columns), None)
    cells = () if first is None else tuple(tuple(map(_cell, row)) for row in first.rows())
    head = columns if first is None else first.columns
    return Preview(tuple(names), tuple(map(_cell, head)), cells)


def _cell(value: object) -> str:
    text = visible("" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value))
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
