"""The command that draws: plot."""

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant import figures
from calibrant.cli._app import Json, Resamples, Seed, app, print_json
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.plotting.draw import check_out, compute, draw
from calibrant.plotting.source import source_of
from calibrant.reporting import tables

SHOWN = 20  # rows of the text table


@app.command()
@reads_predictions(ignores=("group", "id_column"))
def plot(
    figure: Annotated[str, typer.Argument(help="e.g. reliability, or reliability:bins=30,scheme=mass")],
    files: Annotated[list[Path], typer.Argument(help="predictions, or a table (.parquet, .csv)")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="write the figure to this file: .svg, .png, .pdf or .html")
    ] = None,
    names: Annotated[str | None, typer.Option(help="names of the models, separated by commas: CE,focal")] = None,
    theme: Annotated[str, typer.Option(help="light or dark")] = "light",
    resamples: Resamples = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Draw a figure; without --out, print it in words and numbers."""
    chosen_figure = figures.make(figure)
    if out is not None:
        check_out(out)
    if theme not in ("light", "dark"):
        raise unknown_name("theme", theme, ["light", "dark"])
    source = source_of(chosen_figure, _name_files(files, names), inputs.load, resamples, seed)
    if out is not None:
        words = draw(chosen_figure, source, out, theme=theme)  # type: ignore[arg-type]  # checked above
        if not as_json:
            return typer.echo(f"{visible(words)}\nWritten to {visible(str(out))}.")
    rows = compute(chosen_figure, source)
    words = chosen_figure.words(rows)
    if as_json:
        facts = {
            "figure": spec_of(chosen_figure),
            "title": chosen_figure.title,
            "words": words,
            "out": None if out is None else str(out),
        }
        return print_json(facts | {"rows": rows})
    tables.show(visible(words), "", _table(rows))
    if len(rows) > SHOWN:
        typer.echo(f"... and {len(rows) - SHOWN:,} more rows: --json prints them all.")


def _name_files(files: list[Path], names: str | None) -> dict[str, Path]:
    """The files by name: as given, else by their stems, else by their paths."""
    labels = [name.strip() for name in names.split(",")] if names is not None else [file.stem for file in files]
    if names is None and len(set(labels)) < len(labels):
        labels = [str(file.with_suffix("")) for file in files]
    labels = [visible(name) for name in labels]
    if len(labels) != len(files):
        raise InputError(
            "--names",
            expected=f"{len(files)}, one for each file",
            got=f"{len(labels)} ({', '.join(labels)})",
            fix="separate names by commas",
        )
    if len(set(labels)) < len(labels) or not all(labels):
        raise InputError(
            "--names", expected="a name of its own for each file", got=", ".join(labels), fix="write --names CE,focal"
        )
    return dict(zip(labels, files, strict=True))


def _table(rows: list[figures.Row]) -> Any:
    """The first rows in columns; columns with one value only are left out."""
    from rich.table import Table

    first = rows[:SHOWN]
    columns = [key for key in first[0] if len(first) == 1 or len({str(row[key]) for row in first}) > 1]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in first:
        table.add_row(*(_cell(row[column]) for column in columns))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else visible(str(value))
