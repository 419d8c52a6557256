"""The tree on the page of the structure, drawn from the docstrings of the package: python docs/tree.py writes it."""

import ast
from pathlib import Path

DOCS = Path(__file__).parent
PACKAGE = DOCS.parent / "src" / "calibrant"
PAGE = DOCS / "structure.md"
BEGIN, END = "<!-- tree: written by docs/tree.py -->\n", "<!-- end of tree -->"
ROOMS = {  # groups in the order of the page; a room that is not named here is machinery
    "Rooms": ("cli", "app", "studying", "reporting", "rescoring", "plotting", "training", "repairing", "measuring"),
    "Catalogues": (
        *("measures", "calibrators", "rescorers", "losses", "models", "datasets", "corruptions", "figures"),
        *("spaces", "questions", "searches"),
    ),
    "What every room shares": ("core", "data"),
}


def tree() -> str:
    """Every room with its files, a line each. Entries of catalogues are left out: adding one touches no other file."""
    rooms = {room.name: room for room in sorted(PACKAGE.iterdir()) if (room / "__init__.py").exists()}
    known = {name for names in ROOMS.values() for name in names}
    assert not set(rooms) - known, f"docs/tree.py does not know the room {set(rooms) - known}"
    parts = []
    for group, names in ROOMS.items():
        parts.append(f"### {group}\n")
        parts += [_room(rooms[name], group == "Catalogues") for name in names if name in rooms]
    return "\n".join(parts)


def write() -> None:
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + tree() + "\n" + END + rest.partition(END)[2])


def _room(room: Path, catalogue: bool) -> str:
    lines = [f"**{room.name}/** {_summary(room / '__init__.py')}\n"]
    files = [f for f in sorted(room.rglob("*.py")) if f.name != "__init__.py"]
    if catalogue:
        files = [f for f in files if f.stem.startswith("_")]
    if files:
        lines.append("| file | what it is |\n|---|---|")
        lines += [f"| `{f.relative_to(room)}` | {_summary(f)} |" for f in files]
        lines.append("")
    return "\n".join(lines)


def _summary(file: Path) -> str:
    said = ast.get_docstring(ast.parse(file.read_text())) or ""
    return said.splitlines()[0].replace("|", "\\|") if said else ""


if __name__ == "__main__":
    write()
