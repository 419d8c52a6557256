"""Expand a plan into jobs: a training for every cell, then shifts, rescorers and measuring everything."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from calibrant.core.config import code_trust
from calibrant.core.config.inheritance import ConfigSource, choose, combinations, load
from calibrant.core.config.toml import Table
from calibrant.core.errors import InputError, unknown_name
from calibrant.studying.job import Job
from calibrant.studying.plan import Label, Plan, among
from calibrant.studying.sources import Sources
from calibrant.training.recipe import Recipe, name_entries, recipe_of, recipes_folder

NOT_DECISIVE = ("title", "paper", "scale")  # words about a recipe: they change no result
AXES = ("data", "model")
RECIPE_KEYS = [field.name for field in fields(Recipe)]


@dataclass(frozen=True)
class StudyCell:
    """One training of a study with the jobs on its result; `judge` is the job that writes the rows."""

    method: str
    place: dict[str, Label]
    recipe: Recipe
    jobs: tuple[Job, ...]  # in an order in which they can run
    judge: Job


def cells_of(plan: Plan, sources: Sources | None = None) -> tuple[StudyCell, ...]:
    """Every training of a plan with its jobs, by the sources that are on the disk or by others."""
    return _expand(plan, sources)


@lru_cache(maxsize=16)  # a plan never changes: checks, estimates and the run itself share one expansion
def _expand(plan: Plan, stored: Sources | None) -> tuple[StudyCell, ...]:
    sources = Sources() if stored is None else stored
    return tuple(
        _cell(plan, method, place, recipe_in(plan, method, place), sources)
        for method, place in plan.cells()
        if _is_offered(plan, method, place)
    )


def check_code(plan: Plan, file: Path) -> frozenset[str]:
    """Refuse a plan that names code (`./mine.py`, `package.module:callable`, `hf:NAME`), itself or in its base recipe.

    Inside `allow_code` it is trusted; this is remembered until one of them changes. Gives all that was looked at.
    """
    check_rescorers(plan, file)
    after, specs = plan.after, _rescorers(plan)
    lists = {"calibrators": after.calibrators, "measures": after.measures}
    specs |= {f"after.{key}.{number}": spec for key, entries in lists.items() for number, spec in enumerate(entries)}
    specs |= {f"after.shifts.{name}": shift.set for name, shift in after.shifted.items()}
    specs |= {f"alike.{name}.model": spec for name, spec in plan.alike.items()}
    seen = {(_is_model(key), spec) for key, spec in specs.items()}
    for cell in cells_of(plan):  # every text that a job gets, filled in as it gets it: no kind of option is forgotten
        texts = [
            *name_entries(cell.recipe).items(),
            *(text for job in cell.jobs for text in code_trust.texts(job.options)),
        ]
        for key, spec in texts:
            if (_is_model(key), spec) not in seen:
                seen.add((_is_model(key), spec))
                specs[f"methods.{cell.method} ({_words(cell.place)}).{key}"] = spec
    code_trust.check(file, [asdict(plan), specs], specs)
    return frozenset(specs.values())


def check_rescorers(plan: Plan, file: Path) -> None:
    """Refuse rescorers that are code: of halves, a plan expands by what its rescorers say themselves."""
    if plan.after.halves:
        code_trust.check(file, [asdict(plan), _rescorers(plan)], _rescorers(plan))


def _rescorers(plan: Plan) -> dict[str, str]:
    return {f"after.rescorers.{name}": spec for name, spec in plan.after.rescorers.items()}


def _is_model(key: str) -> bool:
    """Whether a network is named, which may also be written as a call."""
    return key.rpartition(".")[2] == "model"


def needs_code(plan: Plan) -> bool:
    """Whether networks must be built by code that is not ours, even to estimate the time of their trainings."""
    return any(
        code_trust.would_run(cell.recipe.model, model=True) and cell.recipe.model not in plan.alike
        for cell in cells_of(plan)
    )


def _words(place: dict[str, Label]) -> str:
    return ", ".join(f"{key} {value}" for key, value in place.items())


def jobs_of(plan: Plan, sources: Sources | None = None) -> Iterator[Job]:
    """All jobs of the cells, each once."""
    seen = set()
    for cell in cells_of(plan, sources):
        for job in cell.jobs:
            if job.key not in seen:
                seen.add(job.key)
                yield job


def _is_offered(plan: Plan, method: str, place: dict[str, Label]) -> bool:
    """Whether the base recipe has this combination, where all of it is the recipe's own choice."""
    table = base_recipe(plan.base)
    axes = table.at("choices").values
    choices = {**{axis: str(place.get(axis)) for axis in AXES}, "method": plan.methods[method].choice}
    chosen = {axis: choices.get(axis, "") for axis in axes}
    if any(chosen[axis] not in axes[axis] for axis in axes):
        return True
    return "-".join(chosen.values()) in _combinations(plan.base)


@cache
def _combinations(base: str) -> set[str]:
    return set(combinations(base_recipe(base)))


