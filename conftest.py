"""What holds before the first import: one thread a process, a seed for every test, and names every doctest may use."""

import os
import random
import sys
from importlib.util import find_spec

import pytest

# Before numpy and torch: each worker has a core, and threads that wait for each other cost minutes on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import calibrant

SEED = 1  # of the order of tests, unless --randomly-seed says another

# Files that cannot be imported without an extra, and so have no examples to collect. Tests of them skip themselves.
collect_ignore_glob = ["src/calibrant/repairing/sklearn.py"] if find_spec("sklearn") is None else []
if find_spec("torch") is None:
    rooms = ("losses", "models", "rescorers", "rescoring", "training", "studying", "nas", "core/torch")
    collect_ignore_glob += [f"src/calibrant/{room}/*" for room in rooms]
collect_ignore_glob += [
    f"src/calibrant/app/{name}.py" for name in ("*_tab", "page", "tell", "space/app")
]  # load gradio


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """The same order in every run, if nothing else is asked for: a failure can be repeated."""
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = SEED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of many seconds begin first, so that no worker waits for another at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if seed := getattr(config.option, "randomly_seed", None):
        terminalreporter.write_line(f"order of tests by --randomly-seed={seed}")


@pytest.fixture(autouse=True)
def _seed() -> None:
    """What a test draws without a seed of its own is the same in every order, and alone."""
    random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["Predictions"] = calibrant.Predictions
    doctest_namespace["cal"] = calibrant
    if torch := sys.modules.get("torch"):  # loaded by the module whose example this is, if it needs it
        doctest_namespace["torch"] = torch
