"""Density-ratio calibration against loops, scikit-learn and scipy; groups by proximity; bad inputs."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.predictions import Predictions
from calibrant.repairing.proximity_groups import FittedProximityGroups, ProximityGroups
from calibrant.rescorers import density_ratio
from calibrant.rescorers.density_ratio import (
    DensityRatio,
    FittedDensityRatio,
    bandwidth,
    density,
    proximity,
)


def rows(n, k=3, d=4, seed=0):
    """Rows far from the middle are wrong more often than they say: proximity tells something confidence does not."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    logits = 2 * rng.normal(size=(n, k))
    noise = 0.3 + np.linalg.norm(x, axis=1, keepdims=True)
    labels = (logits + noise * rng.gumbel(size=(n, k))).argmax(axis=1)
    return Predictions.from_logits(2 * logits, labels, features=x)


def slow_proximity(x, known, neighbours, itself):
    results = []
    for i, one in enumerate(x):
        others = [float(np.linalg.norm(one - b)) for j, b in enumerate(known) if not (itself and i == j)]
        results.append(np.exp(-np.mean(sorted(others)[:neighbours])))
    return np.array(results)


def slow_confidence(val, p, neighbours=10):
    """docs/methods/calibrators.md#density_ratio, one kernel at a time."""
    d_val = slow_proximity(val.features, val.features, neighbours, itself=True)
    d = slow_proximity(p.features, val.features, neighbours, itself=False)
    points = list(zip(val.confidence, d_val, val.correct, strict=True))

    def f(c, near, right):
        mine = np.array([(a, b) for a, b, hit in points if hit == right])
        h = 1.06 * mine.std(axis=0) * len(mine) ** (-1 / 6)
        total = 0.0
        for a, b in mine:
            one = np.exp(-0.5 * ((c - a) / h[0]) ** 2) / (np.sqrt(2 * np.pi) * h[0])
            other = np.exp(-0.5 * ((near - b) / h[1]) ** 2) / (np.sqrt(2 * np.pi) * h[1])
            total += one * other
        return total / len(mine)

    ratio = (~val.correct).sum() / val.correct.sum()
    q = []
    for c, near in zip(p.confidence, d, strict=True):
        f1, f0 = f(c, near, True), f(c, near, False)
        q.append(f1 / max(f1 + f0 * ratio, 1e-10))
    return np.array(q)


@pytest.mark.parametrize("neighbours", [1, 10])
def test_confidences_are_those_of_a_loop(neighbours):
    val, p = rows(80, seed=1), rows(40, seed=2)
    fitted = DensityRatio(neighbours=neighbours).fit(val)
    np.testing.assert_allclose(fitted.predict(p).confidence, slow_confidence(val, p, neighbours), rtol=1e-9)


def test_proximity_is_that_of_scikit_learns_neighbours():
    neighbors = pytest.importorskip("sklearn.neighbors")
    known, x = rows(300, seed=1).features, rows(100, seed=2).features
    fitted = neighbors.NearestNeighbors(n_neighbors=10).fit(known)
    np.testing.assert_allclose(proximity(x, known), np.exp(-fitted.kneighbors(x)[0].mean(1)), rtol=1e-9)
    without_itself = fitted.kneighbors()[0]  # scikit-learn leaves a row itself out when none is given
    np.testing.assert_allclose(proximity(known, known, among_known=True), np.exp(-without_itself.mean(1)), rtol=1e-9)


def test_the_density_is_scipys_for_a_diagonal_covariance():
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    points, at, widths = rng.normal(size=(50, 2)), rng.normal(size=(20, 2)), np.array([0.3, 0.7])
    expected = [np.mean(multivariate_normal(one, np.diag(widths**2)).pdf(points)) for one in at]
    np.testing.assert_allclose(density(at, points, widths), expected, rtol=1e-10)


def test_the_density_is_the_same_in_one_chunk_and_in_many(monkeypatch):
    rng = np.random.default_rng(0)
    points, at, widths = rng.normal(size=(70, 2)), rng.normal(size=(33, 2)), np.array([0.3, 0.7])
    whole = density(at, points, widths)
    monkeypatch.setattr(density_ratio, "CHUNK_ELEMENTS", 100)
    np.testing.assert_allclose(density(at, points, widths), whole, rtol=1e-12)


