"""The command that compares methods over runs: table."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import calibrant as cal
from calibrant.cli._app import Json, Seed, app, choose_format, print_json
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.reporting import tables

FORMATS = ("text", "markdown", "latex", "csv", "json")


@app.command()
@reads_predictions(ignores=("cluster", "group", "id_column"))
def table(
    files: Annotated[list[Path], typer.Argument(help="predictions of runs: runs/*/test.npz")],
    by: Annotated[str, typer.Option(help="key of the recipe (loss, data.name), or file, folder, parent")] = "folder",
    measures: Annotated[str, typer.Option("--measure", "-m", help="e.g. ece,nll,accuracy")] = "ece,nll,accuracy",
    form: Annotated[
        str | None, typer.Option("--format", help="text, markdown, latex, csv or json (default: text)")
    ] = None,
    alpha: Annotated[float, typer.Option(min=1e-9, max=0.5, help="level of the tests")] = 0.05,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Compare methods over seeds: mean and sd, the best, and which are not significantly worse."""
    from calibrant.measuring.run_files import read_runs

    chosen = choose_format(form, as_json, FORMATS)
    runs = read_runs(files, by, inputs.load)
    results = cal.table(runs, _split_specs(measures), by=by, alpha=alpha, seed=seed)
    if chosen == "json":
        return print_json(results.to_dict())
    if chosen != "text":
        sys.stdout.write(results.text(chosen))
        return
    tables.show(tables.methods(results))
    tables.show(f"\n{results.note}")


def _split_specs(text: str) -> list[str]:
    """Names at commas; a comma inside options stays: "ece:bins=10,scheme=mass,nll" is two measures.

    >>> _split_specs("ece:bins=10,scheme=mass,nll")
    ['ece:bins=10,scheme=mass', 'nll']
    """
    specs: list[str] = []
    for part in text.split(","):
        if specs and ":" in specs[-1] and "=" in part and ":" not in part:
            specs[-1] += f",{part}"
        else:
            specs.append(part.strip())
    return [name for name in specs if name]
