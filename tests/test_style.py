"""Format, lint and types are tests too, so that one command checks everything."""

import ast
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


def test_values_of_more_than_five_fields_are_built_by_keyword():
    """Entries of catalogues are not: their one usual option may stand alone (`Temperature()`, `ECE(30)`)."""
    positional = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        for cls in (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)):
            decorators = [text for text in map(ast.unparse, cls.decorator_list) if text.startswith("dataclass")]
            fields = [ast.unparse(node) for node in cls.body if isinstance(node, ast.AnnAssign)]
            given = [field for field in fields if "ClassVar" not in field and "init=False" not in field]
            is_entry = any("ClassVar" in field and field.startswith("title:") for field in fields)
            if decorators and len(given) > 5 and "kw_only=True" not in decorators[0] and not is_entry:
                positional.append(f"{file.name}: {cls.name}")
    assert positional == []
