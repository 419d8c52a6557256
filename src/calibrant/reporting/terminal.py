"""The report in a terminal: the same content in 80 columns, with the reliability diagram as a row of small bars."""

import sys
from collections.abc import Iterable, Sequence
from textwrap import fill

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from calibrant.core import wording
from calibrant.core.spoken import SPOKEN_OF_CLASSES, Spoken
from calibrant.reporting import verdict
from calibrant.reporting.aspects import refinement
from calibrant.reporting.page import label, side_by_side
from calibrant.reporting.report import Bin, Model, Ranking, Report, Segments
from calibrant.reporting.request import ece_spec
from calibrant.reporting.tables import console, table_of

WORST = 5
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "12345678"
MOST_BARS = 60


def twin(r: Report) -> Group:
    """Everything the page says, in the order of the page."""
    parts: list[RenderableType] = [Text(r.title, style="bold"), ""]
    if r.ranking:
        parts += _ranking(r, r.ranking)
    for m in r.models:
        parts += _model(m, ece_spec(r.bins), named=len(r.models) > 1)
    return Group(*parts, *_made(r))


def _model(m: Model, ece: str, *, named: bool) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(f"== {m.name} ==\n", style="bold")] if named else []
    parts += [Text(_wrapped(m.verdict.headline), style="bold"), Text(_wrapped(m.verdict.action), style="bold")]
    parts += [_words(m.verdict.text), *(_words(f"Caution: {caution}") for caution in m.cautions)]
    parts += [_words(" ".join(m.notes))] if m.notes else []
    parts += ["", sparkline(m.bins, m.spoken), *_head("The numbers, with 95 % intervals"), _numbers(m)]
    parts += [
        *_head("What helps, and what does not"),
        _words(verdict.judged(m.judged_on, m.not_tried)),
        _tried(m, ece),
        "",
    ]
    parts += [_words(f"{label(t.calibrator)}: {t.words}") for t in m.tried if t.outcome == "failed"]
    parts += [_words(verdict.choice(m)), ""]
    for part in (m.classes, m.groups):
        if part:
            first = _head("Where it is worst")[1:] if part is (m.classes or m.groups) else []
            parts += [*first, _words(part.words), _segments(part, m), ""]
    if m.cost:
        parts += [*_head("What it costs")[1:], _words(f"The rule: {m.cost.rule}. {m.cost.words}"), _cost(m), ""]
    return [*parts, *_head("How sure we are")[1:], *(_words(sentence) for sentence in m.certainty.words)]


