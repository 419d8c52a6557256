"""The command that turns predictions into one page: report."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import calibrant as cal
from calibrant.cli._app import FewRows, Json, Seed, app, print_json
from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from calibrant.report.values import Source


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="predictions of one model, or of several on the same rows")],
    fit_on: Annotated[list[Path] | None, typer.Option(help="other rows to fit on (repeat: one for each model)")] = None,
    out: Annotated[Path | None, typer.Option(help="write .html, .pdf, .md or .json; without it print")] = None,
    names: Annotated[str | None, typer.Option(help="of the models: CE,focal,ours")] = None,
    groups: Annotated[str | None, typer.Option(help="column of segments (default: group, if there; none)")] = None,
    cost: Annotated[str | None, typer.Option(help="wrong=5,abstain=1, threshold=0.9, or matrix.csv")] = None,
    class_names: Annotated[str | None, typer.Option(help="a file with one name a line, or cat,dog,...")] = None,
    calibrators: Annotated[list[str] | None, typer.Option("--with", help="calibrators to try (repeat)")] = None,
    bins: Annotated[int, typer.Option(help="5 to 500")] = 15,
    title: Annotated[str | None, typer.Option(help="of the page")] = None,
    resamples: Annotated[int | None, typer.Option(min=1, help="bootstrap resamples (default: 200 to 1000)")] = None,
    seed: Seed = 0,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """One page a colleague, a reviewer or an auditor understands."""
    from calibrant.report.build import build
    from calibrant.report.made import command_line
    from calibrant.report.segments import read_column
    from calibrant.report.write import check_out

    if out is not None:
        check_out(out)
    named = _named(files, names)
    models = {name: cal.Predictions.load(file, few_rows=few_rows) for name, file in named.items()}
    fits = _fits(fit_on or [], list(named))
    others = {name: cal.Predictions.load(file, few_rows=few_rows) for name, file in fits.items()}
    asked: Any = groups
    if groups not in (None, "none"):
        asked = read_column(files[0], str(groups))
    with _spinner() as step:
        made = build(
            models,
            fit_on=others or None,
            groups=asked,
            group_name="group" if groups in (None, "none") else str(groups),
            cost=cost,
            class_names=None if class_names is None else _class_names(class_names),
            calibrators=calibrators,
            bins=bins,
            title=title,
            seed=seed,
            resamples=resamples,
            sources=_sources(models, named, "judged on") + _sources(others, fits, "fitted on"),
            command=command_line(sys.argv[1:]),
            on_step=step,
        )
        if out is not None:
            step(f"writing {out.name}")
            made.save(out)
    if as_json:
        return print_json(made.to_dict())
    from calibrant.report import text

    if out is None:
        from calibrant.report.twin import twin

        return text.show(twin(made))
    for m in made.models:
        text.show(f"{m.name}: {m.verdict.headline}" if len(made.models) > 1 else m.verdict.headline)
    text.show(f"Written to {out}.")


def _named(files: list[Path], names: str | None) -> dict[str, Path]:
    """Each file by its name: as given, or the file's own."""
    given = [file.stem for file in files] if names is None else [name.strip() for name in names.split(",")]
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
    """From a file with one name a line, or from the words themselves."""
    file = Path(text)
    try:
        if file.is_file():
            return [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (UnicodeDecodeError, OSError):
        raise InputError("--class-names", expected="a text file", got=str(file), fix="one name a line, UTF-8") from None
    if "," not in text:
        raise InputError(
            "--class-names", expected="a file, or names with commas", got=f"'{text}'", fix="write for instance cat,dog"
        )
    return [name.strip() for name in text.split(",")]


def _sources(models: dict[str, cal.Predictions], files: dict[str, Path], role: str) -> list["Source"]:
    from calibrant.report.made import source_of

    return [source_of(p, files[name].name, role, files[name]) for name, p in models.items()]


def _spinner() -> Any:
    """A line on the terminal that says what is being done; silent in pipes."""
    from contextlib import contextmanager

    from rich.console import Console

    @contextmanager
    def running() -> Any:
        error = Console(stderr=True)
        if not error.is_terminal:
            yield lambda what: None
            return
        with error.status("reading") as status:
            yield lambda what: status.update(f"report: {what}")

    return running()
