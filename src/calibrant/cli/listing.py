"""Commands that show what there is: list and demo."""

from typing import Annotated, Any

import typer

import calibrant as cal
from calibrant.cli._app import (
    Json,
    Seed,
    app,
    print_json,
)
from calibrant.cli.measuring import measure
from calibrant.cli.repairing import fit
from calibrant.core.errors import unknown_name


@app.command("list")
def list_entries(kind: Annotated[str, typer.Argument(help="measures or calibrators")], as_json: Json = False) -> None:
    """What there is, with definitions and references."""
    from calibrant.report import text

    if kind == "measures":
        entries = [(name, cal.measures.make(name)) for name in cal.measures.names()]
        facts: list[dict[str, Any]] = [{"definition": m.definition, "direction": m.direction} for _, m in entries]
        table = text.catalogue(entries)
    elif kind == "calibrators":
        recipes = [(name, cal.calibrators.make(name)) for name in cal.calibrators.names()]
        facts = [{"keeps_argmax": c.keeps_argmax, "binary": c.binary} for _, c in recipes]
        table, entries = text.calibrator_catalogue(recipes), recipes  # type: ignore[assignment]
    else:
        raise unknown_name("list", kind, ["measures", "calibrators"])
    if not as_json:
        return text.show(table)
    print_json(
        [
            {"name": name, "title": e.title, **known, "reference": e.reference, "options": vars(e)}
            for (name, e), known in zip(entries, facts, strict=True)
        ]
    )


@app.command()
def demo(seed: Seed = 0, as_json: Json = False) -> None:
    """Measure and repair the predictions that come with the package."""
    from calibrant.demo import PATH, VAL_PATH

    if as_json:
        return measure(PATH, seed=seed, as_json=True)
    typer.echo("A network trained too long on 3,000 Fashion-MNIST images, on 4,000 test images:\n")
    measure(PATH, seed=seed)
    typer.echo("\nRepaired with a map fitted on 4,000 other images:\n")
    fit(VAL_PATH, what="temperature", test=PATH, seed=seed)
