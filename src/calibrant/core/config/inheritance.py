"""TOML files that build on others (`extends`), and files of choices in which every combination has a name.

`[choices.data.cifar10]` and `[choices.loss.ce]` hold keys that replace the file's own, so `FILE/cifar10-ce` is the file
with both. A choice may say what it goes with (`with.data = ["cifar10"]`), the title of the file names the choices'
titles (`"{loss} on {data}"`), and `[exceptions."cifar10-*"]` replaces keys where names match, after all choices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from calibrant.core.config.convert import build
from calibrant.core.config.toml import Table, read_toml, show_value
from calibrant.core.errors import InputError, unknown_name

MOST_COMBINATIONS = 10_000


@dataclass(frozen=True)
class ConfigSource:
    """A file, and the combination of its choices that was asked for, if any."""

    file: Path
    combination: str = ""


def find(name: str, folders: Sequence[Path]) -> ConfigSource | None:
    """`meta`, `meta.toml` or `meta/cifar10-ce` in the first folder that has it; the last is a choice in meta.toml."""
    if not name or "\0" in name:
        return None
    for folder in folders:
        for file in (folder / name, folder / f"{name}.toml"):
            if file.is_file():
                return ConfigSource(file)
        above = name
        while "/" in above:
            above = above.rpartition("/")[0]
            if above and (file := folder / f"{above.removesuffix('.toml')}.toml").is_file():
                return ConfigSource(file, name[len(above) + 1 :].removesuffix(".toml"))
    return None


def load(source: ConfigSource, folders: Sequence[Path], below: tuple[ConfigSource, ...] = ()) -> Table:
    """The table of a file over the one it extends, with the choices that were asked for."""
    table = read_toml(source.file)
    below = (*below, ConfigSource(source.file.resolve(), source.combination))
    if "extends" in table.values:
        base = _base(table, source.file, folders)
        if ConfigSource(base.file.resolve(), base.combination) in below:
            way = " -> ".join(f.file.name for f in (*below, base))
            error = InputError(
                "extends", expected="a file that does not build on this one", got=way, fix="cut the ring"
            )
            raise InputError.inside(table.place(("extends",)), error)
        table = table.without("extends").over(load(base, folders, below))
    return _choose(table, source.combination) if source.combination else table


def combinations(table: Table) -> dict[str, dict[str, str]]:
    """Names of the combinations, each with what it chooses."""
    axes = build(dict[str, dict[str, dict[str, Any]]], table.at("choices"))
    if math.prod(map(len, axes.values())) > MOST_COMBINATIONS:
        got = " x ".join(str(len(choices)) for choices in axes.values())
        error = InputError("choices", expected=f"at most {MOST_COMBINATIONS:,} combinations", got=got, fix="make fewer")
        raise InputError.inside(table.place(("choices",)), error)
    partners = {
        (axis, key): _partners(table.at("choices", axis, key), axes) for axis, keys in axes.items() for key in keys
    }
    every = (dict(zip(axes, keys, strict=True)) for keys in product(*axes.values()))
    return {
        "-".join(chosen.values()): chosen
        for chosen in every
        if all(chosen[other] in keys for pair in chosen.items() for other, keys in partners[pair].items())
    }


def ask_for_choices(table: Table, name: str) -> InputError:
    """The error for a file whose choices were not made."""
    first = next(iter(combinations(table)), "...")
    return InputError(name, expected=_list_choices(table), got="none", fix=f"write {name}/{first}, say")


def _list_choices(table: Table) -> str:
    every = [f"{axis} ({', '.join(choices)})" for axis, choices in table.at("choices").values.items()]
    return f"a choice of {' and '.join(every)}"


def _base(table: Table, file: Path, folders: Sequence[Path]) -> ConfigSource:
    name = table.values["extends"]
    base = find(name, [file.parent, *folders]) if isinstance(name, str) else None
    if base is None:
        error = InputError(
            "extends", expected="a file or a recipe", got=f"{show_value(name)}: no such file", fix="check it"
        )
        raise InputError.inside(table.place(("extends",)), error)
    return base


def _choose(table: Table, name: str) -> Table:
    every = combinations(table)
    if name not in every:
        raise InputError.inside(table.place(()), unknown_name("choices", name, every, _list_choices(table)))
    return choose(table, every[name])


def choose(table: Table, choices: Mapping[str, str]) -> Table:
    """The table with these choices, one a kind; kinds that are not named stay as the file has them."""
    merged, title = table.without("choices", "exceptions"), {}
    for axis, key in choices.items():
        choice = table.at("choices", axis, key)
        title[axis] = choice.values.get("title", key)
        merged = choice.without("title", "with").over(merged)
    for pattern in table.at("exceptions").values:
        if fnmatchcase("-".join(choices.values()), pattern):
            merged = table.at("exceptions", pattern).over(merged)
    if isinstance(text := merged.values.get("title"), str):
        for axis, part in title.items():
            text = text.replace("{" + axis + "}", str(part))
        merged = Table({**merged.values, "title": text}, merged.places)
    return merged


def _partners(choice: Table, axes: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The choices of other kinds that a choice goes with, where it names some."""
    partners = build(dict[str, list[str]], choice.at("with"))
    for axis, keys in partners.items():
        for known, name in ((axes, axis), *((axes.get(axis, {}), key) for key in keys)):
            if name not in known:
                raise InputError.inside(choice.place(("with", axis)), unknown_name("with", name, known))
    return partners
