"""A study's own entries as a LaTeX table: mean and deviation over seeds, the best in bold, significance by a mark."""

import statistics
from math import isclose
from typing import TYPE_CHECKING

import polars as pl

from calibrant.core.text import table
from calibrant.core.text.table import Cell, Marked
from calibrant.measures import make
from calibrant.measuring import measure_format as mf
from calibrant.studying.claims import LEVEL, decide_by_cells
from calibrant.studying.plan import Claim, check_measure

if TYPE_CHECKING:
    from calibrant.studying.study import Study

MARK = "†"

Runs = dict[int, float]  # seed -> value


def latex_table(study: "Study", measure: str, where: str = "") -> str:
    """A LaTeX table: rows are entries, columns data sets (and networks, where there are several).

    The best mean of a column is bold. A dagger marks entries that are significantly worse than it: paired t-tests over
    seeds, corrected for the number of other entries in the column.
    """
    study.check_code()
    check_measure("measure", measure, study.plan.after.measures)
    study.check_judged()
    rows = study.rows(where).filter(
        (pl.col("measure") == measure) & (pl.col("set") == "test") & (pl.col("entry") != "")
    )
    axes = [key for key in study.plan.grid if key != "seed"]
    axes = [key for key in axes if rows[key].n_unique() > 1] or axes[:1]
    cells: dict[tuple[str, str], Runs] = {}
    for row in rows.to_dicts():
        place = ", ".join(str(row[key]) for key in axes)
        cells.setdefault((row["entry"], place), {})[row.get("seed", 0)] = row["value"]
    entries = [entry for entry in study.plan.rows if any(key[0] == entry for key in cells)]
    places = list(dict.fromkeys(place for _, place in cells))
    columns = {
        place: _column(measure, {e: cells[e, place] for e in entries if (e, place) in cells}) for place in places
    }
    body: list[list[Cell]] = [[e, *(columns[place].get(e, "") for place in places)] for e in entries]
    note = f"% {measure}: mean \u00b1 standard deviation over seeds; dagger: significantly worse than the best (5 %)"
    return f"{note}\n{table.latex_table(['', *places], body, 'l' + 'r' * len(places))}"


def _column(measure: str, runs: dict[str, Runs]) -> dict[str, Marked]:
    """The cells of a column, by entry; ties for the best are all bold."""
    direction = make(measure).direction
    means = {entry: statistics.fmean(values.values()) for entry, values in runs.items()}
    best = None
    if direction in ("down", "up"):
        best = (min if direction == "down" else max)(means, key=means.__getitem__)
    column = {}
    for entry, values in runs.items():
        bold = best is not None and isclose(means[entry], means[best], rel_tol=1e-12)
        worse = not bold and best is not None
        worse = worse and _is_worse(direction, values, runs[best or entry], LEVEL / (len(runs) - 1))
        column[entry] = Marked(_number(measure, list(values.values())), bold, MARK if worse else "")
    return column


def _number(measure: str, values: list[float]) -> str:
    parts = [statistics.fmean(values), *([statistics.stdev(values)] if len(values) > 1 else [])]
    return " ± ".join(mf.value(measure, part).removesuffix(" %").lstrip("+") for part in parts)


def _is_worse(direction: str, values: Runs, best: Runs, level: float) -> bool:
    import numpy as np

    differences = np.array([[values[seed] - best[seed]] for seed in values if seed in best])
    if len(differences) < 2:
        return False
    claim = Claim(says="", of="", measure="", is_="higher" if direction == "down" else "lower")
    return decide_by_cells(claim, {"": differences}, level, 1).verdict == "held"
