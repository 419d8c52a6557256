"""Train a network by a recipe; a killed training continues from its last checkpoint."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job import Row

VERSION = 1


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Train, and return a row for every epoch of the log."""
    from calibrant.training.loop import train
    from calibrant.training.recipe import Recipe

    trained = train(Recipe.from_dict(dict(options)), folder, device="auto")
    return [
        {name: value for name, value in row.items() if not isinstance(value, list)} for row in trained.log.to_dicts()
    ]
