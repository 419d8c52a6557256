"""The command that draws: plot."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import calibrant as cal
from calibrant import figures
from calibrant.cli._app import FewRows, Json, Resamples, Seed, app, print_json
from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError, unknown_name

if TYPE_CHECKING:
    import polars as pl

SHOWN = 20  # rows of the text table
COMPARED = ("ece", "nll", "brier", "auroc")


@app.command()
def plot(
    figure: Annotated[str, typer.Argument(help="e.g. reliability, or reliability:bins=30,scheme=mass")],
    files: Annotated[list[Path], typer.Argument(help="predictions, or a table (.parquet, .csv) for figures of tables")],
    out: Annotated[Path | None, typer.Option(help="draw into this file: .svg, .png, .pdf or .html")] = None,
    names: Annotated[str | None, typer.Option(help="names of the files, with commas: CE,focal")] = None,
    bins: Annotated[int | None, typer.Option(min=1, help="the same as figure:bins=...")] = None,
    theme: Annotated[str, typer.Option(help="light or dark")] = "light",
    resamples: Resamples = None,
    seed: Seed = 0,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """Draw one figure; without --out print its words and numbers."""
    made = figures.make(figure if bins is None else f"{figure}{',' if ':' in figure else ':'}bins={bins}")
    if out is not None:
        figures.check_out(out)
    if theme not in ("light", "dark"):
        raise unknown_name("theme", theme, ["light", "dark"])
    source = _source(made, _named(files, names), few_rows, resamples, seed)
    if out is not None:
        words = figures.draw(made, source, out, theme=theme)  # type: ignore[arg-type]  # checked above
        if not as_json:
            return typer.echo(f"{words}\nWritten to {out}.")
    rows = figures.compute(made, source)
    words = made.words(rows)
    if as_json:
        facts = {"figure": spec_of(made), "title": made.title, "words": words, "out": None if out is None else str(out)}
        return print_json(facts | {"rows": rows})
    from rich.text import Text

    from calibrant.report import text

    text.show(Text(words), "", _table(rows))  # names of files are no markup
    if len(rows) > SHOWN:
        typer.echo(f"... and {len(rows) - SHOWN:,} more rows: --json prints them all.")


def _named(files: list[Path], names: str | None) -> dict[str, Path]:
    """The files by name: as told, else by their stems, else by their paths."""
    given = [name.strip() for name in names.split(",")] if names is not None else [file.stem for file in files]
    if names is None and len(set(given)) < len(given):
        given = [str(file.with_suffix("")) for file in files]
    if len(given) != len(files):
        raise InputError(
            "--names",
            expected=f"{len(files)}, one for each file",
            got=f"{len(given)} ({', '.join(given)})",
            fix="separate names by commas",
        )
    if len(set(given)) < len(given) or not all(given):
        raise InputError(
            "--names", expected="a name of its own for each file", got=", ".join(given), fix="write --names CE,focal"
        )
    return dict(zip(given, files, strict=True))


def _source(
    made: figures.Figure, files: Mapping[str, Path], few_rows: bool, resamples: int | None, seed: int
) -> "Mapping[str, cal.Predictions] | pl.DataFrame":
    name = spec_of(made).partition(":")[0]
    measured = name in ("decomposition", "before_after") and all(file.suffix == ".npz" for file in files.values())
    if isinstance(made, figures.TableFigure) and not measured:
        return _tables(files)
    models = {key: cal.Predictions.load(file, few_rows=few_rows) for key, file in files.items()}
    if not measured:
        return models
    return _decomposition(models) if name == "decomposition" else _before_after(models, resamples, seed)


def _tables(files: Mapping[str, Path]) -> "pl.DataFrame":
    """One table; several become one, with the file's name in the column model."""
    import polars as pl

    tables = {name: _read(file) for name, file in files.items()}
    if len(tables) == 1:
        return next(iter(tables.values()))
    for name, table in tables.items():
        if "model" in table.columns:
            raise InputError(
                str(files[name]),
                expected="no column named model, for several files are told apart by it",
                got="one",
                fix="put the tables into one file",
            )
    named = [table.with_columns(pl.lit(name).alias("model")) for name, table in tables.items()]
    return pl.concat(named, how="diagonal_relaxed")


def _read(file: Path) -> "pl.DataFrame":
    import polars as pl

    from calibrant.core.files import existing

    if existing(file).suffix == ".npz":
        raise InputError(str(file), expected="a table (.parquet or .csv)", got=".npz", fix="this figure draws a table")
    try:
        return pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            str(file), expected=f"a readable {file.suffix} file", got=reason, fix="write the file again"
        ) from error


def _decomposition(models: Mapping[str, cal.Predictions]) -> "pl.DataFrame":
    """NLL and Brier score of each model as calibration and refinement, by temperature."""
    import polars as pl

    rows = []
    for name, p in models.items():
        terms = cal.decompose(p)["losses"]
        for score in ("nll, temperature", "brier, temperature"):
            for part in ("calibration", "refinement"):
                rows.append({"model": name, "score": score, "part": part, "value": terms[score][part]})
    return pl.DataFrame(rows)


def _before_after(models: Mapping[str, cal.Predictions], resamples: int | None, seed: int) -> "pl.DataFrame":
    """The usual measures of each model, with intervals."""
    import polars as pl

    better = {"down": "lower", "up": "higher"}
    rows = []
    for measure in COMPARED:
        for name, p in models.items():
            m = cal.measure(p, measure, resamples=resamples, seed=seed)
            known = {"model": name, "measure": measure, "better": better[cal.measures.make(measure).direction]}
            rows.append(known | {"value": m.value, "low": m.low, "high": m.high})
    return pl.DataFrame(rows, infer_schema_length=None)


def _table(rows: list[figures.Row]) -> Any:
    """The first rows in columns; what is the same in every row has been said in the words."""
    from rich.table import Table

    shown = rows[:SHOWN]
    columns = [key for key in shown[0] if len(shown) == 1 or len({str(row[key]) for row in shown}) > 1]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in shown:
        table.add_row(*(_cell(row[column]) for column in columns))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
