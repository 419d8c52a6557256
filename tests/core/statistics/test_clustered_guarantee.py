"""Rows in clusters answered with a guarantee: a slow second implementation, ties, and how much clusters cost."""

import numpy as np
import pytest

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import WeightedCurve
from calibrant.core.statistics.clustered_guarantee import BETS, answered_clusters
from calibrant.core.statistics.error_guarantee import answered_rows, at_least


def rows(clusters, size, seed=0, digits=None):
    """Scores, whether they are right, and clusters whose rows agree by half."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rng.integers(1, 2 * size, clusters))
    s = rng.beta(5, 1.2, len(cluster))
    shared = rng.random(clusters)[cluster]
    y = np.where(rng.random(len(s)) < 0.5, shared, rng.random(len(s))) < s
    return (s if digits is None else np.round(s, digits)), y, cluster


def slow(scores, correct, cluster, weights, most, confidence):
    """Which rows, by loops over thresholds and clusters."""
    alpha, n = (1 - confidence) / 4, len(scores)
    ascending = np.sort(scores)
    fewest = int(np.ceil(np.log(alpha / len(BETS)) / np.log(1 - most)))
    first = sorted({c: i for i, c in reversed(list(enumerate(cluster[np.argsort(-scores)])))}.values())
    least = first[fewest - 1] + 1 if fewest <= len(first) else n

    def evidence(reached):
        weight = {c: weights[reached & (cluster == c)].sum() for c in set(cluster[reached])}
        wrong = {c: weights[reached & ~correct & (cluster == c)].sum() for c in weight}
        most_weight = max(weight.values())
        excess = np.array([(wrong[c] - most * weight[c]) / (most_weight * (1 - most)) for c in weight])
        return np.mean([np.prod(1 - bet * excess) for bet in BETS])

    best, step = np.zeros(n, dtype=bool), max(1, round(n / 100))
    for j in range(4):
        start = n - int(np.ceil(least * (n / least) ** (j / 3) - 1e-9))
        for row in [start, *range((start - 1) // step * step, -1, -step)]:
            reached = scores >= ascending[row]
            if evidence(reached) < 1 / alpha:
                break
            best |= reached
    return best


@pytest.mark.parametrize("most", [0.1, 0.2])
@pytest.mark.parametrize(("clusters", "size", "digits"), [(150, 2, None), (120, 4, None), (120, 4, 2), (20, 3, None)])
def test_a_slow_version_answers_the_same_rows(clusters, size, digits, most):
    s, y, cluster = rows(clusters, size, seed=clusters, digits=digits)
    if digits is None:
        s[:3] = s[3]  # some ties
    curve = Curve.sort(s, y)
    answered = answered_clusters(curve, cluster[curve.order], most, 0.9)
    expected = slow(s, y, cluster, np.ones(len(s)), most, 0.9)
    assert at_least(s, answered.threshold).tolist() == expected.tolist()
    assert (answered.n, answered.errors) == (expected.sum(), (expected & ~y).sum())


def test_weights_that_are_shares_count():
    s, y, _ = rows(400, 1, seed=3)
    w = np.random.default_rng(3).gamma(4, 0.25, len(s))
    w[np.argmax(s)] = w.max()  # the slow version takes the largest weight of answered rows
    answered = answered_clusters(WeightedCurve.weigh(s, y, w), None, 0.2, 0.9)
    expected = slow(s, y, np.arange(len(s)), w, 0.2, 0.9)
    assert expected.any()
    assert at_least(s, answered.threshold).tolist() == expected.tolist()
    assert answered.share == pytest.approx(w[expected].sum() / w.sum())
    scaled = answered_clusters(WeightedCurve.weigh(s, y, 1e6 * w), None, 0.2, 0.9)
    assert (scaled.threshold, scaled.share) == (answered.threshold, pytest.approx(answered.share))


def test_clusters_of_one_row_answer_nearly_as_much_as_counted_rows():
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.2, 5000)
    curve = Curve.sort(s, rng.random(5000) < s)
    counted, alone = answered_rows(curve, 0.1, 0.95), answered_clusters(curve, np.arange(5000), 0.1, 0.95)
    assert 0.8 * counted.share < alone.share < counted.share


def test_too_few_clusters_say_how_many_rows_would_be_needed():
    perfect = Curve.sort(np.linspace(0.5, 1, 300), np.ones(300))
    few = answered_clusters(perfect, np.arange(300) // 10, 0.05, 0.95)
    assert (few.threshold, few.n, few.share) == (None, 0.0, 0.0)
    assert 1000 < few.rows_needed < 2000  # 30 clusters; without an error ln(0.0125) / ln(0.95) = 85 are the least
    wrong = Curve.sort(np.linspace(0.5, 1, 300), np.arange(300) % 2)
    assert answered_clusters(wrong, np.arange(300) // 10, 0.05, 0.95).rows_needed is None
