"""The command that watches a stream: watch."""

from pathlib import Path
from typing import Annotated

import typer

import calibrant as cal
from calibrant.cli._app import File, Json, app, print_json, progress
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.core.errors import InputError
from calibrant.core.missing import Missing, together
from calibrant.measuring.followed import Followed, Follower
from calibrant.reporting import tables


@app.command()
@reads_predictions
def watch(
    file: File,
    tolerance: Annotated[float | None, typer.Option(help="how far off scores may be (default: 0.02)")] = None,
    alpha: Annotated[float | None, typer.Option(help="chance of a false alarm (default: 0.05)")] = None,
    mode: Annotated[str | None, typer.Option(help="ever, or change (after a good period)")] = None,
    by: Annotated[str | None, typer.Option(help="column of segments, to watch each of them too")] = None,
    segments: Annotated[str | None, typer.Option(help="with --by: the only segments to watch, a,b,c")] = None,
    state: Annotated[Path | None, typer.Option(help="continue from this file, and save to it")] = None,
    batch_rows: Annotated[int, typer.Option(min=1, help="rows read at a time")] = 100_000,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Watch a stream: raise an alarm when scores are off; valid after every row.

    Exit code 0: no alarm. 1: alarm. 2: bad input.
    """
    if segments is not None and by is None:
        raise InputError("--segments", expected="--by as well", got="no --by", fix="name the column: --by segment")
    asked: dict[str, object] = {
        "tolerance": tolerance,
        "alpha": alpha,
        "mode": mode,
        "segments": None if by is None else True if segments is None else segments.split(","),
    }
    watching = _begin(state, asked)
    missing = _follow(watching, file, inputs if by is None else inputs.grouped(by), batch_rows)
    if state is not None:
        watching.save(state)
    if as_json:
        print_json(watching.to_dict() | ({"missing": missing.to_dict()} if missing else {}))
    else:
        tables.show(str(watching))
        if missing:
            tables.show(str(missing))
    raise typer.Exit(1 if watching.alarms else 0)


def _begin(state: Path | None, asked: dict[str, object]) -> cal.Watch:
    """A new watch, or the one that was saved, which must be what was asked for."""
    given = {name: value for name, value in asked.items() if value is not None}
    if state is None or not state.exists():
        return cal.Watch(**given)  # type: ignore[arg-type]
    saved = cal.Watch.load(state)
    kept: dict[str, object] = {"tolerance": saved.tolerance, "alpha": saved.alpha, "mode": saved.mode}
    kept["segments"] = saved.by if saved.named is None else list(saved.named)
    given.setdefault("segments", False)
    for name, value in given.items():
        if value != kept[name]:
            fix = "leave the option out, or start with another state"
            raise InputError(str(state), expected=f"{name} {kept[name]}, as it began with", got=str(value), fix=fix)
    return saved


def _follow(watching: cal.Watch, file: Path, inputs: Inputs, batch_rows: int) -> Missing | None:
    """Watch the rows of a file that were not read before; how many of all its rows had no score."""
    name = str(file.resolve())
    follower = Follower(str(file), watching.files.get(name, Followed()))
    gone: list[Missing] = []
    whole = file.suffix == ".npz"
    batches = iter([inputs.load(file)]) if whole else inputs.batches(file, batch_rows, gone.append)
    with progress("rows read", ["stream"]) as steps:
        for _, step in steps:
            for batch in batches:
                gone += [batch.missing] if whole and batch.missing else []
                watching.update(follower.new(batch))
                step(batch.n)
    watching.files[name] = follower.end()
    return together(gone)
