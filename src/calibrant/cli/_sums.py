"""Measure streams and saved sums on the command line, and check limits of saved sums."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import calibrant as cal
from calibrant.cli._app import print_json
from calibrant.cli._inputs import Inputs
from calibrant.cli._streams import StreamSettings, lock_state, read_stream
from calibrant.core.errors import InputError, visible
from calibrant.core.io.inspect_logs import is_inspect_log
from calibrant.core.io.missing import MissingCount
from calibrant.core.json import read_json
from calibrant.measuring.check import Check, all_pass
from calibrant.reporting import tables

Limits = list[tuple[Literal["max", "min"], str, float]]
States = cal.Accumulator | cal.Accumulators


def is_state(file: Path) -> bool:
    """Whether a file is read as saved sums: a .json file that is no log of Inspect."""
    return file.suffix == ".json" and not is_inspect_log(file)


def load_state(file: Path) -> States:
    """Load a saved accumulator, or accumulators by key."""
    document = read_json(file, expected="a state of an accumulator", fix="write it with --stream --state")
    if isinstance(document, dict) and "calibrant_accumulators" in document:
        return cal.Accumulators.load(file)
    return cal.Accumulator.load(file)


@dataclass(frozen=True)
class SumsOutput:
    """Options of the output of measures of sums."""

    form: str
    confidence: float
    seed: int

    def show(self, sums: States, origin: str, missing: MissingCount | None = None, notes: Sequence[str] = ()) -> None:
        """Print every measure; `origin` says where the rows were read."""
        if self.form == "prometheus":
            print(sums.to_prometheus(), end="")
        elif isinstance(sums, cal.Accumulators):
            _show_each(sums, self.confidence, self.seed, self.form == "json")
        else:
            _show_one(sums, self, origin, missing)
        if self.form == "text":
            for note in notes:
                tables.show(visible(note))


def measure_stream(
    file: Path,
    inputs: Inputs,
    measures: list[str] | None,
    output: SumsOutput,
    settings: StreamSettings,
    *,
    state: Path | None,
    missing_label: str,
) -> None:
    """Add the rows of a file to sums, which continue from `state` if it exists, and print the measures."""
    with lock_state(state):
        sums = _begin(state, measures, inputs.group_column)
        reading = read_stream(sums, file, inputs, settings, state=state, missing_label=missing_label)
    sizes = reading.batch_sizes
    origin = "one batch" if len(sizes) == 1 else f"{len(sizes):,} batches of at most {max(sizes, default=0):,}"
    output.show(sums, f", read in {origin}", reading.missing, reading.notes)


def measure_state(file: Path, measures: list[str] | None, output: SumsOutput) -> None:
    """Print the measures of saved sums."""
    sums = load_state(file)
    if measures:
        fix = "leave --measure out: a state has the measures it was built for"
        raise InputError(str(file), expected="no --measure", got="a state of sums", fix=fix)
    output.show(sums, ", from sums")


def _begin(state: Path | None, measures: list[str] | None, group: str | None) -> States:
    """Start new sums, or load the saved ones, which must have the measures and the column that the user gives."""
    names = None if group is None else (group,)
    if state is None or not state.exists():
        return cal.Accumulator(measures or None) if names is None else cal.Accumulators(names, measures or None)
    saved = load_state(state)
    columns = saved.by if isinstance(saved, cal.Accumulators) else None
    fix = "leave the option as it was, or start with another state"
    if columns != names:
        begun, got = (
            f"--group-column {', '.join(group_columns)}" if group_columns else "no --group-column"
            for group_columns in (columns, names)
        )
        raise InputError(str(state), expected=f"{begun}, as it began with", got=got, fix=fix)
    specs = saved.measures if isinstance(saved, cal.Accumulators) else saved.specs
    if measures and tuple(dict.fromkeys(measures)) != specs:
        expected = f"--measure {', '.join(specs or ['by default'])}, as it began with"
        raise InputError(str(state), expected=expected, got=", ".join(measures), fix=fix)
    return saved


def _show_one(sums: cal.Accumulator, output: SumsOutput, origin: str, missing: MissingCount | None) -> None:
    rows = sums.measure_all(confidence=output.confidence, seed=output.seed)
    if output.form == "json":
        extra = {"missing": missing.to_dict()} if missing else {}
        return print_json([m.to_dict() | extra for m in rows])

    tables.show(tables.measurements(rows, output.confidence))
    classes = f", {sums.k} classes" if sums.task == "multiclass" else ""
    tables.show(f"\n{sums.n:,} rows{classes}{origin}.")
    if missing:
        tables.show(str(missing))


def check_state(
    file: Path,
    limits: Limits,
    against: Path | None,
    worse: list[tuple[str, float]],
    *,
    strict: bool,
    confidence: float,
    seed: int,
    as_json: bool,
) -> bool:
    """Check and print the limits of saved sums, each key by itself; whether all hold."""
    states, reference = load_state(file), None if against is None else load_state(against)
    by_name = _by_name(states)
    others = {} if reference is None else _by_name(reference)

    def of(name: str, sums: cal.Accumulator) -> list[Check]:
        rows = [sums.check(spec, limit=limit, side=side, confidence=confidence) for side, spec, limit in limits]
        if worse:
            other = _reference(str(against), others, name)
            rows += [
                sums.check_against(other, spec, limit=limit, confidence=confidence, seed=seed) for spec, limit in worse
            ]
        return rows

    checks = {name: of(name, sums) for name, sums in by_name.items()}
    ok = all_pass([row for rows in checks.values() for row in rows], strict=strict)
    _show_checks(checks, ok, strict, confidence, as_json)
    return ok


def _show_checks(checks: dict[str, list[Check]], ok: bool, strict: bool, confidence: float, as_json: bool) -> None:
    if as_json:
        rows = [
            ({"key": name} if name else {}) | row.to_dict()
            for name, rows_of_key in checks.items()
            for row in rows_of_key
        ]
        return print_json({"passed": ok, "strict": strict, "checks": rows})
    _blocks(checks, lambda rows: tables.show(tables.checks(rows, confidence)))
    tables.show("\npass" if ok else "\nfail")


def _show_each(each: cal.Accumulators, confidence: float, seed: int, as_json: bool) -> None:
    rows = {key: sums.measure_all(confidence=confidence, seed=seed) for key, sums in each.items()}
    if as_json:
        return print_json(
            [
                dict(zip(each.by, key, strict=True)) | m.to_dict()
                for key, measurements in rows.items()
                for m in measurements
            ]
        )
    parts = tables.by_key(each.by, rows)
    for i, table in enumerate(parts):
        tables.show(*([""] if i else []), table)


def _blocks(checks: dict[str, list[Check]], show: Callable[[list[Check]], None]) -> None:
    for i, (name, rows) in enumerate(checks.items()):
        if name:
            tables.show(f"{'' if i == 0 else chr(10)}{visible(name)}")
        show(rows)


def _by_name(states: States) -> dict[str, cal.Accumulator]:
    """Accumulators by the names of their keys; one alone needs none."""
    if isinstance(states, cal.Accumulator):
        return {"": states}
    return {", ".join(key): sums for key, sums in states.items()}


def _reference(place: str, others: dict[str, cal.Accumulator], name: str) -> cal.Accumulator:
    """The reference for a key: the same key, or the one that it has for all."""
    reference = others.get(name, others.get(""))
    if reference is None:
        got = ", ".join(list(others)[:5]) or "none"
        raise InputError(place, expected=f"the key {name} there too", got=got, fix="give the sums of the same keys")
    return reference
