"""Means of rows with few values: exact for two of them, equal to a normal interval where rows are many."""

import numpy as np
import pytest
from scipy import stats

from calibrant import Predictions
from calibrant.core.statistics.mean_of_levels import mean_of_levels
from calibrant.core.statistics.shares import clopper_pearson


def rows_of(n, **more):
    rng = np.random.default_rng(0)
    return Predictions.binary(rng.random(n), rng.integers(0, 2, n), **more)


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (7, 30), (29, 30), (30, 30)])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (2, 7), (-3, -1)])
def test_two_values_have_the_interval_of_clopper_and_pearson(hits, n, low, high):
    ends = stats.binomtest(hits, n).proportion_ci(0.9)
    values = np.where(np.arange(n) < hits, high, low).astype(float)
    mean = mean_of_levels(rows_of(n), values, np.array([low, high]))
    assert mean.value == pytest.approx(values.mean())
    assert mean.limits(0.9) == pytest.approx(tuple(low + (high - low) * end for end in ends))
    limits = [end[0] for end in clopper_pearson(np.array([hits / n]), np.array([float(n)]), 0.9)]
    assert limits == pytest.approx(list(ends))


def test_many_rows_have_the_normal_interval():
    values = np.random.default_rng(1).choice([0.0, 1.0, -4.0], 200_000, p=[0.6, 0.3, 0.1])
    mean = mean_of_levels(rows_of(len(values)), values, np.array([0.0, 1.0, -4.0]))
    low, high = mean.limits()
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert (mean.value - low, high - mean.value) == pytest.approx((half, half), rel=0.02)


def test_rows_of_one_cluster_count_as_one():
    values = np.repeat((np.arange(200) % 5 == 0).astype(float), 6)
    together = mean_of_levels(rows_of(1200, clusters=np.arange(1200) // 6), values, np.array([0.0, 1.0]))
    alone = mean_of_levels(rows_of(200), values[::6], np.array([0.0, 1.0]))
    assert together.limits() == pytest.approx(alone.limits(), rel=0.01)
    unseen = mean_of_levels(rows_of(1200, clusters=np.arange(1200) // 6), np.zeros(1200), np.array([0.0, 1.0]))
    assert unseen.limits()[1] == pytest.approx(1 - 0.025 ** (1 / 200), rel=0.02)


def test_unequal_weights_make_it_wider():
    values = (np.arange(300) % 10 == 0).astype(float)
    weights = np.random.default_rng(2).gamma(0.5, 2, 300)
    plain, weighed = (
        mean_of_levels(p, values, np.array([0.0, 1.0])) for p in (rows_of(300), rows_of(300, weights=weights))
    )
    assert weighed.value == pytest.approx(np.average(values, weights=weights))
    (low, high), (low_plain, high_plain) = weighed.limits(), plain.limits()
    assert high - low > 1.3 * (high_plain - low_plain) * weighed.value / plain.value
