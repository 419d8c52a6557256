"""What sums lead to: limits, comparisons, figures."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.intervals import check_confidence
from calibrant.core.predictions import Predictions
from calibrant.figures import CATALOGUE, PredictionFigure
from calibrant.measuring.accumulate import Accumulator
from calibrant.measuring.check import Check, judge
from calibrant.measuring.compare import OTHER, Comparison, Difference, compared
from calibrant.measuring.state import RANKING
from calibrant.measuring.streamable import HISTOGRAM, POSITIVE, example
from calibrant.measuring.sums import fine_scores

if TYPE_CHECKING:
    import altair as alt


def check_sums(a: Accumulator, what: str, limit: float, side: Literal["max", "min"], confidence: float) -> Check:
    """A limit for a measure of a stream."""
    check_confidence(confidence)
    if not np.isfinite(limit):
        raise InputError("limit", expected="a number", got=str(limit), fix="write for instance 0.03")
    tail = min(1 - confidence, 0.5)
    m = a.measure(what, confidence=max(1 - 2 * tail, 1e-9))  # two-sided, so that each end has the confidence asked for
    if m.low is None or m.high is None:
        got = m.interval or "undefined on these rows"
        raise InputError(
            what, expected="an interval to compare with the limit", got=got, fix="measure all rows at once"
        )
    state = judge(side, limit, m.low, m.high)
    return Check(what, side, limit, m.value, m.low, m.high, state, m.n, m.k, m.definition)


def check_worse_sums(
    reference: Accumulator, a: Accumulator, what: str, limit: float, confidence: float, seed: int = 0
) -> Check:
    """A limit for the worsening since a reference, as `cal.check_worse` judges it."""
    if not np.isfinite(limit):
        raise InputError("limit", expected="a number", got=str(limit), fix="write for instance 0.01")
    tail = min(1 - confidence, 0.5)
    c = compare_sums(reference, a, what, max(1 - 2 * tail, 1e-9), seed)  # each end has the confidence asked for
    direction = a.made(what).direction
    if direction not in ("down", "up"):
        fix = "ask for ece, nll, brier or accuracy"
        raise InputError(what, expected="a measure that gets worse in one direction", got="another one", fix=fix)
    sign = 1.0 if direction == "down" else -1.0
    low, high = sorted((sign * c.low, sign * c.high))
    worse = sign * c.difference
    low, high = min(low, worse), max(high, worse)
    words = f"{c.definition}; worse than on {reference.n:,} reference rows by"
    return Check(what, "worse", limit, worse, low, high, judge("max", limit, low, high), a.n, a.k, words)


def compare_sums(a: Accumulator, b: Accumulator, what: str, confidence: float, seed: int) -> Comparison:
    """b minus a, each with noise of its own."""
    check_confidence(confidence)
    of_a, of_b = a.measure(what, confidence=confidence, seed=seed), b.measure(what, confidence=confidence, seed=seed)
    if a.shape != b.shape:
        got = f"{a.shape} and {b.shape}"
        raise InputError("compare", expected="predictions of one shape", got=got, fix="compare streams of one kind")
    if a.clustered or b.clustered:
        fix = "compare the predictions with their clusters"
        raise InputError("compare", expected="rows that came one by one", got="rows in clusters", fix=fix)
    tail, spreads = (1 - confidence) / 2, (a.spread(what, seed), b.spread(what, seed + OTHER))
    if spreads[0] is not None and spreads[1] is not None:
        found = Difference.of_spreads(spreads[0], spreads[1], tail)
    else:
        draws = b.draws(what, seed + OTHER) - a.draws(what, seed)
        found = Difference.of_draws(of_b.value - of_a.value, draws, tail)
    made = compared(a.made(what), what, example(a.shape), of_a.value, of_b.value, found, confidence)
    return replace(made, n=a.n, k=a.k, definition=of_a.definition, paired=False, n_b=b.n)


def stand_ins(a: Accumulator) -> Predictions:
    """Two rows for each bin of scores: one for its hits, one for its misses, weighted by how many there were."""
    if a.n == 0:
        raise InputError("accumulator", expected="at least one batch", got="none", fix="call update first")
    fine = a.sums.get(RANKING, a.sums.get(POSITIVE) if a.shape == "binary" else None)
    if fine is not None:
        hits, misses, scores = *fine[:2], fine_scores()
    else:
        count, score, hits = a.sums["histogram"][:3]
        middle = (np.arange(HISTOGRAM) + 0.5) / HISTOGRAM
        misses, scores = count - hits, np.divide(score, count, out=middle, where=count > 0)
    weights = np.concatenate([hits, misses])
    kept = weights > 0
    rows = np.concatenate([scores, scores])[kept], np.repeat([1, 0], len(scores))[kept]
    make = Predictions.binary if a.shape == "binary" else Predictions.from_confidence
    return make(*rows, weights=weights[kept])


def plot_sums(each: Mapping[str, Accumulator], figure: str) -> "alt.TopLevelMixin":
    """A figure of predictions, drawn from sums."""
    made = CATALOGUE.make(figure)
    if not isinstance(made, PredictionFigure):
        fix = "use for instance reliability or risk_coverage"
        raise InputError("plot", expected="a figure of predictions", got=f"'{figure}'", fix=fix)
    return made.chart(made.data({name: stand_ins(one) for name, one in each.items()}))
