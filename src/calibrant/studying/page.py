"""The page of a study: what holds, tables with the printed numbers beside ours, every run as a dot."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from calibrant.core import wording
from calibrant.core.disk import write_whole
from calibrant.measures import make
from calibrant.reporting import pictures
from calibrant.studying.claims import Finding
from calibrant.studying.drawings import drawings
from calibrant.studying.plan import Layout, Plan
from calibrant.studying.published import PAPERS, Key, Printed, lookup
from calibrant.studying.study import Study
from calibrant.studying.tables import detectable, difference

WIDTH = 300  # pixels of the strip in which a measure's runs are drawn


@dataclass(frozen=True)
class CellOfTable:
    """Ours and the paper's, ready to print."""

    ours: str
    theirs: str
    runs: int
    best: bool


def save_page(study: Study, out: str | Path) -> None:
    text = page(study)
    write_whole(out, lambda stream: stream.write(text.encode()))


def page(study: Study) -> str:
    """One HTML file without a script."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    template = (files("calibrant.studying") / "page.html.jinja").read_text()
    environment = Environment(loader=DictLoader({"page": template}), autoescape=True, undefined=StrictUndefined)
    rows = [row for row in study.rows().to_dicts() if row["value"] is not None]
    findings, status = study.claims(), study.status()
    css = (files("calibrant.reporting") / "page.css").read_text()
    return environment.get_template("page").render(
        plan=study.plan,
        status=status,
        trained=len({tuple(row[key] for key in ("method", *study.plan.grid)) for row in rows}),
        wanted=len(study.cells),
        facts=_facts(study, rows),
        findings=[(f, difference(f), detectable(f), _bar(f, findings)) for f in findings],
        counts={
            v: sum(f.verdict == v for f in findings) for v in ("held", "did not hold", "cannot be told", "not run")
        },
        tables=[block for layout in study.plan.table for block in _blocks(study.plan, layout, rows)],
        drawings=drawings(study, rows),
        strips=[strip for m in study.plan.after.measures for strip in _strips(study.plan, m, rows)],
        css=Markup(css),
        theme=Markup(pictures.theme_css()),
    )


def _facts(study: Study, rows: list[dict[str, Any]]) -> dict[str, str]:
    grid = {key: wording.listed([str(v) for v in values], 12) for key, values in study.plan.grid.items()}
    recipe = study.cells[0].recipe
    trained = f"{recipe.epochs} epochs, batch {recipe.batch}"
    limits = f", {recipe.data.limit:,} training images" if recipe.data.limit else ""
    return {**grid, "network and training": f"{recipe.model}, {trained}{limits}", "scale": study.plan.scale}


# -- tables -----------------------------------------------------------------------------------------


def _blocks(plan: Plan, layout: Layout, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One table for each data set and network."""
    printed = lookup(layout.published) if layout.published else {}
    measures, entries = layout.measures or plan.after.measures, plan.entries_of(layout)
    places = [key for key in plan.grid if key != "seed"]
    blocks = []
    for place in dict.fromkeys(tuple(row[key] for key in places) for row in rows):
        own = [r for r in rows if tuple(r[key] for key in places) == place and r["set"] == layout.set]
        where = dict(zip(places, map(str, place), strict=True))
        lines = {
            entry: [_values(own, entry, m) for m in measures]
            for entry in entries
            if any(r["entry"] == entry for r in own)
        }
        if not lines:
            continue
        best = [_best(m, {e: values[i] for e, values in lines.items()}) for i, m in enumerate(measures)]
        there = printed_place(plan, layout, where, printed)
        table = {
            entry: [
                _cell(m, values[i], printed_number(plan, layout, printed, there, entry, m), entry in best[i])
                for i, m in enumerate(measures)
            ]
            for entry, values in lines.items()
        }
        title = f"{layout.title}: {', '.join(where.values())}"
        beside = any(cell.theirs for cells in table.values() for cell in cells)
        paper = PAPERS.get(layout.published.partition("-table")[0], "")
        source = f"{', '.join(there)}, printed by {paper}" if beside and there else ""
        blocks.append({"title": title, "measures": [_title(m) for m in measures], "rows": table, "source": source})
    return blocks


