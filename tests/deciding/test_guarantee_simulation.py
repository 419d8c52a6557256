"""How often guarantees fail, over 1,000 sets in each of 12 settings, and how many rows are answered: `make slow`.

The numbers are those of docs/methods/deciding.md#how-often-the-guarantee-fails.
"""

import numpy as np
import pytest

import calibrant as cal
from calibrant import Predictions
from calibrant.core.curves.curve import Curve
from calibrant.core.statistics.error_guarantee import answered_rows, at_least

pytestmark = pytest.mark.slow
SETS, DELTA = 1000, 0.05


def beta(rng, n):
    """Calibrated confidences, most of them high."""
    s = rng.beta(5, 1.2, n)
    return s, rng.random(n) < s


def rounded(rng, n):
    """The same with two decimals: many ties."""
    s, y = beta(rng, n)
    return np.round(s, 2), y


def overconfident(rng, n):
    """Scores that promise too much, in the right order."""
    s = rng.beta(5, 1.2, n)
    return np.sqrt(s), rng.random(n) < s


def misranked(rng, n):
    """The surest tenth is wrong half of the time: the order misleads."""
    s = rng.random(n)
    return s, rng.random(n) < np.where(s > 0.9, 0.5, 0.97)


def flat(rng, n):
    """No score tells anything, and all rows err at the bound of 10 %: nothing may be answered."""
    return rng.random(n), rng.random(n) < 0.9


SETTINGS = [
    *((beta, n, r) for n in (500, 2000, 10_000) for r in (0.05, 0.1)),
    (rounded, 2000, 0.1),
    (overconfident, 2000, 0.1),
    (misranked, 2000, 0.1),
    (misranked, 500, 0.2),
    (flat, 500, 0.1),
    (flat, 5000, 0.1),
]
KNOWN = {(500, 0.05): 0.012, (2000, 0.05): 0.093, (10_000, 0.05): 0.244}
KNOWN |= {(500, 0.1): 0.254, (2000, 0.1): 0.488, (10_000, 0.1): 0.567}


def true_errors(kind):
    """Scores of a large sample in descending order, and the error rate of all rows that reach each."""
    s, y = kind(np.random.default_rng(99), 2_000_000)
    order = np.argsort(-s, kind="stable")
    return s[order], np.cumsum(~y[order]) / np.arange(1, len(s) + 1)


@pytest.mark.parametrize(("kind", "n", "r"), SETTINGS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_the_guarantee_fails_at_most_as_often_as_it_may(kind, n, r, record_property):
    scores, errors = true_errors(kind)
    rng, failed, shares = np.random.default_rng(0), 0, []
    for _ in range(SETS):
        s, y = kind(rng, n)
        found = answered_rows(Curve.sort(s, y), r, 1 - DELTA)
        shares.append(found.share)
        if found.threshold is not None:
            failed += errors[np.searchsorted(-scores, -found.threshold, side="right") - 1] > r + 3e-4
    print(f"\n{kind.__name__} n={n} r={r}: failed {failed / SETS:.3f}, answered {np.mean(shares):.3f}")
    assert failed / SETS <= DELTA
    if kind is beta:
        spread = 3 * np.std(shares) / np.sqrt(200)  # the known numbers are means of 200 sets
        assert np.mean(shares) == pytest.approx(KNOWN[n, r], rel=0.1, abs=spread)


def test_precision_fails_at_most_as_often_as_it_may():
    rng, failed, shares = np.random.default_rng(1), 0, []
    s = np.random.default_rng(9).beta(1, 4, 2_000_000)
    for _ in range(SETS):
        score = rng.beta(1, 4, 3000)
        p = Predictions.binary(score, (rng.random(3000) < score).astype(int))
        d = cal.decide(p, min_precision=0.5)
        shares.append(d.answered.share)
        if d.possible:
            failed += s[at_least(s, d.threshold)].mean() < 0.5 - 3e-4
    print(f"\nprecision: failed {failed / SETS:.3f}, called {np.mean(shares):.3f}")
    assert failed / SETS <= DELTA


@pytest.mark.parametrize(("rate", "n"), [(0.1, 2000), (0.02, 5000), (0.4, 500)])
def test_the_interval_of_the_cost_holds_the_true_cost(rate, n):
    """fn=20,fp=1, normal intervals, over 1,000 sets: too narrow where a cost rests on a few rows, which is told."""
    rng, held, told = np.random.default_rng(2), 0, 0
    big = np.random.default_rng(3).beta(1, 1 / rate - 1, 2_000_000)
    truth = np.where(big >= 1 / 21, 1 - big, 20 * big).mean()
    for _ in range(SETS):
        s = rng.beta(1, 1 / rate - 1, n)
        d = cal.decide(Predictions.binary(s, (rng.random(n) < s).astype(int)), cost="fn=20,fp=1")
        held += d.costs[0].low <= truth <= d.costs[0].high
        told += bool(d.notes)
    print(f"\ncost rate={rate} n={n}: held {held / SETS:.3f}, told to be too narrow {told / SETS:.3f}")
    assert held / SETS >= 0.92 or told / SETS > 0.5
