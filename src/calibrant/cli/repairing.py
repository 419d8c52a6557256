"""Commands around a calibration map: fit, apply, export."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

import calibrant as cal
from calibrant.cli._app import (
    File,
    Json,
    Seed,
    app,
    bar,
    numbers,
    print_json,
    progress,
)
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError, visible
from calibrant.core.json import plain
from calibrant.deciding.decision import load_map_or_decision
from calibrant.repairing.apply_table import add_calibrated
from calibrant.reporting import tables

ROWS = {"held_out": "held-out rows", "cross_fitted": "cross-fitted rows", "fitting_rows": "fitting rows"}


@app.command()
@reads_predictions()
def fit(
    file: File,
    what: Annotated[str, typer.Option("--with", help="a calibrator, a chain (temperature+isotonic), auto or all")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write the map to this JSON file")] = None,
    test: Annotated[Path | None, typer.Option(help="judge the map on these rows")] = None,
    cross_fit: Annotated[bool, typer.Option("--cross-fit", help="judge the map by cross-fitting")] = False,
    keep_argmax: Annotated[
        bool, typer.Option("--keep-argmax", help="only calibrators that cannot change a prediction")
    ] = False,
    by_group: Annotated[bool, typer.Option("--by-group", help="one map for each value of the column group")] = False,
    resamples: Annotated[
        int | None, typer.Option(min=1, help="bootstrap resamples of the changes (default: 200; many rows need none)")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Fit a calibration map on held-out predictions."""
    if inputs.group_column is not None and not by_group:
        fix = "add --by-group, or leave it out"
        raise InputError("--group-column", expected="--by-group as well", got="no --by-group", fix=fix)
    val = inputs.load(file)
    other = None if test is None else inputs.load(test)
    if what == "all":
        return _fit_all(val, other, out, keep_argmax, as_json)
    if by_group and (what == "auto" or cross_fit):
        raise InputError("--by-group", expected="one calibrator and no --cross-fit", got="more", fix="use --test FILE")
    choice = cal.choose(val, keep_argmax=keep_argmax, seed=seed) if what == "auto" else None
    fitted_map = choice.map if choice else cal.fit(val, what, by_group=by_group)
    if keep_argmax and not fitted_map.keeps_argmax:
        raise InputError(
            f"--with {what}",
            expected="a map that changes no prediction",
            got="one that can",
            fix="use temperature",
        )
    from calibrant.repairing.judge import repair

    judged = repair(fitted_map, val, test=other, folds=5 if cross_fit else 0, resamples=resamples, seed=seed)
    if out is not None:
        fitted_map.save(out)
    if as_json:
        extra = {"verdict": choice.verdict, **plain(choice.ruling)} if choice else {}
        return print_json(judged.to_dict() | extra | inputs.facts(val))

    if choice:
        tables.show(tables.candidates(choice.candidates), f"\n{choice.verdict}\n")
    tables.show(f"{tables.describe_map(fitted_map)}\nChanges on {ROWS[judged.judged_on]}:\n", tables.repair(judged))
    if judged.judged_on == "fitting_rows":
        tables.show("\nThe map was fitted on these rows, so numbers are optimistic: give --test FILE or --cross-fit.")
    inputs.show_notes(val)
    if out is not None:
        typer.echo(f"\nWritten to {visible(str(out))}.")


def _fit_all(
    val: cal.Predictions, test: cal.Predictions | None, out: Path | None, keep_argmax: bool, as_json: bool
) -> None:
    if test is None or out is not None:
        raise InputError(
            "--with all",
            expected="--test FILE and no --out",
            got="no --test, or --out",
            fix="it writes no map",
        )
    from calibrant.repairing.judge import every_calibrator

    with progress("fitting", ["every calibrator"]) as steps:
        for _, step in steps:
            rows = every_calibrator(val, test, keep_argmax=keep_argmax, on_each=step)
    if as_json:
        return print_json([vars(row) for row in rows])

    tables.show(tables.every(rows))
    for row in rows:
        if row.diagnosis != "converged":
            tables.show(f"{row.calibrator}: {row.diagnosis}")


