"""The command that turns scores into decisions."""

from pathlib import Path
from typing import Annotated

import typer

import calibrant as cal
from calibrant.cli._app import File, Json, app, print_json
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.core.errors import InputError, visible
from calibrant.reporting import tables


@app.command()
@reads_predictions(ignores=("group", "id_column"))
def decide(
    file: File,
    cost: Annotated[
        str | None, typer.Option(help="fn=50,fp=1 (also abstain=0.5), wrong=5,abstain=1, or a CSV file with a matrix")
    ] = None,
    max_error: Annotated[
        float | None, typer.Option(help="answer rows so that at most this share of the answers is wrong")
    ] = None,
    min_precision: Annotated[
        float | None, typer.Option(help="call rows positive so that at least this share of them is")
    ] = None,
    confidence: Annotated[float, typer.Option(help="confidence of the guarantee, and of the intervals")] = 0.95,
    map_file: Annotated[
        Path | None, typer.Option("--map", help="calibrate the scores first; fitted on separate rows")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="judge the decision on these rows")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write the decision to this JSON file")] = None,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Decide by cost, or answer with a guarantee and hand over the rest.

    Ends with exit code 1, and writes no file, where the guarantee is not possible with these rows.
    """
    p = inputs.load(file)
    m = None if map_file is None else cal.load_map(map_file)
    _check_out(out)
    decision = cal.decide(p, cost=cost, max_error=max_error, min_precision=min_precision, confidence=confidence, map=m)
    judged = None if test is None else cal.evaluate(decision, inputs.load(test))
    if out is not None and decision.possible:
        decision.save(out)
    if as_json:
        facts = {name: value for name, value in decision.to_dict().items() if name not in ("map", "fingerprint")}
        of_file = inputs.facts(p)
        notes = {"notes": [*decision.notes, *of_file.get("notes", [])]}
        print_json(facts | {"test": None if judged is None else judged.to_dict()} | of_file | notes)
    else:
        _show(decision, judged, confidence)
        inputs.show_notes(p)
        if out is not None and decision.possible:
            typer.echo(f"\nWritten to {visible(str(out))}.")
    if not decision.possible:
        raise typer.Exit(1)


def _show(decision: cal.Decision, judged: cal.types.Evaluation | None, confidence: float) -> None:
    tables.show(visible(decision.words))
    if decision.costs:
        tables.show("", tables.costs(decision.costs, confidence))
        best = [line for line in decision.costs if line.choice == "hindsight"]
        if best:
            tables.show("\nThe best threshold in hindsight was chosen on these rows, so its cost is optimistic.")
    for note in decision.notes:
        tables.show(f"\n{visible(note)}")
    if judged is not None:
        tables.show(f"\n{visible(judged.words)}")
        if judged.costs:
            tables.show("", tables.costs(judged.costs, confidence))
    if decision.shares and (decision.aim == "max_error" or decision.shares[0].after is not None):
        level = f"{100 * confidence:g} %"
        tables.show(f"\nWhat can be answered on these rows with a guarantee at {level}:\n")
        tables.show(tables.answered_shares(decision.shares))


def _check_out(out: Path | None) -> None:
    if out is not None and out.suffix != ".json":
        raise InputError("--out", expected="a name that ends in .json", got=f"'{out.name}'", fix="use decision.json")
