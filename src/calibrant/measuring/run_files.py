"""Predictions of many runs on disk, grouped by a key of their recipe or by the name of a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.json import read_json
from calibrant.core.predictions import Predictions
from calibrant.measuring.table import Runs

FOLDERS: dict[str, Callable[[Path], str]] = {
    "file": lambda file: file.stem,
    "folder": lambda file: file.parent.name,
    "parent": lambda file: file.parent.parent.name,
}
SAME_METHOD = ("seed", "title")  # keys of a recipe in which runs of one method may differ


def read_runs(files: Sequence[Path], by: str, load: Callable[[Path], Predictions]) -> dict[str, Runs]:
    """Read predictions of many runs, grouped, with the groups in the order of the files.

    `by` is "file", "folder", "parent", or a key of the recipe: "data.name".

    Runs of one group differ in nothing but their seed: where other keys of their recipes differ, the group is split,
    and its name says by what ("focal, data.name=fashion"). A recipe stands in run.json beside the file. It is read, and
    nothing that it names is run.
    """
    groups: dict[str, list[_LoadedRun]] = {}
    for file in files:
        resolved = file.resolve()
        recipe = _recipe(resolved, needed=by not in FOLDERS)
        group = FOLDERS[by](resolved) if by in FOLDERS else _value(file, recipe, by)
        groups.setdefault(group, []).append(_LoadedRun(load(file), recipe))
    return {name: _runs(runs) for group, pooled in groups.items() for name, runs in _split(group, pooled).items()}


@dataclass(frozen=True)
class _LoadedRun:
    predictions: Predictions
    recipe: dict[str, Any]


def _split(group: str, runs: Sequence[_LoadedRun]) -> dict[str, list[_LoadedRun]]:
    """The runs of a group by every key in which their recipes differ, seeds and titles apart."""
    keys = [{key: value for key, value in _flat(run.recipe).items() if key not in SAME_METHOD} for run in runs]
    known = dict.fromkeys(key for recipe in keys for key in recipe)
    differing = [key for key in known if len({recipe.get(key, "-") for recipe in keys}) > 1]
    parts: dict[str, list[_LoadedRun]] = {}
    for run, recipe in zip(runs, keys, strict=True):
        name = ", ".join([group, *(f"{key}={recipe.get(key, '-')}" for key in differing)])
        parts.setdefault(name, []).append(run)
    return parts


def _flat(recipe: dict[str, Any], before: str = "") -> dict[str, str]:
    """Every value of a recipe as text, by its full key ("data.name")."""
    flat: dict[str, str] = {}
    for key, value in recipe.items():
        flat |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": str(value)}
    return flat


def _runs(runs: Sequence[_LoadedRun]) -> Runs:
    seeds = tuple(run.recipe["seed"] for run in runs if type(run.recipe.get("seed")) is int)
    return Runs(tuple(run.predictions for run in runs), seeds if len(seeds) == len(runs) else None)


def _recipe(file: Path, *, needed: bool) -> dict[str, Any]:
    beside = file.parent / "run.json"
    if not beside.is_file():
        if not needed:
            return {}
        fix = "group by the names of folders: --by folder, or --by parent for runs/METHOD/SEED/test.npz"
        raise InputError(str(file), expected="a run.json beside it", got="none", fix=fix)
    document = read_json(beside, expected="a run.json", fix="group by the names of folders: --by folder")
    recipe = document.get("recipe") if isinstance(document, dict) else None
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