@app.command()
@reads_predictions()
def apply(
    map_file: Annotated[Path, typer.Argument(help="a map written by calibrant fit, or a decision by calibrant decide")],
    file: File,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="write the calibrated predictions here (.npz, .parquet, .csv, .jsonl)")
    ],
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Calibrate predictions with a fitted map, or decide; labels are not needed.

    A table gets the calibrated probabilities as new columns (calibrated, or calibrated_0, calibrated_1, ...), and of a
    decision the column decision: a class, or -1 where the row is handed over. Its other columns stay as they are.
    """
    loaded = load_map_or_decision(map_file)
    fitted_map = loaded if isinstance(loaded, cal.Map) else loaded.map
    q = fitted_map(inputs.load(file, labels="optional"))
    decided = None if isinstance(loaded, cal.Map) else loaded.policy(q)
    if not add_calibrated(q, file, out, decided):
        if decided is not None:
            fix = "give a table and write a table: .csv, .parquet or .jsonl"
            raise InputError(
                str(out), expected="a table for the decisions", got=f"{file.suffix} to {out.suffix}", fix=fix
            )
        q.save(out)
    if as_json:
        facts = {"calibrator": fitted_map.calibrator, "n": q.n, "k": q.k, "seen": q.row_data.seen, "out": str(out)}
        return print_json(facts | ({} if decided is None else {"decisions": _count(decided)}) | inputs.facts(q))
    typer.echo(f"{q.n:,} predictions calibrated by {visible(fitted_map.calibrator)}, written to {visible(str(out))}.")
    if decided is not None:
        counts = [f"{n:,} {'handed over' if c == '-1' else f'as {c}'}" for c, n in _count(decided).items()]
        typer.echo(f"Decided: {', '.join(counts)}.")
    inputs.show_notes(q)


def _count(decided: Ints) -> dict[str, int]:
    """Count the rows decided for each class; -1 is handing over."""
    values, counts = np.unique(decided, return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}


@app.command()
@reads_predictions(ignores=("group", "id_column"))
def adapt(
    map_file: Annotated[Path, typer.Argument(help="a map written by calibrant fit")],
    from_rates: Annotated[
        str, typer.Option("--from", help="base rate that the map was fitted for: 0.02, or one for each class")
    ] = "",
    to_rates: Annotated[str, typer.Option("--to", help="base rate of the data to come")] = "",
    fit_on: Annotated[Path | None, typer.Option(help="labelled rows, on which the map was fitted")] = None,
    unlabelled: Annotated[Path | None, typer.Option(help="rows of today, to estimate the new base rate from")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write the adapted map to this JSON file")] = None,
    resamples: Annotated[int, typer.Option(min=20, help="resamples of the interval and of the test")] = 200,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Adapt a map to another base rate, known or estimated from unlabelled rows."""
    from calibrant.repairing.adapt import adapt as run
    from calibrant.repairing.adapt import base_rates, with_estimate

    m = cal.load_map(map_file)
    if fit_on is None or unlabelled is None or from_rates or to_rates:
        known = [numbers(name, text) or None for name, text in (("--from", from_rates), ("--to", to_rates))]
        old, new = (rates[0] if rates is not None and len(rates) == 1 else rates for rates in known)
        rows = [None if file is None else inputs.load(file, labels="optional") for file in (fit_on, unlabelled)]
        adapted, estimate = run(m, from_rates=old, to_rates=new, fit_on=rows[0], unlabelled=rows[1]), None
    else:
        val, today = inputs.load(fit_on), inputs.load(unlabelled, labels="optional")
        with bar("resampling", resamples, quiet=as_json) as step:
            estimate = base_rates(m, val, today, resamples=resamples, seed=seed, on_done=step)
        adapted = with_estimate(m, estimate)
    if out is not None:
        adapted.save(out)
    rates = adapted.parameters["base_rates"]
    if as_json:
        return print_json({"calibrator": adapted.calibrator} | rates | {"out": None if out is None else str(out)})
    if estimate is not None:
        tables.show(estimate.words)
        if m.k > 2:
            tables.show("", tables.base_rates(estimate))
    else:
        tables.show(f"The map now gives probabilities for the base rates {rates['to']} instead of {rates['from']}.")
    tables.show(f"Assumed: {rates['assumed']}.")
    if out is not None:
        typer.echo(f"\nWritten to {visible(str(out))}.")


@app.command()
def export(
    map_file: Annotated[Path, typer.Argument(help="a map written by calibrant fit")],
    to: Annotated[str, typer.Option(help="onnx, torch or python")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the file to write")],
    append_to: Annotated[Path | None, typer.Option(help="onnx: append the map to this classifier")] = None,
    output: Annotated[str | None, typer.Option(help="onnx: the output of the classifier that holds the scores")] = None,
    scores: Annotated[
        Literal["logits", "probs"] | None, typer.Option(help="onnx: what that output holds; probs: trees, softmax")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export a map, or a decision with its map, to ONNX, torch, or a Python file without dependencies."""
    from calibrant.repairing.export.export import export as run

    done = run(load_map_or_decision(map_file), to, out, append_to=append_to, output=output, scores=scores)
    if as_json:
        return print_json(
            {"path": str(done.path), "format": done.format, "largest_difference": done.largest_difference}
        )
    where = visible(str(done.path))
    typer.echo(f"Written to {where}; tested against the map, largest difference {done.largest_difference:.1e}.")
