"""The report in a terminal: the same content in 80 columns, with the reliability diagram as a row of small bars."""

import sys
from collections.abc import Iterable, Sequence
from textwrap import fill

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import VOCABULARIES, Vocabulary
from calibrant.measuring import measure_format as mf
from calibrant.reporting import sentences
from calibrant.reporting.contents_by_task import ece_spec, refinement
from calibrant.reporting.excerpts import cost_of_best, facts, label, side_by_side
from calibrant.reporting.parts import Bin, Model, Outcome, Ranking, Segments
from calibrant.reporting.report import Report
from calibrant.reporting.tables import console, table_of

WORST = 5
OUTCOMES: dict[Outcome, str] = {
    "uncalibrated": "uncalibrated",
    "better": "helped",
    "inconclusive": "no significant difference",
    "worse": "made it worse",
    "failed": "failed",
}
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "12345678"
MOST_BARS = 60


def render(r: Report) -> Group:
    """Render the whole report, in the order of the page."""
    parts: list[RenderableType] = [Text(r.title, style="bold"), ""]
    if r.ranking:
        parts += _ranking(r, r.ranking)
    for m in r.models:
        parts += _model(m, ece_spec(r.bins), named=len(r.models) > 1)
    return Group(*parts, *_provenance(r))


def _model(m: Model, ece: str, *, named: bool) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(f"== {m.name} ==\n", style="bold")] if named else []
    money = "" if m.cost is None or m.verdict.finding.money else m.cost.headline
    parts += [Text(_wrap(line), style="bold") for line in (money, *m.verdict.lines) if line]
    parts += [_words(m.verdict.text), *(_words(f"Caution: {caution}") for caution in m.cautions)]
    parts += [_words(" ".join(m.notes))] if m.notes else []
    if m.cost:
        total = [_words(m.cost.headline)] if m.verdict.finding.money else []
        parts += [*_head("What it costs"), *total, _words(f"The rule: {m.cost.rule}. {m.cost.words}"), _cost(m)]
    parts += ["", sparkline(m.bins, m.vocabulary), *_head("The numbers, with 95 % intervals"), _numbers(m)]
    if m.judged_on is not None:
        judged = _words(sentences.describe_judging(m.judged_on, m.not_tried))
        parts += [*_head("What helps, and what does not"), judged, _trials(m, ece), ""]
        parts += [_words(f"{label(t.calibrator)}: {t.words}") for t in m.trials if t.outcome == "failed"]
        parts += [_words(sentences.choice(m))]
    parts += [""]
    for part in (m.groups, m.classes):
        if part:
            first = _head("Where it is worst")[1:] if part is (m.groups or m.classes) else []
            parts += [*first, _words(part.words), _segments(part, m), ""]
    return [*parts, *_head("How sure we are")[1:], *map(_words, m.certainty.words)] if m.certainty else parts


