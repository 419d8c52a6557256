"""A table of methods: mean and standard deviation over runs, the best, and which are not significantly worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.multiple_tests import holm
from calibrant.measures import Measure
from calibrant.measuring.compare import compare
from calibrant.measuring.matching_rows import same_classes
from calibrant.measuring.measure import resolve
from calibrant.measuring.results import Cell, Results

MEASURES = ("ece", "nll", "accuracy")


@dataclass(frozen=True)
class Runs:
    """The runs of one method: their predictions, and their seeds where those are known."""

    predictions: tuple[Predictions, ...]
    seeds: tuple[int, ...] | None = None


def table(
    methods: Mapping[str, Runs | Sequence[Predictions]],
    measures: Sequence[str] = MEASURES,
    *,
    by: str = "method",
    alpha: float = 0.05,
    seed: int = 0,
) -> Results:
    """Compare methods that were each run several times, on the same test rows.

    Tests are over runs: paired where both have the same seeds, else Welch's. With one run each they are over rows.

    >>> a = Predictions.from_confidence([0.9, 0.6, 0.8], correct=[1, 0, 1])
    >>> b = Predictions.from_confidence([0.8, 0.7, 0.6], correct=[1, 0, 1])
    >>> results = table({"a": [a], "b": [b]}, ["brier"])
    >>> [(name, round(cells[0].mean, 4), cells[0].best) for name, cells in results.lines.items()]
    [('a', 0.1367, True), ('b', 0.23, False)]
    """
    runs = {name: value if isinstance(value, Runs) else Runs(tuple(value)) for name, value in methods.items()}
    _check(runs, measures)
    first = next(iter(runs.values())).predictions[0]
    columns, definitions = {}, {}
    for spec in measures:
        m, name = resolve(spec)
        m.check_shape(first)
        columns[name] = _column(m, name, runs, seed)
        definitions[name] = m.definition_for(first)
    lines = {group: tuple(column[group] for column in columns.values()) for group in runs}
    return Results(by, tuple(columns), lines, alpha, definitions)


def _check(runs: Mapping[str, Runs], measures: Sequence[str]) -> None:
    if not runs or not measures or not all(group_runs.predictions for group_runs in runs.values()):
        fix = "give at least one run of each method, and one measure"
        raise InputError("table", expected="methods with runs, and measures", got="none", fix=fix)
    first = next(iter(runs.values())).predictions[0]
    for group_runs in runs.values():
        for p in group_runs.predictions:
            same_classes(first, p)


def _column(m: Measure, name: str, runs: Mapping[str, Runs], seed: int) -> dict[str, Cell]:
    cells = {}
    for group, group_runs in runs.items():
        values = tuple(float(m(p)) for p in group_runs.predictions)
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
        cells[group] = Cell(measure=name, values=values, mean=float(np.mean(values)), sd=sd)
    best = _best(m, cells)
    if best is None:
        return cells
    alike = [group for group, cell in cells.items() if cell.mean == cells[best].mean]
    others = [group for group in cells if group not in alike]
    tests = {group: _test(m, runs[best], runs[group], cells[best], cells[group], seed) for group in others}
    chances = {group: p for group, (p, _) in tests.items() if p is not None}
    corrected = dict(zip(chances, holm(np.array(list(chances.values()))).tolist(), strict=True))
    for group in alike:
        cells[group] = replace(cells[group], best=True)
    for group, p in corrected.items():
        cells[group] = replace(cells[group], p_value=p, test=tests[group][1])
    return cells


def _best(m: Measure, cells: Mapping[str, Cell]) -> str | None:
    def cost(value: float) -> float:
        return abs(value - m.ideal) if m.ideal is not None else -value if m.direction == "up" else value

    defined = {group: cell.mean for group, cell in cells.items() if np.isfinite(cell.mean)}
    if m.direction == "none" or len(defined) < 2:
        return None
    return min(defined, key=lambda group: cost(defined[group]))


def _test(m: Measure, a: Runs, b: Runs, of_a: Cell, of_b: Cell, seed: int) -> tuple[float | None, str]:
    """The p-value of a difference, and the name of its test."""
    sizes = len(of_a.values), len(of_b.values)
    if sizes == (1, 1) and a.predictions[0].n == b.predictions[0].n:
        p = compare(a.predictions[0], b.predictions[0], m, seed=seed).p_value
        return (p if np.isfinite(p) else None), "paired test over rows"
    if min(sizes) < 2:
        return None, ""
    x, y = np.array(of_a.values), np.array(of_b.values)
    seeds_a, seeds_b = a.seeds or (), b.seeds or ()
    paired = bool(seeds_a) and sorted(seeds_a) == sorted(seeds_b) and len(set(seeds_a)) == len(seeds_a)
    if paired:
        x, y = x[np.argsort(seeds_a)], y[np.argsort(seeds_b)]
    with np.errstate(all="ignore"):
        p = _t_test(x, y, paired)
        if m.ideal is not None:  # distances from 0 differ if both x - y and x + y do
            p = max(p, _t_test(x - m.ideal, m.ideal - y, paired))
    return (p if np.isfinite(p) else None), "paired t-test over seeds" if paired else "Welch's t-test over runs"


def _t_test(x: Array, y: Array, paired: bool) -> float:
    from scipy import stats

    return float((stats.ttest_rel(x, y) if paired else stats.ttest_ind(x, y, equal_var=False)).pvalue)
