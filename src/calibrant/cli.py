"""The command line: one short function a command. Parse, call, print."""

import json
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import calibrant as cal
from calibrant.core.errors import InputError, unknown_name

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


@app.command()
def measure(
    file: File,
    measures: Measures = None,
    set_name: SetName = "standard",
    ood: Ood = None,
    stream: Annotated[bool, typer.Option("--stream", help="constant memory, for huge Parquet or CSV")] = False,
    batch_rows: Annotated[int, typer.Option(min=1, help="rows read at a time with --stream")] = 100_000,
    confidence: Confidence = 0.95,
    resamples: Resamples = None,
    seed: Seed = 0,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """How calibrated and how refined are these predictions?"""
    from calibrant.measures._sets import STANDARD

    if set_name not in ("standard", "benchmark102"):
        raise unknown_name("set", set_name, ["standard", "benchmark102"])
    if ood and set_name != "benchmark102":
        raise InputError("--ood", expected="--set benchmark102", got="another set", fix="add --set benchmark102")
    if stream:
        if set_name != "standard" or resamples is not None:
            raise InputError(
                "--stream", expected="neither --set nor --resamples", got="one of them", fix="leave it out, or --stream"
            )
        return _measure_stream(file, measures, batch_rows, confidence, seed, as_json)
    p = cal.Predictions.load(file, few_rows=few_rows)
    if set_name == "benchmark102":
        return _measure_benchmark(p, measures, ood, resamples, few_rows, as_json)
    with _progress("measuring", measures or STANDARD) as steps:
        rows = [
            cal.measure(p, m, confidence=confidence, resamples=resamples, seed=seed, progress=step) for m, step in steps
        ]
    if as_json:
        return _print_json([m.to_dict() for m in rows])
    from calibrant.report import text

    text.show(text.measurements(rows, confidence))
    if not measures:
        text.show(f"\n{text.verdict(p, seed=seed)}")


def _measure_stream(
    file: Path, measures: list[str] | None, batch_rows: int, confidence: float, seed: int, as_json: bool
) -> None:
    from calibrant.core.files import read_batches

    sums = cal.Accumulator(measures) if measures else cal.Accumulator()
    with _progress("rows read", ["stream"]) as steps:
        for _, step in steps:
            for batch in read_batches(file, batch_rows):
                sums.update(batch)
                step(batch.n)
    rows = sums.measure_all(confidence=confidence, seed=seed)
    if as_json:
        return _print_json([m.to_dict() for m in rows])
    from calibrant.report import text

    text.show(text.measurements(rows, confidence))
    text.show(f"\n{sums.n:,} rows, {sums.k} classes, read in batches of {batch_rows:,}.")


def _measure_benchmark(
    p: cal.Predictions,
    measures: list[str] | None,
    ood: list[str] | None,
    resamples: int | None,
    few_rows: bool,
    as_json: bool,
) -> None:
    from calibrant.core.files import load_predictions

    if measures or resamples:
        raise InputError(
            "--set benchmark102",
            expected="no --measure and no --resamples: it is a fixed list of values",
            got="one of them",
            fix="for intervals ask for single measures with --measure",
        )
    others = {}
    for item in ood or []:
        name, equals, path = item.rpartition("=")
        name = name if equals else Path(path).stem
        if name in others:
            raise InputError(
                "--ood", expected="a name of its own for each file", got=f"'{name}' twice", fix="write name=FILE"
            )
        others[name] = load_predictions(path, few_rows=few_rows, labelled=False)
    rows = cal.benchmark102(p, ood=others)
    if as_json:
        return _print_json([m.to_dict() for m in rows])
    from calibrant.report import text

    text.show(text.benchmark(rows))


@app.command()
def compare(
    a: File,
    b: File,
    measures: Measures = None,
    confidence: Confidence = 0.95,
    resamples: Resamples = None,
    seed: Seed = 0,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """Two models on the same rows: which is better?"""
    first, second = (cal.Predictions.load(f, few_rows=few_rows) for f in (a, b))
    with _progress("comparing", measures or ["ece", "nll", "brier", "accuracy", "auroc"]) as steps:
        rows = [
            cal.compare(first, second, m, confidence=confidence, resamples=resamples, seed=seed, progress=step)
            for m, step in steps
        ]
    if as_json:
        return _print_json([c.to_dict() for c in rows])
    from calibrant.report import text

    names = (a.stem, b.stem) if a.stem != b.stem else ("a", "b")
    text.show(text.comparisons(rows, names, confidence))


@app.command()
def check(
    file: File,
    at_most: Annotated[list[str] | None, typer.Option("--max", help="e.g. ece=0.03 or ece:bins=30=0.03")] = None,
    at_least: Annotated[list[str] | None, typer.Option("--min", help="e.g. auroc=0.9")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="fail unless every limit is shown to be kept")] = False,
    confidence: Confidence = 0.95,
    resamples: Annotated[int | None, typer.Option(min=1, help="bootstrap resamples")] = None,
    seed: Seed = 0,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """A gate for CI that fails on evidence, not on noise.

    Exit code 0: pass. 1: a limit is shown to be broken. 2: bad input.
    """
    sides: dict[Literal["max", "min"], list[str]] = {"max": at_most or [], "min": at_least or []}
    limits = [(side, *_limit(item)) for side, items in sides.items() for item in items]
    if not limits:
        raise InputError("check", expected="at least one --max or --min", got="none", fix="add --max ece=0.03")
    p = cal.Predictions.load(file, few_rows=few_rows)
    rows = [
        cal.check(p, spec, limit=limit, side=side, confidence=confidence, resamples=resamples, seed=seed)
        for side, spec, limit in limits
    ]
    failing = {"broken", "open"} if strict else {"broken"}
    failed = any(v.state in failing for v in rows)
    if as_json:
        _print_json([v.to_dict() for v in rows])
    else:
        from calibrant.report import text

        text.show(text.verdicts(rows, confidence))
        text.show("\nfail" if failed else "\npass")
    raise typer.Exit(1 if failed else 0)


@app.command()
def decompose(
    file: File,
    bins: Annotated[int, typer.Option(min=1, help="equal-width bins")] = 15,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """The loss as calibration and refinement."""
    parts = cal.decompose(cal.Predictions.load(file, few_rows=few_rows), bins=bins)
    if as_json:
        return _print_json(parts)
    from calibrant.report import text

    for title, rows in parts["losses"].items():
        text.show(text.terms(title, rows), "")
    text.show(text.terms(f"top-label Brier score, {bins} bins", parts["brier"]), "")
    text.show(text.terms("ECE beside the terms of Eq. 9 (not an identity)", parts["ece"]))


@app.command()
def fit(
    file: File,
    what: Annotated[str, typer.Option("--with", help="a calibrator, a chain (temperature+isotonic), auto or all")],
    out: Annotated[Path | None, typer.Option(help="write the map to this JSON file")] = None,
    test: Annotated[Path | None, typer.Option(help="judge the map on these other rows")] = None,
    cross_fit: Annotated[bool, typer.Option("--cross-fit", help="judge it by cross-fitting on its own rows")] = False,
    keep_argmax: Annotated[bool, typer.Option("--keep-argmax", help="only maps that change no prediction")] = False,
    by_group: Annotated[bool, typer.Option("--by-group", help="one map per value of the column group")] = False,
    resamples: Annotated[int, typer.Option(min=1, help="bootstrap resamples of the changes")] = 200,
    seed: Seed = 0,
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """Learn a calibration map on held-out predictions."""
    val = cal.Predictions.load(file, few_rows=few_rows)
    other = None if test is None else cal.Predictions.load(test, few_rows=few_rows)
    if what == "all":
        return _fit_all(val, other, out, keep_argmax, as_json)
    if by_group and (what == "auto" or cross_fit):
        raise InputError("--by-group", expected="one calibrator and no --cross-fit", got="more", fix="use --test FILE")
    choice = cal.choose(val, keep_argmax=keep_argmax, seed=seed) if what == "auto" else None
    made = choice.map if choice else cal.fit(val, what, by_group=by_group)
    if keep_argmax and not made.keeps_argmax:
        raise InputError(
            f"--with {what}",
            expected="a map that changes no prediction",
            got="one that can",
            fix="use temperature",
        )
    from calibrant.report.repair import repair

    judged = repair(made, val, test=other, folds=5 if cross_fit else 0, resamples=resamples, seed=seed)
    if out is not None:
        made.save(out)
    if as_json:
        extra = {"verdict": choice.verdict, "candidates": [vars(c) for c in choice.candidates]} if choice else {}
        return _print_json(judged.to_dict() | extra)
    from calibrant.report import text

    if choice:
        text.show(text.candidates(choice.candidates), "")
    text.show(f"{text.fitted(made)}\nChanges on {judged.judged_on}:\n", text.repair(judged))
    if judged.judged_on == "the fitting rows":
        text.show("\nThese rows fitted the map, so the numbers flatter it: give --test FILE or --cross-fit.")
    if out is not None:
        text.show(f"\nWritten to {out}.")


def _fit_all(
    val: cal.Predictions, test: cal.Predictions | None, out: Path | None, keep_argmax: bool, as_json: bool
) -> None:
    if test is None or out is not None:
        raise InputError(
            "--with all", expected="--test FILE and no --out", got="something else", fix="it compares, it makes no map"
        )
    from calibrant.report.repair import every_calibrator

    with _progress("fitting", ["every calibrator"]) as steps:
        for _, step in steps:
            rows = every_calibrator(val, test, keep_argmax=keep_argmax, on_each=step)
    if as_json:
        return _print_json([vars(row) for row in rows])
    from calibrant.report import text

    text.show(text.every(rows))
    for row in rows:
        if row.diagnosis != "converged":
            text.show(f"{row.calibrator}: {row.diagnosis}")


@app.command()
def apply(
    map_file: Annotated[Path, typer.Argument(help="a map written by calibrant fit")],
    file: File,
    out: Annotated[Path, typer.Option(help="write the calibrated predictions here (.npz, .parquet, .csv)")],
    few_rows: FewRows = False,
    as_json: Json = False,
) -> None:
    """Calibrate predictions with a fitted map."""
    made = cal.load_map(map_file)
    q = made(cal.Predictions.load(file, few_rows=few_rows))
    q.save(out)
    if as_json:
        return _print_json({"calibrator": made.calibrator, "n": q.n, "k": q.k, "seen": q.extras.seen, "out": str(out)})
    typer.echo(f"{q.n:,} predictions calibrated by {made.calibrator}, written to {out}.")


@app.command()
def export(
    map_file: Annotated[Path, typer.Argument(help="a map written by calibrant fit")],
    to: Annotated[str, typer.Option(help="onnx, torch or python")],
    out: Annotated[Path, typer.Option(help="the file to write")],
    append_to: Annotated[Path | None, typer.Option(help="onnx: a classifier to put the map behind")] = None,
    as_json: Json = False,
) -> None:
    """Ship a map: ONNX, torch, or a Python file without dependencies."""
    from calibrant.network.export import export as run

    done = run(cal.load_map(map_file), to, out, append_to=append_to)
    if as_json:
        return _print_json(
            {"path": str(done.path), "format": done.format, "largest_difference": done.largest_difference}
        )
    typer.echo(f"Written to {done.path}; tested against the map, largest difference {done.largest_difference:.1e}.")


@app.command("list")
def list_entries(kind: Annotated[str, typer.Argument(help="measures or calibrators")], as_json: Json = False) -> None:
    """What there is, with definitions and references."""
    from calibrant.report import text

    if kind == "measures":
        entries = [(name, cal.measures.make(name)) for name in cal.measures.names()]
        facts: list[dict[str, Any]] = [{"definition": m.definition, "direction": m.direction} for _, m in entries]
        table = text.catalogue(entries)
    elif kind == "calibrators":
        recipes = [(name, cal.calibrators.make(name)) for name in cal.calibrators.names()]
        facts = [{"keeps_argmax": c.keeps_argmax, "binary": c.binary} for _, c in recipes]
        table, entries = text.calibrator_catalogue(recipes), recipes  # type: ignore[assignment]
    else:
        raise unknown_name("list", kind, ["measures", "calibrators"])
    if not as_json:
        return text.show(table)
    _print_json(
        [
            {"name": name, "title": e.title, **known, "reference": e.reference, "options": vars(e)}
            for (name, e), known in zip(entries, facts, strict=True)
        ]
    )


@app.command()
def demo(seed: Seed = 0, as_json: Json = False) -> None:
    """Measure the predictions that come with the package."""
    from calibrant.demo import PATH

    if not as_json:
        typer.echo("A network trained too long on 3,000 Fashion-MNIST images, on 4,000 test images:\n")
    measure(PATH, seed=seed, as_json=as_json)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    if show:
        typer.echo(f"calibrant {cal.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; bad input ends with one clear line and exit code 2."""
    if hasattr(signal, "SIGPIPE"):  # end quietly when the reader of our output has gone, for instance `| head`
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
    try:
        app()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")


def _fail(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
    sys.exit(2)


def _limit(item: str) -> tuple[str, float]:
    """`ece=0.03` or `ece:bins=30=0.03` as the measure and the number."""
    spec, _, limit = item.rpartition("=")
    last_option = spec.partition(":")[2].rpartition(",")[2]
    try:
        if spec and (":" not in spec or "=" in last_option):
            return spec, float(limit)
    except ValueError:
        pass
    raise InputError("limit", expected="measure=number", got=f"'{item}'", fix="write for instance ece=0.03")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


@contextmanager
def _progress(what: str, items: Any) -> Iterator[Iterator[tuple[str, "Progress"]]]:
    """Items with a function that moves a bar on the terminal; silent in pipes."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    error = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=error, transient=True, disable=not error.is_terminal) as bar:

        def steps() -> Iterator[tuple[str, Any]]:
            for item in items:
                task = bar.add_task(f"{what} {item}", total=None)
                yield item, lambda done, task=task: bar.advance(task, done)
                bar.remove_task(task)

        yield steps()
