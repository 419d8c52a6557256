"""Every name that users type comes from `calibrant` itself: typed, in dir(), and the only way that pages show."""

import ast
import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

import calibrant

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "calibrant"
SHOWN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.py"))]
IMPORT = re.compile(r"^\s*(?:>>> |\.\.\. )?(?:from (calibrant[\w.]*) import|import (calibrant[\w.]*))", re.M)
CATALOGUES = sorted(
    ".".join(file.parent.relative_to(PACKAGE).parts)
    for file in PACKAGE.rglob("__init__.py")
    if file.parent != PACKAGE and "CATALOGUE" in file.read_text()
)
EXCEPTIONS = {  # the page takes an interval apart, step by step
    ("intervals.md", f"calibrant.core.statistics.{name}") for name in ("estimate", "sampling")
}


def public_homes():
    """Every public name of the stub, and the module that it comes from."""
    homes = {}
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                homes[alias.name] = f"calibrant.{node.module}" if node.module else f"calibrant.{alias.name}"
    return homes


def deep_imports(text):
    """Modules of the package that a text imports from, other than the package itself and its catalogues."""
    usual = {"calibrant", "calibrant.nas", "calibrant.training", *(f"calibrant.{name}" for name in CATALOGUES)}
    return {a or b for a, b in IMPORT.findall(text)} - usual


@pytest.mark.parametrize("file", SHOWN, ids=lambda file: file.name)
def test_what_we_show_is_imported_from_the_top(file):
    assert {(file.name, module) for module in deep_imports(file.read_text())} <= EXCEPTIONS


def test_every_exception_is_still_there():
    assert {(file.name, module) for file in SHOWN for module in deep_imports(file.read_text())} == EXCEPTIONS


@pytest.mark.parametrize(
    "line",
    [
        "from calibrant.training.meta import MetaStep",
        ">>> from calibrant.core.maps.map import Map",
        "    import calibrant.core",
        "from calibrant.measures.ece import ECE",
    ],
)
def test_an_import_from_below_is_seen(line):
    assert deep_imports(f"import calibrant as cal\nfrom calibrant.measures import Measure\n{line}\n")


def test_every_catalogue_is_a_public_name():
    assert CATALOGUES
    assert {name.partition(".")[0] for name in CATALOGUES} < set(calibrant.__all__)


def test_all_names_are_listed_once_and_in_dir():
    assert len(set(calibrant.__all__)) == len(calibrant.__all__)
    assert set(calibrant.__all__) == set(public_homes())
    assert set(calibrant.__all__) <= set(dir(calibrant))


def test_names_in_the_stub_are_reexported_under_their_own_name():
    """mypy hides `import x` in a stub unless it says `import x as x`."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            assert [alias.asname for alias in node.names] == [alias.name for alias in node.names]


def test_there_are_few_names_to_learn():
    """Functions and classes; a catalogue or another module is one word with names of its own."""
    modules = {path.stem for path in PACKAGE.iterdir()} - {"__init__"}
    names = set(calibrant.__all__) - modules
    assert 30 < len(names) <= 45
    plurals = {name for name in names if f"{name}s" in names}
    assert plurals <= {"Accumulator"}  # one for each key


def test_what_a_public_function_returns_has_a_public_name():
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    rooms = (calibrant, calibrant.types)
    public = [getattr(room, name) for room in rooms for name in room.__all__]
    for function in filter(inspect.isfunction, public):
        returned = inspect.signature(function).return_annotation
        for kind in (returned, *get_args(returned)):
            if inspect.isclass(kind) and kind.__module__.startswith("calibrant."):
                assert kind in public, f"{function.__name__} returns {kind.__name__}, which calibrant does not have"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("ece", "on arrays it is calibrant.metrics.ece, with an interval calibrant.measure(p, 'ece')"),
        ("auc", "calibrant.metrics.roc_auc"),
        ("ECE", "it is calibrant.measures.ECE"),
        ("Temperature", "it is calibrant.calibrators.Temperature"),
        ("measur", "did you mean 'measure'?"),
        ("Measurement", "it is calibrant.types.Measurement"),
    ],
)
def test_a_name_that_is_not_at_the_top_says_where_it_is(name, place):
    with pytest.raises(AttributeError, match=re.escape(f"module 'calibrant' has no attribute '{name}': ") + ".*") as e:
        getattr(calibrant, name)
    assert place in str(e.value)


def test_a_loss_says_where_it_is():
    pytest.importorskip("torch")
    with pytest.raises(AttributeError, match=r"it is calibrant\.losses\.Focal$"):
        calibrant.Focal  # noqa: B018


def test_a_name_that_means_nothing_is_missing():
    with pytest.raises(AttributeError, match=r"^module 'calibrant' has no attribute 'zzz'$"):
        calibrant.zzz  # noqa: B018
