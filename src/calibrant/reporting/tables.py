"""Terminal output: tables of 80 columns, plain in pipes."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from calibrant.core.errors import visible
from calibrant.core.text.number_format import BETTER, bracket, level, number, p_value, percent

if TYPE_CHECKING:  # every command imports this file, and needs few of these
    from calibrant.calibrators import Calibrator
    from calibrant.core.maps.map import Map
    from calibrant.deciding.results import AnsweredShare, CostLine
    from calibrant.measures import Measure
    from calibrant.measuring.calibration_test import CalibrationTest
    from calibrant.measuring.check import Check
    from calibrant.measuring.compare import Comparison
    from calibrant.measuring.measure import Measurement
    from calibrant.measuring.results import Results
    from calibrant.repairing.adapt import BaseRates
    from calibrant.repairing.judge import CalibratorLine, Repair
    from calibrant.repairing.rule import Candidate


class _Console(Console):
    """Prints; where nobody reads any more, the command line decides how to end."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    return _Console(highlight=False, markup=False, emoji=False)  # names of files and classes are no markup


def show(*parts: RenderableType) -> None:
    """Print; in a pipe without the blanks that pad a table."""
    out = console()
    if out.is_terminal:
        out.print(*parts)
        return
    with out.capture() as captured:
        out.print(*parts)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def measurements(rows: Sequence["Measurement"], confidence: float, *, said_below: str = "") -> Text:
    """Table of measures, two lines each: the numbers, then the definition without the end that all share."""
    from calibrant.core.statistics.sampling import MANY_ROWS
    from calibrant.measures import make

    width = max(len("measure"), *(len(m.measure) for m in rows)) + 2
    text = Text(f"{'measure':{width}}{'value':11}{f'{level(confidence)} interval':20}better\n", style="bold")
    for m in rows:
        better = BETTER[make(m.measure).direction]
        numbers = f"{m.measure:{width}}{number(m.value):11}{bracket(m.low, m.high):20}{better}"
        text.append(f"{numbers.rstrip()}\n", style="not bold")
        definition = m.definition.removesuffix(said_below)
        definition += f"; interval by {m.interval}" if m.interval and m.n >= MANY_ROWS else ""
        lines = wrap(definition, max(console().width - 2, 20), initial_indent="  ", subsequent_indent="  ")
        text.append("\n".join([*lines, ""]), style="not bold dim")
    text.rstrip()
    return text


def calibration_tests(rows: Sequence["CalibrationTest"]) -> Text:
    """Table of tests, two lines each: the numbers, then what the test is blind to and how its p-value was found."""
    width = max(len("test"), *(len(test.test) for test in rows)) + 2
    text = Text(f"{'test':{width}}{'observed':11}{'95 % chance':13}{'df':4}p\n", style="bold")
    for test in rows:
        _, observed, _, upper, freedom, chance = test.cells
        text.append(f"{test.test:{width}}{observed:11}{upper:13}{freedom:4}{chance}".rstrip() + "\n", style="not bold")
        method = f"p by {test.method}; blind to {test.blind_to}"
        lines = wrap(method, max(console().width - 2, 20), initial_indent="  ", subsequent_indent="  ")
        text.append("\n".join([*lines, ""]), style="not bold dim")
    text.rstrip()
    return text


def benchmark(rows: Sequence["Measurement"]) -> Table:
    """Table of the study's columns, before and after temperature scaling side by side."""
    values = {m.measure: m.value for m in rows}
    table = table_of("column", "pre_", "post_")
    for name in values:
        if name.startswith("pre_"):
            column = name.removeprefix("pre_")
            table.add_row(column, number(values[name]), number(values[f"post_{column}"]))
        elif not name.startswith("post_"):
            table.add_row(name, number(values[name]), "")
    return table


def comparisons(rows: Sequence["Comparison"], names: tuple[str, str], confidence: float) -> Group:
    """Table of comparisons; long names of models stand below it, as a and b."""
    table, out = _comparisons(rows, names, confidence), console()
    if out.measure(table, options=out.options.update(width=10_000)).maximum <= out.width:
        return Group(table)
    return Group(_comparisons(rows, ("a", "b"), confidence), f"\na: {names[0]}\nb: {names[1]}")


