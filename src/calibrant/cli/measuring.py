"""Commands that look at predictions: measure, test, compare, check, decompose."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import calibrant as cal
from calibrant.cli._app import (
    Confidence,
    File,
    Json,
    Measures,
    Ood,
    Resamples,
    Seed,
    SetName,
    app,
    choose_format,
    print_json,
    progress,
)
from calibrant.cli._inputs import Inputs, ReadSettings, reads_predictions
from calibrant.cli._streams import FORMATS, FormatOption, MissingLabelOption, StreamSettings
from calibrant.cli._sums import SumsOutput, check_state, is_state, measure_state, measure_stream
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.core.text.number_format import count
from calibrant.measuring.check import all_pass
from calibrant.reporting import tables


@app.command()
@reads_predictions(ignores=("id_column",))
def measure(
    file: File,
    measures: Measures = None,
    set_name: SetName = "standard",
    ood: Ood = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="read in batches, in constant memory; with --group-column, by group")
    ] = False,
    state: Annotated[Path | None, typer.Option(help="with --stream: continue from these sums, and save them")] = None,
    missing_label: MissingLabelOption = "error",
    confidence: Confidence = 0.95,
    resamples: Resamples = None,
    seed: Seed = 0,
    form: FormatOption = None,
    as_json: Json = False,
    *,
    inputs: Inputs,
    settings: StreamSettings,
) -> None:
    """Measure calibration and refinement, with intervals and a verdict.

    FILE may also be a state that --state or an accumulator wrote (.json).
    """
    from calibrant.measuring.measure import how_read, measure_if_defined
    from calibrant.measuring.standard import standard

    if set_name not in ("standard", "benchmark102"):
        raise unknown_name("set", set_name, ["standard", "benchmark102"])
    if ood and set_name != "benchmark102":
        raise InputError("--ood", expected="--set benchmark102", got="another set", fix="add --set benchmark102")
    output = SumsOutput(choose_format(form, as_json, FORMATS), confidence, seed)
    if stream:
        if set_name != "standard" or resamples is not None:
            raise InputError(
                "--stream",
                expected="neither --set nor --resamples",
                got="one of them",
                fix="drop one of them",
            )
        return measure_stream(
            file,
            inputs,
            measures,
            output,
            settings,
            state=state,
            missing_label=missing_label,
        )
    waits = None if missing_label == "error" else missing_label
    of_streams = {"--state": state, "save_every": settings.save_every, "--missing-label": waits}
    for option, value in (of_streams | {"--group-column": inputs.group_column}).items():
        if value is not None:
            raise InputError(option, expected="--stream as well", got="no --stream", fix="add --stream")
    if is_state(file):
        return measure_state(file, measures, output)
    if output.form == "prometheus":
        fix = "add --stream, or give a state of sums"
        raise InputError("--format prometheus", expected="--stream", got="no --stream", fix=fix)
    as_json = output.form == "json"
    p = inputs.load(file)
    if set_name == "benchmark102":
        return _measure_benchmark(p, inputs, measures, ood, resamples, as_json)
    how = cal.measure if measures else measure_if_defined
    with progress("measuring", measures or standard(p)) as steps:
        rows = [how(p, m, confidence=confidence, resamples=resamples, seed=seed, progress=step) for m, step in steps]
    if as_json:
        return print_json([m.to_dict() | inputs.facts(p) for m in rows])

    tables.show(tables.measurements(rows, confidence, said_below=how_read(p)))
    _show_reasons(rows)
    inputs.show_notes(p)
    if not measures:
        from calibrant.reporting import calibration_state, sentences, verdict

        said = sentences.write(verdict.judge(calibration_state.assess(p, seed=seed)))
        tables.show(f"\n{said.headline} {said.text}")


def _measure_benchmark(
    p: cal.Predictions,
    inputs: Inputs,
    measures: list[str] | None,
    ood: list[str] | None,
    resamples: int | None,
    as_json: bool,
) -> None:
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
        others[visible(name)] = inputs.load(path, labels="optional")
    rows = cal.measure_set(p, "benchmark102", ood=others)
    if as_json:
        return print_json([m.to_dict() for m in rows])

    tables.show(tables.benchmark(rows))


@dataclass(frozen=True)
class HosmerLemeshowSettings(ReadSettings):
    """Settings of a test that `--override` may change."""

    groups: int = 10  # of Hosmer-Lemeshow


@app.command("test")
@reads_predictions(ignores=("group", "id_column"))
def calibration_tests(
    file: File,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="spiegelhalter, hosmer_lemeshow or a measure (repeat for more)"),
    ] = None,
    seen: Annotated[bool, typer.Option("--seen", help="the model was trained on these rows")] = False,
    resamples: Annotated[int | None, typer.Option(min=1, help="sets of drawn outcomes")] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
    settings: HosmerLemeshowSettings,
) -> None:
    """Test calibration: could a perfectly calibrated model have given these outcomes?"""
    from calibrant.measuring.calibration_test import USUAL, CalibrationTests

    p = inputs.load(file)
    rows = CalibrationTests()
    with progress("testing", measures or USUAL) as steps:
        for test, step in steps:
            rows.append(
                cal.calibration_test(p, test, groups=settings.groups, seen=seen, resamples=resamples, seed=seed)
            )
            step(rows[-1].n)
    if as_json:
        tests = [test.to_dict() for test in rows]
        return print_json({"sentence": rows.sentence, "tests": tests} | inputs.facts(p))

    tables.show(tables.calibration_tests(rows))
    for reason in dict.fromkeys(row.reason for row in rows if row.reason):
        tables.show(f"\n{reason}")
    tables.show(f"\n{rows.sentence}")
    inputs.show_notes(p)


@app.command()
@reads_predictions(ignores=("group",))
def compare(
    a: File,
    b: File,
    measures: Measures = None,
    unpaired: Annotated[bool, typer.Option("--unpaired", help="the files have different rows")] = False,
    confidence: Confidence = 0.95,
    resamples: Resamples = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Compare two models on the same rows, or one model on different rows."""
    first, second = (inputs.load(f) for f in (a, b))
    with progress("comparing", measures or ["ece", "nll", "brier", "accuracy", "auroc_correct"]) as steps:
        rows = [
            cal.compare(
                first,
                second,
                m,
                paired=not unpaired,
                confidence=confidence,
                resamples=resamples,
                seed=seed,
                progress=step,
            )
            for m, step in steps
        ]
    if as_json:
        return print_json([c.to_dict() | inputs.facts(first, second) for c in rows])

    names = (visible(a.stem), visible(b.stem)) if a.stem != b.stem else ("a", "b")
    tables.show(tables.comparisons(rows, names, confidence))
    _show_reasons(rows)
    if rows[0].only_in_a or rows[0].only_in_b:
        left_out = f"{count(rows[0].only_in_a, 'row')} only in {names[0]}, {rows[0].only_in_b:,} only in {names[1]}"
        tables.show(f"\njoined by id: {count(rows[0].n, 'row')} in both; left out {left_out}")
    if rows[0].matched_by == "order" and first.task == "confidence":
        without = " and ".join(name for name, p in zip(names, (first, second), strict=True) if p.ids is None)
        reason = f"since {without} {'have' if ' and ' in without else 'has'} no ids"
        tables.show(f"\npaired by their order, {reason}: row 1 with row 1, and so on")
    inputs.show_notes(first, second)


