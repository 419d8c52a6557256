"""Imports point down only, as docs/structure.md says: one test without exceptions, on every file of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "calibrant"

# From the top down; `__init__` is the package root. Rooms on one line never import each other.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("app",),
    ("__init__", "types"),
    ("nas",),
    ("studying",),
    ("reporting", "rescoring"),
    ("plotting", "training"),
    ("monitoring", "repairing"),
    ("streaming", "deciding"),
    ("metrics",),
    ("measuring",),
    ("measures", "calibrators", "rescorers", "losses", "models", "datasets", "corruptions", "figures"),
    ("core",),
    ("data",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
WITH_TORCH = {"losses", "models", "rescorers", "training", "rescoring", "studying", "nas", "__init__", "cli"}
TORCH = ("torch", "lightning", "pytorch_lightning", "safetensors")
LATE_IN_CORE = {"scipy", "polars"}  # only inside functions, so that `import calibrant` stays light

# A value, the formats it is saved in and its views: its method loads the format or view, which reads the value.
FORMATS = {
    "reporting.report": ("reporting.write", "reporting.page", "reporting.markdown"),
    "reporting.board.board": ("reporting.board.formats", "reporting.board.page", "reporting.board.sentences"),
    "core.maps.map": ("core.maps.export_check", "core.torch.map_module"),
    "core.predictions.predictions": (
        "core.predictions",
        "core.io.save",
        *(f"core.predictions.views.{view}" for view in ("curves", "outcomes", "probabilities")),
    ),
}


def problems(source: str, file: str) -> list[str]:
    """What the imports of a file (its path inside the package) break, as sentences."""
    room = Path(file).parts[0].removesuffix(".py")
    if room not in LEVEL:
        return [f"{room} is in no layer: add the room to LAYERS"]
    messages, below_torch = [], file.startswith("core/torch/")
    for node, early in imports(ast.parse(source)):
        for module in targets(node):
            top, _, rest = module.partition(".")
            where = f"line {node.lineno}: {file} imports {module or 'a relative name'}"
            other = rest.partition(".")[0] if rest.partition(".")[0] in LEVEL else "__init__"
            if not top:
                messages.append(f"{where}: write the whole name, calibrant.{room}...")
            elif top == "calibrant" and other != room and LEVEL[other] <= LEVEL[room]:
                messages.append(f"{where}: imports point down only")
            elif top == "calibrant" and other != room and any(part.startswith("_") for part in rest.split(".")[1:]):
                messages.append(f"{where}: a private name of another room; what two rooms need sinks to core")
            elif rest.startswith("core.torch") and not below_torch and early and room not in WITH_TORCH:
                messages.append(f"{where} when it is loaded: this room works without torch")
            elif top.startswith(TORCH) and room not in WITH_TORCH and not below_torch:
                messages.append(f"{where}: this room works without torch")
            elif room == "core" and not below_torch and early and top in LATE_IN_CORE:
                messages.append(f"{where} when it is loaded: import it inside the function that needs it")
    return messages


def imports(tree: ast.AST, early: bool = True) -> Iterator[tuple[Any, bool]]:
    """Every import below `tree`, and whether it runs when the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or _hidden(node):
            yield node, early
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for part in node.body:
                yield from imports(ast.Module([part], []), early=False)
            for part in node.orelse:
                yield from imports(ast.Module([part], []), early)
        else:
            inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, early and not inside_function)


def targets(node: Any) -> list[str]:
    """Full names of what is imported; an empty one for a relative import."""
    if isinstance(node, ast.Call):
        return [_hidden(node)]
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if node.level:
        return [""]
    if node.module == "calibrant":  # `from calibrant import measures` is the room, not the root
        return [f"calibrant.{name.name}" for name in node.names]
    if str(node.module).startswith("calibrant."):  # `from calibrant.measures import _base` is a module too
        return [f"{node.module}.{name.name}" for name in node.names]
    return [str(node.module)]


