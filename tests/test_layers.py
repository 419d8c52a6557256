"""Imports point down only: DESIGN's one small test with no exceptions, on every file of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "calibrant"

# From the top down; `__init__` is the package root. Rooms on one line never import each other.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("demo", "sklearn"),
    ("__init__",),
    ("study",),
    ("sources",),
    ("report", "train", "network"),
    ("measures", "calibrators", "figures", "questions", "losses", "models", "datasets", "corruptions"),
    ("core",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
WITHOUT_TORCH = {"core", "measures", "calibrators", "figures", "questions", "report", "datasets", "corruptions"}
LATE_IN_CORE = {"scipy", "polars"}  # only inside functions, so that `import calibrant` stays light


def problems(source: str, room: str) -> list[str]:
    """What the imports of a file in `room` break, as sentences."""
    if room not in LEVEL:
        return [f"{room} is in no layer: add the room to LAYERS"]
    found = []
    for node, early in imports(ast.parse(source)):
        for module in targets(node):
            top, _, rest = module.partition(".")
            where = f"line {node.lineno}: {room} imports {module or 'a relative name'}"
            if not top:
                found.append(f"{where}: write the whole name, calibrant.{room}...")
            elif top == "calibrant":
                other = rest.partition(".")[0]
                other = other if other in LEVEL else "__init__"
                if other != room and LEVEL[other] <= LEVEL[room]:
                    found.append(f"{where}: imports point down only")
            elif room in WITHOUT_TORCH and top.startswith(("torch", "lightning")):
                found.append(f"{where}: this room works without torch")
            elif room == "core" and early and top in LATE_IN_CORE:
                found.append(f"{where} when it is loaded: import it inside the function that needs it")
    return found


def imports(tree: ast.AST, early: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import below `tree`, and whether it runs when the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, early
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for part in node.body:
                yield from imports(ast.Module([part], []), early=False)
            for part in node.orelse:
                yield from imports(ast.Module([part], []), early)
        else:
            inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, early and not inside_function)


def targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Full names of what is imported; an empty one for a relative import."""
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if node.level:
        return [""]
    if node.module == "calibrant":  # `from calibrant import measures` is the room, not the root
        return [f"calibrant.{name.name}" for name in node.names]
    return [str(node.module)]


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_imports_point_down_only():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 40
    assert [
        f"{f.relative_to(PACKAGE)}, {problem}" for f in files for problem in problems(f.read_text(), room_of(f))
    ] == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("core", "from calibrant.measures.ece import ECE"),
        ("core", "def f():\n    import calibrant.measures.ece"),
        ("core", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from calibrant.report import text"),
        ("core", "import calibrant"),
        ("core", "from calibrant import Predictions"),
        ("core", "import scipy.special"),
        ("core", "from polars import DataFrame"),
        ("core", "try:\n    import scipy\nexcept ImportError:\n    pass"),
        ("core", "class A:\n    import scipy"),
        ("core", "if TYPE_CHECKING:\n    pass\nelse:\n    import polars"),
        ("core", "from .predictions import Predictions"),
        ("measures", "from calibrant.calibrators.temperature import Temperature"),
        ("measures", "from calibrant import figures"),
        ("measures", "def f():\n    import torch"),
        ("measures", "async def f():\n    from torch.nn import functional"),
        ("report", "if TYPE_CHECKING:\n    import torch"),
        ("report", "import torchmetrics"),
        ("report", "from calibrant.train.loop import run"),
        ("losses", "from calibrant.models.resnet import ResNet"),
        ("study", "from calibrant.cli import main"),
        ("__init__", "from calibrant.demo import PATH"),
        ("helpers", "import numpy"),
    ],
)
def test_a_violation_is_found(room, source):
    assert len(problems(source, room)) == 1


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("core", "import numpy as np\nfrom calibrant.core.errors import InputError"),
        ("core", "def f():\n    from scipy.special import logsumexp\n    import polars"),
        ("core", "if TYPE_CHECKING:\n    import polars as pl"),
        (
            "measures",
            "import scipy\nfrom calibrant.core.curve import Curve\nfrom calibrant.measures._base import Measure",
        ),
        ("losses", "import torch"),
        ("cli", "import calibrant as cal\nfrom calibrant.demo import PATH\nfrom calibrant.report import text"),
        ("__init__", "from calibrant import measures\nfrom calibrant.core.errors import InputError"),
        ("__main__", "from calibrant.cli import main"),
    ],
)
def test_what_is_allowed_passes(room, source):
    assert problems(source, room) == []
