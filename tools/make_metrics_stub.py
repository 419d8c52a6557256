"""Write src/calibrant/metrics.pyi, the types of `calibrant.metrics` for editors, from the catalogue of measures."""

import subprocess
import sys
from pathlib import Path

from calibrant.measures import CATALOGUE
from calibrant.measuring.array_functions import signature

STUB = Path(__file__).parents[1] / "src" / "calibrant" / "metrics.pyi"


def stub() -> str:
    """The text of the stub: one typed function for each measure that comes with calibrant."""
    lines = ["from typing import Literal, Optional", "", "from numpy.typing import ArrayLike", ""]
    for name in CATALOGUE.names():
        cls = CATALOGUE.find(name)
        typed = str(signature(cls))
        for text in {p.annotation for p in signature(cls).parameters.values()} | {"float"}:
            typed = typed.replace(f"{text!r}", text)
        lines += [f"def {name}{typed}:", f'    """{cls.title}."""', ""]
    ruff = [sys.executable, "-m", "ruff"]
    text = "\n".join(lines)
    for command in (["check", "--fix-only", "--quiet"], ["format"]):
        piped = [*ruff, *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(piped, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
