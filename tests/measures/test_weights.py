"""Weights: whole numbers count rows, scaling changes nothing, and intervals follow clusters."""

import numpy as np
import pytest
from synthetic import any_classes

from calibrant import Predictions, compare, measure, measures
from calibrant.core.curves.binning import Binning

N, K = 60, 3
CROSS_FITTED = {"refinement", "calibration"}  # their folds deal rows, not weights
NAMES = [name for name in measures.CATALOGUE.names() if name not in CROSS_FITTED]
SPECS = [
    *NAMES,
    *(
        f"{name}:scheme=mass,mass_rule={mass_rule},bins=4"
        for name in ("ece", "classwise")
        for mass_rule in ("sort", "midpoint", "interp", "stride")
    ),
]


def rows(seed, task):
    rng = np.random.default_rng(seed)
    z = np.round(rng.normal(size=(N, K)) * 2, 1)  # with ties
    z[::7] = z[0]
    y, w = rng.integers(0, K, N), rng.integers(0, 4, N)
    if task == "multiclass":
        return lambda i, w=None: Predictions.from_logits(z[i], y[i], weights=w), w
    return lambda i, w=None: Predictions.binary(z[i, 0], y[i] == 1, logits=True, weights=w), w


@pytest.mark.parametrize("task", ["multiclass", "binary"])
@pytest.mark.parametrize("what", SPECS)
def test_whole_weights_are_repeated_rows(what, task):
    if task == "multiclass" and what not in any_classes(SPECS):
        pytest.skip("reads two classes")
    build, w = rows(1, task)
    everyone = np.arange(N)
    weighted, repeated = build(everyone, w), build(np.repeat(everyone, w))
    m = measures.make(what)
    assert m(weighted) == pytest.approx(m(repeated), abs=1e-12)
    assert m(build(everyone, 2 * w)) == m(weighted)


@pytest.mark.parametrize("what", NAMES)
def test_scaling_weights_changes_nothing(what):
    build, _ = rows(2, "multiclass" if what in any_classes(NAMES) else "binary")
    w = np.random.default_rng(5).random(N) + 0.1
    m = measures.make(what)
    value = m(build(np.arange(N), w))
    assert value == pytest.approx(m(build(np.arange(N), 1000 * w)), rel=1e-10)
    assert np.isfinite(value)
    assert m(build(np.arange(N), np.full(N, 0.3))) == m(build(np.arange(N)))


def test_equal_weight_bins_hold_equal_weight():
    build, _ = rows(3, "multiclass")
    w = np.random.default_rng(6).random(N) + 0.1
    bins = build(np.arange(N), w).curve.bins(Binning(7, "mass"))
    np.testing.assert_allclose(bins.count, bins.n / 7)
    assert bins.outcome_sum.sum() == pytest.approx(build(np.arange(N), w).curve.outcome_sum[-1])


@pytest.mark.parametrize("what", ["ece", "brier", "auroc_correct", "classwise"])
def test_rows_that_are_their_own_clusters_are_the_ordinary_bootstrap(what):
    rng = np.random.default_rng(4)
    z, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    alone, plain = (Predictions.from_logits(z, y, clusters=c) for c in (np.arange(200), None))
    if what in ("brier", "auroc_correct"):  # by resampled rows: the same draws
        assert measure(alone, what, resamples=50) == measure(plain, what, resamples=50)
    a, b = measure(alone, what), measure(plain, what)
    assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=0.02)


def test_copies_in_one_cluster_widen_the_interval():
    rng = np.random.default_rng(5)
    z, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    many = np.repeat(np.arange(100), 9)
    plain, together = (Predictions.from_logits(z[many], y[many], clusters=c) for c in (None, many))
    once = Predictions.from_logits(z, y)
    for what in ("brier", "nll"):
        wide, narrow, true = (measure(p, what) for p in (together, plain, once))
        assert wide.high - wide.low == pytest.approx(true.high - true.low, rel=0.15)
        assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)
    other = Predictions.from_logits(z[many] * 2, y[many], clusters=many)
    clustered, apart = (
        compare(together, other, "nll"),
        compare(plain, Predictions.from_logits(z[many] * 2, y[many]), "nll"),
    )
    assert clustered.high - clustered.low > 2 * (apart.high - apart.low)
