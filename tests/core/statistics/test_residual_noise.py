"""Noise of gathered residuals: weights, clusters, dependence, and the two sides of an interval."""

import numpy as np
import pytest

from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import l1_noise, l2_noise, max_noise
from calibrant.core.statistics.sampling import NoisyValues, Sampling

BINS = 4


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return np.arange(600), rng.integers(0, BINS, 600), rng.normal(0.1, 0.4, 600)


def ends_of(noise):
    """The 95 % interval of an error with this noise."""
    return Estimate(value=noise.centre, noise=noise, bounds=(0, np.inf)).interval()


def spread(field):
    return field.noise.std(axis=0)


def test_standard_errors_are_those_of_a_bootstrap(rows):
    row, bin_of, residual = rows
    field = Sampling(n=600, draws=4000).gather(row, bin_of, residual, BINS)
    rng = np.random.default_rng(1)
    again = [np.bincount(bin_of[i], residual[i], BINS) / 600 for i in rng.integers(0, 600, size=(4000, 600))]
    assert field.value == pytest.approx(np.bincount(bin_of, residual, BINS) / 600)
    assert spread(field) == pytest.approx(np.std(again, axis=0), rel=0.06)


def test_joint_noise_has_the_covariance_of_a_bootstrap():
    """Two entries a row, opposite to each other: bins must not look independent."""
    rng = np.random.default_rng(2)
    residual, first, second = rng.normal(size=500), rng.integers(0, 2, 500), 2 + rng.integers(0, 2, 500)
    row = np.arange(500)
    blocks = [(row, first, residual), (row, second, -residual)]
    field = Sampling(n=500, draws=6000).gather_jointly(blocks, BINS)
    entries = np.zeros((500, BINS))
    for _, place, value in blocks:
        entries[row, place] += value
    again = np.array([entries[i].mean(axis=0) for i in rng.integers(0, 500, size=(6000, 500))])
    assert np.cov(field.noise.T) == pytest.approx(np.cov(again.T), abs=0.08 * again.var(axis=0).max())


def test_whole_weights_are_rows_that_come_together(rows):
    row, bin_of, residual = rows
    weights = np.random.default_rng(3).integers(0, 4, 600)
    weighted = Sampling(n=600, draws=4000, weights=weights).gather(row, bin_of, residual, BINS)
    copies = np.repeat(row, weights)
    repeated = Sampling(n=len(copies), draws=4000, clusters=copies).gather(
        np.arange(len(copies)), bin_of[copies], residual[copies], BINS
    )
    assert weighted.value == pytest.approx(repeated.value, abs=1e-15)
    assert spread(weighted) == pytest.approx(spread(repeated), rel=0.08)