def printed_place(
    plan: Plan, layout: Layout, where: Mapping[str, str], printed: Mapping[Key, Printed]
) -> tuple[str, str] | None:
    """The data set and the network of a paper's table that stand where ours do; none where it has no such part."""
    ours = [plan.printed_as(axis, where.get(axis, ""), layout) for axis in ("data", "model")]
    there = {key[:2] for key in printed}
    return next(((data, model) for data, model in product(*ours) if (data, model) in there), None)


def printed_number(
    plan: Plan,
    layout: Layout,
    printed: Mapping[Key, Printed],
    place: tuple[str, str] | None,
    entry: str,
    measure: str,
) -> Printed | None:
    """What a paper prints for an entry of ours."""
    if place is None:
        return None
    names = plan.printed_as("entry", entry, layout)
    return next((found for name in names if (found := printed.get((*place, name, measure)))), None)


def _values(rows: list[dict[str, Any]], entry: str, measure: str) -> list[float]:
    return [r["value"] for r in rows if r["entry"] == entry and r["measure"] == measure]


def _best(measure: str, values: dict[str, list[float]]) -> set[str]:
    """The entry with the best mean; none for measures that only describe."""
    direction = make(measure).direction
    means = {entry: statistics.fmean(v) for entry, v in values.items() if v}
    if not means or direction not in ("down", "up"):
        return set()
    top = (min if direction == "down" else max)(means.values())
    return {entry for entry, mean in means.items() if mean == top}


def _cell(measure: str, values: list[float], printed: Printed | None, best: bool) -> CellOfTable:
    if not values:
        ours = "not run"
    else:
        spread = statistics.stdev(values) if len(values) > 1 else None
        ours = _number(measure, statistics.fmean(values), spread)
    theirs = "" if printed is None else _number(measure, printed.mean, printed.sd)
    return CellOfTable(ours, theirs, len(values), best)


def _number(measure: str, mean: float, spread: float | None) -> str:
    text = wording.value(measure, mean).removesuffix(" %").lstrip("+")
    if spread is None:
        return text
    return f"{text} ± {wording.value(measure, spread).removesuffix(' %').lstrip('+')}"


def _title(measure: str) -> str:
    made = make(measure)
    arrow = {"down": " ↓", "up": " ↑"}.get(made.direction, "")
    unit = " %" if wording.value(measure, 0.5).endswith("%") else ""
    return f"{measure}{unit}{arrow}"


# -- drawings ---------------------------------------------------------------------------------------


def _bar(finding: Finding, all_findings: list[Finding]) -> dict[str, float] | None:
    """Where the interval stands on a line whose ends are the widest interval of the same measure."""
    if finding.low is None or finding.high is None or finding.difference is None:
        return None
    same = [f for f in all_findings if f.claim.measure == finding.claim.measure and f.low is not None]
    reach = max(max(abs(f.low or 0.0), abs(f.high or 0.0)) for f in same) or 1.0
    at = {name: 50 + 50 * value / reach for name, value in (("low", finding.low), ("high", finding.high))}
    return {**at, "mean": 50 + 50 * finding.difference / reach}


def _strips(plan: Plan, measure: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every run as a dot, a line an entry; a drawing for each data set and network, whose levels differ."""
    own = [r for r in rows if r["measure"] == measure and r["set"] == "test" and r["entry"]]
    places = [key for key in plan.grid if key != "seed"]
    by_place: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for r in own:
        by_place.setdefault(tuple(str(r[key]) for key in places), []).append(r)
    return [_strip(measure, place, some) for place, some in by_place.items()]


def _strip(measure: str, place: tuple[str, ...], rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = [r["value"] for r in rows]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    lines: dict[str, list[float]] = {}
    for r in rows:
        lines.setdefault(r["entry"], []).append((r["value"] - low) / span * WIDTH)
    return {
        "title": f"{_title(measure)}: {', '.join(place)}",
        "low": wording.value(measure, low),
        "high": wording.value(measure, high),
        "lines": [(name, at, statistics.fmean(at)) for name, at in lines.items()],
        "width": WIDTH,
    }
