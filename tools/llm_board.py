"""The findings about language models: `python tools/llm_board.py FOLDER` writes docs/llm.md, its figures and the board.

FOLDER holds models.parquet (answers of 74 models) and published-by-category.csv (what the authors of the answers
published), both from the LLM calibration study. The parts of docs/llm.md between the markers are written, and
docs/llm-board.html, docs/llm-models.svg and docs/llm-effects.svg.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant as cal
from calibrant.core.arrays import Array
from calibrant.core.curves.ranking import spearman
from calibrant.core.files import write_whole
from calibrant.core.text import number_format as fmt
from calibrant.core.text.theme import dress
from calibrant.measuring.model_noise import MEASURES, BoardMeasure
from calibrant.reporting.board import sentences as say
from calibrant.reporting.board.board import Board, BoardAnswer, Effect

if TYPE_CHECKING:
    import polars as pl

DOCS = Path(__file__).parents[1] / "docs"
PARTS = ("findings", "published")
PUBLISHED = {"stated": "verbal_numerical", "words": "verbal_linguistic", "perplexity": "logit_perplexity"}
AUTHORS_ECE = "ece:bins=10,dialect=focal_calibration"
COLUMNS = ("stated", "perplexity", "words")
COMMAND = (
    "calibrant board models.parquet --model-column model --confidence-column stated --confidence-column perplexity "
    "--confidence-column words --correct-column correct --group-column category --out llm-board.html"
)
SEEN = (
    "Choices. Before any number was seen: 15 bins, isotonic regression, halves by seed 0, 95 %, 5 % errors, the first "
    "confidence ranks. After first numbers were seen: a repair fitted on both halves and judged on both was given up, "
    "because the errors of the two maps cancel in common bins; a difference of the share answered counts only if every "
    "resample has it, because that share jumps; a best model that leaves out over 10 % of its answers is named "
    "together with that share, and pairs are compared on their common answers, because thinking models leave out more; "
    "a model without any confidence is not ranked, also where that counts as wrong."
)


# -- the authors' own numbers -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """A published number beside ours, on the rows that the authors used."""

    model: str
    category: str
    measure: str
    confidence: str
    n: int
    published_n: int
    ours: float
    published: float
    ties: tuple[float, float] | None = None  # least and most AUROC, if values equal but for rounding were ordered

    @property
    def off(self) -> float:
        return abs(self.ours - self.published)


def compare_with_published(answers: "pl.DataFrame", published: "pl.DataFrame") -> Iterator[PublishedNumber]:
    """Accuracy, AUROC and ECE of every model and category, on answers that have a stated and a worded confidence."""
    import polars as pl

    used = answers.filter(
        (pl.col("answered") == 1) & pl.col("stated").is_between(0, 1) & pl.col("words").is_between(0, 1)
    )
    parts = used.partition_by("model", "category", as_dict=True)
    categories = answers["category"].unique().sort().to_list()
    ece, auroc = cal.measures.make(AUTHORS_ECE), cal.measures.make("auroc_correct")
    for line in published.iter_rows(named=True):
        for category in categories:
            rows, size = parts.get((line["model"], category)), line[f"{category}_sample_size"]
            if rows is None or size is None:
                assert rows is None, f"{line['model']}, {category}: answers here, nothing published"
                assert size is None, f"{line['model']}, {category}: published, no answers here"
                continue
            about: dict[str, Any] = {
                "model": line["model"],
                "category": category,
                "n": rows.height,
                "published_n": int(size),
            }
            right = rows["correct"].to_numpy()
            accuracy, known = float(right.mean()), line[f"{category}_accuracy"]
            yield PublishedNumber(measure="accuracy", confidence="", ours=accuracy, published=known, **about)
            for column, name in PUBLISHED.items():
                there = rows[column].is_not_null().to_numpy()
                known_ece = line[f"{category}_ece_{name}_confidence"]
                known_auroc = line[f"{category}_auroc_{name}_confidence"]
                if not there.any() or known_ece is None:
                    continue
                scores = rows[column].to_numpy()[there]
                p = cal.Predictions.from_confidence(scores, right[there])
                yield PublishedNumber(measure="ece", confidence=column, ours=ece(p), published=known_ece, **about)
                if known_auroc is not None:
                    ends = _auroc_of_near_ties(scores, right[there])
                    value = auroc(p)
                    yield PublishedNumber(
                        measure="auroc", confidence=column, ours=value, published=known_auroc, ties=ends, **about
                    )


def _auroc_of_near_ties(scores: Array, right: Array) -> tuple[float, float] | None:
    """The least and most AUROC if scores that are equal up to rounding were ordered in any way; None without any."""
    rounded = np.round(scores, 12)
    pairs = len(np.unique(scores)) - len(np.unique(rounded))
    if not pairs:
        return None
    near = {value for value in np.unique(rounded) if len(np.unique(scores[rounded == value])) > 1}
    auroc, ends = cal.measures.make("auroc_correct"), []
    for sign in (-1, 1):
        moved = np.where(np.isin(rounded, list(near)), rounded + sign * 1e-9 * (right - 0.5), rounded)
        ends.append(auroc(cal.Predictions.from_confidence(np.clip(moved, 0, 1), right)))
    return ends[0], ends[1]


def published_table(numbers: list[PublishedNumber]) -> str:
    """One line for each measure and confidence: numbers compared, the largest difference, and what differs."""
    limits = {"accuracy": 1e-9, "auroc": 1e-9, "ece": 1e-6}
    lines = ["| number | confidence | compared | within | largest difference | beyond |", "|---|---|---|---|---|---|"]
    for measure, confidence in sorted({(n.measure, n.confidence) for n in numbers}):
        some = [n for n in numbers if (n.measure, n.confidence) == (measure, confidence)]
        beyond = [n for n in some if n.off > limits[measure]]
        inside = max((n.off for n in some if n.off <= limits[measure]), default=0.0)
        names = "; ".join(f"{n.model}, {n.category}: {n.ours - n.published:+.1e}" for n in beyond) or "none"
        lines.append(f"| {measure} | {confidence} | {len(some):,} | {limits[measure]:g} | {inside:.1e} | {names} |")
    return "\n".join(lines)


# -- findings ---------------------------------------------------------------------------------------


def findings(board: Board, strict: Board, answers: "pl.DataFrame") -> str:
    """The findings in a screen: what is best, what changes it, and what a repair does."""
    parts = [_rankings(board), _sentences(board, strict, answers), "![ECE against AUROC of 73 models](llm-models.svg)"]
    parts += [_questions(board), "![What thinking, tuning, size and quantisation change](llm-effects.svg)"]
    parts += [_confidences(board), _categories(board), _transfers(board), SEEN]
    return "\n\n".join(parts)


def _rankings(board: Board) -> str:
    first = board.boards[0]
    lines = ["| by | best | not told apart from it | groups | pairs told apart |", "|---|---|---|---|---|"]
    for measure in MEASURES:
        order, facts = first.ordered(measure), first.rankings["before"][measure]
        alike = [m.name for m in order[1:] if m.scores["before"][measure].group == 1]
        best = order[0].scores["before"][measure]
        number = f"{say.value(measure, best.value)} ({say.interval(measure, best.low, best.high)})"
        others = fmt.list_words(alike, most=3) if alike else "none"
        told = fmt.percent(facts.told_apart, 0)
        lines.append(
            f"| {say.title_of(measure, board)} | {_named(order[0])} {number} | {others} | {facts.groups} | {told} |"
        )
    return "\n".join(lines)


def _named(model: Any) -> str:
    share = model.counts.used / model.counts.rows
    return (
        model.name
        if share >= say.MOST_COUNTED
        else f"{model.name} (a confidence in {fmt.percent(share, 0)} of answers)"
    )


def _sentences(board: Board, strict: Board, answers: "pl.DataFrame") -> str:
    first = board.boards[0]
    ranked = first.ordered("ece")
    ece, right, auroc = (
        np.array([m.scores["before"][x].value for m in ranked]) for x in ("ece", "accuracy", "auroc_correct")
    )
    over = sum(m.says > m.scores["before"]["accuracy"].value for m in ranked)
    exceptions = [
        f"the exception, {m.name}, says {fmt.percent(m.says)} and is right "
        f"{fmt.percent(m.scores['before']['accuracy'].value)} of the time"
        for m in ranked
        if m.says <= m.scores["before"]["accuracy"].value
    ]
    exception = f" ({exceptions[0]})" if exceptions else ""
    after = np.array([m.scores["after"]["ece"].value for m in ranked])
    before = np.array([m.scores["after"]["ece"].value - m.change.value for m in ranked if m.change is not None])
    better = sum(m.change is not None and m.change.high < 0 for m in ranked)
    told = {m: fmt.percent(first.rankings["after"][m].told_apart, 0) for m in ("ece", "auroc_correct")}
    sentences = [
        f"**Overconfidence is the rule.** {over} of {len(ranked)} models state more than they are right{exception}. So "
        f"the ECE mostly says how often a model errs: its rank correlation with accuracy is "
        f"{spearman(ece, right):.2f}, that of AUROC {spearman(auroc, right):.2f}.",
        "**Half of the questions repair it.** Isotonic regression fitted on 6,016 questions takes the mean ECE on the "
        f"others from {say.value('ece', float(before.mean()))} to {say.value('ece', float(after.mean()))}, beyond "
        f"noise for {better} of {len(ranked)}. After it ECE tells {told['ece']} of the pairs apart, AUROC "
        f"{told['auroc_correct']}: what is left to choose by is refinement and accuracy.",
        _left_out(board, strict, answers),
    ]
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _left_out(board: Board, strict: Board, answers: "pl.DataFrame") -> str:
    """What the best model owes to the questions that it leaves out."""
    ranked = board.boards[0].ordered("ece")
    best, other = ranked[0], next(m for m in ranked[1:] if m.counts.used / m.counts.rows >= say.MOST_COUNTED)
    a, b = (_predictions(answers, name) for name in (best.name, other.name))
    ece, accuracy = cal.compare(a, b, "ece"), cal.compare(a, b, "accuracy")
    order = strict.boards[0].ordered("accuracy")
    whole = order[0].scores["before"]["accuracy"].value
    return (
        f"**Leaving questions out is optimistic.** {best.name} states a confidence in {ece.n:,} answers. "
        f"On these questions {other.name} has an ECE of {fmt.percent(ece.b)} against {fmt.percent(ece.a)} (difference "
        f"{_points(ece)}), and is right {fmt.percent(accuracy.b)} against {fmt.percent(accuracy.a)} "
        f"({_points(accuracy)}). With answers without a confidence counted as wrong (`--missing count_as_wrong`) "
        f"{order[0].name} is right most often, {fmt.percent(whole)}."
    )


def _points(c: cal.types.Comparison) -> str:
    return f"{100 * c.difference:+.1f} points [{100 * c.low:+.1f}, {100 * c.high:+.1f}]"


def _predictions(answers: "pl.DataFrame", model: str) -> cal.Predictions:
    import polars as pl

    rows = answers.filter((pl.col("model") == model) & pl.col("stated").is_between(0, 1))
    ids = rows["question"].to_numpy()
    return cal.Predictions.from_confidence(rows["stated"].to_numpy(), rows["correct"].to_numpy(), ids=ids)


def _effects_of(answer: BoardAnswer) -> Mapping[str, Effect]:
    return {effect.measure: effect for effect in answer.effects}


def _cell(effects: Mapping[str, Effect], measure: str) -> str:
    if measure not in effects:
        return ""
    one = effects[measure]
    shown = say.change(measure, one.contrast).replace(" points", "")
    mark = f" in {one.same_sign} of {one.pairs}" if one.pairs > 1 else ""
    return f"{shown}{mark}" if one.verdict != "inconclusive" else f"{shown}, inconclusive"


def _questions(board: Board) -> str:
    shown: tuple[BoardMeasure, ...] = ("ece", "auroc_correct", "accuracy", "answered")
    head = ["question", "pairs", *(f"{say.title_of(m, board)}{', points' if m in say.SHARES else ''}" for m in shown)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for answer in board.answers:
        if "better confidence" not in answer.question and not answer.question.startswith("Does -"):
            cells = [_cell(_effects_of(answer), m) for m in shown]
            lines.append(f"| {answer.question} | {len(answer.members)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _confidences(board: Board) -> str:
    head = ["confidences", "ECE, points", "ECE after repair, points", "AUROC", "answered at 5 % error, points"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for answer in board.answers:
        if "better confidence" in answer.question:
            cells = [_cell(_effects_of(answer), m) for m in ("ece", "ece_after", "auroc_correct", "answered")]
            lines.append(f"| {answer.how.partition(',')[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _categories(board: Board) -> str:
    order = sorted(board.boards[0].groups, key=lambda g: -g.means["ece"].value)

    def words(some: list[Any]) -> str:
        means = [(g.group, g.means["ece"]) for g in some]
        return ", ".join(
            f"{name} {say.value('ece', m.value)} ({say.interval('ece', m.low, m.high)})" for name, m in means
        )

    lowest = min(order, key=lambda g: g.means["auroc_correct"].value)
    return (
        f"**Worst categories** by the mean ECE over models: {words(order[:3])}; best: {words(order[-2:])}. In "
        f"{lowest.group} confidence also says least about being right (mean AUROC "
        f"{say.value('auroc_correct', lowest.means['auroc_correct'].value)})."
    )


def _transfers(board: Board) -> str:
    said = [f"- {say.transfer_sentence(one, board.group_column or 'group')}" for one in board.transfers]
    return "**Does a repair carry over?**\n\n" + "\n".join(said)


# -- figures ----------------------------------------------------------------------------------------


def models_figure(board: Board) -> Any:
    """ECE against AUROC of every ranked model, with intervals; colour is accuracy."""
    import altair as alt

    rows = []
    for m in board.boards[0].ordered("ece"):
        s = m.scores["before"]
        rows.append(
            {
                "model": m.name,
                "ece": s["ece"].value,
                "low": s["ece"].low,
                "high": s["ece"].high,
                "auroc": s["auroc_correct"].value,
                "below": s["auroc_correct"].low,
                "above": s["auroc_correct"].high,
                "accuracy": s["accuracy"].value,
            }
        )
    named = {rows[-1]["model"], max(rows, key=lambda r: r["auroc"])["model"]}
    named |= {"gpt-4.1", "Mixtral-8x7B-v0.1", "claude-3-haiku-20240307", "Qwen3-8B-Base"}
    for row in rows:
        row["label"] = row["model"] if row["model"] in named else ""
    x = alt.X(
        "ece:Q", title="ECE of the stated confidence", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 0.85])
    )
    y = alt.Y("auroc:Q", title="AUROC of correctness", scale=alt.Scale(domain=[0.48, 0.84], zero=False))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    colour = alt.Color("accuracy:Q", title="accuracy", legend=alt.Legend(format="%"))
    chart = alt.layer(
        base.mark_rule(opacity=0.4).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_rule(opacity=0.4).encode(y=alt.Y("below:Q"), y2="above:Q"),
        base.mark_circle(size=42, opacity=1).encode(color=colour),
        base.mark_text(align="left", dx=6, dy=-5, fontSize=9).encode(text="label:N"),
    )
    return dress(chart.properties(width=520, height=300))


def effects_figure(board: Board) -> Any:
    """The mean differences of ECE, AUROC and accuracy with intervals, one line a question."""
    import altair as alt

    names = {
        "Does thinking before the answer change it?": "thinking",
        "Does a base model differ from the chat model?": "base instead of chat",
        "Do FP8 weights change it?": "FP8 weights",
        "Do 4-bit AWQ weights change it?": "AWQ weights",
        "Does size change it?": "each doubling of size",
    }
    titles = {"ece": "ECE", "auroc_correct": "AUROC", "accuracy": "accuracy"}
    rows = []
    for answer in board.answers:
        for effect in answer.effects:
            if answer.question in names and effect.measure in titles:
                c = effect.contrast
                rows.append(
                    {
                        "question": names[answer.question],
                        "measure": titles[effect.measure],
                        "value": 100 * c.value,
                        "low": 100 * c.low,
                        "high": 100 * c.high,
                    }
                )
    y = alt.Y("question:N", title=None, sort=list(names.values()))
    zero = alt.Chart().mark_rule(style="reference").encode(x=alt.datum(0))
    line = (
        alt.Chart()
        .mark_rule(style="interval")
        .encode(x=alt.X("low:Q", title="change, points (AUROC x 100)"), x2="high:Q", y=y)
    )
    dot = alt.Chart().mark_circle(style="estimate").encode(x="value:Q", y=y)
    layers = alt.layer(zero, line, dot, data=alt.Data(values=rows)).properties(width=150, height=130)
    chart = layers.facet(column=alt.Column("measure:N", title=None, sort=list(titles.values())))
    return dress(chart)


def _save_svg(chart: Any, file: Path) -> None:
    import altair as alt
    import vl_convert

    version = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
    text = str(vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=version))
    write_whole(file, lambda stream: stream.write(text.encode()))


# -- the page ---------------------------------------------------------------------------------------


def write_parts(page: Path, parts: Mapping[str, str]) -> None:
    """Replace what stands between the markers of each part."""
    text = page.read_text(encoding="utf-8")
    for name, content in parts.items():
        begin, end = f"<!-- {name}: written by tools/llm_board.py -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{content}\n\n{end}{after}"
    write_whole(page, lambda stream: stream.write(text.encode()))


def main() -> None:
    import polars as pl

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of models.parquet and published-by-category.csv")
    folder = parser.parse_args().folder
    options: dict[str, Any] = {"group": "category", "title": "Which language models know what they know?"}
    board = cal.board(folder / "models.parquet", confidence=COLUMNS, command=COMMAND, **options)
    strict = cal.board(folder / "models.parquet", confidence="stated", missing="count_as_wrong", **options)
    replace(board, notes=(*board.notes, SEEN)).save(DOCS / "llm-board.html")
    _save_svg(models_figure(board), DOCS / "llm-models.svg")
    _save_svg(effects_figure(board), DOCS / "llm-effects.svg")
    answers = pl.read_parquet(folder / "models.parquet", glob=False)
    published = pl.read_csv(folder / "published-by-category.csv")
    numbers = list(compare_with_published(answers, published))
    write_parts(DOCS / "llm.md", {"findings": findings(board, strict, answers), "published": published_table(numbers)})


if __name__ == "__main__":
    main()
