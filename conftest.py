"""Names that every doctest may use."""

import os

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: threads that spin starve a busy machine
import torch

import calibrant


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["Predictions"] = calibrant.Predictions
    doctest_namespace["cal"] = calibrant
    doctest_namespace["torch"] = torch
