"""Draw the tree of docs/structure.md, rooms and sub-packages, from their docstrings: python docs/tree.py"""

import ast
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "src" / "calibrant"
PAGE = DOCS / "structure.md"
BEGIN, END = "<!-- tree: written by docs/tree.py -->\n", "<!-- end of tree -->"
LAYERS = (  # from the top down, as tests/test_layers.py checks them
    ("cli", "app"),
    ("nas",),
    ("studying",),
    ("reporting", "rescoring"),
    ("plotting", "training"),
    ("monitoring", "repairing", "deciding"),
    ("streaming",),
    ("measuring",),
    ("measures", "calibrators", "rescorers", "losses", "models", "datasets", "corruptions", "figures"),
    ("core",),
    ("data",),
)
WIDTH = 120


def tree() -> str:
    """Every room and sub-package on a line, the layers from the top down, a blank line between groups of them."""
    rooms = {room.name for room in PACKAGE.iterdir() if (room / "__init__.py").exists()}
    known = {name for layer in LAYERS for name in layer}
    assert not rooms - known, f"docs/tree.py does not know the room {rooms - known}"
    lines = ["```text"]
    for layer in LAYERS:
        if layer[0] in ("measures", "core"):
            lines.append("")
        for name in layer:
            if name in rooms:
                lines += _lines(PACKAGE / name)
    return "\n".join([*lines, "```", ""])


def write() -> None:
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + tree() + "\n" + END + rest.partition(END)[2])


def _lines(room: Path) -> Iterator[str]:
    yield _line(f"{room.name}/", room)
    for part in sorted(room.iterdir()):
        if (part / "__init__.py").exists():
            yield _line(f"  {part.name}/", part)


def _line(name: str, folder: Path) -> str:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    line = f"{name:16} {docstring.partition(chr(10))[0]}"
    return line if len(line) <= WIDTH else line[: WIDTH - 3].rsplit(" ", 1)[0] + " ..."


if __name__ == "__main__":
    write()
