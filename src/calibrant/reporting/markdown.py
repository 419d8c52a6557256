"""The report as Markdown: the same sentences and tables, for a wiki, a pull request or a mail."""

from calibrant.core.text import number_format as fmt
from calibrant.core.text.table import Cell, Marked, escape_markdown, markdown_table
from calibrant.core.text.vocabulary import Vocabulary
from calibrant.measuring import measure_format as mf
from calibrant.reporting import sentences
from calibrant.reporting.contents_by_task import ece_spec, refinement
from calibrant.reporting.excerpts import cost_of_best, facts, label, side_by_side
from calibrant.reporting.parts import Model, Ranking, Segment, Segments
from calibrant.reporting.report import Report

WORST = 10


def markdown(r: Report) -> str:
    several = len(r.models) > 1
    parts = [f"# {escape_markdown(r.title)}"]
    if r.ranking:
        parts += _ranking(r, r.ranking)
    for m in r.models:
        parts += _model(m, ece_spec(r.bins), "##" if several else "")
    return "\n\n".join([*parts, *_figures(r), *_provenance(r)]) + "\n"


def _model(m: Model, ece: str, mark: str) -> list[str]:
    level = f"{mark}#" if mark else "##"
    parts = [f"{mark} {escape_markdown(m.name)}"] if mark else []
    money = [] if m.cost is None else [m.cost.headline]
    first = [*([] if m.verdict.finding.money else money), *m.verdict.lines]
    parts += [f"**{escape_markdown(line)}**" for line in first]
    parts += [escape_markdown(m.verdict.text)]
    parts += [f"> {escape_markdown(caution)}" for caution in m.cautions]
    parts += [escape_markdown(" ".join(m.notes))] if m.notes else []
    if m.cost:
        rows = [
            [label(c.calibrator), fmt.percent(c.accepted), fmt.percent(c.error),
             fmt.number(c.expected_cost), fmt.number(c.actual_cost), mf.interval("cost", c.low, c.high),
             mf.change("cost", c.change), fmt.count(c.decisions_changed)]
            for c in m.cost.rows
        ]  # fmt: skip
        parts += [
            f"{level} What it costs",
            *(map(escape_markdown, money) if m.verdict.finding.money else ()),
            escape_markdown(f"The rule: {m.cost.rule}. {m.cost.words}"),
            markdown_table(
                [
                    "calibrator",
                    m.cost.accepts,
                    "wrong among them",
                    "expected cost",
                    "actual cost",
                    "interval",
                    "change",
                    "decisions changed",
                ],
                rows,
            ),
        ]
    parts += [f"{level} {m.vocabulary.title}", _bins(m)]
    numbers = []
    for n in m.numbers:
        said = facts(n.measure, m.task)
        shown = mf.measured(n.measure, n.value, n.low, n.high)
        numbers.append([said["title"], *shown, said["better"], n.definition])
    parts += [
        f"{level} The numbers",
        f"{fmt.count(m.n, 'row')}{_classes(m)}, with 95 % intervals.",
        markdown_table(["measure", "value", "interval", "better", "what it is"], numbers),
    ]
    if m.judged_on is not None:
        parts += [f"{level} What helps, and what does not", sentences.describe_judging(m.judged_on, m.not_tried)]
        parts += [_trials(m, ece), sentences.choice(m)]
    parts += [f"{level} Where it is worst"] if m.classes or m.groups else []
    for part in (m.groups, m.classes):
        if part:
            parts += [escape_markdown(part.words), segments(part, m.vocabulary)]
    return [*parts, *([f"{level} How sure we are", " ".join(m.certainty.words)] if m.certainty else [])]


def _bins(m: Model) -> str:
    rows = [
        [f"{fmt.percent(b.low)} to {fmt.percent(b.high)}", fmt.count(b.n), fmt.percent(b.says),
         fmt.percent(b.right), mf.change("gap", b.says - b.right)] for b in m.bins if b.n
    ]  # fmt: skip
    return markdown_table([m.vocabulary.score, "rows", m.vocabulary.says, m.vocabulary.right, "gap, points"], rows)


