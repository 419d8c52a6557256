"""Networks of a space trained or measured behind a bar on the terminal, and how it ended."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from calibrant.cli._app import print_json

if TYPE_CHECKING:
    from calibrant.studying.engine import StudyProgress
    from calibrant.studying.job import Job


def run_shown(jobs: "list[Job]", out: Path, on: str, limit: float, retry: bool, quiet: bool) -> None:
    """Run the missing jobs behind a bar and print the outcome; `quiet` prints JSON instead."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from calibrant.nas.build_table import run_networks

    columns = (TextColumn("networks"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True, disable=quiet
    ) as progress:
        task = progress.add_task("", total=None)

        def on_progress(p: "StudyProgress") -> None:
            left = "" if p.left is None else f"about {p.left / 60:.0f} min left"
            words = f"{p.failed} failed, {left}" if p.failed else left
            progress.update(task, total=p.total, completed=p.done + p.failed, description=words)

        try:
            build = run_networks(jobs, out, on=on, limit=limit, retry=retry, on_progress=on_progress)
        except KeyboardInterrupt:
            typer.echo(f"stopped; finished networks are kept: the same command continues ({out})", err=True)
            raise typer.Exit(130) from None
    ended = build.standing
    facts = {"total": ended.total, "done": ended.done, "reused": ended.reused, "failed": ended.failed}
    if quiet:
        print_json({**facts, "table": str(build.file), "rows": build.table.height, "failures": build.failures})
    else:
        typer.echo(
            f"{ended.done:,} of {ended.total:,} networks done ({ended.reused:,} before), {ended.failed:,} failed."
        )
        for name, why in list(build.failures.items())[:10]:
            typer.echo(f"  skipped {name}: {why}", err=True)
        typer.echo(f"{build.table.height:,} rows written to {build.file}.")
        typer.echo(f'\n  calibrant nas query "select arch, accuracy, pre_ECE_15 from nas limit 5" --table {build.file}')
    raise typer.Exit(1 if ended.failed else 0)
