"""The command `board`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import calibrant as cal
from calibrant.cli._app import (
    Json,
    Seed,
    app,
    choose_format,
    override_help,
    print_json,
    read_settings,
    show_progress,
)
from calibrant.core.errors import visible
from calibrant.core.io.missing import check_policy

if TYPE_CHECKING:
    from calibrant.reporting.board.board import Board


@dataclass(frozen=True)
class BoardOverrides:
    """Settings of a board that `--override` may change."""

    title: str | None = None
    bins: int = 15  # of the ECE and the diagrams
    max_error: float = 0.05  # of the share answered
    level: float = 0.95  # of intervals and rankings


@app.command()
def board(
    file: Annotated[Path, typer.Argument(help="one row for each model and question: .parquet, .csv or .jsonl")],
    model: Annotated[str, typer.Option("--model-column", help="column of models")] = "model",
    confidence: Annotated[
        list[str] | None, typer.Option("--confidence-column", help="column of confidences (repeat: the first ranks)")
    ] = None,
    correct: Annotated[str, typer.Option("--correct-column", help="column that says whether it was right")] = "correct",
    group: Annotated[str | None, typer.Option("--group-column", help="column of groups of questions")] = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="column of questions (default: id, question, question_id, doc_id)")
    ] = None,
    missing: Annotated[str, typer.Option(help="answers without a confidence: drop, count_as_wrong or error")] = "drop",
    calibrator: Annotated[str, typer.Option("--with", help="repair, fitted on half of the questions")] = "isotonic",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write .html, .md, .csv or .json")] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="text, markdown, csv, html or json (default: text)")
    ] = None,
    override: Annotated[list[str] | None, typer.Option(help=override_help(BoardOverrides))] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Rank models that answered the same questions, with groups that cannot be told apart.

    By ECE, AUROC of correctness, accuracy and the share answered at 5 % error, before and after a repair; and what
    endings of names (-think, -FP8), sizes (-7B), groups and other confidences change, paired by question.
    """
    from calibrant.reporting.board.board import FORMATS, check_board_out
    from calibrant.reporting.provenance import command_line

    settings = read_settings(BoardOverrides, override)
    if out is not None:
        check_board_out(out)
    chosen = choose_format(form, as_json, ("text", *FORMATS))
    with _progress() as on_step:
        leaderboard = cal.board(
            file,
            model=model,
            confidence=confidence or ["confidence"],
            correct=correct,
            group=group,
            id=id_column,
            missing=check_policy(missing),
            calibrator=calibrator,
            bins=settings.bins,
            max_error=settings.max_error,
            level=settings.level,
            seed=seed,
            title=settings.title,
            command=command_line(sys.argv[1:]),
            progress=on_step,
        )
        if out is not None:
            leaderboard.save(out)
    _show(leaderboard, chosen, out)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar of the steps done; silent in pipes."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    with show_progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    ) as progress:
        task = progress.add_task("board", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _show(leaderboard: "Board", form: str, out: Path | None) -> None:
    from calibrant.reporting import tables
    from calibrant.reporting.board.board import FORMATS
    from calibrant.reporting.board.sentences import headline
    from calibrant.reporting.board.terminal import render

    if form == "json":
        return print_json(leaderboard.to_dict())
    for known in FORMATS:
        if form == known:
            sys.stdout.write(leaderboard.text(known))
            return
    if out is None:
        for part in render(leaderboard):
            tables.show(part)
        return
    tables.show(headline(leaderboard))
    typer.echo(f"Written to {visible(str(out))}.")
