"""Predictions of a trained network on another data set, or on corrupted test images."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.datasets import plain_spec, user_root
from calibrant.studying.job_kinds import Row


def entries(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the rows."""
    kind, _, corruption = options["set"].partition(" ")
    if kind == "corrupt":
        yield "corruptions", corruption
        return
    data = plain_spec(options["set"])
    yield "datasets", data
    if root := user_root(data):
        yield "files", root


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
