"""Commands that run whole studies: study plan, run, status, retry, table, claims, page."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli._app import AllowCode, App, Json, app, choose_format, needs_train, print_json
from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from calibrant.studying.engine import StudyProgress
    from calibrant.studying.study import Study

FORMATS = ("text", "markdown", "latex", "csv", "parquet", "json")

commands = App(help="Run whole studies: a plan of trainings, what they show, and which claims hold.")
app.add_typer(commands, name="study")

PlanName = Annotated[
    str, typer.Argument(metavar="PLAN", help="a plan of calibrant's (study plans lists them) or a .toml file")
]
Folder = Annotated[Path, typer.Argument(metavar="STUDY", help="the folder of a study")]
Limit = Annotated[float, typer.Option(min=0, help="seconds that one job may take; 0 is no limit")]
Cpus = Annotated[float | None, typer.Option(min=0.01, help="on ray: processors that one job takes (default: 1)")]
Gpus = Annotated[float | None, typer.Option(min=0, help="on ray: GPUs that one job takes (default: 0)")]
Scale = Annotated[str, typer.Option(help="smoke (seconds), small (hours on two cores) or paper")]


@commands.command()
def plans(as_json: Json = False) -> None:
    """List the plans that come with calibrant."""
    from calibrant.studying.plan_files import plan_names, read_plan

    rows = [(name, read_plan(name).title) for name in plan_names()]
    if as_json:
        return print_json([{"name": name, "title": title} for name, title in rows])
    width = max(len(name) for name, _ in rows) + 2
    for name, title in rows:
        typer.echo(fill(f"{name:{width}}{title}", 80, subsequent_indent=" " * width, break_on_hyphens=False))


@commands.command()
@needs_train()
def plan(
    name: PlanName,
    scale: Scale = "paper",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="the study's folder: count what is done there")
    ] = None,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Show what a plan would run, what is shared, and how long it would take, before anything starts."""
    from calibrant.studying.expand_plan import needs_code
    from calibrant.studying.plan_cost import plan_cost
    from calibrant.studying.plan_files import find_plan, plans_folder, read_plan
    from calibrant.studying.validate_plan import check_plan

    study_plan = read_plan(name, scale=scale)
    file = find_plan(name)
    own = file.parent == plans_folder() and not needs_code(study_plan)
    check_plan(study_plan, file, code=not own)  # to tell how long it takes, its networks are built
    forecast = plan_cost(study_plan, None if out is None else out.parent / "jobs")
    if as_json:
        return print_json(forecast.to_dict())
    typer.echo(forecast.words())


