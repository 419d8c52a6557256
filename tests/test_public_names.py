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
CATALOGUES = sorted(file.parent.name for file in PACKAGE.glob("*/__init__.py") if "CATALOGUE" in file.read_text())
EXCEPTIONS = {("intervals.md", "calibrant.core.intervals")}  # the page takes an interval apart, step by step


def deep_imports(text):
    """Modules of the package that a text imports from, other than the package itself and its catalogues."""
    usual = {"calibrant", *(f"calibrant.{name}" for name in CATALOGUES)}
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
        ">>> from calibrant.core.map import Map",
        "    import calibrant.core",
        "from calibrant.measures.ece import ECE",
    ],
)
def test_an_import_from_below_is_seen(line):
    assert deep_imports(f"import calibrant as cal\nfrom calibrant.measures import Measure\n{line}\n")


def test_every_catalogue_is_a_public_name():
    assert sorted(calibrant._CATALOGUES) == CATALOGUES


def test_all_names_are_listed_once_and_in_dir():
    assert len(set(calibrant.__all__)) == len(calibrant.__all__)
    assert set(calibrant.__all__) == {*calibrant._HOME_OF, *calibrant._CATALOGUES}
    assert set(calibrant.__all__) < set(dir(calibrant))


def test_types_come_from_where_the_names_do():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {node.module: tuple(name.name for name in node.names) for node in block.body}
    homes = {f"calibrant.{home}": names for home, names in calibrant._HOMES.items()}
    assert typed == homes | {"calibrant": calibrant._CATALOGUES}


def test_what_a_public_function_returns_has_a_public_name():
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    public = [getattr(calibrant, name) for name in calibrant.__all__]
    for function in filter(inspect.isfunction, public):
        returned = inspect.signature(function).return_annotation
        for kind in (returned, *get_args(returned)):
            if inspect.isclass(kind) and kind.__module__.startswith("calibrant."):
                assert kind in public, f"{function.__name__} returns {kind.__name__}, which calibrant does not have"


def test_a_name_that_is_not_there_is_said_to_be_missing():
    with pytest.raises(AttributeError, match="module 'calibrant' has no attribute 'measur'"):
        calibrant.measur  # noqa: B018