def _comparisons(rows: Sequence["Comparison"], names: tuple[str, str], confidence: float) -> Table:
    table = table_of("measure", *names, "change", f"{level(confidence)} interval", "p", "better")
    table.columns[0].no_wrap = False  # where all columns do not fit, a long name of a measure gives way
    for c in rows:
        better = {"a": names[0], "b": names[1], "neither": "inconclusive"}[c.better]
        table.add_row(
            c.measure,
            number(c.a),
            number(c.b),
            number(c.difference, sign=True),
            bracket(c.low, c.high, sign=True),
            p_value(c.p_value),
            better,
        )
    return table


def checks(rows: Sequence["Check"], confidence: float) -> Table:
    table = table_of("measure", "value", f"{level(confidence)} bounds", "limit", "result")
    for v in rows:
        sign, change = {"max": "<=", "min": ">=", "worse": "worse by <="}[v.side], v.side == "worse"
        ends = bracket(v.low, v.high, sign=change)
        table.add_row(v.measure, number(v.value, sign=change), ends, f"{sign} {v.limit:g}", v.state)
    return table


def by_key(names: Sequence[str], rows: Mapping[tuple[str, ...], Sequence["Measurement"]]) -> list[Table]:
    """Table with a line for each key of accumulators and a column for each measure; as many as fit the width."""
    specs = list(dict.fromkeys(m.measure for measurements in rows.values() for m in measurements))
    first = [max(len(visible(part)) for part in column) for column in zip(names, *rows, strict=True)]
    left = console().width - sum(first) - 2 * len(first) - 12
    tables: list[Table] = []
    for shown in _fitting(specs, left):
        table = table_of(*map(visible, names), "rows", *shown)
        for key, measurements in rows.items():
            values = {m.measure: number(m.value) for m in measurements}
            table.add_row(*map(visible, key), f"{measurements[0].n:,}", *(values.get(spec, "") for spec in shown))
        tables.append(table)
    return tables


def _fitting(specs: Sequence[str], width: int) -> list[list[str]]:
    """Columns in groups that fit side by side, at least one in each.

    >>> _fitting(["ece", "accuracy", "auroc_correct"], 25)
    [['ece', 'accuracy'], ['auroc_correct']]
    """
    groups: list[list[str]] = [[]]
    used = 0
    for spec in specs:
        wide = max(len(spec), 9) + 2
        if groups[-1] and used + wide > width:
            groups.append([])
            used = 0
        groups[-1].append(spec)
        used += wide
    return groups


def methods(results: "Results") -> Table:
    """Table with a line for each method and a column for each measure; the note explains the marks."""
    from calibrant.measuring.results import heads, mark
    from calibrant.measuring.results import number as cell_number

    table = table_of(visible(results.by), "runs", *heads(results))
    for group, cells in results.lines.items():
        texts = [f"{cell_number(cell)} {mark(cell, results.alpha)}".rstrip() for cell in cells]
        table.add_row(visible(group), str(len(cells[0].values)), *texts)
    return table


def catalogue(entries: Sequence[tuple[str, "Measure"]]) -> Table:
    table = table_of("name", "better", "what it is, how it is computed by default, reference")
    for name, m in entries:
        table.add_row(name, BETTER[m.direction], f"{_summary(m)}\n{m.definition}\n{m.reference}")
    return table


def calibrator_catalogue(entries: Sequence[tuple[str, "Calibrator"]]) -> Table:
    table = table_of("name", "predictions", "what it is, reference")
    for name, c in entries:
        table.add_row(name, "kept" if c.keeps_argmax else "may change", f"{_summary(c)}\n{c.reference}")
    return table


def plain_catalogue(rows: Sequence[tuple[str, object, str]]) -> Table:
    """Names of a catalogue with the first line of each class, and one line more."""
    table = table_of("name", "what it is, reference")
    for name, entry, more in rows:
        table.add_row(name, f"{_summary(entry)}\n{more}".rstrip())
    return table


def names_and_titles(rows: Sequence[tuple[str, str]]) -> Table:
    table = table_of("name", "what it is")
    for name, title in rows:
        table.add_row(name, title)
    return table


def _summary(entry: object) -> str:
    return (type(entry).__doc__ or "").strip().splitlines()[0]


