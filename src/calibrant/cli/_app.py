"""The application that commands add themselves to, the options they share, and how they print."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import ProgressColumn

    from calibrant.core.statistics.bootstrap import OnDone

S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])

LEFT_BY_READER = 141  # as the signal would end it; 1 is a verdict of check, watch and decide


class Command(TyperCommand):
    """A command that refuses a second value of an option that takes one: the first would be lost in silence."""

    def make_parser(self, ctx: Any) -> Any:
        from calibrant.core.errors import InputError

        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            values, rest, order = parse(args=args)
            for option in order:
                one_value = option.param_type_name == "option" and not (option.multiple or option.is_flag)
                if one_value and order.count(option) > 1:
                    raise InputError(option.opts[0], expected="one value", got="two", fix="give it once")
            return values, rest, order

        parser.parse_args = parse_once
        return parser


class App(typer.Typer):
    """An application of such commands."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[F], F]:
        return super().command(name, cls=Command, **options)


class Commands(TyperGroup):
    """The commands. What one printed is written out before it ends, so that a full disk is an error."""

    def invoke(self, context: Any) -> Any:
        try:
            try:
                return super().invoke(context)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(LEFT_BY_READER) from None


def drop_output() -> None:
    """Write the rest of standard output nowhere: Python would try once more at its end, and complain."""
    with suppress(OSError):  # a stream without a number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = App(
    cls=Commands,
    help="Is a classifier calibrated? Measure it, repair it, train for it, report it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(help="predictions: .npz, .parquet, .csv or .jsonl")]
Json = Annotated[bool, typer.Option("--json", help="print JSON (docs/json.md) instead of a table")]
Confidence = Annotated[float, typer.Option(help="confidence level of the intervals")]
Resamples = Annotated[int | None, typer.Option(min=0, help="bootstrap resamples (default: 200 or 1000, by measure)")]
Seed = Annotated[int, typer.Option(min=0, help="seed of all random numbers")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps")]


def _allow_code(context: typer.Context, value: bool) -> None:
    if value and not context.resilient_parsing:  # completing a word allows nothing
        from calibrant.core.config.code_trust import allow_code

        context.with_resource(allow_code())


AllowCode = Annotated[  # acts by itself, until the command ends: no command hands it on
    bool,
    typer.Option(
        "--allow-code",
        help="run the code that this file or folder names; remembered until it changes",
        callback=_allow_code,
        expose_value=False,
    ),
]
SetName = Annotated[str, typer.Option("--set", help="standard, or benchmark102 (Tao et al., ICLR 2024)")]
Measures = Annotated[list[str] | None, typer.Option("--measure", "-m", help="e.g. ece:bins=15 (repeat for more)")]
Ood = Annotated[list[str] | None, typer.Option("--ood", help="benchmark102: [name=]FILE of out-of-distribution rows")]


def override_help(settings: type, *, but: Sequence[str] = ()) -> str:
    """Help of `--override`: keys of a dataclass with the words they take, `but` those with an option of their own."""
    hints = get_type_hints(settings)
    keys = [
        f"{field.name} ({', '.join(get_args(hints[field.name]))})"
        if get_origin(hints[field.name]) is Literal
        else field.name
        for field in fields(settings)
        if field.name not in but
    ]
    return f"rare options, key=value (repeat): {', '.join(keys)}"


def read_settings(settings: type[S], override: list[str] | None) -> S:
    """Parse `--override key=value` options into a dataclass; an unknown key ends with the nearest known one."""
    from calibrant.core.config.convert import build
    from calibrant.core.config.overrides import read_changes

    return build(settings, read_changes(settings, override or [], "--override"))


def choose_format(form: str | None, as_json: bool, formats: Sequence[str]) -> str:
    """The format that --format names, text by default; --json is short for --format json."""
    from calibrant.core.errors import InputError, unknown_name

    if as_json and form not in (None, "json"):
        fix = "leave one of them out"
        raise InputError("--format", expected="one format", got=f"--json and --format {form}", fix=fix)
    chosen = "json" if as_json else form or "text"
    if chosen not in formats:
        raise unknown_name("--format", chosen, formats)
    return chosen


@contextmanager
def needs_train() -> Iterator[None]:
    """Raise an error that names the missing extra, if one is missing."""
    from calibrant.core.errors import InputError

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("calibrant"):
            raise
        fix = "pip install 'calibrant[train]'"
        raise InputError(
            "networks", expected="PyTorch and the other packages for training", got=f"no {error.name}", fix=fix
        ) from None


def print_json(value: Any) -> None:
    """One JSON document; undefined numbers are null."""
    from calibrant.core.json import plain

    print(json.dumps(plain(value), indent=2, allow_nan=False))


@contextmanager
def show_progress(*columns: "str | ProgressColumn", quiet: bool = False) -> Iterator["RichProgress"]:
    """A progress bar on the terminal, gone when it is done; silent in pipes."""
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    error = Console(stderr=True)
    with RichProgress(*columns, console=error, transient=True, disable=quiet or not error.is_terminal) as progress:
        yield progress


@contextmanager
def status(first: str) -> Iterator[Callable[[str], None]]:
    """A function that shows the current step on the terminal; silent in pipes."""
    from rich.console import Console

    error = Console(stderr=True)
    if not error.is_terminal:
        yield lambda what: None
        return
    with error.status(first) as line:
        yield lambda what: line.update(what)


@contextmanager
def bar(what: str, total: int | None, *, quiet: bool = False) -> Iterator["OnDone"]:
    """A function that moves a bar on the terminal; silent in pipes."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    with show_progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), quiet=quiet
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


@contextmanager
def progress(what: str, items: Any) -> Iterator[Iterator[tuple[str, "OnDone"]]]:
    """Items with a function that moves a bar on the terminal; silent in pipes."""

    def steps() -> Iterator[tuple[str, "OnDone"]]:
        for item in items:
            with bar(f"{what} {item}", None) as step:
                yield item, step

    yield steps()


def numbers(option: str, text: str) -> tuple[float, ...]:
    """The numbers of an option such as `--mean 0.5,0.5,0.5`; none where it was not given."""
    from calibrant.core.errors import InputError

    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        fix = f"write {option} 0.5, or several with commas between them: 0.2,0.3,0.5"
        raise InputError(option, expected="numbers", got=f"'{text}'", fix=fix) from None
