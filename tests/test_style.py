"""Format, lint and types are tests too, so that one command checks everything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


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
