"""Predictions of a network on a part of its own images, with features."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job_kinds import Row


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Predict the images of `part` (train, val or test) into a file of that name."""
    from calibrant.training.predict import predict_run

    p = predict_run(needs[0], part=options["part"])
    p.save(folder / f"{options['part']}.npz")
    return [{"n": p.n}]
