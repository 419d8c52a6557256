"""The papers' claims against our own rows: `python tools/replication.py [--store JOBS]` writes docs/replication.md.

With a store (the folder `jobs` of `calibrant study run`) rows are collected first, as docs/replication/PLAN.parquet,
and a page is written for each plan. Without one the committed rows are judged again.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.text import number_format as fmt
from calibrant.measuring import measure_format as mf
from calibrant.studying.claims import VERDICTS, Finding, decide_claims
from calibrant.studying.expand_plan import StudyCell, cells_of
from calibrant.studying.paper_numbers import difference_in_paper, same_direction
from calibrant.studying.plan import Claim, Entry, Plan, among
from calibrant.studying.plan_files import read_plan
from calibrant.studying.study import Study, filter_rows, open_plan
from calibrant.studying.tables import cells_in_words, detectable, difference, settled_by

if TYPE_CHECKING:
    import polars as pl

ROOT = Path(__file__).parents[1]
SMALL = ("meta-regularization", "dark-side", "neural-clamping", "losses", "neural-clamping-choices", "confidences")
PLANS = dict.fromkeys(SMALL, "small") | {"main-claims": "medium"}  # plan -> scale
FINAL = 20  # seeds at which claims are judged for good
MARKERS = ("<!-- replication: written by tools/replication.py -->\n", "<!-- end of replication -->")
AXES = ("method", "seed", "data", "model")


@dataclass(frozen=True, kw_only=True)
class StudyWithRows(Study):
    """A study whose rows are known, from its own store and from others."""

    known: "pl.DataFrame"

    def rows(self, where: str = "") -> "pl.DataFrame":
        return filter_rows(self.known, where)


def collect(store: Path, out: Path) -> None:
    """Rows and page of every plan of which a store has any.

    Rows that are committed and whose trainings the store has not are kept: seeds may come from several machines.
    """
    import polars as pl

    from calibrant.studying.page import save_page

    for name, scale in PLANS.items():
        with TemporaryDirectory() as folder:
            study = open_plan(name, Path(folder) / name, scale=scale, store=store)
            rows, file = study.rows(), out / f"{name}.parquet"
            if not rows.height:
                continue
            rows = rows.drop("job")
            if file.exists():
                known = pl.read_parquet(file, glob=False)
                known = known.join(rows, on=[axis for axis in AXES if axis in known.columns], how="anti")
                rows = pl.concat([rows, known], how="diagonal_relaxed")
            rows = rows.sort(rows.columns)
            write_whole(file, lambda stream, rows=rows: rows.write_parquet(stream))
            save_page(StudyWithRows(study.folder, study.plan, study.store, known=rows), out / f"{name}.html")


def summary(folder: Path) -> str:
    """The claims of all plans that have rows here, and how many seeds they rest on.

    Those of `main-claims` are asked before, at another scale: they are not counted again.
    """
    import polars as pl

    parts = []
    plans = {name: read_plan(name, scale=scale) for name, scale in PLANS.items()}
    again = same_claims(plans)
    counted: list[tuple[Plan, Finding]] = []
    final: list[Finding] = []
    for name, plan in plans.items():
        file = folder / f"{name}.parquet"
        if not file.exists():
            parts.append(f"### {plan.title}\n\nNot run: no rows of the plan `{name}` are here.\n")
            continue
        rows = pl.read_parquet(file, glob=False)
        findings = decide_claims(plan, rows)
        shared = [other for (own, _), (other, _) in again.items() if own == name]
        parts.append(_section(name, plan, rows, findings, shared))
        if name not in SMALL:
            continue
        own = [(plan, f) for number, f in enumerate(findings) if (name, number) not in again]
        counted += own
        final += [f for _, f in own if rows["seed"].n_unique() == FINAL and f.verdict != "not run"]
    return "\n".join([_all_plans(counted, final), *parts])


def _all_plans(counted: list[tuple[Plan, Finding]], final: list[Finding]) -> str:
    """How many claims of all plans could be judged, and how they came out; a claim of two plans counts once.

    `final` are those that have all their seeds.
    """
    run = [(plan, f) for plan, f in counted if f.verdict != "not run"]
    counts = [(sum(f.verdict == v for _, f in run), v) for v in VERDICTS if v != "not run"]
    some, all_seeds = (_inconclusive(findings) for findings in ([f for _, f in run], final))
    ways = [(_direction(f, plan), f) for plan, f in run]
    numbers, words = ([way.startswith("yes") for way, _ in ways if way.endswith(end)] for end in ("numbers", "words"))
    came_out = fmt.list_words([f"{n} {v}" for n, v in counts if n], len(counts))
    return (
        f"Of the {len(run)} different claims that these runs can judge: {came_out}. "
        f"Inconclusive are {some}; of the {len(final)} whose plans have all {FINAL} seeds, {all_seeds}. "
        f"Our mean difference points where the paper's printed numbers do in {sum(numbers)} of {len(numbers)}, "
        f"and where its words do in {sum(words)} of {len(words)} for "
        "which it prints none.\n"
    )


def _inconclusive(findings: list[Finding]) -> str:
    return fmt.whole_percent(sum(f.verdict == "inconclusive" for f in findings) / max(1, len(findings)))


def write(file: Path, text: str) -> None:
    """Put the text between the markers of a page."""
    before = file.read_text()
    if any(marker not in before for marker in MARKERS):
        raise InputError(
            str(file), expected=f"the lines {MARKERS[0].strip()} and {MARKERS[1]}", got="none", fix="add them"
        )
    head, rest = before.split(MARKERS[0], 1)
    result = head + MARKERS[0] + "\n" + text + "\n" + MARKERS[1] + rest.partition(MARKERS[1])[2]
    write_whole(file, lambda stream: stream.write(result.encode()))


def _section(name: str, plan: Plan, rows: "pl.DataFrame", findings: list[Finding], shared: list[str]) -> str:
    corrected = findings[0].claims if findings else 0
    twice = [f"{shared.count(other)} of `{other}`" for other in dict.fromkeys(shared)]
    also = (
        f" {len(shared)} of them are about the same trainings as {fmt.list_words(twice)}: count them once."
        if shared
        else ""
    )
    counts = [(sum(f.verdict == v for f in findings), v) for v in VERDICTS]
    lines = [
        f"### {plan.title}",
        "",
        f"After {plan.paper}. Plan `{name}`, [all tables and runs](replication/{name}.html).",
        "",
        *seeds(plan, rows),
        "",
        f"Of {len(findings)} claims: {fmt.list_words([f'{n} {v}' for n, v in counts if n], len(counts))}. "
        f"Levels are corrected for the {corrected} that this scale can judge, run or not.{also}",
        "",
        "| claim | published | ours | direction as the paper's | could see | pairs | | seeds to settle |",
        "|---|---|---|---|---|---|---|---|",
        *(_line(f, plan) for f in findings),
        "",
    ]
    return "\n".join(lines)


def _line(f: Finding, plan: Plan) -> str:
    says = f"{f.claim.says} ({f.claim.measure}; {f.claim.source})".replace("|", "\\|")
    ours = "<br>".join([difference(f), *cells_in_words(f)])
    pairs = 0 if f.overall is None else f.overall.pairs
    way, more = _direction(f, plan), settled_by(f)
    return (
        f"| {says} | {printed(f.claim, plan)} | {ours} | {way} | {detectable(f)} | {pairs} | **{f.verdict}** | {more} |"
    )


def _direction(f: Finding, plan: Plan) -> str:
    """Whether our mean difference points where the paper's numbers do, or its words where it prints none."""
    if f.overall is None:
        return ""
    paper = difference_in_paper(f.claim, plan)
    way = "yes" if same_direction(f.claim, f.overall.difference, paper) else "no"
    return f"{way}, by its {'words' if paper is None else 'numbers'}"