def sparkline(bins: Sequence[Bin], words: Spoken = SPOKEN_OF_CLASSES) -> Text:
    """What it says and how often it is right, bin by bin, as small bars over the confidence.

    >>> print(sparkline([Bin(0, 0.5, 0, 0, 0), Bin(0.5, 1, 4, 0.9, 0.5)]).plain.splitlines()[1])
    is right   ▅▅
    """
    bars = BARS if _can_print(BARS) else PLAIN_BARS
    wide = 2 if 2 * len(bins) <= MOST_BARS else 1
    every = -(-len(bins) // MOST_BARS)
    merged = [_merged(bins[i : i + every]) for i in range(0, len(bins), every)]
    most, wide_name = max(b.n for b in merged), max(9, len(words.right) + 1)

    def line(name: str, heights: Iterable[float]) -> str:
        cells = (
            bars[min(int(8 * h), 7)] if b.n else " " for h, b in zip(heights, merged, strict=True)
        )  # an eighth a step
        return f"{name:{wide_name}}" + "".join(cell * wide for cell in cells)

    width = wide * len(merged)
    return Text(
        "\n".join(
            [
                line(words.says, (b.says for b in merged)),
                line(words.right, (b.right for b in merged)),
                line("rows", ((b.n / most) ** 0.5 for b in merged)),
                f"{'':{wide_name}}0{words.score:^{max(width - 5, 10)}}100 %",
            ]
        ),
        no_wrap=True,
    )


def _merged(bins: Sequence[Bin]) -> Bin:
    n = sum(b.n for b in bins)
    says, right = (sum(b.n * value for b, value in zip(bins, values, strict=True)) / max(n, 1)
                   for values in ([b.says for b in bins], [b.right for b in bins]))  # fmt: skip
    return Bin(bins[0].low, bins[-1].high, n, says, right)


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _numbers(m: Model) -> Table:
    table = table_of("measure", "value", "interval", "better", "what it is")
    for n in m.numbers:
        interval = wording.interval(n.measure, n.low, n.high)
        table.add_row(n.measure, wording.value(n.measure, n.value), interval, n.better, n.title)
    table.columns[-1].no_wrap = False
    return table


def _tried(m: Model, ece: str) -> Table:
    table = table_of("calibrator", "ECE", "NLL", "accuracy", m.spoken.refinement, "changed", "outcome")
    for t in m.tried:
        if t.values:
            values = [
                wording.value(measure, t.values[measure]) for measure in (ece, "nll", "accuracy", refinement(m.shape))
            ]
            table.add_row(label(t.calibrator), *values, wording.count(t.predictions_changed), t.outcome)
        else:
            table.add_row(label(t.calibrator), "", "", "", "", "", t.outcome)
    table.columns[0].no_wrap = table.columns[-1].no_wrap = False
    return table


def _segments(part: Segments, m: Model) -> Table:
    table = table_of(part.by, "rows", m.spoken.says, m.spoken.right, "gap", "95 % interval", "noise?")
    for s in part.rows[:WORST]:
        span = wording.change_interval("gap", s.low, s.high)
        numbers = (
            wording.count(s.n),
            wording.percent(s.says),
            wording.percent(s.right),
            wording.change("gap", s.gap),
            span,
        )
        table.add_row(Text(s.name), *numbers, "no" if s.beyond_noise else "may be")
    table.columns[0].no_wrap = False
    return table


def _cost(m: Model) -> Table:
    assert m.cost is not None
    table = table_of("calibrator", m.cost.accepts, "wrong", "expected cost", "actual cost", "95 % interval")
    for c in m.cost.rows:
        shares = (wording.percent(c.accepted), wording.percent(c.error))
        costs = (wording.number(c.expected_cost), wording.number(c.actual_cost))
        table.add_row(label(c.calibrator), *shares, *costs, wording.interval("cost", c.low, c.high))
    table.columns[0].no_wrap = False
    return table


def _ranking(r: Report, ranking: Ranking) -> list[RenderableType]:
    table = table_of("model", "ECE", "gap", "NLL", "accuracy", r.models[0].spoken.refinement, "calibrated by", "NLL")
    for m in r.models:
        before = (wording.value(n.measure, n.value) for n in side_by_side(m))
        table.add_row(Text(m.name), *before, label(m.best), wording.value("nll", m.after(m.best).values["nll"]))
    tests = table_of("pair", "measure", "difference", "95 % interval", "p", "better")
    for pair in ranking.pairs:
        for c in pair.changes:
            better = {"a": pair.a, "b": pair.b, "neither": "cannot tell"}[c.better]
            span = wording.change_interval(c.measure, c.low, c.high)
            words = (c.measure, wording.change(c.measure, c.difference), span, wording.p_value(c.p_value))
            tests.add_row(Text(f"{pair.b} - {pair.a}"), *words, Text(better))
    table.columns[0].no_wrap = tests.columns[0].no_wrap = tests.columns[-1].no_wrap = False
    return [Text(_wrapped(ranking.words)), "", table, "", tests, ""]


def _made(r: Report) -> list[RenderableType]:
    made = r.made
    lines = [_words(f"{s.name} ({s.role}): {wording.count(s.n, 'row')}, SHA-256 {s.sha256}") for s in made.sources]
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    how = _words(f"Seed {made.seed}; resamples: {made.resamples}; {versions}; {made.date}.")
    return [*_head("How this was made"), *([_words(made.command)] if made.command else []), *lines, how]


def _head(title: str) -> list[RenderableType]:
    return ["", Text(title, style="bold")]


def _words(text: str) -> Text:
    return Text(_wrapped(text))


def _wrapped(text: str) -> str:
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")  # a number and its unit on one line
    return fill(kept, max(console().width, 20), break_on_hyphens=False).replace("\N{NO-BREAK SPACE}%", " %")
