"""How often guarantees fail, over 1,000 sets in each setting, and how many rows are answered: `make slow`.

The numbers are those of docs/methods/deciding.md#how-often-the-guarantee-fails.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import calibrant as cal
from calibrant import Predictions
from calibrant.core.curves.curve import Curve
from calibrant.core.statistics.clustered_guarantee import answered_clusters
from calibrant.core.statistics.error_guarantee import answered_rows, at_least
from calibrant.deciding.cost_lines import mean_cost
from calibrant.deciding.costs import read_rule

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
        answered = answered_rows(Curve.sort(s, y), r, 1 - DELTA)
        shares.append(answered.share)
        if answered.threshold is not None:
            failed += errors[np.searchsorted(-scores, -answered.threshold, side="right") - 1] > r + 3e-4
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


CLUSTERED = [  # kind, clusters, rows of each on average, how far rows of one agree, bound
    *(("flat", 200, 10, c, 0.1) for c in (0.0, 0.5, 0.95)),
    *(("beta", 300, 10, c, 0.1) for c in (0.0, 0.5, 0.95)),
    ("beta", 2000, 2, 0.5, 0.05),
    ("uneven", 1000, 4, 0.9, 0.15),
]


def clustered_answers(rng, kind, clusters, size, agree):
    """Confidences, whether they are right, and clusters: rows of one agree by normal numbers behind their outcomes.

    flat: no score tells anything, and 10.1 % err, more than the bound; beta: calibrated, and rows of a cluster are
    alike; uneven: large clusters err more than their scores say.
    """
    sizes = 1 + rng.geometric(1 / size, clusters) if kind == "uneven" else np.full(clusters, size)
    cluster = np.repeat(np.arange(clusters), sizes)
    n = len(cluster)
    if kind == "flat":
        s, right = rng.random(n), np.full(n, 0.899)
    elif kind == "beta":
        s = right = ndtr(1.2 + 0.7 * rng.normal(size=clusters)[cluster] + 0.7 * rng.normal(size=n))
    else:
        s = rng.beta(5, 1.2, n)
        right = np.clip(s - 0.1 * (np.minimum(sizes[cluster] / size, 3) - 1), 0, 1)
    noise = np.sqrt(agree) * rng.normal(size=clusters)[cluster] + np.sqrt(1 - agree) * rng.normal(size=n)
    return s, noise < ndtri(right), cluster


@pytest.mark.parametrize(("kind", "clusters", "size", "agree", "r"), CLUSTERED)
def test_the_guarantee_of_clusters_fails_at_most_as_often_as_it_may(kind, clusters, size, agree, r):
    """As if rows were independent, it would fail in .5 to 23 % of the sets: the clusters do matter here."""
    big, right, _ = clustered_answers(np.random.default_rng(99), kind, 2_000_000 // size, size, agree)
    order = np.argsort(-big, kind="stable")
    scores, errors = big[order], np.cumsum(~right[order]) / np.arange(1, len(big) + 1)

    def fails(threshold):
        return threshold is not None and errors[np.searchsorted(-scores, -threshold, side="right") - 1] > r + 5e-4

    rng, failed, naive, shares = np.random.default_rng(0), 0, 0, []
    for _ in range(SETS):
        s, right, cluster = clustered_answers(rng, kind, clusters, size, agree)
        curve = Curve.sort(s, right)
        answered = answered_clusters(curve, cluster[curve.order], r, 1 - DELTA)
        failed += fails(answered.threshold)
        naive += fails(answered_rows(curve, r, 1 - DELTA).threshold)
        shares.append(answered.share)
    line = f"failed {failed / SETS:.3f}, answered {np.mean(shares):.3f}; as independent rows failed {naive / SETS:.3f}"
    print(f"\n{kind} {clusters} x {size} agree={agree} r={r}: {line}")
    assert failed / SETS <= DELTA


def clustered_rows(rng, n, rate):
    """Ten rows a cluster with scores near each other and outcomes that agree: correlated far beyond their scores."""
    centre = np.repeat(rng.normal(size=n // 10), 10)
    s = ndtr(ndtri(rate) * 1.5 + centre * 0.8 + 0.8 * rng.normal(size=n))
    shared, own = np.repeat(rng.normal(size=n // 10), 10), rng.normal(size=n)
    return s, (np.sqrt(0.5) * shared + np.sqrt(0.5) * own < ndtri(s)).astype(int)


COSTS = [(0.1, 2000, "fn=20,fp=1"), (0.02, 5000, "fn=20,fp=1"), (0.4, 500, "fn=20,fp=1"), (0.4, 150, "fn=20,fp=1")]
COSTS += [(0.4, 60, "fn=20,fp=1"), (0.1, 1000, "fn=500,fp=1"), (0.02, 500, "fn=50,fp=1"), (0.3, 10_000, "fn=5,fp=1")]


@pytest.mark.parametrize("data", ["rows", "weights", "clusters"])
@pytest.mark.parametrize(("rate", "n", "cost"), COSTS)
def test_the_interval_of_the_cost_holds_the_true_cost(rate, n, cost, data):
    """Also where less than one missed positive is expected, where a normal interval holds .84 to .90 of the time."""
    rng, rule = np.random.default_rng(2), read_rule(cost)

    def draw(rng, n):
        if data == "clusters":
            return clustered_rows(rng, n, rate)
        s = rng.beta(1, 1 / rate - 1, n)
        return s, (rng.random(n) < s).astype(int)

    big = Predictions.binary(draw(np.random.default_rng(3), 2_000_000)[0], None)
    truth = rule.expected(big, rule.policy(big)).mean()
    covered, few = 0, 0.0
    for _ in range(SETS):
        s, y = draw(rng, n)
        more = {"clusters": np.arange(n) // 10} if data == "clusters" else {}
        more |= {"weights": rng.gamma(4, 0.25, n)} if data == "weights" else {}
        p = Predictions.binary(s, y, **more)
        chosen = rule.policy(p)
        low, high = mean_cost(rule, p, chosen).limits()
        covered += low <= truth <= high
        few += ((chosen == 0) & (y == 1)).sum() / SETS
    print(f"\ncost rate={rate} n={n} {cost} {data}: misses {few:.2f}, held {covered / SETS:.3f}")
    assert covered / SETS >= 0.93