def repair(r: "Repair") -> Table:
    table = table_of("measure", "before", "after", "change", "95 % interval", "")
    for c in r.changes:
        word = {"a": "worse", "b": "better", "neither": ""}[c.better]
        if c.better == "neither" and c.difference == 0:
            word = "unchanged"
        table.add_row(
            c.measure,
            number(c.a),
            number(c.b),
            number(c.difference, sign=True),
            bracket(c.low, c.high, sign=True),
            word,
        )
    return table


def describe_map(m: "Map") -> str:
    """A paragraph on a map: what was fitted, its uncertainty, and the proof of the optimum."""
    p = m.parameters
    if "T" in p and "T_low" in p and m.fit.converged:
        words = f"T = {p['T']:.4f} [{p['T_low']:.4f}, {p['T_high']:.4f}]"
    elif "T_low" in p:
        words = f"T = {p['T']:g}, the end of the range"
    else:
        numbers = [f"{k} = {v:.4g}" for k, v in p.items() if isinstance(v, float) and abs(v) < float("inf")]
        words = ", ".join(numbers) or f"{len(m.steps)} steps"
    proof = "" if m.fit.gradient is None else f" (largest gradient entry {m.fit.gradient:.1e})"
    keeps = "Cannot change a prediction." if m.keeps_argmax else "May change predictions."
    return f"{m.calibrator}: {words}. {m.fit.diagnosis[0].upper()}{m.fit.diagnosis[1:]}{proof}. {keeps}"


def every(entries: Sequence["CalibratorLine"]) -> Table:
    order = ["nll", "ece", "classwise", "brier", "accuracy", "auroc_correct", "roc_auc"]
    columns = [c for c in order if any(c in e.values for e in entries)]  # not every task can answer all of them
    table = table_of("calibrator", *columns, "fit s")
    for e in entries:
        values = [number(e.values[c]) if c in e.values else "failed" for c in columns]
        table.add_row(e.calibrator, *values, f"{e.seconds:.2f}")
    return table


def candidates(rows: Sequence["Candidate"]) -> Table:
    from calibrant.repairing.rule import UNCALIBRATED

    table = table_of("candidate", "cross-fitted NLL", "change", "95 % interval", "predictions")
    for c in sorted(rows, key=lambda c: c.nll):
        change = number(c.difference, sign=True), bracket(c.low, c.high, sign=True)
        numbers = ("", "") if c.calibrator == UNCALIBRATED else change
        table.add_row(c.calibrator, number(c.nll), *numbers, "kept" if c.keeps_argmax else "may change")
    return table


def costs(lines: Sequence["CostLine"], confidence: float) -> Table:
    """Table of costs per row by way of deciding, with the share handed over or the threshold."""
    over = any(line.handed_over for line in lines)
    columns = ("acted", "handed over") if over else ("threshold", "acted")
    table = table_of("decision", *columns, "expected", "cost", f"{level(confidence)} interval")
    for line in lines:
        threshold = "" if line.threshold is None else f"{100 * line.threshold:.3g} %"
        cells = (percent(line.acted), percent(line.handed_over)) if over else (threshold, percent(line.acted))
        ends = bracket(line.low, line.high)
        table.add_row(visible(line.label), *cells, number(line.expected), number(line.cost), ends)
    return table


def answered_shares(rows: Sequence["AnsweredShare"]) -> Table:
    """Table of the shares that can be answered at several error rates, before and after a map."""
    table = table_of("error rate at most", *(["share answered"] if rows[0].after is None else ["before", "after"]))
    for row in rows:
        shares = [row.before] if row.after is None else [row.before, row.after]
        table.add_row(f"{100 * row.max_error:g} %", *(percent(share) if share else "none" for share in shares))
    return table


def base_rates(rates: "BaseRates") -> Table:
    """Table of the base rate of every class, before and now."""
    table = table_of("class", "before", "now", "95 % interval")
    for c, (old, new) in enumerate(zip(rates.old, rates.new, strict=True)):
        table.add_row(str(c), percent(old), percent(new), f"{percent(rates.low[c])} to {percent(rates.high[c])}")
    return table


def terms(title: str, rows: dict[str, float]) -> Table:
    table = table_of(title, "value")
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), number(value))
    return table


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        loose = column.startswith("what it is")
        table.add_column(column, no_wrap=not loose, overflow="fold")
    return table