def test_a_large_set_needs_little_memory():
    import tracemalloc

    rng = np.random.default_rng(0)
    points, at = rng.normal(size=(6000, 2)), rng.normal(size=(3000, 2))
    tracemalloc.start()
    density(at, points, np.array([0.3, 0.3]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # the whole matrix would be 144 MB


def test_duplicates_are_neighbours_too():
    x = np.array([[0.0], [0.0], [1.0], [5.0]])
    np.testing.assert_allclose(-np.log(proximity(x, x, 1, among_known=True)), [0, 0, 1, 4], atol=1e-12)


def test_it_repairs_what_confidence_alone_cannot():
    val, test = rows(3000, seed=3), rows(3000, seed=4)
    fitted = DensityRatio().fit(val).predict(test)
    ece, auroc = cal.measures.make("ece"), cal.measures.make("auroc_correct")
    assert ece(fitted) < 0.5 * ece(test)
    assert auroc(fitted) > auroc(test)
    np.testing.assert_array_equal(fitted.predicted, test.predicted)
    assert np.all((fitted.confidence >= 0) & (fitted.confidence <= 1))


def test_where_nothing_was_seen_nothing_is_trusted():
    val, p = rows(200, seed=1), rows(50, seed=2)
    fitted = DensityRatio().fit(val)
    assert fitted.confidence([0.99], [50.0]) == 0
    wide = Predictions.from_logits(p.logits, p.labels, features=1e4 * p.features)
    q = fitted.predict(wide).confidence  # exp(-distance) is 0
    np.testing.assert_allclose(q, fitted.confidence(p.confidence, np.zeros(50)))


def test_axes_that_do_not_vary():
    val = rows(60, seed=1)
    same = Predictions.from_probs(np.tile([0.6, 0.2, 0.2], (60, 1)), val.labels, features=val.features)
    q = DensityRatio().fit(same).predict(rows(10, seed=2)).confidence
    assert np.isfinite(q).all()
    flat = Predictions.from_logits(val.logits, val.labels, features=np.zeros((60, 2)))
    p = Predictions.from_logits(rows(10, seed=2).logits, [0] * 10, features=np.zeros((10, 2)))
    assert np.isfinite(DensityRatio().fit(flat).predict(p).confidence).all()
    one = np.array([[0.5, 0.5]])
    np.testing.assert_allclose(bandwidth(one, np.array([0.1, 0.0])), [0.106, 1.06])


def test_a_single_wrong_row_is_enough():
    val = rows(60, seed=1)
    labels = val.predicted.copy()
    labels[0] = (labels[0] + 1) % 3
    one_wrong = Predictions.from_logits(val.logits, labels, features=val.features)
    q = DensityRatio().fit(one_wrong).predict(rows(30, seed=2)).confidence
    assert np.isfinite(q).all()
    assert np.median(q) > 0.9


def test_rows_of_the_fit_are_noticed():
    val = rows(100, seed=1)
    fitted = DensityRatio().fit(val)
    with pytest.warns(LeakWarning, match="optimistic"):
        assert fitted.predict(val).row_data.seen == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.predict(rows(100, seed=2)).row_data.seen == 0


def test_save_and_load(tmp_path):
    val, p = rows(100, seed=1), rows(50, seed=2)
    fitted = DensityRatio(neighbours=7).fit(val)
    fitted.save(tmp_path / "ratio.npz")
    again = FittedDensityRatio.load(tmp_path / "ratio.npz")
    assert again.neighbours == 7
    np.testing.assert_array_equal(again.predict(p).confidence, fitted.predict(p).confidence)
    groups = ProximityGroups("histogram", groups=3).fit(val)
    groups.save(tmp_path / "groups.npz")
    np.testing.assert_array_equal(
        FittedProximityGroups.load(tmp_path / "groups.npz").predict(p).probs, groups.predict(p).probs
    )
    with pytest.raises(InputError, match=r"a fitted DensityRatio .* got ProximityGroups"):
        FittedDensityRatio.load(tmp_path / "groups.npz")


# -- groups by proximity ----------------------------------------------------------------------------


def test_groups_are_equal_shares_with_a_map_each():
    val, test = rows(1000, seed=1), rows(500, seed=2)
    fitted = ProximityGroups("temperature", groups=4).fit(val)
    assert set(fitted.map.groups) == {"0", "1", "2", "3"}
    assert fitted.map.groups["0"].parameters["T"] > fitted.map.groups["3"].parameters["T"]  # far rows are worse
    calibrated = fitted.predict(test)
    near = np.searchsorted(fitted.edges, proximity(test.features, val.features), side="right")
    for group in range(4):
        mine = np.flatnonzero(near == group)
        np.testing.assert_allclose(
            calibrated.probs[mine], fitted.map.groups[str(group)].apply(test.take(mine)).probs, rtol=1e-12
        )
    assert calibrated.groups is None


def test_one_group_is_the_plain_calibrator():
    val, test = rows(300, seed=1), rows(100, seed=2)
    fitted = ProximityGroups("temperature", groups=1).fit(val).predict(test)
    np.testing.assert_allclose(fitted.probs, cal.fit(val, "temperature")(test).probs, rtol=1e-9)


def test_groups_that_were_there_are_kept():
    val, test = rows(300, seed=1), rows(100, seed=2)
    names = np.array(["a", "b"] * 50)
    named = Predictions.from_logits(test.logits, test.labels, features=test.features, groups=names)
    assert ProximityGroups().fit(val).predict(named).groups.tolist() == names.tolist()


# -- bad input --------------------------------------------------------------------------------------


def test_bad_inputs_say_what_to_do():
    val = rows(50)
    bare = Predictions.from_logits(val.logits, val.labels)
    for method in (DensityRatio(), ProximityGroups()):
        with pytest.raises(InputError, match="predict with features"):
            method.fit(bare)
        with pytest.raises(InputError, match="expected 4 features a row, got 3"):
            method.fit(val).predict(Predictions.from_logits(val.logits, val.labels, features=val.features[:, :3]))
        with pytest.raises(InputError, match="at least 11 held-out rows, got 10"):
            method.fit(val.take(range(10)))
    for right in (True, False):
        same = Predictions.from_logits(val.logits, (val.predicted + (not right)) % 3, features=val.features)
        with pytest.raises(InputError, match=f"none {'wrong' if right else 'right'}"):
            DensityRatio().fit(same)
    with pytest.raises(InputError, match="neighbours"):
        DensityRatio(neighbours=0)
    with pytest.raises(InputError, match="groups"):
        ProximityGroups(groups=0)
