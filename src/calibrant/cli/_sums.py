"""States of accumulators on the command line: what measure and check say of sums, where the rows are gone."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import calibrant as cal
from calibrant.cli._app import print_json
from calibrant.core.errors import InputError, visible
from calibrant.core.missing import Missing
from calibrant.core.schema import read_json
from calibrant.measuring.check import Check, passed
from calibrant.measuring.from_sums import check_worse_sums
from calibrant.reporting import tables

Limits = list[tuple[Literal["max", "min"], str, float]]
States = cal.Accumulator | cal.Accumulators


def is_state(file: Path) -> bool:
    return file.suffix == ".json"


def load_state(file: Path) -> States:
    """What an accumulator, or accumulators by key, have saved."""
    found = read_json(file, expected="a state of an accumulator", fix="write it with --stream --state")
    if isinstance(found, dict) and "calibrant_accumulators" in found:
        return cal.Accumulators.load(file)
    return cal.Accumulator.load(file)


def measure_state(file: Path, measures: list[str] | None, confidence: float, seed: int, as_json: bool) -> None:
    if measures:
        fix = "leave --measure out: sums tell what they have counted"
        raise InputError(str(file), expected="no --measure", got="a state of sums", fix=fix)
    found = load_state(file)
    if isinstance(found, cal.Accumulators):
        return _show_each(found, confidence, seed, as_json)
    show_sums(found, confidence, seed, as_json, ", from sums")


def show_sums(
    sums: cal.Accumulator,
    confidence: float,
    seed: int,
    as_json: bool,
    how: str,
    missing: Missing | None = None,
) -> None:
    rows = sums.measure_all(confidence=confidence, seed=seed)
    if as_json:
        facts = {"missing": missing.to_dict()} if missing else {}
        return print_json([m.to_dict() | facts for m in rows])

    tables.show(tables.measurements(rows, confidence))
    classes = f", {sums.k} classes" if sums.shape == "classes" else ""
    tables.show(f"\n{sums.n:,} rows{classes}{how}.")
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
    """Whether the sums keep their limits, each key by itself; printed."""
    found, reference = load_state(file), None if against is None else load_state(against)
    each = _by_name(found)
    others = {} if reference is None else _by_name(reference)

    def of(name: str, one: cal.Accumulator) -> list[Check]:
        rows = [one.check(spec, limit=limit, side=side, confidence=confidence) for side, spec, limit in limits]
        if worse:
            other = _reference(str(against), others, name)
            rows += [check_worse_sums(other, one, spec, limit, confidence, seed) for spec, limit in worse]
        return rows

    made = {name: of(name, one) for name, one in each.items()}
    ok = passed([row for rows in made.values() for row in rows], strict=strict)
    _show_checks(made, ok, strict, confidence, as_json)
    return ok


def _show_checks(made: dict[str, list[Check]], ok: bool, strict: bool, confidence: float, as_json: bool) -> None:
    if as_json:
        rows = [({"key": name} if name else {}) | row.to_dict() for name, some in made.items() for row in some]
        return print_json({"passed": ok, "strict": strict, "checks": rows})
    _blocks(made, lambda rows: tables.show(tables.checks(rows, confidence)))
    tables.show("\npass" if ok else "\nfail")


def _show_each(each: cal.Accumulators, confidence: float, seed: int, as_json: bool) -> None:
    rows = {key: one.measure_all(confidence=confidence, seed=seed) for key, one in each.items()}
    if as_json:
        return print_json(
            [dict(zip(each.by, key, strict=True)) | m.to_dict() for key, found in rows.items() for m in found]
        )
    parts = tables.by_key(each.by, rows)
    for i, table in enumerate(parts):
        tables.show(*([""] if i else []), table)


def _blocks(made: dict[str, list[Check]], show: Callable[[list[Check]], None]) -> None:
    for i, (name, rows) in enumerate(made.items()):
        if name:
            tables.show(f"{'' if i == 0 else chr(10)}{visible(name)}")
        show(rows)


def _by_name(found: States) -> dict[str, cal.Accumulator]:
    """Accumulators by the names of their keys; one alone needs none."""
    if isinstance(found, cal.Accumulator):
        return {"": found}
    return {", ".join(key): one for key, one in found.items()}


def _reference(place: str, others: dict[str, cal.Accumulator], name: str) -> cal.Accumulator:
    """The same key of the reference, or the one that it has for all."""
    found = others.get(name, others.get(""))
    if found is None:
        got = ", ".join(list(others)[:5]) or "none"
        raise InputError(place, expected=f"the key {name} there too", got=got, fix="give the sums of the same keys")
    return found
