"""The page of a study: what holds, tables with the printed numbers beside ours, every run as a dot."""

import statistics
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.files import write_text
from calibrant.core.text import number_format as fmt
from calibrant.measures import make
from calibrant.measuring import measure_format as mf
from calibrant.reporting import pictures
from calibrant.studying.claims import VERDICTS, Finding
from calibrant.studying.page_figures import drawings
from calibrant.studying.paper_numbers import difference_in_paper, find_number, find_place, same_direction
from calibrant.studying.plan import Layout, Plan
from calibrant.studying.published_tables import PAPERS, PublishedNumber, lookup
from calibrant.studying.study import Study
from calibrant.studying.tables import cells_in_words, detectable, difference, settled_by

WIDTH = 300  # pixels of the strip in which a measure's runs are drawn


@dataclass(frozen=True)
class CellOfTable:
    """A cell of a table: our number and the paper's, ready to print."""

    ours: str
    theirs: str
    runs: int
    best: bool


def save_page(study: Study, out: str | Path) -> None:
    if Path(out).suffix.lower() not in (".html", ".htm"):
        got = f"'{Path(out).suffix or Path(out).name}'"
        raise InputError(str(out), expected="a file that ends in .html", got=got, fix="call it study.html")
    write_text(out, page(study))


def page(study: Study) -> str:
    """One HTML file without a script."""
    study.check_code()
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
        findings=[
            {
                "finding": f,
                "words": difference(f),
                "cells": cells_in_words(f),
                "detectable": detectable(f),
                "settled_by": settled_by(f),
                "paper": (paper := difference_in_paper(f.claim, study.plan)),
                "same_direction": f.overall is not None and same_direction(f.claim, f.overall.difference, paper),
                "bar": _bar(f, findings),
            }
            for f in findings
        ],
        corrected=max((f.claims for f in findings), default=0),
        counts={v: count for v in VERDICTS if (count := sum(f.verdict == v for f in findings))},
        tables=[block for layout in study.plan.table for block in _blocks(study.plan, layout, rows)],
        drawings=drawings(study, rows),
        strips=[strip for m in study.plan.after.measures for strip in _strips(study.plan, m, rows)],
        css=Markup(css),
        theme=Markup(pictures.theme_css()),
    )


def _facts(study: Study, rows: list[dict[str, Any]]) -> dict[str, str]:
    grid = {key: fmt.list_words([str(v) for v in values], 12) for key, values in study.plan.grid.items()}
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
        there = find_place(plan, layout, where, printed)
        table = {
            entry: [
                _cell(m, values[i], find_number(plan, layout, printed, there, entry, m), entry in best[i])
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


def _values(rows: list[dict[str, Any]], entry: str, measure: str) -> list[float]:
    return [r["value"] for r in rows if r["entry"] == entry and r["measure"] == measure]


def _best(measure: str, values: dict[str, list[float]]) -> set[str]:
    """The entry with the best mean; none for measures that have no direction."""
    direction = make(measure).direction
    means = {entry: statistics.fmean(v) for entry, v in values.items() if v}
    if not means or direction not in ("down", "up"):
        return set()
    top = (min if direction == "down" else max)(means.values())
    return {entry for entry, mean in means.items() if mean == top}


def _cell(measure: str, values: list[float], printed: PublishedNumber | None, best: bool) -> CellOfTable:
    if not values:
        ours = "not run"
    else:
        spread = statistics.stdev(values) if len(values) > 1 else None
        ours = _number(measure, statistics.fmean(values), spread)
    theirs = "" if printed is None else _number(measure, printed.mean, printed.sd)
    return CellOfTable(ours, theirs, len(values), best)


def _number(measure: str, mean: float, spread: float | None) -> str:
    text = mf.value(measure, mean).removesuffix(" %").lstrip("+")
    if spread is None:
        return text
    return f"{text} ± {mf.value(measure, spread).removesuffix(' %').lstrip('+')}"


def _title(measure: str) -> str:
    entry = make(measure)
    arrow = {"down": " ↓", "up": " ↑"}.get(entry.direction, "")
    unit = " %" if mf.value(measure, 0.5).endswith("%") else ""
    return f"{measure}{unit}{arrow}"


# -- drawings ---------------------------------------------------------------------------------------


def _bar(finding: Finding, all_findings: list[Finding]) -> dict[str, float] | None:
    """The place of an interval on a line whose ends are the widest interval of the same measure."""
    own = finding.overall
    if own is None or own.low is None or own.high is None:
        return None
    same = [f.overall for f in all_findings if f.claim.measure == finding.claim.measure and f.overall is not None]
    reach = max(max(abs(difference.low or 0.0), abs(difference.high or 0.0)) for difference in same) or 1.0
    bounds = {"low": own.low, "high": own.high, "mean": own.difference}
    return {name: 50 + 50 * (value / reach) for name, value in bounds.items()}


def _strips(plan: Plan, measure: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A drawing for each data set and network: every run as a dot, one line per entry."""
    own = [r for r in rows if r["measure"] == measure and r["set"] == "test" and r["entry"]]
    places = [key for key in plan.grid if key != "seed"]
    by_place: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for r in own:
        by_place.setdefault(tuple(str(r[key]) for key in places), []).append(r)
    return [_strip(measure, place, rows_there) for place, rows_there in by_place.items()]


def _strip(measure: str, place: tuple[str, ...], rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = [r["value"] for r in rows]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    lines: dict[str, list[float]] = {}
    for r in rows:
        lines.setdefault(r["entry"], []).append((r["value"] - low) / span * WIDTH)
    return {
        "title": f"{_title(measure)}: {', '.join(place)}",
        "low": mf.value(measure, low),
        "high": mf.value(measure, high),
        "lines": [(name, at, statistics.fmean(at)) for name, at in lines.items()],
        "width": WIDTH,
    }
