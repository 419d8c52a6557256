"""The command that watches a stream: watch."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import calibrant as cal
from calibrant.cli._app import File, Json, app, choose_format, print_json
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.cli._streams import FORMATS, FormatOption, MissingLabelOption, StreamSettings, lock_state, read_stream
from calibrant.core.errors import InputError, visible
from calibrant.core.io.formats import STDIN
from calibrant.reporting import tables


@app.command()
@reads_predictions(ignores=("id_column",))
def watch(
    file: File,
    tolerance: Annotated[float | None, typer.Option(help="how far off scores may be (default: 0.02)")] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="probability of a false alarm (default: 0.05); in mode change, 1 / rows between two (default: 0.0001)"
        ),
    ] = None,
    mode: Annotated[str | None, typer.Option(help="anytime, or change (after a calibrated period)")] = None,
    segments: Annotated[
        str | None, typer.Option(help="with --group-column: the only groups to watch, a,b,c (default: each)")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="continue from this file, and save to it")] = None,
    missing_label: MissingLabelOption = "error",
    form: FormatOption = None,
    as_json: Json = False,
    *,
    inputs: Inputs,
    settings: StreamSettings,
) -> None:
    """Watch a stream: raise an alarm when scores are off; valid after every row.

    Exit code 0: no alarm. 1: alarm. 2: bad input.
    """
    chosen = choose_format(form, as_json, FORMATS)
    by_group = inputs.group_column is not None
    if segments is not None and not by_group:
        fix = "name the column: --group-column segment"
        raise InputError("--segments", expected="--group-column as well", got="no --group-column", fix=fix)
    options: dict[str, object] = {
        "tolerance": tolerance,
        "alpha": alpha,
        "mode": mode,
        "segments": None if not by_group else True if segments is None else segments.split(","),
    }
    with lock_state(state):
        stream = _begin(state, options)
        known = list(stream.alarms)

        def show_new_alarms() -> None:
            """Rows of standard input may come for days: each alarm is shown when it is raised."""
            for alarm in [alarm for alarm in stream.alarms if alarm not in known]:
                known.append(alarm)
                if chosen == "text":
                    tables.show(str(alarm))
                    sys.stdout.flush()
                else:
                    print(alarm, file=sys.stderr, flush=True)

        reading = read_stream(
            stream,
            file,
            inputs,
            settings,
            state=state,
            missing_label=missing_label,
            npz=True,
            on_update=show_new_alarms if str(file) == STDIN else None,
        )
    notes = [*reading.notes, *_empty_segments(stream, reading.groups)]
    if chosen == "prometheus":
        print(stream.to_prometheus(), end="")
    elif chosen == "json":
        missing = {"missing": reading.missing.to_dict()} if reading.missing else {}
        print_json(stream.to_dict() | missing | {"notes": notes})
    else:
        if str(file) != STDIN or not stream.alarms:
            tables.show(str(stream))
        for note in (*([str(reading.missing)] if reading.missing else []), *notes):
            tables.show(visible(note))
    raise typer.Exit(1 if stream.alarms else 0)


def _begin(state: Path | None, options: dict[str, object]) -> cal.Watch:
    """Start a new watch, or load the saved one, whose options must be those that the user gives."""
    chosen = {name: value for name, value in options.items() if value is not None}
    if state is None or not state.exists():
        return cal.Watch(**chosen)  # type: ignore[arg-type]
    saved = cal.Watch.load(state)
    known: dict[str, object] = {"tolerance": saved.tolerance, "alpha": saved.alpha, "mode": saved.mode}
    known["segments"] = saved.by_segment if saved.named is None else list(saved.named)
    chosen.setdefault("segments", False)
    for name, value in chosen.items():
        if value != known[name]:
            fix = "leave the option out, or start with another state"
            raise InputError(str(state), expected=f"{name} {known[name]}, as it began with", got=str(value), fix=fix)
    return saved


def _empty_segments(stream: cal.Watch, groups: set[str]) -> list[str]:
    """A note on named segments that have no rows: their names may be misspelt."""
    empty = [name for name in stream.named or () if stream.segments[name].n == 0]
    if not empty:
        return []
    present = ", ".join(sorted(groups)[:8]) or "no segment"
    return [f"No rows of {'segment' if len(empty) == 1 else 'segments'} {', '.join(empty)}: the rows have {present}."]
