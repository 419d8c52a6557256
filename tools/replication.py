"""The papers' claims against our own rows: `python tools/replication.py [--store UNITS]` writes docs/replication.md.

With a store (the folder `units` of `calibrant study run`) rows are collected first, as docs/replication/PLAN.parquet,
and a page is written for each plan. Without one the committed rows are judged again.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from calibrant.core import wording
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.studying.claims import Finding, judge_all
from calibrant.studying.page import printed_number
from calibrant.studying.plan import Claim, Layout, Plan
from calibrant.studying.plan_files import read_plan
from calibrant.studying.published import lookup
from calibrant.studying.study import Study, filtered, open_plan
from calibrant.studying.tables import detectable, difference

if TYPE_CHECKING:
    import polars as pl

ROOT = Path(__file__).parents[1]
PLANS = ("meta-regularization", "dark-side", "neural-clamping", "losses", "neural-clamping-choices", "confidences")
SCALE = "small"
MARKERS = ("<!-- replication: written by tools/replication.py -->\n", "<!-- end of replication -->")
AXES = ("method", "seed", "data", "model")
VERDICTS = ("held", "did not hold", "cannot be told", "not run")


@dataclass(frozen=True)
class WithRows(Study):
    """A study whose rows are known, from its own store and from others."""

    known: "pl.DataFrame"

    def rows(self, where: str = "") -> "pl.DataFrame":
        return filtered(self.known, where)


def collect(store: Path, out: Path) -> None:
    """Rows and page of every plan that has any, from the units of a store.

    Rows that are committed and whose trainings the store has not are kept: seeds may come from several machines.
    """
    import polars as pl

    from calibrant.studying.page import save_page

    for name in PLANS:
        with TemporaryDirectory() as folder:
            study = open_plan(name, Path(folder) / name, scale=SCALE, store=store)
            rows, file = study.rows().drop("unit"), out / f"{name}.parquet"
            if file.exists():
                known = pl.read_parquet(file, glob=False)
                known = known.join(rows, on=[axis for axis in AXES if axis in known.columns], how="anti")
                rows = pl.concat([rows, known], how="diagonal_relaxed") if rows.height else known
            if rows.height:
                rows = rows.sort(rows.columns)
                write_whole(file, lambda stream, rows=rows: rows.write_parquet(stream))
                save_page(WithRows(study.folder, study.plan, study.store, rows), out / f"{name}.html")


def summary(folder: Path) -> str:
    """The claims of all plans that have rows here, and how many seeds they rest on."""
    import polars as pl

    parts = []
    for name in PLANS:
        file = folder / f"{name}.parquet"
        plan = read_plan(name, scale=SCALE)
        if file.exists():
            parts.append(_section(name, plan, pl.read_parquet(file, glob=False)))
        else:
            parts.append(f"### {plan.title}\n\nNot run: no rows of the plan `{name}` are here.\n")
    return "\n".join(parts)


def write(file: Path, text: str) -> None:
    """Put the text between the markers of a page."""
    before = file.read_text()
    if any(marker not in before for marker in MARKERS):
        raise InputError(
            str(file), expected=f"the lines {MARKERS[0].strip()} and {MARKERS[1]}", got="none", fix="add them"
        )
    head, rest = before.split(MARKERS[0], 1)
    made = head + MARKERS[0] + "\n" + text + "\n" + MARKERS[1] + rest.partition(MARKERS[1])[2]
    write_whole(file, lambda stream: stream.write(made.encode()))


def _section(name: str, plan: Plan, rows: "pl.DataFrame") -> str:
    findings = judge_all(plan, rows)
    counts = [(sum(f.verdict == v for f in findings), v) for v in VERDICTS]
    lines = [
        f"### {plan.title}",
        "",
        f"After {plan.paper}. Plan `{name}`, [all tables and runs](replication/{name}.html).",
        "",
        *seeds(plan, rows),
        "",
        f"Of {len(findings)} claims: {wording.listed([f'{n} {v}' for n, v in counts if n])}.",
        "",
        "| claim | published | ours | could see | pairs | |",
        "|---|---|---|---|---|---|",
        *(_line(f, plan) for f in findings),
        "",
    ]
    return "\n".join(lines)


def _line(f: Finding, plan: Plan) -> str:
    says = f"{f.claim.says} ({f.claim.measure}; {f.claim.source})".replace("|", "\\|")
    return f"| {says} | {printed(f.claim, plan)} | {difference(f)} | {detectable(f)} | {f.pairs} | **{f.verdict}** |"


def printed(claim: Claim, plan: Plan) -> str:
    """The same difference in the paper's own tables: the mean over its cells, and in how many it has this sign."""
    found: dict[tuple[str, str], dict[str, float]] = {}  # data and network -> entry -> printed number
    for layout in plan.table:
        if not layout.published or layout.set != claim.set:
            continue
        numbers = lookup(layout.published)
        for place in dict.fromkeys(key[:2] for key in numbers):
            for entry in filter(None, (claim.of, claim.against)) if _speaks_of(claim, plan, layout, place) else ():
                if one := printed_number(plan, layout, numbers, place, entry, claim.measure):
                    found.setdefault(place, {})[entry] = one.mean
    apart = [
        entries[claim.of] - (entries[claim.against] if claim.against else claim.than)
        for entries in found.values()
        if claim.of in entries and (not claim.against or claim.against in entries)
    ]
    if not apart:
        return "no number"
    mean = fmean(apart)
    same = sum(d * mean > 0 for d in apart)
    return f"{wording.change(claim.measure, mean)} ({same} of {len(apart)} cells)"


def _speaks_of(claim: Claim, plan: Plan, layout: Layout, place: tuple[str, str]) -> bool:
    """Whether the claim and this table of the plan are about a part of the printed table."""
    for axis, name in zip(("data", "model"), place, strict=True):
        if layout.names.get(axis) and name not in layout.names[axis].values():
            return False
        printed_there = {p for one in claim.where.get(axis, []) for p in plan.printed_as(axis, str(one), layout)}
        if claim.where.get(axis) and name not in printed_there:
            return False
    return True


def seeds(plan: Plan, rows: "pl.DataFrame") -> list[str]:
    """How many seeds of each data set and network are whole, and what there is of others."""
    import polars as pl

    lines = []
    keys = [key for key in plan.grid if key != "seed"]
    for place in dict.fromkeys(tuple(one[key] for key in keys) for _, one in plan.cells()):
        methods = len({name for name, one in plan.cells() if tuple(one[key] for key in keys) == place})
        own = rows.filter(pl.all_horizontal(pl.col(key) == value for key, value in zip(keys, place, strict=True)))
        found = dict(own.group_by("seed").agg(pl.col("method").n_unique()).sort("seed").rows())
        whole = [seed for seed, n in found.items() if n == methods]
        part = [f"seed {seed} with {n} of {methods} methods" for seed, n in found.items() if n < methods]
        line = f"- {', '.join(map(str, place))}: {len(whole)} of {len(plan.grid['seed'])} seeds"
        lines.append(line + (f"; in part {wording.listed(part)}" if part else ""))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="units of the studies: collect rows and pages first")
    arguments = parser.parse_args()
    if arguments.store:
        collect(arguments.store, ROOT / "docs" / "replication")
    write(ROOT / "docs" / "replication.md", summary(ROOT / "docs" / "replication"))
