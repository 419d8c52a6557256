"""The command `report`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import calibrant as cal
from calibrant.cli._app import Json, Seed, app, print_json, status
from calibrant.cli._inputs import Inputs, ReadSettings, reads_predictions
from calibrant.cli._sums import is_state
from calibrant.core.errors import InputError, visible
from calibrant.reporting import tables
from calibrant.reporting.from_sums import refuse_options

if TYPE_CHECKING:
    from calibrant.reporting.parts import SourceFile
    from calibrant.reporting.report import Report


@dataclass(frozen=True)
class ReportSettings(ReadSettings):
    """Settings of a report that `--override` may change."""

    title: str | None = None
    class_names: str | None = None  # a file with one name per line, or cat,dog,...
    bins: int = 15  # of the reliability diagram and the ECE, 5 to 500
    keep_argmax: bool = False  # recommend only calibrators that cannot change a prediction
    resamples: int | None = None  # default: 100 to 1,000, by measure and rows


@app.command()
@reads_predictions()
def report(
    files: Annotated[list[Path], typer.Argument(help="predictions of one model, or of several on the same rows")],
    fit_on: Annotated[
        list[Path] | None, typer.Option(help="fit calibrators on these rows (repeat, one per model)")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write .html, .pdf, .md or .json")] = None,
    names: Annotated[str | None, typer.Option(help="names of the models: CE,focal,ours")] = None,
    cost: Annotated[str | None, typer.Option(help="wrong=5,abstain=1, fn=10,fp=1, threshold=0.9 or matrix.csv")] = None,
    calibrators: Annotated[list[str] | None, typer.Option("--with", help="calibrators to try (repeat)")] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
    settings: ReportSettings,
) -> None:
    """Write a report on one page, for colleagues, reviewers and auditors.

    The saved state of an accumulator (.json) has a report too, of what sums can answer.
    """
    from calibrant.plotting import engine
    from calibrant.reporting.build import build
    from calibrant.reporting.provenance import command_line
    from calibrant.reporting.write import check_out

    if out is not None and check_out(out).suffix.lower() in (".html", ".pdf"):
        engine.start()
    command = command_line(sys.argv[1:])
    with status("reading") as step:
        if any(is_state(file) for file in files):
            needs_rows = {"--fit-on": fit_on, "--cost": cost, "--with": calibrators}
            refuse_options([name for name, value in needs_rows.items() if value is not None])
            document = _report_sums(files, settings, seed, command)
        else:
            named = _name_files(files, names)
            plain = inputs if inputs.columns.group is None else inputs.with_group_column("none")
            models = {name: (plain if i else inputs).load(file) for i, (name, file) in enumerate(named.items())}
            fits = _fits(fit_on or [], list(named))
            others = {name: plain.load(file) for name, file in fits.items()}
            document = build(
                models,
                fit_on=others or None,
                group_name=inputs.columns.group or "group",
                cost=cost,
                class_names=None if settings.class_names is None else _class_names(settings.class_names),
                calibrators=calibrators,
                keep_argmax=settings.keep_argmax,
                bins=settings.bins,
                title=settings.title,
                seed=seed,
                resamples=settings.resamples,
                sources=_sources(models, named, "judged on") + _sources(others, fits, "fitted on"),
                command=command,
                on_step=step,
            )
        if out is not None:
            step(f"writing {visible(out.name)}")
            document.save(out)
    if as_json:
        return print_json(document.to_dict())
    if out is None:
        from calibrant.reporting.terminal import render

        return tables.show(render(document))
    for m in document.models:
        said = "\n".join(m.verdict.lines)
        tables.show(f"{m.name}: {said}" if len(document.models) > 1 else said)
    typer.echo(f"Written to {visible(str(out))}.")


def _report_sums(files: list[Path], settings: ReportSettings, seed: int, command: str) -> "Report":
    """A report of the saved state of one accumulator."""
    from calibrant.cli._sums import load_state
    from calibrant.reporting.from_sums import report_of_sums, source_of_sums
    from calibrant.reporting.provenance import hash_file

    if len(files) > 1:
        fix = "report one state at a time, or the rows of several models"
        raise InputError("report", expected="one state of sums", got=f"{len(files)} files", fix=fix)
    file, sums = files[0], load_state(files[0])
    source = source_of_sums(sums, file.name, hash_file(file))
    title = settings.title or f"Calibration of {file.stem}"
    return report_of_sums(sums, title=title, seed=seed, sources=[source], command=command)


def _name_files(files: list[Path], names: str | None) -> dict[str, Path]:
    """Each file by its name: as given, or the file's own."""
    labels = [visible(name) for name in ([f.stem for f in files] if names is None else names.split(","))]
    labels = [name.strip() for name in labels]
    if len(labels) != len(files) or not all(labels):
        raise InputError(
            "--names", expected=f"{len(files)} names, one a file", got=f"'{names}'", fix="write --names CE,focal,ours"
        )
    if len(set(labels)) < len(labels):
        twice = next(name for name in labels if labels.count(name) > 1)
        raise InputError(
            "--names", expected="a name of its own for each file", got=f"'{twice}' twice", fix="add --names CE,focal"
        )
    return dict(zip(labels, files, strict=True))


def _fits(files: list[Path], names: list[str]) -> dict[str, Path]:
    if files and len(files) != len(names):
        raise InputError(
            "--fit-on",
            expected=f"{len(names)} files, one for each model and in the same order",
            got=f"{len(files)}",
            fix="repeat --fit-on, or leave it out to cross-fit",
        )
    return dict(zip(names, files, strict=True)) if files else {}


def _class_names(text: str) -> list[str]:
    """Read class names from a file with one name per line, or from the words themselves."""
    file = Path(text)
    try:
        if file.is_file():
            return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (UnicodeDecodeError, OSError):
        raise InputError("class_names", expected="a text file", got=str(file), fix="one name per line, UTF-8") from None
    if "," not in text:
        raise InputError(
            "class_names", expected="a file, or names with commas", got=f"'{text}'", fix="write for instance cat,dog"
        )
    return [name.strip() for name in text.split(",")]


def _sources(models: dict[str, cal.Predictions], files: dict[str, Path], role: str) -> list["SourceFile"]:
    from calibrant.reporting.provenance import source_of

    return [source_of(p, files[name].name, role, files[name]) for name, p in models.items()]