def test_scaling_all_weights_changes_nothing(rows):
    row, bin_of, residual = rows
    weights = np.random.default_rng(4).random(600)
    for clusters in (None, row // 3):
        one, ten = (
            Sampling(n=600, weights=w, clusters=clusters).gather(row, bin_of, residual, BINS)
            for w in (weights, 10 * weights)
        )
        assert one.value == pytest.approx(ten.value, rel=1e-12)
        assert one.noise == pytest.approx(ten.noise, rel=1e-9, abs=1e-15)


def test_copies_in_a_cluster_tell_nothing_new(rows):
    row, bin_of, residual = rows
    copies = np.repeat(row, 4)
    place, value, each = bin_of[copies], residual[copies], np.arange(2400)
    plain = Sampling(n=600, draws=4000).gather(row, bin_of, residual, BINS)
    blind = Sampling(n=2400, draws=4000).gather(each, place, value, BINS)
    clustered = Sampling(n=2400, draws=4000, clusters=copies).gather(each, place, value, BINS)
    assert spread(blind) == pytest.approx(spread(plain) / 2, rel=0.08)
    assert spread(clustered) == pytest.approx(spread(plain), rel=0.08)


def test_one_row_a_cluster_is_the_joint_noise_of_rows(rows):
    row, bin_of, residual = rows
    alone = Sampling(n=600, clusters=row).gather(row, bin_of, residual, BINS)
    paired = Sampling(n=600, paired=True).gather(row, bin_of, residual, BINS)
    assert (alone.noise == paired.noise).all()


def test_rows_in_no_bin_count_only_in_n(rows):
    row, bin_of, residual = rows
    outside = np.where(bin_of == 3, -1, bin_of)
    for rule in (Sampling(n=600), Sampling(n=600, paired=True)):
        field = rule.gather(row, outside, residual, BINS)
        assert field.value[:3] == pytest.approx(np.bincount(bin_of, residual, BINS)[:3] / 600)
        assert field.value[3] == 0


def test_paired_draws_of_a_model_and_itself_cancel(rows):
    row, bin_of, residual = rows
    rule = Sampling(n=600, paired=True)
    a, b = (l1_noise(rule.gather(row, bin_of, residual, BINS)) for _ in range(2))
    assert (a.upper == b.upper).all()


def test_the_sum_is_the_written_construction():
    """docs/methods/intervals.md#intervals-of-binned-errors, gap by gap and draw by draw."""
    rng = np.random.default_rng(5)
    g, s = np.array([0.05, -0.004, 0.0, -0.03]), np.array([0.01, 0.01, 0.02, 0.005])
    noise = rng.standard_normal((500, 4)) * s
    s = np.sqrt((noise**2).mean(axis=0))
    upper, lower, floor = [], [], []
    for draw in noise:
        upper.append(sum(np.sign(g[m]) * draw[m] for m in range(4)))
        lower.append(sum(np.sign(g[m]) * draw[m] if abs(g[m]) / s[m] >= 1 else abs(draw[m]) for m in range(4)))
        floor.append(sum(abs(draw)))
    e = sum(abs(g))
    interval = ends_of(l1_noise(NoisyValues(g, noise)))
    assert interval.high == pytest.approx(e - np.quantile(upper, 0.025))
    assert np.mean(np.array(floor) >= e) < 0.025
    assert interval.low == pytest.approx(e - np.quantile(lower, 0.975))
    assert ends_of(l1_noise(NoisyValues(g / 10, noise))).low == 0  # noise alone makes as much


def test_in_one_bin_all_three_are_the_textbook_interval():
    noise = np.random.default_rng(6).standard_normal((200_000, 1)) * 0.01
    field = NoisyValues(np.array([-0.1]), noise)
    for spread_of_one in (l1_noise(field), l2_noise(field), max_noise(field)):
        output = ends_of(spread_of_one)
        assert (output.low, output.high) == pytest.approx((0.1 - 0.0196, 0.1 + 0.0196), abs=2e-4)


def test_above_only_leaves_out_what_is_below():
    noise = np.random.default_rng(7).standard_normal((2000, 2)) * 0.001
    assert l1_noise(NoisyValues(np.array([0.2, -0.5]), noise), above_only=True).centre == pytest.approx(0.2)


def test_clusters_are_covered_where_rows_alone_are_not():
    """Five rows a cluster share their outcome. Truth: 0.9 is said, 0.8 is true."""
    covered = {"rows": 0, "clusters": 0}
    rng = np.random.default_rng(8)
    for seed in range(200):
        clusters = np.repeat(np.arange(60), 5)
        residual = 0.9 - (rng.random(60) < 0.8)[clusters]
        for name, given in (("rows", None), ("clusters", clusters)):
            rule = Sampling(n=300, draws=300, seed=seed, clusters=given)
            interval = ends_of(l1_noise(rule.gather(np.arange(300), np.zeros(300, dtype=int), residual, 1)))
            covered[name] += interval.low <= 0.1 <= interval.high
    assert covered["clusters"] >= 180
    assert covered["rows"] < 150


def test_the_largest_may_be_where_the_noise_is_largest():
    """0.05 is known to 0.01, 0.04 to 0.05 only: the upper end is that of the second, 0.04 + 1.96 * 0.05."""
    field = NoisyValues(np.array([0.05, -0.04]), np.random.default_rng(0).standard_normal((20_000, 2)) * [0.01, 0.05])
    narrow, wide = (ends_of(max_noise(field, unequal=one)) for one in (False, True))
    assert narrow.high == pytest.approx(0.05 + 1.96 * 0.01, abs=1e-3)
    assert wide.high == pytest.approx(0.04 + 1.96 * 0.05, abs=3e-3)
    assert wide.low == narrow.low
