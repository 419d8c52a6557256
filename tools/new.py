"""Start a new file of a catalogue from its template: `make new KIND=measure NAME=foo`, or calibrator, or loss.

Writes src/calibrant/measures/foo.py and nothing else: the commands, the docs and the contract tests find it there.
"""

import keyword
import re
import sys
from pathlib import Path
from string import Template

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.files import write_whole

ROOT = Path(__file__).parents[1]
TEMPLATES = Path(__file__).parent / "templates"
DEMO = "src/calibrant/data"
TRY = {
    "measure": f"measure {DEMO}/demo_test.npz --measure",
    "calibrator": f"fit {DEMO}/demo_val.npz --test {DEMO}/demo_test.npz --with",
    "loss": "train demo --override scale=smoke --out runs/new --loss",
}


def kinds() -> list[str]:
    return sorted(file.name.removesuffix(".py.txt") for file in TEMPLATES.glob("*.py.txt"))


def make(kind: str, name: str, root: Path = ROOT) -> Path:
    """Write the new file and return where it is."""
    if kind not in kinds():
        raise unknown_name("KIND", kind, kinds())
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise InputError(
            "NAME",
            expected="a Python name of small letters, digits and _ that starts with a letter",
            got=f"'{name}'",
            fix=f"write for instance make new KIND={kind} NAME=foo",
        )
    file = root / "src" / "calibrant" / ("losses" if kind == "loss" else f"{kind}s") / f"{name}.py"
    if file.exists():
        raise InputError("NAME", expected="a name that is free", got=f"'{name}', which has {file}", fix="take another")
    words = name.replace("_", " ").split()
    names = {"name": name, "title": " ".join(words).capitalize(), "cls": "".join(word.capitalize() for word in words)}
    text = Template((TEMPLATES / f"{kind}.py.txt").read_text()).substitute(names)
    write_whole(file, lambda stream: stream.write(text.encode()))
    return file


def main() -> None:
    try:
        kind, name = (*sys.argv[1:], "", "")[:2]
        file = make(kind, name).relative_to(ROOT)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{file} is written and works. Make it yours, then try:")
    print(f"  .venv/bin/python -m pytest {file} tests/contracts   # its example, and the promises of every {kind}")
    print(f"  .venv/bin/calibrant {TRY[kind]} {name}")


if __name__ == "__main__":
    main()