def sparkline(bins: Sequence[Bin], words: Vocabulary = VOCABULARIES["multiclass"]) -> Text:
    """Mean confidence and accuracy of each bin as small bars.

    >>> print(sparkline([Bin(0, 0.5, 0, 0, 0), Bin(0.5, 1, 4, 0.9, 0.5)]).plain.splitlines()[1])
    is right   ▅▅
    """
    bars = BARS if _can_print(BARS) else PLAIN_BARS
    wide = 2 if 2 * len(bins) <= MOST_BARS else 1
    every = -(-len(bins) // MOST_BARS)
    merged = [_merge_bins(bins[i : i + every]) for i in range(0, len(bins), every)]
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


def _merge_bins(bins: Sequence[Bin]) -> Bin:
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
        said = facts(n.measure, m.task)
        table.add_row(n.measure, *mf.measured(n.measure, n.value, n.low, n.high), said["better"], said["title"])
    table.columns[-1].no_wrap = False
    return table


def _trials(m: Model, ece: str) -> Table:
    table = table_of("calibrator", "ECE", "NLL", "accuracy", m.vocabulary.refinement, "changed", "outcome")
    for t in m.trials:
        if t.values:
            values = [mf.value(measure, t.values[measure]) for measure in (ece, "nll", "accuracy", refinement(m.task))]
            table.add_row(label(t.calibrator), *values, fmt.count(t.predictions_changed), OUTCOMES[t.outcome])
        else:
            table.add_row(label(t.calibrator), "", "", "", "", "", OUTCOMES[t.outcome])
    table.columns[0].no_wrap = table.columns[-1].no_wrap = False
    return table


def _segments(part: Segments, m: Model) -> Table:
    after = ["after"] if m.repair else []
    words = m.vocabulary
    table = table_of(part.by, "rows", words.says, words.right, "gap", "95 % interval", "significant", *after)
    for s in part.rows[:WORST]:
        span = mf.change_interval("gap", s.low, s.high)
        numbers = (
            fmt.count(s.n),
            fmt.percent(s.says),
            fmt.percent(s.right),
            mf.change("gap", s.gap),
            span,
        )
        later = [f"{mf.change('gap', s.gap_after)}{' worse' if s.worse_after else ''}"] if m.repair else []
        table.add_row(Text(s.name), *numbers, "yes" if s.beyond_noise else "no", *later)
    table.columns[0].no_wrap = False
    return table


def _cost(m: Model) -> Table:
    assert m.cost is not None
    table = table_of("calibrator", m.cost.accepts, "wrong", "expected", "cost", "95 % interval", "changed")
    for c in m.cost.rows:
        shares = (fmt.percent(c.accepted), fmt.percent(c.error))
        costs = (fmt.number(c.expected_cost), fmt.number(c.actual_cost))
        table.add_row(
            label(c.calibrator), *shares, *costs, mf.interval("cost", c.low, c.high), fmt.count(c.decisions_changed)
        )
    table.columns[0].no_wrap = False
    return table


def _ranking(r: Report, ranking: Ranking) -> list[RenderableType]:
    costs = ["cost"] if r.models[0].cost else []
    table = table_of("model", "ECE", "gap", "NLL", "accuracy", r.models[0].vocabulary.refinement, "use", "NLL", *costs)
    for m in r.models:
        before = (mf.value(n.measure, n.value) for n in side_by_side(m))
        after = mf.value("nll", m.after(m.best).values["nll"])
        table.add_row(Text(m.name), *before, label(m.best), after, *cost_of_best(m))
    tests = table_of("pair", "measure", "difference", "95 % interval", "p", "better")
    for pair in ranking.pairs:
        for c in pair.changes:
            better = {"a": pair.a, "b": pair.b, "neither": "inconclusive"}[c.better]
            span = mf.change_interval(c.measure, c.low, c.high)
            words = (c.measure, mf.change(c.measure, c.difference), span, fmt.p_value(c.p_value))
            tests.add_row(Text(f"{pair.b} - {pair.a}"), *words, Text(better))
    table.columns[0].no_wrap = tests.columns[0].no_wrap = tests.columns[-1].no_wrap = False
    text = " ".join(part for part in (ranking.cost_words, ranking.words) if part)
    return [Text(_wrap(text)), "", table, "", tests, ""]


def _provenance(r: Report) -> list[RenderableType]:
    how = r.provenance
    lines = [_words(f"{s.name} ({s.role}): {fmt.count(s.n, 'row')}, SHA-256 {s.sha256}") for s in how.sources]
    versions = ", ".join(f"{name} {version}" for name, version in how.versions.items())
    last = _words(f"Seed {how.seed}; resamples: {how.resamples}; {versions}; {how.date}.")
    return [*_head("How this was made"), *([_words(how.command)] if how.command else []), *lines, last]


def _head(title: str) -> list[RenderableType]:
    return ["", Text(title, style="bold")]


def _words(text: str) -> Text:
    return Text(_wrap(text))


def _wrap(text: str) -> str:
    unbroken = text.replace(" %", "\N{NO-BREAK SPACE}%")  # a number and its unit on one line
    return fill(unbroken, max(console().width, 20), break_on_hyphens=False).replace("\N{NO-BREAK SPACE}%", " %")
