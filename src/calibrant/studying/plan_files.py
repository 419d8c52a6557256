"""Plans on disk: found by name or file, read at a scale, with the line of every key."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from calibrant.core.config.convert import build
from calibrant.core.config.toml import Table, read_toml
from calibrant.core.errors import unknown_name
from calibrant.studying.plan import Method, Plan

# A preset has its own, or none; other tables are laid over the plan's.
REPLACED = ("methods", "entries", "grid", "means")


def read_plan(path: str | Path, *, scale: str = "paper") -> Plan:
    """A plan from a TOML file, or by its name among those that come with calibrant."""
    return build(Plan, plan_table(find_plan(path), scale))


def plan_table(file: Path, scale: str) -> Table:
    """The table of the plan file at a scale, with the line of every key."""
    table = read_toml(file)
    presets = table.at("scale")
    if scale != "paper" and scale not in presets.values and scale not in (of_recipe := _recipe_scales(table)):
        raise unknown_name("scale", scale, dict.fromkeys(["paper", *presets.values, *of_recipe]))
    chosen = presets.at(scale) if scale in presets.values else Table()
    own = {key: value for key, value in table.values.items() if key not in REPLACED or key not in chosen.values}
    if isinstance(own.get("after"), Mapping):  # its lists and tables are replaced one by one, never joined
        own["after"] = {key: v for key, v in own["after"].items() if key not in chosen.at("after").values}
    merged = chosen.over(Table({**own, "scale": scale}, table.places))
    return Table({**merged.values, "methods": _with_recipes(merged.values.get("methods"))}, merged.places)


def _recipe_scales(table: Table) -> list[str]:
    """Scales that the base recipe has: they reach it even where the plan itself says nothing about them."""
    from calibrant.studying.expand_plan import base_recipe

    base = table.values.get("base")
    return list(base_recipe(base).at("scale").values) if isinstance(base, str) else []


def scales_of(file: Path) -> list[str]:
    return ["paper", *read_toml(file).at("scale").values]


def _with_recipes(methods: Any) -> Any:
    """The table with other keys than `choice`, `only` and `recipe` moved into the recipe."""
    if not isinstance(methods, Mapping):
        return {} if methods is None else methods
    own, complete = {field.name for field in fields(Method)}, {}
    for name, keys in methods.items():
        if not isinstance(keys, Mapping):
            complete[name] = keys
            continue
        recipe = Table({key: value for key, value in keys.items() if key not in own})
        method = {key: value for key, value in keys.items() if key in own}
        if recipe.values and isinstance(method.get("recipe", {}), Mapping):
            method["recipe"] = recipe.over(Table(method.get("recipe", {}))).values
        complete[name] = method
    return complete


def plans_folder() -> Path:
    """The plans that come with calibrant: beside the package when installed, at the root of a clone."""
    package = Path(__file__).parents[1]
    inside = package / "recipes" / "plans"
    return inside if inside.exists() else package.parents[1] / "recipes" / "plans"


def plan_names() -> list[str]:
    return sorted(file.stem for file in plans_folder().glob("*.toml"))


def find_plan(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix == ".toml":
        return file
    named = plans_folder() / f"{file}.toml"
    if not named.exists():
        raise unknown_name("plan", str(path), plan_names())
    return named
