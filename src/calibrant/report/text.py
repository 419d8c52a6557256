"""Terminal output: tables of 80 columns, plain in pipes, and verdicts in one sentence."""

from collections.abc import Sequence
from textwrap import wrap

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from calibrant.calibrators import Calibrator, Map
from calibrant.calibrators._auto import Candidate
from calibrant.core.predictions import Predictions
from calibrant.measures import Measurement, make, measure
from calibrant.measures._base import Measure
from calibrant.measures._check import Verdict
from calibrant.measures._compare import Comparison
from calibrant.measures._consistency import consistency
from calibrant.report.repair import Entry, Repair

ARROWS = {"down": "lower", "up": "higher", "zero": "near 0", "none": ""}


def console() -> Console:
    return Console(highlight=False)


def show(*parts: RenderableType) -> None:
    """Print; in a pipe without the blanks that pad a table."""
    out = console()
    if out.is_terminal:
        out.print(*parts)
        return
    with out.capture() as captured:
        out.print(*parts)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def number(value: float | None) -> str:
    """Four decimals, or more where four would show zeros only.

    >>> number(0.12345), number(0.0000123), number(float("nan"))
    ('0.1235', '1.2e-05', 'undefined')
    """
    if value is None or value != value:
        return "undefined"
    return f"{value:.1e}" if 0 < abs(value) < 5e-4 else f"{value:.4f}"


def interval(low: float | None, high: float | None, sign: str = "") -> str:
    if low is None or high is None or low != low:
        return ""
    return f"[{low:{sign}.4f}, {high:{sign}.4f}]"


def measurements(rows: Sequence[Measurement], confidence: float) -> Text:
    """Two lines a measure: the numbers, then what they are."""
    width = max(len("measure"), *(len(m.measure) for m in rows)) + 2
    text = Text(f"{'measure':{width}}{'value':11}{f'{confidence:.0%} interval':20}better\n", style="bold")
    for m in rows:
        better = ARROWS[make(m.measure).direction]
        numbers = f"{m.measure:{width}}{number(m.value):11}{interval(m.low, m.high):20}{better}"
        text.append(f"{numbers.rstrip()}\n", style="not bold")
        lines = wrap(m.definition, max(console().width - 2, 20), initial_indent="  ", subsequent_indent="  ")
        text.append("\n".join([*lines, ""]), style="not bold dim")
    text.rstrip()
    return text


def benchmark(rows: Sequence[Measurement]) -> Table:
    """The columns of the study, before and after temperature scaling side by side."""
    values = {m.measure: m.value for m in rows}
    table = _table("column", "pre_", "post_")
    for name in values:
        if name.startswith("pre_"):
            column = name.removeprefix("pre_")
            table.add_row(column, number(values[name]), number(values[f"post_{column}"]))
        elif not name.startswith("post_"):
            table.add_row(name, number(values[name]), "")
    return table


def comparisons(rows: Sequence[Comparison], names: tuple[str, str], confidence: float) -> Table:
    table = _table("measure", *names, "difference", f"{confidence:.0%} interval", "p", "better")
    for c in rows:
        better = {"a": names[0], "b": names[1], "neither": "cannot tell"}[c.better]
        table.add_row(
            c.measure,
            number(c.a),
            number(c.b),
            f"{c.difference:+.4f}",
            interval(c.low, c.high, "+"),
            f"{c.p_value:.2g}",
            better,
        )
    return table


def verdicts(rows: Sequence[Verdict], confidence: float) -> Table:
    table = _table("measure", "value", f"{confidence:.0%} bounds", "limit", "result")
    words = {"kept": "kept", "open": "not shown to be broken", "broken": "BROKEN"}
    for v in rows:
        sign = "<=" if v.side == "max" else ">="
        table.add_row(v.measure, number(v.value), interval(v.low, v.high), f"{sign} {v.limit:g}", words[v.state])
    return table


def catalogue(entries: Sequence[tuple[str, Measure]]) -> Table:
    table = _table("name", "better", "what it is, how it is computed by default, reference")
    for name, m in entries:
        table.add_row(name, ARROWS[m.direction], f"{_summary(m)}\n{m.definition}\n{m.reference}")
    return table


