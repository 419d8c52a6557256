"""Tests of the engine run jobs of tests/job_package, here and in the processes they start."""

import os
from pathlib import Path

import pytest

JOBS = Path(__file__).parent.parent / "job_package"


@pytest.fixture(scope="session", autouse=True)
def _trial_jobs():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(JOBS))
        patch.setenv("PYTHONPATH", str(JOBS), prepend=os.pathsep)
        yield
