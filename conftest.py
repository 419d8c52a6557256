"""Names that every doctest may use."""

import pytest
import torch

import calibrant


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["Predictions"] = calibrant.Predictions
    doctest_namespace["cal"] = calibrant
    doctest_namespace["torch"] = torch
