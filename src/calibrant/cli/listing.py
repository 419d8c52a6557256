"""The command that shows what there is, and the demo."""

import dataclasses
import importlib
from typing import Annotated, Any

import typer

from calibrant.cli._app import Json, app, needs_train, print_json
from calibrant.core.errors import unknown_name

KINDS = ("measures", "calibrators", "losses", "models", "datasets", "corruptions", "figures", "recipes")


@app.command("list")
def list_entries(kind: Annotated[str, typer.Argument(help=", ".join(KINDS))], as_json: Json = False) -> None:
    """What there is, with definitions and references."""
    from calibrant.report import text

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
        text.show(text.catalogue(entries))
    elif kind == "calibrators":
        text.show(text.calibrator_catalogue(entries))
    else:
        text.show(text.plain_catalogue([(name, e, e.reference or e.title) for name, e in entries]))


MORE = ("definition", "direction", "keeps_argmax", "binary", "source", "licence", "parts")


def _facts(name: str, entry: Any) -> dict[str, Any]:
    options = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
    more = {key: getattr(entry, key) for key in MORE if hasattr(entry, key)}
    return {"name": name, "title": entry.title, **more, "reference": entry.reference, "options": options}


def _list_recipes(as_json: bool) -> None:
    from calibrant.report import text

    with needs_train():
        from calibrant.train.recipe import find_recipe, read_recipe, recipe_names

    recipes = [(name, read_recipe(find_recipe(name))) for name in recipe_names()]
    if as_json:
        return print_json([{"name": name, **recipe.to_dict()} for name, recipe in recipes])
    text.show(text.names_and_titles([(name, recipe.title) for name, recipe in recipes]))