def printed(claim: Claim, plan: Plan) -> str:
    """The same difference in the paper's own tables: the mean over its cells, and how many agree with the claim."""
    paper = difference_in_paper(claim, plan)
    if paper is None:
        return "no number"
    text = f"{mf.change(claim.measure, paper.mean)} ({paper.agreeing} of {paper.cells} cells)"
    return f"{text}, **contradicts the claim**" if paper.contradicts else text


def same_claims(plans: Mapping[str, Plan]) -> dict[tuple[str, int], tuple[str, int]]:
    """Claims that an earlier plan has made about the same trainings: plan and number -> those of the earlier claim."""
    first: dict[tuple[Any, ...], tuple[str, int]] = {}
    again: dict[tuple[str, int], tuple[str, int]] = {}
    for name, plan in plans.items():
        cells = list(cells_of(plan))
        for number, claim in enumerate(plan.claim):
            facts = _facts(claim, plan, cells)
            if facts in first:
                again[name, number] = first[facts]
            elif facts[-1]:
                first[facts] = (name, number)
    return again


def _facts(claim: Claim, plan: Plan, cells: list[StudyCell]) -> tuple[Any, ...]:
    """Everything that decides a verdict: the question, and the rows of every entry by the jobs that write them."""
    entries = tuple(_rows_of(plan.rows[name], claim, plan, cells) for name in (claim.of, *claim.rivals))
    shift = plan.after.shifted[claim.set].set if claim.set in plan.after.shifted else claim.set
    return (claim.measure, shift, claim.is_, claim.within, claim.than, claim.rank, entries if all(entries) else ())


def _rows_of(entry: Entry, claim: Claim, plan: Plan, cells: list[StudyCell]) -> tuple[Any, ...]:
    trained = sorted(c.jobs[0].key for c in cells if c.method == entry.method and among(c.place, claim.where))
    return (*trained, entry.calibrator, plan.after.rescorers.get(entry.rescorer, "")) if trained else ()


def seeds(plan: Plan, rows: "pl.DataFrame") -> list[str]:
    """How many seeds of each data set and network are whole, and what there is of others."""
    import polars as pl

    lines = []
    keys = [key for key in plan.grid if key != "seed"]
    for place in dict.fromkeys(tuple(one[key] for key in keys) for _, one in plan.cells()):
        methods = len({name for name, one in plan.cells() if tuple(one[key] for key in keys) == place})
        own = rows.filter(pl.all_horizontal(pl.col(key) == value for key, value in zip(keys, place, strict=True)))
        results = dict(own.group_by("seed").agg(pl.col("method").n_unique()).sort("seed").rows())
        whole = [seed for seed, n in results.items() if n == methods]
        part = [f"seed {seed} with {n} of {methods} methods" for seed, n in results.items() if n < methods]
        line = f"- {', '.join(map(str, place))}: {len(whole)} of {len(plan.grid['seed'])} seeds"
        lines.append(line + (f"; in part {fmt.list_words(part)}" if part else ""))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="jobs of the studies: collect rows and pages first")
    arguments = parser.parse_args()
    if arguments.store:
        collect(arguments.store, ROOT / "docs" / "replication")
    write(ROOT / "docs" / "replication.md", summary(ROOT / "docs" / "replication"))