@commands.command()
@needs_train()
def run(
    name: PlanName,
    out: Annotated[Path, typer.Option("--out", "-o", help="the study's folder")],
    scale: Scale = "paper",
    on: Annotated[str, typer.Option(help="local, local:N, ray or ray://HOST:PORT")] = "local",
    shard: Annotated[str, typer.Option(help="only a part, for job arrays: 3/64")] = "",
    limit: Limit = 0.0,
    cpus: Cpus = None,
    gpus: Gpus = None,
    store: Annotated[
        Path | None, typer.Option(help="folder of finished jobs (default: jobs, beside the study)")
    ] = None,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Run a plan; interrupted at any point, the same command continues and computes only what is missing."""
    from calibrant.studying.sources import describe
    from calibrant.studying.study import open_plan

    if shard and on != "local":
        raise InputError("--shard", expected="no --on beside it", got=f"--on {on}", fix="leave one of them out")
    study = open_plan(name, out, scale=scale, store=store)
    if study.unused and not as_json:
        typer.echo(
            f"The plan has changed: {study.unused} finished jobs are no longer part of it, others are computed again."
        )
    if study.outdated and not as_json:
        changed = describe(study.changed or ["version of calibrant"])
        typer.echo(
            f"{study.outdated} finished jobs were made by another {changed} and are computed again. "
            f"Where that changes no number: calibrant study adopt {study.store.folder}"
        )
    _run(study, f"shard:{shard}" if shard else on, {"limit": limit, **_sizes(on, cpus, gpus)}, as_json)


@commands.command()
@needs_train()
def retry(
    folder: Folder,
    on: Annotated[str, typer.Option(help="local, local:N, ray or ray://HOST:PORT")] = "local",
    limit: Limit = 0.0,
    cpus: Cpus = None,
    gpus: Gpus = None,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Try failed jobs again."""
    from calibrant.studying.study import open_study

    sizes = {"limit": limit, **_sizes(on, cpus, gpus)}
    _run(open_study(folder), on, sizes, as_json, retry=True)


@commands.command()
@needs_train()
def adopt(
    place: Annotated[Path, typer.Argument(metavar="STORE", help="a study, or the folder of finished jobs beside it")],
    sample: Annotated[int, typer.Option(min=1, help="so many jobs are computed again, at least one of a kind")] = 3,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Keep finished jobs after their code changed, if a sample computed again is the same to the last bit."""
    from calibrant.studying.adopt import adopt

    adopted = adopt(place, sample=sample)
    if as_json:
        return print_json(vars(adopted))
    again = ", ".join(f"{count} {kind}" for kind, count in adopted.sampled.items()) or "none"
    typer.echo(f"{adopted.adopted} jobs adopted; computed again, and the same to the last bit: {again}.")


@commands.command()
@needs_train()
def status(folder: Folder, as_json: Json = False) -> None:
    """Show how far a study is, and what failed."""
    from calibrant.core.text.number_format import wrap
    from calibrant.studying.study import open_study

    progress = open_study(folder).status()
    if as_json:
        return print_json(vars(progress))
    state = "running" if progress.running else "finished" if progress.done == progress.total else "not running"
    counts = (
        f"{progress.done} of {progress.total} jobs done, {progress.failed} failed, {progress.missing} missing; {state}."
    )
    typer.echo(wrap(counts))
    for name, why in progress.failures.items():
        typer.echo(wrap(f"{name}: {why}", "  "))
    if progress.failures:
        typer.echo(f"\n  calibrant study retry {folder}")


@commands.command()
@needs_train()
def table(
    folder: Folder,
    measure: Annotated[
        str | None, typer.Option("--measure", "-m", help="a measure of the plan (default: ece; with --rows: all)")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="columns, with commas (default: entry and the grid; with --rows: all)"),
    ] = None,
    where: Annotated[str, typer.Option(help="a condition in SQL: \"data = 'cifar10'\"")] = "",
    form: Annotated[
        str | None, typer.Option("--format", help="text, markdown, latex, csv, parquet or json (default: text)")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="every single value instead of means")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write to this file (needed for parquet)")] = None,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Means and standard deviations over seeds, or all rows; groups that differ by more than seeds are refused."""
    from calibrant.studying.study import open_study
    from calibrant.studying.tables import render_table

    chosen = choose_format(form, as_json, FORMATS)
    study = open_study(folder)
    study.check_judged()
    columns = tuple(by.split(",")) if by else ()
    if rows:
        values = study.values(measure, columns, where)
    elif chosen == "latex" and not by:
        return _print_latex(study, measure or "ece", where, out)
    else:
        values = study.table(measure or "ece", columns, where)
    if chosen == "json":
        return print_json(values.to_dicts())
    text = render_table(values, chosen, out)
    if text:
        typer.echo(text)


@commands.command()
@needs_train()
def claims(folder: Folder, allow_code: AllowCode = False, as_json: Json = False) -> None:
    """Judge every claim of the plan: held, did not hold, depends on the data set, or inconclusive."""
    from calibrant.studying.study import open_study
    from calibrant.studying.tables import claims_in_words

    study = open_study(folder)
    if as_json:
        return print_json([finding.to_dict() for finding in study.claims()])
    typer.echo(claims_in_words(study))


@commands.command()
@needs_train()
def page(
    folder: Folder,
    out: Annotated[Path, typer.Option("--out", "-o", help="the HTML file to write")],
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Write one page: tables with the published numbers beside ours, claims with verdicts, figures."""
    from calibrant.studying.page import save_page
    from calibrant.studying.study import open_study

    save_page(open_study(folder), out)
    if as_json:
        return print_json({"out": str(out)})
    typer.echo(f"Written to {out}.")


def _print_latex(study: "Study", measure: str, where: str, out: Path | None) -> None:
    from calibrant.studying.latex import latex_table
    from calibrant.studying.tables import render_text

    typer.echo(render_text(latex_table(study, measure, where), out))


def _sizes(on: str, cpus: float | None, gpus: float | None) -> dict[str, float]:
    """The resources of a job where Ray runs it."""
    sizes = {name: value for name, value in (("cpus", cpus), ("gpus", gpus)) if value is not None}
    if sizes and on.partition(":")[0] != "ray":
        raise InputError(
            "--cpus and --gpus", expected="--on ray", got=f"--on {on}", fix="say --on ray, or leave them out"
        )
    return sizes


def _run(study: "Study", on: str, sizes: dict[str, float], quiet: bool, *, retry: bool = False) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from calibrant.core.text.number_format import duration

    error = Console(stderr=True)
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=error, transient=True, disable=quiet) as progress:
        task = progress.add_task("", total=None)

        def on_progress(p: "StudyProgress") -> None:
            left = "" if p.left is None else f"about {duration(p.left)} left"
            words = f"{p.failed} failed, {left}" if p.failed else left
            progress.update(task, total=p.total, completed=p.done + p.failed + p.blocked, description=words)

        try:
            ended = study.run(on, **sizes, retry=retry, on_progress=on_progress)
        except KeyboardInterrupt:
            typer.echo(f"stopped; finished jobs are kept: the same command continues ({study.folder})", err=True)
            raise typer.Exit(130) from None
    facts = {"total": ended.total, "done": ended.done, "failed": ended.failed, "blocked": ended.blocked}
    if quiet:
        print_json(facts | {"reused": ended.reused, "folder": str(study.folder)})
    else:
        waiting = f", {ended.blocked} wait for those" if ended.blocked else ""
        typer.echo(f"{ended.done} of {ended.total} jobs done ({ended.reused} before), {ended.failed} failed{waiting}.")
        typer.echo(f"\n  calibrant study page {study.folder} --out study.html")
    raise typer.Exit(1 if ended.failed else 0)
