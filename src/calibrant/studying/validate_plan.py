"""Check a plan before anything runs: every name is looked up, and an error quotes the line of the plan."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from calibrant import calibrators, corruptions, datasets, losses, measures, models, rescorers
from calibrant.core.config.code_trust import would_run
from calibrant.core.config.toml import Keys, Table
from calibrant.core.errors import InputError, unknown_name
from calibrant.studying.expand_plan import AXES, cells_of, check_code, check_rescorers, recipe_in
from calibrant.studying.plan import Label, Names, Only, Plan
from calibrant.studying.plan_files import plan_table, scales_of

BY_FIT = ("identity", "auto")  # calibrators that `fit` knows and the catalogue does not make

Named = Iterator[tuple[Keys, Callable[[str], object], str]]  # where it stands, what makes it, its name


def check_plan(plan: Plan, file: Path, *, code: bool = True) -> None:
    """Refuse a plan that cannot run: invalid recipes, code that is not allowed, names that no catalogue has.

    `code=False`: nothing that is code will be run, so it needs no permission.
    """
    table = plan_table(file, plan.scale)
    check_rescorers(plan, file)
    try:
        cells_of(plan)
    except InputError:
        for method, place in plan.cells():  # which of them it was, with its line
            _at(table, ("methods", method), partial(recipe_in, plan, method, place))
        raise
    allowed = check_code(plan, file) if code else frozenset[str]()
    for keys, name, known in _find_choices(plan, file):
        if name not in known:
            _at(table, keys, partial(_refuse, ".".join(map(str, keys)), str(name), [str(label) for label in known]))
    for keys, make, name in {(make, name): (keys, make, name) for keys, make, name in _find_named(plan)}.values():
        _at(table, keys, partial(_make, make, name, allowed))


def _make(make: Callable[[str], object], name: str, allowed: frozenset[str]) -> object:
    """Make an entry whose name was checked in `check_code`, or is in a catalogue."""
    if not allowed & {name, f"corrupt {name}"} and (does := would_run(name)):
        got, fix = f"'{name}', which would {does}", "name what calibrant has"
        raise InputError("plan", expected="a name of the catalogue", got=got, fix=fix)
    return make(name)


def _find_named(plan: Plan) -> Named:
    after = plan.after
    lists: dict[str, tuple[Callable[[str], object], list[str]]] = {
        "calibrators": (calibrators.make, after.calibrators),
        "measures": (measures.make, after.measures),
    }
    for key, (make, names) in lists.items():
        yield from ((("after", key, number), make, name) for number, name in enumerate(names) if name not in BY_FIT)
    for key, shift in after.shifted.items():
        kind, _, corruption = shift.set.partition(" ")
        corrupt = kind == "corrupt"
        make = corruptions.make if corrupt else datasets.make
        yield ("after", "shifts", key), make, corruption if corrupt else shift.set
    for cell in cells_of(plan):
        recipe = cell.recipe
        yield _in_grid(plan, "data", cell.method), datasets.make, recipe.data.name
        if not would_run(recipe.model, model=True):
            yield _in_grid(plan, "model", cell.method), models.make, recipe.model
        yield ("methods", cell.method), losses.make, recipe.loss
        for job in cell.jobs:
            if job.kind == "rescore":
                yield ("after", "rescorers"), rescorers.make, job.options["rescorer"]
        if recipe.meta.learn:
            yield ("methods", cell.method), losses.make, recipe.meta.objective


def _find_choices(plan: Plan, file: Path) -> Iterator[tuple[Keys, Label, Collection[Label]]]:
    """Every choice of the plan from its own grid and rows: its keys, its name, and the known names at any scale."""
    axes: dict[str, set[Label]] = {}
    rows, sets = set[Label](), {"test"}
    for table in (plan_table(file, scale) for scale in scales_of(file)):
        for axis, values in table.at("grid").values.items():
            listed = values if isinstance(values, list) else []
            axes.setdefault(axis, set()).update(label for label in listed if isinstance(label, str | int | float))
        rows |= {*table.at("methods").values, *table.at("entries").values}
        sets |= set(table.at("after", "shifts").values)
    with_methods = {**axes, "method": set[Label](plan.methods)}
    picked: list[tuple[Keys, Only, Mapping[str, set[Label]]]] = [
        *((("claim", n, "where"), claim.where, axes) for n, claim in enumerate(plan.claim)),
        *((("methods", name, "only"), method.only, axes) for name, method in plan.methods.items()),
        *((("after", "shifts", name, "only"), shift.only, with_methods) for name, shift in plan.after.shifted.items()),
    ]
    yield from ((("table", n, "set"), layout.set, sets) for n, layout in enumerate(plan.table))
    yield from ((("figure", n, "set"), figure.set, sets) for n, figure in enumerate(plan.figure))
    yield from ((("claim", n, "set"), claim.set, sets) for n, claim in enumerate(plan.claim))
    for keys, only, known in picked:
        for axis, values in only.items():
            yield (*keys, axis), axis, known
            yield from (((*keys, axis), value, known.get(axis, ())) for value in values)
    known_names = {**{axis: axes.get(axis, set[Label]()) for axis in AXES}, "entry": rows}
    every: list[tuple[Keys, Names]] = [(("names",), plan.names)]
    every += [(("table", n, "names"), layout.names) for n, layout in enumerate(plan.table)]
    for keys, names in every:
        for axis, ours in names.items():
            yield (*keys, axis), axis, known_names
            yield from (((*keys, axis, name), name, known_names.get(axis, ())) for name in ours)


def _refuse(where: str, name: str, known: list[str]) -> None:
    raise unknown_name(where, name, known)


def _in_grid(plan: Plan, axis: str, method: str) -> Keys:
    return ("grid", axis) if axis in plan.grid else ("methods", method)


def _at(table: Table, keys: Keys, look: Callable[[], object]) -> None:
    try:
        look()
    except InputError as error:
        place = table.place((*keys, error.what.rpartition(".")[2]))  # of the key it names, or of what is around it
        raise (InputError.inside(place, error) if place else error) from None