def _classes(m: Model) -> str:
    if m.task == "choice":
        return f", up to {fmt.count(m.k, 'option')}"
    return f", {fmt.count(m.k, 'class', 'classes')}" if m.task == "multiclass" else ""


def _trials(m: Model, ece: str) -> str:
    measures = (ece, "nll", "brier", "accuracy", refinement(m.task))
    rows: list[list[Cell]] = []
    for t in m.trials:
        values = [mf.value(measure, t.values[measure]) if t.values else "" for measure in measures]
        name = Marked(label(t.calibrator), bold=t.calibrator == m.best)
        rows.append([name, *values, fmt.count(t.predictions_changed), t.learned, t.words])
    numbers = ["ECE", "loss (NLL)", "Brier", "accuracy", m.vocabulary.refinement, "predictions changed"]
    head = ["calibrator", *numbers, "learned", "outcome"]
    return markdown_table(head, rows)


def segments(part: Segments, words: Vocabulary) -> str:
    rows = [
        [s.name, fmt.count(s.n), fmt.percent(s.says), fmt.percent(s.right), mf.change("gap", s.gap),
         mf.change_interval("gap", s.low, s.high), "yes" if s.beyond_noise else "no", *_later(s)]
        for s in part.rows[:WORST]
    ]  # fmt: skip
    after = ["gap after"] if any(s.gap_after is not None for s in part.rows) else []
    head = [part.by, "rows", words.says, words.right, "gap, points", "interval", "more than noise", *after]
    return markdown_table(head, [row[: len(head)] for row in rows])


def _later(s: Segment) -> list[str]:
    return [mf.change("gap", s.gap_after) + (", worse" if s.worse_after else "")]


def _ranking(r: Report, ranking: Ranking) -> list[str]:
    rows = [
        [m.name, *(mf.value(n.measure, n.value) for n in side_by_side(m)), label(m.best),
         mf.value("nll", m.after(m.best).values["nll"]), *cost_of_best(m)] for m in r.models
    ]  # fmt: skip
    pairs = []
    for pair in ranking.pairs:
        for c in pair.changes:
            better = {"a": pair.a, "b": pair.b, "neither": "inconclusive"}[c.better]
            span = mf.change_interval(c.measure, c.low, c.high)
            difference = mf.change(c.measure, c.difference)
            pairs.append([f"{pair.b} against {pair.a}", c.measure, difference, span, fmt.p_value(c.p_value), better])
    return [
        *([f"**{escape_markdown(ranking.cost_words)}**"] if ranking.cost_words else []),
        escape_markdown(ranking.words),
        markdown_table(
            [
                "model",
                "ECE",
                "gap",
                "loss (NLL)",
                "accuracy",
                r.models[0].vocabulary.refinement,
                "calibrated by",
                "loss with it",
                *(["cost per row with it"] if r.models[0].cost else []),
            ],
            rows,
        ),
        markdown_table(["pair", "measure", "difference", "95 % interval", "p", "better"], pairs),
    ]


def _figures(r: Report) -> list[str]:
    if not r.figures:
        return []
    return ["## More figures, in words", "\n".join(f"- {f.title}: {escape_markdown(f.words)}" for f in r.figures)]


def _provenance(r: Report) -> list[str]:
    how = r.provenance
    rows = [[s.name, s.role, fmt.count(s.n), fmt.count(s.k), f"`{s.sha256}`"] for s in how.sources]
    versions = ", ".join(f"{name} {version}" for name, version in how.versions.items())
    return [
        "## How this was made",
        *([f"    {' '.join(how.command.split())}"] if how.command else []),
        markdown_table(["data", "used", "rows", "classes", "SHA-256"], rows),
        f"Seed {how.seed}; bootstrap resamples: {how.resamples}; {versions}; {how.date}.",
    ]
