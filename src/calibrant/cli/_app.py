"""The application that commands add themselves to, the options they share, and how they print."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from calibrant.core.intervals import Progress

app = typer.Typer(
    help="Is the classifier's confidence honest? Measure it, repair it, gate it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(help="predictions: .npz, .parquet or .csv")]
Json = Annotated[bool, typer.Option("--json", help="print JSON (docs/json.md) instead of a table")]
Confidence = Annotated[float, typer.Option(help="of the intervals")]
Resamples = Annotated[int | None, typer.Option(min=0, help="bootstrap resamples (default: 200 or 1000, by measure)")]
Seed = Annotated[int, typer.Option(min=0, help="same seed, same numbers")]
FewRows = Annotated[bool, typer.Option("--few-rows", help="allow fewer rows than classes")]
SetName = Annotated[str, typer.Option("--set", help="standard, or benchmark102: the 102 of the benchmark study")]
Measures = Annotated[list[str] | None, typer.Option("--measure", "-m", help="e.g. ece:bins=15 (repeat for more)")]
Ood = Annotated[list[str] | None, typer.Option("--ood", help="benchmark102: [name=]FILE of out-of-distribution rows")]


@contextmanager
def needs_train() -> Iterator[None]:
    """Say which extra is missing, if one is."""
    from calibrant.core.errors import InputError

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("calibrant"):
            raise
        fix = "pip install 'calibrant[train]'"
        raise InputError("networks", expected="torch and its friends", got=f"no {error.name}", fix=fix) from None


def print_json(value: Any) -> None:
    """One JSON document; undefined numbers are null."""
    print(json.dumps(_no_nan(value), indent=2, allow_nan=False))


def _no_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _no_nan(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_no_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def bar(what: str, total: int | None, *, quiet: bool = False) -> Iterator["Progress"]:
    """A function that moves a bar on the terminal; silent in pipes."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    error = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=error, transient=True, disable=quiet or not error.is_terminal) as shown:
        task = shown.add_task(what, total=total)
        yield lambda done: shown.advance(task, done)


@contextmanager
def progress(what: str, items: Any) -> Iterator[Iterator[tuple[str, "Progress"]]]:
    """Items with a function that moves a bar on the terminal; silent in pipes."""

    def steps() -> Iterator[tuple[str, "Progress"]]:
        for item in items:
            with bar(f"{what} {item}", None) as step:
                yield item, step

    yield steps()
