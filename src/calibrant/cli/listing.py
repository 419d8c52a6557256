"""The command that lists the catalogues."""

import dataclasses
import importlib
from typing import Annotated, Any

import typer

from calibrant.cli._app import Json, app, needs_train, print_json
from calibrant.core.errors import unknown_name
from calibrant.reporting import tables

KINDS = (
    "measures",
    "calibrators",
    "rescorers",
    "losses",
    "models",
    "datasets",
    "corruptions",
    "figures",
    "questions",
    "searches",
    "recipes",
)


@app.command("list")
def list_entries(kind: Annotated[str, typer.Argument(help=", ".join(KINDS))], as_json: Json = False) -> None:
    """List measures, calibrators, losses and the other catalogues, with definitions and references."""

    if kind not in KINDS:
        raise unknown_name("list", kind, KINDS)
    if kind == "recipes":
        return _list_recipes(as_json)
    with needs_train():
        catalogue = importlib.import_module(f"calibrant.{kind}").CATALOGUE
        entries = [(name, catalogue.make(name)) for name in catalogue.names()]
    if as_json:
        print_json([_facts(name, entry) for name, entry in entries])
    elif kind == "measures":
        tables.show(tables.catalogue(entries))
    elif kind == "calibrators":
        tables.show(tables.calibrator_catalogue(entries))
    else:
        tables.show(tables.plain_catalogue([(name, e, e.reference or e.title) for name, e in entries]))


MORE = ("definition", "direction", "keeps_argmax", "binary", "shapes", "source", "licence", "parts")


def _facts(name: str, entry: Any) -> dict[str, Any]:
    options = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    more = {key: getattr(entry, key) for key in MORE if hasattr(entry, key)}
    return {"name": name, "title": entry.title, **more, "reference": entry.reference, "options": options}


def _list_recipes(as_json: bool) -> None:

    with needs_train():
        from calibrant.training.recipe import find_recipe, read_recipe, recipe_names

    recipes = [(name, read_recipe(find_recipe(name))) for name in recipe_names()]
    if as_json:
        return print_json([{"name": name, **recipe.to_dict()} for name, recipe in recipes])
    tables.show(tables.names_and_titles([(name, recipe.title) for name, recipe in recipes]))
