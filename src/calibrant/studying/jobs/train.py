"""Train a network by a recipe; a killed training continues from its last checkpoint."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job_kinds import Row
from calibrant.training.recipe import Recipe, recipe_sources


def entries(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the rows, and files of the user."""
    return recipe_sources(Recipe.from_dict(dict(options)))


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Train, and return a row for every epoch of the log."""
    from calibrant.training.loop import train

    trained = train(Recipe.from_dict(dict(options)), folder, device="auto")
    return [
        {name: value for name, value in row.items() if not isinstance(value, list)} for row in trained.log.to_dicts()
    ]