@app.command()
@reads_predictions(ignores=("group", "id_column"))
def check(
    file: File,
    at_most: Annotated[list[str] | None, typer.Option("--max", help="e.g. ece=0.03 or ece:bins=30=0.03")] = None,
    at_least: Annotated[list[str] | None, typer.Option("--min", help="e.g. auroc_correct=0.9")] = None,
    against: Annotated[
        Path | None, typer.Option(help="reference predictions, with rows of their own: last month's")
    ] = None,
    max_worse: Annotated[list[str] | None, typer.Option("--max-worse", help="with --against: ece=0.01")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="fail unless every limit significantly holds")] = False,
    confidence: Confidence = 0.95,
    resamples: Annotated[int | None, typer.Option(min=1, help="bootstrap resamples")] = None,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Check limits in CI: fails on evidence, not on noise.

    FILE may also be a state of sums (.json), and so may that of --against.
    Exit code 0: pass. 1: a limit is significantly violated. 2: bad input.
    """
    sides: dict[Literal["max", "min"], list[str]] = {"max": at_most or [], "min": at_least or []}
    limits = [(side, *_limit(item)) for side, items in sides.items() for item in items]
    worse = [_limit(item) for item in max_worse or []]
    if (against is None) != (not worse):
        fix = "write --against last-month.parquet --max-worse ece=0.01"
        raise InputError("check", expected="--against and --max-worse together", got="one of them", fix=fix)
    if not limits and not worse:
        raise InputError("check", expected="at least one --max or --min", got="none", fix="add --max ece=0.03")
    if is_state(file):
        asked: dict[str, Any] = {"strict": strict, "confidence": confidence, "seed": seed, "as_json": as_json}
        raise typer.Exit(0 if check_state(file, limits, against, worse, **asked) else 1)
    p = inputs.load(file)
    options: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed}
    rows = [cal.check(p, spec, limit=limit, side=side, **options) for side, spec, limit in limits]
    reference = None if against is None else inputs.load(against)
    if reference is not None:
        rows += [cal.check(p, spec, limit=limit, against=reference, **options) for spec, limit in worse]
    ok = all_pass(rows, strict=strict)
    if as_json:
        print_json(
            {"passed": ok, "strict": strict, "checks": [v.to_dict() for v in rows]}
            | inputs.facts(p, reference=reference)
        )
    else:
        tables.show(tables.checks(rows, confidence))
        _show_reasons(rows)
        inputs.show_notes(p, reference=reference)
        tables.show("\npass" if ok else "\nfail")
    raise typer.Exit(0 if ok else 1)


@app.command()
@reads_predictions(ignores=("group", "id_column"))
def decompose(
    file: File,
    bins: Annotated[int, typer.Option(min=1, help="equal-width bins")] = 15,
    as_json: Json = False,
    *,
    inputs: Inputs,
) -> None:
    """Decompose the loss into calibration and refinement."""
    p = inputs.load(file)
    parts = cal.decompose(p, bins=bins)
    if as_json:
        return print_json(parts | inputs.facts(p))

    for title, rows in parts["losses"].items():
        tables.show(tables.terms(title, rows), "")
    tables.show(tables.terms(f"top-label Brier score, {bins} bins", parts["brier"]), "")
    tables.show(tables.terms("ECE beside the terms of Singh et al. 2021, Eq. 9 (not an identity)", parts["ece"]))
    inputs.show_notes(p)


def _show_reasons(rows: Sequence[cal.types.Measurement | cal.types.Comparison | cal.types.Check]) -> None:
    """Say once why numbers have no interval."""
    for reason in dict.fromkeys(row.reason for row in rows if row.reason):
        tables.show(f"\n{reason}")


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
