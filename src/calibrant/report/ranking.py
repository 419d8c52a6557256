"""Several models on the same rows: from the best down, and which differences are more than noise."""

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.measures._compare import Comparison
from calibrant.report import shown
from calibrant.report.draws import Draws, compared
from calibrant.report.values import Pair, Ranking

BY = "nll"  # proper: it rewards being right and being honest at once


def rank(
    models: Mapping[str, Predictions],
    *,
    ece: str,
    resamples: int,
    seed: int,
    on_step: Callable[[str], None] | None = None,
) -> Ranking:
    """Order by the loss; test every pair on the same resampled rows, one measure at a time."""
    measures = (BY, ece, "accuracy", "auroc")
    drawn = {}
    for name, p in models.items():
        if on_step:
            on_step(name)
        drawn[name] = Draws.of(p, dict.fromkeys(measures, resamples), seed)
    order = tuple(sorted(models, key=lambda name: drawn[name].values[BY]))
    first = next(iter(models.values()))
    pairs = tuple(Pair(a, b, compared(drawn[a], drawn[b], first)) for a, b in combinations(order, 2))
    return Ranking(BY, order, pairs, _words(order, pairs, first.n))


def _words(order: tuple[str, ...], pairs: tuple[Pair, ...], n: int) -> str:
    top = [pair for pair in pairs if pair.a == order[0]]
    told = [pair.b for pair in top if pair.changes[0].better == "a"]
    if len(told) == len(top):
        words = f"{order[0]} has the lowest loss, beyond noise against every other."
    elif not told:
        words = (
            f"{order[0]} has the lowest loss, but these rows cannot tell it from {shown.listed([p.b for p in top])}."
        )
    else:
        tied = [pair.b for pair in top if pair.b not in told]
        words = (
            f"{order[0]} has the lowest loss; these rows cannot tell it from {shown.listed(tied)}, "
            f"and it beats {shown.listed(told)}."
        )
    by_ece = _best(pairs, 1)
    if by_ece is not None and by_ece != order[0]:
        words += f" The best calibrated is {by_ece}."
    open_pair = next((pair for pair in top if pair.changes[0].better == "neither"), None)
    return words + (_more_rows(open_pair, n) if open_pair else "")


def _best(pairs: tuple[Pair, ...], at: int) -> str | None:
    """The model that no other beats in the measure at this place, if it beats some other."""
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