def calibrator_catalogue(entries: Sequence[tuple[str, Calibrator]]) -> Table:
    table = _table("name", "predictions", "what it is, reference")
    for name, c in entries:
        table.add_row(name, "kept" if c.keeps_argmax else "may change", f"{_summary(c)}\n{c.reference}")
    return table


def plain_catalogue(rows: Sequence[tuple[str, object, str]]) -> Table:
    """Names, and what they are: the first line of the class, and one line more."""
    table = _table("name", "what it is, reference")
    for name, entry, more in rows:
        table.add_row(name, f"{_summary(entry)}\n{more}".rstrip())
    return table


def names_and_titles(rows: Sequence[tuple[str, str]]) -> Table:
    table = _table("name", "what it is")
    for name, title in rows:
        table.add_row(name, title)
    return table


def _summary(entry: object) -> str:
    return (type(entry).__doc__ or "").strip().splitlines()[0]


def repair(r: Repair) -> Table:
    table = _table("measure", "before", "after", "change", "95% interval", "")
    for c in r.changes:
        word = {"a": "worse", "b": "better", "neither": ""}[c.better]
        if c.better == "neither" and c.difference == 0:
            word = "unchanged"
        table.add_row(c.measure, number(c.a), number(c.b), f"{c.difference:+.4f}", interval(c.low, c.high, "+"), word)
    return table


def fitted(m: Map) -> str:
    """One paragraph: what was fitted, how sure it is, and the proof."""
    p = m.parameters
    if "T" in p and "T_low" in p and m.fit.converged:
        words = f"T = {p['T']:.4f} [{p['T_low']:.4f}, {p['T_high']:.4f}]"
    elif "T_low" in p:
        words = f"T = {p['T']:g}, the end of the range"
    else:
        shown = [f"{k} = {v:.4g}" for k, v in p.items() if isinstance(v, float) and abs(v) < float("inf")]
        words = ", ".join(shown) or f"{len(m.steps)} steps"
    proof = "" if m.fit.gradient is None else f" (largest gradient entry {m.fit.gradient:.1e})"
    keeps = "Cannot change a prediction." if m.keeps_argmax else "May change predictions."
    return f"{m.calibrator}: {words}. {m.fit.diagnosis[0].upper()}{m.fit.diagnosis[1:]}{proof}. {keeps}"


def every(entries: Sequence[Entry]) -> Table:
    columns = ("nll", "ece", "classwise", "brier", "accuracy", "auroc")
    table = _table("calibrator", *columns, "fit s")
    for e in entries:
        values = [number(e.values[c]) if c in e.values else "failed" for c in columns]
        table.add_row(e.calibrator, *values, f"{e.seconds:.2f}")
    return table


def candidates(rows: Sequence[Candidate]) -> Table:
    table = _table("candidate", "cross-fitted NLL", "against doing nothing", "95% interval")
    for c in sorted(rows, key=lambda c: c.nll):
        table.add_row(c.calibrator, number(c.nll), f"{c.difference:+.4f}", interval(c.low, c.high, "+"))
    return table


def terms(title: str, rows: dict[str, float]) -> Table:
    table = _table(title, "value")
    for name, value in rows.items():
        table.add_row(name.replace("_", " "), number(value))
    return table


def verdict(p: Predictions, *, seed: int = 0) -> str:
    """One sentence a colleague understands: what it says, how often it is right, and whether noise explains it."""
    gap = measure(p, "gap", seed=seed)
    test = consistency(p, "ece", seed=seed)
    says = f"It says {p.confidence.mean():.1%} and is right {p.correct.mean():.1%}"
    noise = f"ECE {test.observed:.4f}, where a perfectly calibrated model of n = {p.n:,} stays below {test.upper:.4f}"
    if test.p_value > 0.05:
        return f"No sign of miscalibration. {says}; {noise} 95 times in 100 (p = {test.p_value:.2g})."
    side = "Overconfident" if gap.low is not None and gap.low > 0 else "Underconfident"
    if gap.low is not None and gap.high is not None and gap.low <= 0 <= gap.high:
        side = "Miscalibrated, too sure in places and not sure enough in others"
    return f"{side}. {says} (gap {100 * gap.value:+.1f} points); {noise} 95 times in 100 (p = {test.p_value:.2g})."


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        loose = column.startswith("what it is")
        table.add_column(column, no_wrap=not loose, overflow="fold")
    return table
