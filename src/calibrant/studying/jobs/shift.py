"""Predictions of a trained network on another data set, or on corrupted test images."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job import Row

VERSION = 1


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Predict the images of `set`: the name of a data set, or `corrupt NAME:severity=3`."""
    from calibrant.training.predict import predict_run

    kind, _, corruption = options["set"].partition(" ")
    if kind == "corrupt":
        p = predict_run(needs[0], corrupt=corruption)
    else:
        p = predict_run(needs[0], data=options["set"], part="test")
    p.save(folder / "test.npz")
    return [{"n": p.n}]
