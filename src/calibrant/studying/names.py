"""Everything a plan names is looked up before anything runs; an error quotes the line of the plan."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from calibrant import calibrators, corruptions, datasets, losses, measures, models, rescorers
from calibrant.core.errors import InputError
from calibrant.core.toml import Keys, Table
from calibrant.core.trust import would_run
from calibrant.studying.plan import Plan, plan_table
from calibrant.studying.trainings import cells_of, check_code, recipe_in

Named = Iterator[tuple[Keys, Callable[[str], object], str]]  # where it stands, what makes it, its name


def check_plan(plan: Plan, file: Path, *, allow: bool = False) -> None:
    """Refuse what cannot be run: recipes that are none, code that nobody allowed, names that no catalogue has."""
    table = plan_table(file, plan.scale)
    for method, place in plan.cells():
        _at(table, ("methods", method), partial(recipe_in, plan, method, place))
    allowed = check_code(plan, file, allow=allow)
    for keys, make, name in {(make, name): (keys, make, name) for keys, make, name in _named(plan)}.values():
        _at(table, keys, partial(_make, make, name, allowed))


def _make(make: Callable[[str], object], name: str, allowed: frozenset[str]) -> object:
    """What is made here was looked at in `check_code`, or is a name of a catalogue."""
    if not allowed & {name, f"corrupt {name}"} and (does := would_run(name)):
        got, fix = f"'{name}', which would {does}", "name what calibrant has"
        raise InputError("plan", expected="a name of the catalogue", got=got, fix=fix)
    return make(name)


def _named(plan: Plan) -> Named:
    after = plan.after
    lists: dict[str, tuple[Callable[[str], object], list[str]]] = {
        "calibrators": (calibrators.make, after.calibrators),
        "measures": (measures.make, after.measures),
    }
    for key, (make, names) in lists.items():
        yield from ((("after", key, number), make, name) for number, name in enumerate(names) if name != "identity")
    for key, spec in after.shifts.items():
        kind, _, corruption = spec.partition(" ")
        corrupt = kind == "corrupt"
        make = corruptions.make if corrupt else datasets.make
        yield ("after", "shifts", key), make, corruption if corrupt else spec
    for cell in cells_of(plan):
        recipe = cell.recipe
        yield _in_grid(plan, "data", cell.method), datasets.make, recipe.data.name
        if not would_run(recipe.model, model=True):
            yield _in_grid(plan, "model", cell.method), models.make, recipe.model
        yield ("methods", cell.method), losses.make, recipe.loss
        for unit in cell.units:
            if unit.kind == "rescore":
                yield ("after", "rescorers"), rescorers.make, unit.options["rescorer"]
        if recipe.meta.learn:
            yield ("methods", cell.method), losses.make, recipe.meta.objective


def _in_grid(plan: Plan, axis: str, method: str) -> Keys:
    return ("grid", axis) if axis in plan.grid else ("methods", method)


def _at(table: Table, keys: Keys, look: Callable[[], object]) -> None:
    try:
        look()
    except InputError as error:
        place = table.place(keys)
        raise (InputError.inside(place, error) if place else error) from None
