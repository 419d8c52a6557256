"""Rank several models on the same rows, each with its recommended calibration, and test their differences."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.measures import make
from calibrant.measuring.compare import Comparison
from calibrant.measuring.shared_estimates import SharedEstimates
from calibrant.repairing.rule import UNCALIBRATED
from calibrant.reporting.contents_by_task import refinement
from calibrant.reporting.options import OnStep
from calibrant.reporting.parts import Model, Pair, Ranking

BY = "nll"  # proper: it rewards being right and being calibrated at once


def rank(
    before: Mapping[str, Predictions],
    after: Mapping[str, Predictions],
    *,
    ece: str,
    resamples: int,
    seed: int,
    on_step: OnStep | None = None,
) -> Ranking:
    """Rank models by their loss with the recommended calibration; test every pair on the same resampled rows."""
    measures = (BY, ece, "accuracy", refinement(next(iter(after.values())).task))
    models = {}
    for name, p in after.items():
        if on_step:
            on_step(name)
        models[name] = SharedEstimates.of(p, measures, resamples, seed)
    later = {name: models[name].estimates[BY].value for name in after}
    sooner = {name: make(BY)(p) for name, p in before.items()}
    order = tuple(sorted(after, key=lambda name: later[name]))
    pairs = tuple(
        Pair(a, b, tuple(models[a].compare(models[b], measure) for measure in measures))
        for a, b in combinations(order, 2)
    )
    return Ranking(BY, order, pairs, _words(order, pairs, sooner, later, next(iter(after.values())).n))


def cheapest(models: Sequence[Model]) -> str:
    """A line on which model costs least with its recommended calibration; nothing without costs."""
    costs = {}
    for m in models:
        if m.cost is None:
            return ""
        costs[m.name] = next(row for row in m.cost.rows if row.calibrator == m.best)
    first, second, *_ = sorted(costs, key=lambda name: costs[name].actual_cost)
    least, next_least = costs[first].actual_cost, costs[second].actual_cost
    with_map = "" if costs[first].calibrator == UNCALIBRATED else f" with {costs[first].calibrator}"
    if costs[first].high < costs[second].low:  # on the same rows: intervals that do not meet are more than enough
        against = f", {100 * (1 - least / next_least):.0f} % less than the next, {second}"
    else:
        against = f"; the intervals of {second} and of this one overlap, so which is cheaper is inconclusive"
    return f"The lowest cost is that of {first}{with_map}, {fmt.number(least)} per row{against}."


def _words(
    order: tuple[str, ...], pairs: tuple[Pair, ...], sooner: Mapping[str, float], later: Mapping[str, float], n: int
) -> str:
    top = [pair for pair in pairs if pair.a == order[0]]
    tied = [pair.b for pair in top if pair.changes[0].better != "a"]
    numbers = f"NLL {fmt.number(later[order[0]])}, uncalibrated {fmt.number(sooner[order[0]])}"
    words = f"With the calibration recommended for each, {order[0]} has the lowest loss ({numbers})"
    if not tied:
        words += f"; next is {order[1]} (NLL {fmt.number(later[order[1]])})."
    else:
        words += f"; the difference from {fmt.list_words(tied)} is inconclusive."
    ahead = min(sooner, key=lambda name: sooner[name])
    if ahead != order[0]:
        words += (
            f" Uncalibrated, {ahead} is ahead (NLL {fmt.number(sooner[ahead])}, calibrated {fmt.number(later[ahead])})."
        )
    by_ece = _best(pairs, 1)
    if by_ece is not None and by_ece != order[0]:
        words += f" The smallest calibration error (ECE) after calibration has {by_ece}."
    open_pair = next((pair for pair in top if pair.changes[0].better == "neither"), None)
    return words + (_more_rows(open_pair, n) if open_pair else "")


def _best(pairs: tuple[Pair, ...], at: int) -> str | None:
    """The model that no other beats in this measure, if it beats some other."""
    wins: dict[str, int] = {}
    for pair in pairs:
        side = pair.changes[at].better
        if side != "neither":
            winner, loser = (pair.a, pair.b) if side == "a" else (pair.b, pair.a)
            wins[winner] = wins.get(winner, 0) + 1
            wins[loser] = wins.get(loser, 0) - len(pairs)
    return max(wins, key=lambda name: wins[name]) if wins and max(wins.values()) > 0 else None


def _more_rows(pair: Pair, n: int) -> str:
    c: Comparison = pair.changes[0]
    half = (c.high - c.low) / 2
    if not np.isfinite(half) or c.difference == 0:
        return ""
    wanted = n * (half / c.difference) ** 2
    if wanted > 100 * n:
        return f" Between {pair.a} and {pair.b} the difference is too small to matter here."
    step = 10 ** max(0, len(str(int(wanted))) - 2)
    more = int(np.ceil(max(wanted - n, 1) / step) * step)
    return f" About {more:,} more rows would settle {pair.a} against {pair.b}."
