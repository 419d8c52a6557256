"""Predictions of many runs on disk, grouped by a key of their recipe or by the name of a folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.schema import read_json
from calibrant.measuring.table import Runs

FOLDERS: dict[str, Callable[[Path], str]] = {
    "file": lambda file: file.stem,
    "folder": lambda file: file.parent.name,
    "parent": lambda file: file.parent.parent.name,
}


def read_runs(files: Sequence[Path], by: str, load: Callable[[Path], Predictions]) -> dict[str, Runs]:
    """Groups in the order of the files. `by` is "file", "folder", "parent", or a key of the recipe: "data.name".

    A recipe stands in run.json beside the file. It is read, and nothing that it names is run.
    """
    groups: dict[str, list[tuple[Predictions, Any]]] = {}
    for file in files:
        resolved = file.resolve()
        recipe = _recipe(resolved, needed=by not in FOLDERS)
        group = FOLDERS[by](resolved) if by in FOLDERS else _value(file, recipe, by)
        groups.setdefault(group, []).append((load(file), recipe.get("seed")))
    return {group: _runs(rows) for group, rows in groups.items()}


def _runs(rows: Sequence[tuple[Predictions, Any]]) -> Runs:
    seeds = tuple(seed for _, seed in rows if type(seed) is int)
    return Runs(tuple(p for p, _ in rows), seeds if len(seeds) == len(rows) else None)


def _recipe(file: Path, *, needed: bool) -> dict[str, Any]:
    beside = file.parent / "run.json"
    if not beside.is_file():
        if not needed:
            return {}
        fix = "group by the names of folders: --by folder, or --by parent for runs/METHOD/SEED/test.npz"
        raise InputError(str(file), expected="a run.json beside it", got="none", fix=fix)
    found = read_json(beside, expected="a run.json", fix="group by the names of folders: --by folder")
    recipe = found.get("recipe") if isinstance(found, dict) else None
    if not isinstance(recipe, dict):
        raise InputError(str(beside), expected="a recipe in it", got="none", fix="group by folders: --by folder")
    return recipe


def _value(file: Path, recipe: dict[str, Any], key: str) -> str:
    value: Any = recipe
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(list(recipe)[:12])
            raise InputError(
                str(file), expected=f"a key of its recipe ({known})", got=f"'{key}'", fix="use one of them"
            )
        value = value[part]
    return str(value)