def _hidden(node: ast.AST) -> str:
    """The module of `import_module("calibrant...")` or `__import__("...")`, with the name written out."""
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr):
        called = ast.unparse(node.func).rpartition(".")[2]
        name = node.args[0].value if isinstance(node.args[0], ast.Constant) else ast.unparse(node.args[0])[2:-1]
        if called in ("import_module", "__import__") and str(name).startswith("calibrant"):
            return str(name)
    return ""


def cycles(sources: dict[str, str]) -> set[frozenset[str]]:
    """Groups of modules that import each other, by whatever way, early or late."""
    ahead = {}
    for module, source in sources.items():
        found = (target for node, _ in imports(ast.parse(source)) for target in targets(node))
        ahead[module] = {known for target in found if (known := _module(target, sources)) not in ("", module)}
    for middle in sources:
        for module, reached in ahead.items():
            if middle in reached:
                ahead[module] = reached | ahead[middle]
    return {frozenset(other for other in ahead[m] if m in ahead[other]) for m in sources if m in ahead[m]}


def _module(target: str, known: dict[str, str]) -> str:
    """The module that an import loads: `calibrant.measures.make` is a name in `calibrant.measures`."""
    name = target.removeprefix("calibrant.")
    return next((one for one in (name, name.rpartition(".")[0]) if one in known), "")


def test_only_a_value_and_its_formats_import_each_other():
    files = {f: ".".join(f.relative_to(PACKAGE).with_suffix("").parts) for f in PACKAGE.rglob("*.py")}
    sources = {name.removesuffix(".__init__"): f.read_text() for f, name in files.items()}
    assert cycles(sources) == {frozenset((value, *formats)) for value, formats in FORMATS.items()}


def test_a_cycle_is_seen_however_it_is_hidden():
    late = "def f():\n    from calibrant.b import name"
    typed = "if TYPE_CHECKING:\n    from calibrant.c import name"
    assert cycles({"a": late, "b": typed, "c": "import calibrant.a", "d": "import calibrant.a"}) == {frozenset("abc")}
    assert cycles({"a": late, "b": "", "c": typed}) == set()


def test_imports_point_down_only():
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 40
    assert [problem for f in files for problem in problems(f.read_text(), f.relative_to(PACKAGE).as_posix())] == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("core", "from calibrant.measures.ece import ECE"),
        ("core", "def f():\n    import calibrant.measures.ece"),
        ("core", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from calibrant.reporting import text"),
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
        ("reporting", "if TYPE_CHECKING:\n    import torch"),
        ("reporting", "import torchmetrics"),
        ("measuring", "from calibrant.training.loop import run"),
        ("studying", "from calibrant.nas.table import read_table"),
        ("losses", "from calibrant.models.resnet import ResNet"),
        ("studying", "from calibrant.cli import main"),
        ("__init__", "from calibrant.cli import main"),
        ("data", "from calibrant.core.errors import InputError"),
        ("reporting", "from calibrant.measures._base import Measure"),
        ("reporting", "from calibrant.measures import _base"),
        ("reporting", "from calibrant.measuring.compare import _better"),
        ("core", 'import importlib\nimportlib.import_module("calibrant.measures.ece")'),
        ("calibrators", 'from importlib import import_module\nimport_module(f"calibrant.repairing.{name}")'),
        ("measures", "from calibrant.core.torch.layers import frozen"),
        ("helpers", "import numpy"),
    ],
)
def test_a_violation_is_found(room, source):
    [problem] = problems(source, room)
    assert ("in no layer" in problem) == (room == "helpers")


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
        ("cli", "import calibrant as cal\nfrom calibrant.data import DEMO_TEST\nfrom calibrant.reporting import text"),
        ("__init__", "from calibrant import measures\nfrom calibrant.core.errors import InputError"),
        ("__main__", "from calibrant.cli import main"),
    ],
)
def test_what_is_allowed_passes(room, source):
    assert problems(source, room) == []
