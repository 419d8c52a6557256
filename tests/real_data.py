"""Real data beside the repository, which `make slow` uses: no other test reads anything outside the repository.

`$CALIBRANT_REAL_DATA` names the folder; by default it is `../shared/data`. Where it is absent the tests are not run,
and the end of the session says so in capital letters (`ABSENT`, printed by conftest.py).
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("CALIBRANT_REAL_DATA") or ROOT.parent / "shared" / "data")
ABSENT = "REAL DATA ABSENT"


def needs_real_data(name: str):
    """Mark a test as slow, and as not to be run without this folder of real data."""

    def mark(test):
        for one in _marks(FOLDER / name):
            test = one(test)
        return test

    return mark


def real_data(file: Path):
    """One real file as a parameter of a test that also runs on data of the repository."""
    return pytest.param(file, marks=_marks(file))


def _marks(path: Path) -> list[pytest.MarkDecorator]:
    why = f"{ABSENT}: {path.relative_to(FOLDER)}, see tests/real_data.py"
    return [pytest.mark.slow, pytest.mark.skipif(not path.exists(), reason=why)]
