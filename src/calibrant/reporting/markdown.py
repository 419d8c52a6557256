"""The report as Markdown: the same sentences and tables, for a wiki, a pull request or a mail."""

from collections.abc import Sequence

from calibrant.core import wording
from calibrant.core.spoken import SPOKEN_OF_CLASSES, Spoken
from calibrant.reporting import verdict
from calibrant.reporting.aspects import refinement
from calibrant.reporting.page import label, side_by_side
from calibrant.reporting.report import Model, Ranking, Report, Segments
from calibrant.reporting.request import ece_spec

WORST = 10


def markdown(r: Report) -> str:
    several = len(r.models) > 1
    parts = [f"# {_plain(r.title)}"]
    if r.ranking:
        parts += _ranking(r, r.ranking)
    for m in r.models:
        parts += _model(m, ece_spec(r.bins), "##" if several else "")
    return "\n\n".join([*parts, *_figures(r), *_made(r)]) + "\n"


def _model(m: Model, ece: str, mark: str) -> list[str]:
    level = f"{mark}#" if mark else "##"
    parts = [f"{mark} {_plain(m.name)}"] if mark else []
    parts += [f"**{_plain(m.verdict.headline)}**", f"**{_plain(m.verdict.action)}**", _plain(m.verdict.text)]
    parts += [f"> {_plain(caution)}" for caution in m.cautions]
    parts += [_plain(" ".join(m.notes))] if m.notes else []
    parts += [f"{level} {m.spoken.title}", _bins(m)]
    numbers = [
        [n.title, wording.value(n.measure, n.value), wording.interval(n.measure, n.low, n.high), n.better, n.definition]
        for n in m.numbers
    ]
    parts += [
        f"{level} The numbers",
        f"{wording.count(m.n, 'row')}{_classes(m)}, with 95 % intervals.",
        table(["measure", "value", "interval", "better", "what it is"], numbers),
        f"{level} What helps, and what does not",
        verdict.judged(m.judged_on, m.not_tried),
        _tried(m, ece),
        verdict.choice(m),
    ]
    parts += [f"{level} Where it is worst"] if m.classes or m.groups else []
    for part in (m.classes, m.groups):
        if part:
            parts += [_plain(part.words), segments(part, m.spoken)]
    if m.cost:
        rows = [
            [label(c.calibrator), wording.percent(c.accepted), wording.percent(c.error),
             wording.number(c.expected_cost), wording.number(c.actual_cost), wording.interval("cost", c.low, c.high)]
            for c in m.cost.rows
        ]  # fmt: skip
        parts += [
            f"{level} What it costs",
            _plain(f"The rule: {m.cost.rule}. {m.cost.words}"),
            table(["calibrator", m.cost.accepts, "wrong among them", "expected cost", "actual cost", "interval"], rows),
        ]
    return [*parts, f"{level} How sure we are", " ".join(m.certainty.words)]


def _bins(m: Model) -> str:
    rows = [
        [f"{wording.percent(b.low)} to {wording.percent(b.high)}", wording.count(b.n), wording.percent(b.says),
         wording.percent(b.right), wording.change("gap", b.says - b.right)] for b in m.bins if b.n
    ]  # fmt: skip
    return table([m.spoken.score, "rows", m.spoken.says, m.spoken.right, "gap, points"], rows)


def _classes(m: Model) -> str:
    if m.shape == "choices":
        return f", up to {wording.count(m.k, 'option')}"
    return f", {wording.count(m.k, 'class', 'classes')}" if m.shape == "classes" else ""


def _tried(m: Model, ece: str) -> str:
    measures = (ece, "nll", "brier", "accuracy", refinement(m.shape))
    rows = []
    for t in m.tried:
        values = [wording.value(measure, t.values[measure]) if t.values else "" for measure in measures]
        name = f"**{label(t.calibrator)}**" if t.calibrator == m.best else label(t.calibrator)
        rows.append([name, *values, wording.count(t.predictions_changed), t.learned, t.words])
    numbers = ["ECE", "loss (NLL)", "Brier", "accuracy", m.spoken.refinement, "predictions changed"]
    head = ["calibrator", *numbers, "learned", "outcome"]
    return table(head, rows)


def segments(part: Segments, words: Spoken = SPOKEN_OF_CLASSES) -> str:
    rows = [
        [s.name, wording.count(s.n), wording.percent(s.says), wording.percent(s.right), wording.change("gap", s.gap),
         wording.change_interval("gap", s.low, s.high), "yes" if s.beyond_noise else "no"]
        for s in part.rows[:WORST]
    ]  # fmt: skip
    return table([part.by, "rows", words.says, words.right, "gap, points", "interval", "more than noise"], rows)


def _ranking(r: Report, ranking: Ranking) -> list[str]:
    rows = [
        [m.name, *(wording.value(n.measure, n.value) for n in side_by_side(m)), label(m.best),
         wording.value("nll", m.after(m.best).values["nll"])] for m in r.models
    ]  # fmt: skip
    pairs = []
    for pair in ranking.pairs:
        for c in pair.changes:
            better = {"a": pair.a, "b": pair.b, "neither": "cannot tell"}[c.better]
            span = wording.change_interval(c.measure, c.low, c.high)
            difference = wording.change(c.measure, c.difference)
            pairs.append(
                [f"{pair.b} against {pair.a}", c.measure, difference, span, wording.p_value(c.p_value), better]
            )
    return [
        _plain(ranking.words),
        table(
            [
                "model",
                "ECE",
                "gap",
                "loss (NLL)",
                "accuracy",
                r.models[0].spoken.refinement,
                "calibrated by",
                "loss with it",
            ],
            rows,
        ),
        table(["pair", "measure", "difference", "95 % interval", "p", "better"], pairs),
    ]


def _figures(r: Report) -> list[str]:
    if not r.figures:
        return []
    return ["## More figures, in words", "\n".join(f"- {f.title}: {_plain(f.words)}" for f in r.figures)]


def _made(r: Report) -> list[str]:
    made = r.made
    rows = [[s.name, s.role, wording.count(s.n), wording.count(s.k), f"`{s.sha256}`"] for s in made.sources]
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    return [
        "## How this was made",
        *([f"    {' '.join(made.command.split())}"] if made.command else []),
        table(["data", "used", "rows", "classes", "SHA-256"], rows),
        f"Seed {made.seed}; bootstrap resamples: {made.resamples}; {versions}; {made.date}.",
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines)


def _plain(text: str) -> str:
    """A name cannot start a tag, a link, an image or a new cell."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for character in "\\|[]":  # the backslash first: one in a name would undo the next
        text = text.replace(character, f"\\{character}")
    return text
