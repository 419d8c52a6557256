"""Data sets and a network that many tests share, and a hypothesis profile with the same examples in every run."""

import os

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from real_data import ABSENT, FOLDER, real_data
from synthetic import DATA, draw_rows, rounded

from calibrant.core.predictions import Predictions
from calibrant.data import DEMO_TEST

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40, database=None)
settings.load_profile("steady")
# Hypothesis likes the constants of all modules that are loaded: what it tries would depend on which tests ran before.
providers._get_local_constants = lambda: providers._local_constants

LOGIT_FILES = sorted((FOLDER / "logits").glob("*.npz")) or [FOLDER / "logits" / "absent.npz"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in capital letters how many tests were not run for want of real data."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    if absent := sum(ABSENT in why for why in skipped):
        terminalreporter.write_line(f"{ABSENT}: {absent} tests were not run (tests/real_data.py)", red=True, bold=True)


@pytest.fixture(autouse=True, scope="session")
def _configuration_of_its_own(tmp_path_factory):
    """Permissions that trainings of the tests write are no business of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(params=DATA)
def any_data(request):
    """Each of the data sets in turn."""
    return DATA[request.param]()


@pytest.fixture(scope="session")
def make_data():
    """One of the data sets by its name."""
    return lambda name: DATA[name]()


@pytest.fixture
def p():
    """A plain data set: 120 rows, 4 classes, overconfident."""
    return Predictions.from_logits(*draw_rows(120, 4, seed=12, sharpness=2.0))


@pytest.fixture
def tied():
    """A data set with many ties and values on bin edges."""
    return Predictions.from_probs(*rounded(64, 4, seed=13))


@pytest.fixture(params=[DEMO_TEST, *(real_data(file) for file in LOGIT_FILES)], ids=lambda file: file.stem)
def real_file(request):
    """Predictions of real networks: those that come with calibrant and, in `make slow`, files beside the repository."""
    return request.param


@pytest.fixture(scope="module")
def one_thread():
    """Threads of torch that wait for each other cost minutes on a busy machine."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """The folder of a small network that is often wrong: trained once for all tests and workers, only read by them."""
    pytest.importorskip("torch")
    from filelock import FileLock  # comes with torch

    from calibrant.training.loop import train
    from calibrant.training.recipe import Data, Optimizer, Recipe

    recipe = Recipe(
        model="resnet_small:depth=8,width=4",
        epochs=2,
        batch=32,
        data=Data(name="fashion_mini", split="5:1", limit=200, test_limit=150),
        optimizer=Optimizer(lr=0.01),
    )
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers
    with FileLock(shared / "small_run.lock"):
        return train(recipe, shared / "small_run", device="cpu").folder  # a finished run is not trained again
