"""The command that lists the catalogues."""

import dataclasses
import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

import calibrant
from calibrant.cli._app import Json, app, needs_train, print_json
from calibrant.core.errors import unknown_name
from calibrant.reporting import tables


def _find_catalogues() -> dict[str, str]:
    """The package of every catalogue by its name, read from the source: nothing is loaded before it is asked for."""
    root = Path(calibrant.__file__).parent
    files = [*root.glob("*/__init__.py"), *root.glob("*/*/__init__.py")]
    packages = (file.parent.relative_to(root.parent) for file in files if "CATALOGUE" in file.read_text("utf-8"))
    return {package.name: ".".join(package.parts) for package in sorted(packages)}


CATALOGUES = _find_catalogues()
KINDS = (*CATALOGUES, "recipes")


@app.command("list")
def list_entries(kind: Annotated[str, typer.Argument(help=", ".join(KINDS))], as_json: Json = False) -> None:
    """List measures, calibrators, losses and the other catalogues, with definitions and references."""
    if kind not in KINDS:
        raise unknown_name("list", kind, KINDS)
    if kind == "recipes":
        return _list_recipes(as_json)
    with needs_train():
        catalogue = importlib.import_module(CATALOGUES[kind]).CATALOGUE
        loaded, broken = catalogue.load_all()
        entries = list(loaded.items())
    for error in broken.values():
        typer.echo(f"warning: left out: {error}", err=True)
    if as_json:
        print_json([_facts(name, entry) for name, entry in entries])
    elif kind == "measures":
        tables.show(tables.catalogue(entries))
    elif kind == "calibrators":
        tables.show(tables.calibrator_catalogue(entries))
    else:
        tables.show(tables.plain_catalogue([(name, e, e.reference or e.title) for name, e in entries]))


MORE = (
    "definition",
    "direction",
    "unit",
    "meaning",
    "streams",
    "keeps_argmax",
    "binary",
    "tasks",
    "source",
    "licence",
    "parts",
)


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
