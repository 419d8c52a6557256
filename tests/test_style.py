"""Format, lint, types and the length of files are tests too, so that one command checks everything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "calibrant"
MOST_LINES = 280  # "up to about 250": a file beyond holds more than one concept
# To be split: take a name out once its file is short, and add none.
LONG = {
    "cli/measuring.py",
    "measuring/accumulate.py",
}


@pytest.mark.parametrize(
    "command", ["ruff format --check .", "ruff check .", pytest.param("mypy", marks=pytest.mark.long)]
)
def test_the_code_is_clean(command):
    tool, *args = command.split()
    pytest.importorskip(tool)
    if tool == "mypy":
        pytest.importorskip("torch", reason="strict is about its classes too")
    done = subprocess.run([sys.executable, "-m", tool, *args], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_holds_one_concept():
    lines = {file.relative_to(PACKAGE).as_posix(): file.read_text().count("\n") for file in PACKAGE.rglob("*.py")}
    assert len(lines) > 40
    assert {name: count for name, count in lines.items() if count > MOST_LINES and name not in LONG} == {}