def recipe_in(plan: Plan, method: str, place: dict[str, Label]) -> Recipe:
    """The base recipe with the choices and changes of a cell."""
    table, chosen = base_recipe(plan.base), plan.methods[method]
    axes = table.at("choices").values
    choices = {axis: str(place[axis]) for axis in AXES if place.get(axis) in axes.get(axis, {})}
    if chosen.choice:
        if chosen.choice not in axes.get("method", {}):
            raise unknown_name(f"methods.{method}.choice", chosen.choice, axes.get("method", {}))
        choices["method"] = chosen.choice
    for key in chosen.recipe:
        if key not in RECIPE_KEYS:
            keys = [*RECIPE_KEYS, *(field.name for field in fields(chosen))]
            raise unknown_name(f"methods.{method}.{key}", key, keys, "a key of a method or of a recipe")
    where = f"method {method}"
    changes = Table(chosen.recipe, {(): where}).over(Table(plan.recipe, {(): "recipe"}))
    for key, value in place.items():
        if key not in choices:
            path = {"data": "data.name"}.get(key, key)
            stands_for = plan.means.get(key, {}).get(str(value))
            changes = Table(
                _nest(path.split("."), value) if stands_for is None else stands_for, {(): f"grid.{key}"}
            ).over(changes)
    merged = choose(table, {axis: choices[axis] for axis in axes if axis in choices})
    scale = plan.scale if plan.scale in merged.at("scale").values else "paper"
    return recipe_of(merged, changes, scale)


def _cell(plan: Plan, method: str, place: dict[str, Label], recipe: Recipe, sources: Sources) -> StudyCell:
    after, trained_by = plan.after, recipe
    if after.halves:
        if recipe.epochs:
            fix = "say epochs = 0 in [recipe], or leave halves out"
            raise InputError("after.halves", expected="no training", got=f"{recipe.epochs} epochs", fix=fix)
        seed, data = recipe.seed, replace(recipe.data, test_limit=0, val_limit=0)
        trained_by = replace(recipe, seed=0, data=replace(data, split="none", split_seed=0))
        recipe = replace(recipe, seed=0, data=replace(data, split="half test", split_seed=seed))
    options = {key: value for key, value in unusual(trained_by).items() if key not in NOT_DECISIVE}
    trained = Job("train", options, sources=sources)
    whole = {
        name: trained.then("shift", set=shift.set)
        for name, shift in after.shifted.items()
        if among({**place, "method": method}, shift.only)
    }
    rescorers = {entry.rescorer for entry in plan.rows.values() if entry.method == method}
    specs = {name: _fill(spec, place) for name, spec in after.rescorers.items() if name in rescorers}
    run, shifted, before = trained, whole, [trained, *whole.values()]
    rescored = {name: trained.then("rescore", rescorer=spec) for name, spec in specs.items()}
    if after.halves:
        run = _half(trained, seed)
        shifted = {name: _half(job, seed) for name, job in whole.items()}
        chains = {name: _rescored_half(trained, run, spec, seed) for name, spec in specs.items()}
        before += [run, *shifted.values(), *(job for chain in chains.values() for job in chain[:-1])]
        rescored = {name: chain[-1] for name, chain in chains.items()}
    judge = run.then(
        "judge",
        *shifted.values(),
        *rescored.values(),
        calibrators=after.calibrators,
        measures=after.measures,
        shifts=list(shifted),
        rescorers=list(rescored),
    )
    return StudyCell(method, place, recipe, (*before, *rescored.values(), judge), judge)


def _half(job: Job, seed: int) -> Job:
    return job.then("halve", seed=seed)


def _rescored_half(trained: Job, half: Job, spec: str, seed: int) -> tuple[Job, ...]:
    """Jobs of a rescorer, in order: one that learns from no test images is fitted once for all halves."""
    from calibrant import rescorers

    parts = rescorers.make(spec).fitted_on
    if "val" not in parts:
        once = trained.then("rescore", rescorer=spec)
        return once, _half(once, seed)
    if "train" not in parts:
        return (half.then("rescore", rescorer=spec),)
    predicted = trained.then("predict", part="train")
    return predicted, half.then("rescore", predicted, rescorer=spec)


def _fill(spec: str, place: dict[str, Label]) -> str:
    """Fill values of the grid into a name.

    >>> _fill("clamping:seed={seed}", {"seed": 3})
    'clamping:seed=3'
    """
    for key, value in place.items():
        spec = spec.replace(f"{{{key}}}", str(value))
    return spec


@cache
def base_recipe(name: str) -> Table:
    """The recipe file that a plan starts from, before its choices are made."""
    return load(ConfigSource(_file(name)), [recipes_folder()])


def _file(name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    file = recipes_folder() / f"{name}.toml"
    if not file.exists():
        raise unknown_name("base", name, [f.stem for f in recipes_folder().glob("*.toml")])
    return file


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    first, *rest = keys
    return {first: _nest(rest, value) if rest else value}


def unusual(entry: Any) -> dict[str, Any]:
    """The options that differ from the default, for JSON: a new option leaves finished jobs as they are.

    >>> unusual(Recipe(epochs=3)), unusual(Recipe())
    ({'epochs': 3}, {})
    """
    options = {}
    for field in fields(entry):
        value, usual = getattr(entry, field.name), field.default
        if is_dataclass(value):
            value, usual = unusual(value), {}
        if value != usual:
            options[field.name] = list(value) if isinstance(value, tuple) else value
    return options
