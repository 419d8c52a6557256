"""The command that estimates a rate from few labels and many scores: estimate."""

from pathlib import Path
from typing import Annotated

import typer

import calibrant as cal
from calibrant.cli._app import Confidence, Json, Seed, app, print_json
from calibrant.core.errors import InputError
from calibrant.core.text.table import text_table
from calibrant.measuring.rate import HEAD
from calibrant.reporting import tables


@app.command()
def estimate(
    files: Annotated[list[Path], typer.Argument(help="one table with empty labels, or labelled rows and further ones")],
    score: Annotated[str, typer.Option("--score-column", help="column of the judge's scores")] = "score",
    human: Annotated[
        str, typer.Option("--human-column", help="column of labels from 0 to 1, empty where none")
    ] = "human",
    by: Annotated[str | None, typer.Option("--group-column", help="a rate for each group, from its own labels")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster-column", help="rows that come together: a prompt")] = None,
    weight: Annotated[str | None, typer.Option("--weight-column", help="weights of the rows")] = None,
    scale: Annotated[str, typer.Option(help="lowest and highest score, for instance 1,10")] = "0,1",
    with_map: Annotated[
        str, typer.Option("--map", help="auto, identity, a calibrator (cross-fitted), or a map.json")
    ] = "auto",
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate the mean label of all rows from few labels and the scores of a judge."""
    if len(files) > 2:
        fix = "put the rows into one table"
        raise InputError("files", expected="one or two", got=str(len(files)), fix=fix)
    rates = cal.estimate_rate(
        files[0],
        files[1] if len(files) == 2 else None,
        map=cal.load_map(with_map) if with_map.endswith(".json") else with_map,
        score=score,
        human=human,
        by=by,
        cluster=cluster,
        weight=weight,
        scale=_read_scale(scale),
        confidence=confidence,
        seed=seed,
    )
    groups = rates if isinstance(rates, tuple) else (rates,)
    if as_json:
        return print_json([rate.to_dict() for rate in groups])
    if not isinstance(rates, tuple):
        return tables.show(str(rates))
    tables.show(text_table("each group by its own labels", HEAD, [rate.cells for rate in groups]))
    for rate in groups:
        tables.show(rate.bias_words)


def _read_scale(text: str) -> tuple[float, float]:
    """
    >>> _read_scale("1,10")
    (1.0, 10.0)
    """
    try:
        lowest, highest = map(float, text.split(","))
    except ValueError:
        lowest, highest = 0.0, 0.0
    if not lowest < highest:
        fix = "write for instance --scale 1,10"
        raise InputError("--scale", expected="the lowest and the highest score", got=f"'{text}'", fix=fix)
    return lowest, highest
