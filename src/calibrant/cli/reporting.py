"""The command that turns predictions into one page: report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import calibrant as cal
from calibrant.cli._app import Json, Seed, app, print_json, status
from calibrant.cli._inputs import Inputs, reads_predictions
from calibrant.cli._sums import is_state
from calibrant.core.errors import InputError, visible
from calibrant.reporting import tables

if TYPE_CHECKING:
    from calibrant.reporting.report import SourceFile


@app.command()
@reads_predictions
def report(
    files: Annotated[list[Path], typer.Argument(help="predictions of one model, or of several on the same rows")],
    fit_on: Annotated[
        list[Path] | None, typer.Option(help="fit calibrators on these rows (repeat, one per model)")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="write .html, .pdf, .md or .json (default: print)")] = None,
    names: Annotated[str | None, typer.Option(help="names of the models: CE,focal,ours")] = None,
    groups: Annotated[str | None, typer.Option(help="column to split rows by (default: group), or none")] = None,
    cost: Annotated[str | None, typer.Option(help="wrong=5,abstain=1, fn=10,fp=1, threshold=0.9 or matrix.csv")] = None,
    class_names: Annotated[str | None, typer.Option(help="a file with one name per line, or cat,dog,...")] = None,
    calibrators: Annotated[list[str] | None, typer.Option("--with", help="calibrators to try (repeat)")] = None,
    keep_argmax: Annotated[bool, typer.Option("--keep-argmax", help="recommend only what keeps predictions")] = False,
    bins: Annotated[int, typer.Option(help="bins of the reliability diagram and the ECE, 5 to 500")] = 15,
    title: Annotated[str | None, typer.Option(help="title of the page")] = None,
    resamples: Annotated[int | None, typer.Option(min=1, help="bootstrap resamples (default: 200 to 1000)")] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Write a report on one page, for colleagues, reviewers and auditors.

    A state of sums (.json) has a report too, of what sums can answer.
    """
    from calibrant.reporting.build import build
    from calibrant.reporting.provenance import command_line
    from calibrant.reporting.write import check_out

    if out is not None:
        check_out(out)
    if any(is_state(file) for file in files):
        return _report_state(files, out, title, seed, as_json)
    named = _named(files, names)
    grouped = groups not in (None, "none")
    first = inputs.grouped(str(groups)) if grouped else inputs
    models = {name: (inputs if i else first).load(file) for i, (name, file) in enumerate(named.items())}
    fits = _fits(fit_on or [], list(named))
    others = {name: inputs.load(file) for name, file in fits.items()}
    with status("reading") as step:
        made = build(
            models,
            fit_on=others or None,
            groups="none" if groups == "none" else None,
            group_name=str(groups) if grouped else inputs.columns.group or "group",
            cost=cost,
            class_names=None if class_names is None else _class_names(class_names),
            calibrators=calibrators,
            keep_argmax=keep_argmax,
            bins=bins,
            title=title,
            seed=seed,
            resamples=resamples,
            sources=_sources(models, named, "judged on") + _sources(others, fits, "fitted on"),
            command=command_line(sys.argv[1:]),
            on_step=step,
        )
        if out is not None:
            step(f"writing {visible(out.name)}")
            made.save(out)
    if as_json:
        return print_json(made.to_dict())

    if out is None:
        from calibrant.reporting.terminal import twin

        return tables.show(twin(made))
    for m in made.models:
        tables.show(f"{m.name}: {m.verdict.headline}" if len(made.models) > 1 else m.verdict.headline)
    typer.echo(f"Written to {visible(str(out))}.")


def _report_state(files: list[Path], out: Path | None, title: str | None, seed: int, as_json: bool) -> None:
    """What sums can answer."""
    from calibrant.cli._sums import load_state
    from calibrant.reporting.from_sums import sums_report
    from calibrant.reporting.provenance import command_line
    from calibrant.reporting.sums_page import twin

    if len(files) > 1:
        fix = "report one state at a time, or the rows of several models"
        raise InputError("report", expected="one state of sums", got=f"{len(files)} files", fix=fix)
    file = files[0]
    made = sums_report(load_state(file), title=title, seed=seed, file=file, command=command_line(sys.argv[1:]))
    if out is not None:
        made.save(out)
    if as_json:
        return print_json(made.to_dict())
    if out is None:
        return tables.show(twin(made))
    tables.show(made.verdict.headline)
    typer.echo(f"Written to {visible(str(out))}.")


def _named(files: list[Path], names: str | None) -> dict[str, Path]:
    """Each file by its name: as given, or the file's own."""
    given = [visible(name) for name in ([f.stem for f in files] if names is None else names.split(","))]
    given = [name.strip() for name in given]
    if len(given) != len(files) or not all(given):
        raise InputError(
            "--names", expected=f"{len(files)} names, one a file", got=f"'{names}'", fix="write --names CE,focal,ours"
        )
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InputError(
            "--names", expected="a name of its own for each file", got=f"'{twice}' twice", fix="add --names CE,focal"
        )
    return dict(zip(given, files, strict=True))


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
    """From a file with one name per line, or from the words themselves."""
    file = Path(text)
    try:
        if file.is_file():
            return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (UnicodeDecodeError, OSError):
        raise InputError(
            "--class-names", expected="a text file", got=str(file), fix="one name per line, UTF-8"
        ) from None
    if "," not in text:
        raise InputError(
            "--class-names", expected="a file, or names with commas", got=f"'{text}'", fix="write for instance cat,dog"
        )
    return [name.strip() for name in text.split(",")]


def _sources(models: dict[str, cal.Predictions], files: dict[str, Path], role: str) -> list["SourceFile"]:
    from calibrant.reporting.provenance import source_of

    return [source_of(p, files[name].name, role, files[name]) for name, p in models.items()]
