"""TrustScore against loops, scikit-learn and hand-made cases; the sigmoid behind it; bad inputs."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.predictions import Predictions
from calibrant.rescorers.trust_score import FittedTrustScore, TrustScore


def clouds(n, k=4, d=3, seed=0, noise=1.2):
    """Features around class centres, logits that see them, some wrong."""
    rng = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(99).normal(size=(k, d))
    labels = rng.integers(0, k, size=n)
    x = centres[labels] + noise * rng.normal(size=(n, d))
    logits = -((x[:, None] - centres) ** 2).sum(2) + rng.normal(size=(n, k))
    return Predictions.from_logits(logits, labels, features=x)


def slow_score(train, labels, features, predicted, rank):
    scores = []
    for x, given in zip(features, predicted, strict=True):
        to = {}
        for c in set(labels.tolist()):
            distances = sorted(float(np.sqrt(((x - t) ** 2).sum())) for t in train[labels == c])
            to[c] = distances[rank - 1]
        own = to.get(int(given), float("inf"))
        other = min(value for c, value in to.items() if c != given)
        scores.append(other / (own + 1e-12))
    return np.array(scores)


@pytest.mark.parametrize(("neighbour", "rank"), [("first", 1), ("second", 2)])
def test_scores_are_those_of_a_loop(neighbour, rank):
    train, p = clouds(60, seed=1), clouds(40, seed=2)
    fitted = TrustScore(neighbour=neighbour).fit(train.features, train.labels)
    expected = slow_score(train.features, train.labels, p.features, p.predicted, rank)
    np.testing.assert_allclose(fitted.score(p.features, p.predicted), expected, rtol=1e-9)


def test_scores_are_those_of_scikit_learns_neighbours():
    neighbors = pytest.importorskip("sklearn.neighbors")
    train, p = clouds(400, seed=1, d=20), clouds(700, seed=2, d=20)  # more rows than are asked at a time
    to = np.column_stack(
        [
            neighbors.NearestNeighbors(n_neighbors=2, algorithm="brute")
            .fit(train.features[train.labels == c])
            .kneighbors(p.features)[0][:, 1]
            for c in range(4)
        ]
    )
    rows = np.arange(p.n)
    own = to[rows, p.predicted]
    to[rows, p.predicted] = np.inf
    fitted = TrustScore().fit(train.features, train.labels)
    np.testing.assert_allclose(fitted.score(p.features, p.predicted), to.min(1) / (own + 1e-12), rtol=1e-6)


def test_scores_of_four_points_by_hand():
    fitted = TrustScore().fit([[0.0], [1.0], [4.0], [7.0]], [0, 0, 1, 1])
    # From 2: the second nearest of class 0 is 0 (2 away), of class 1 is 7 (5 away).
    np.testing.assert_allclose(fitted.score([[2.0], [2.0]], [0, 1]), [2.5, 0.4])


def test_the_second_neighbour_is_why_training_rows_are_not_all_certain():
    train = clouds(80, seed=3)
    first = TrustScore(neighbour="first").fit(train.features, train.labels).score(train.features, train.labels)
    second = TrustScore().fit(train.features, train.labels).score(train.features, train.labels)
    assert first.min() > 1e9
    assert second.max() < 1e3


def test_distances_of_zero():
    fitted = TrustScore(neighbour="first").fit([[0.0], [0.0], [3.0]], [0, 1, 1])
    on_both, on_own = fitted.score([[0.0], [3.0]], [0, 1])
    assert on_both == 0
    assert on_own == pytest.approx(3e12)
    p = Predictions.from_probs([[0.9, 0.1], [0.1, 0.9]], [0, 1], features=[[0.0], [3.0]])
    assert np.isfinite(fitted.predict(p).confidence).all()


def test_a_class_without_training_rows_scores_zero():
    fitted = TrustScore().fit([[0.0], [1.0], [4.0], [7.0]], [0, 0, 2, 2])
    assert fitted.score([[2.0], [2.0], [2.0]], [0, 1, 9]).tolist() == [pytest.approx(2.5), 0, 0]


@pytest.mark.parametrize("alpha", [0.1, 0.29, 0.5])
def test_the_filter_drops_the_thinnest_rows_of_each_class(alpha):
    train = clouds(120, seed=4, k=2)
    fitted = TrustScore(alpha=alpha, among=5).fit(train.features, train.labels)
    for c in range(2):
        x = train.features[train.labels == c]
        radius = [sorted(float(np.linalg.norm(a - b)) for b in x)[4] for a in x]  # itself is the first
        kept = sorted(np.argsort(radius, kind="stable")[: len(x) - int(alpha * len(x) + 1e-9)])
        np.testing.assert_array_equal(fitted.known[fitted.labels == c], x[kept])


def test_the_filter_keeps_enough_for_the_second_neighbour():
    fitted = TrustScore(alpha=0.99, among=3).fit(np.arange(10.0)[:, None], [0] * 5 + [1] * 5)
    assert np.bincount(fitted.labels).tolist() == [2, 2]


# -- as a confidence --------------------------------------------------------------------------------


def test_calibrate_keeps_the_order_and_makes_probabilities():
    train, val, test = (clouds(500, seed=s, noise=2.0) for s in (5, 6, 7))
    raw = TrustScore().fit(train.features, train.labels)
    fitted = raw.calibrate(val)
    auroc, ece = cal.measures.make("auroc_correct"), cal.measures.make("ece")
    plain, sure = raw.predict(test), fitted.predict(test)
    assert auroc(sure) == pytest.approx(auroc(plain), abs=1e-12)
    assert ece(sure) < 0.08
    assert ece(sure) < ece(plain)
    np.testing.assert_array_equal(sure.predicted, test.predicted)
    score = raw.score(test.features, test.predicted)
    np.testing.assert_allclose(plain.confidence, score / (1 + score), rtol=1e-9)


def test_the_sigmoid_is_the_best_one():
    """Moving slope or offset a little does not lower the log loss."""
    train, val = clouds(300, seed=5, noise=2.0), clouds(400, seed=6, noise=2.0)
    raw = TrustScore().fit(train.features, train.labels)
    fitted = raw.calibrate(val)
    logs = np.log(raw.score(val.features, val.predicted) + 1e-12)

    def loss(slope, offset):
        z = slope * logs + offset
        return np.mean(np.logaddexp(0, z) - val.correct * z)

    best = loss(fitted.slope, fitted.offset)
    for step in (-1e-3, 1e-3):
        assert best <= loss(fitted.slope + step, fitted.offset)
        assert best <= loss(fitted.slope, fitted.offset + step)


def test_a_score_that_points_the_wrong_way_is_refused():
    train, val = clouds(300, seed=5), clouds(300, seed=6, noise=2.5)
    swapped = Predictions.from_logits(val.logits, np.where(val.correct, (val.predicted + 1) % 4, val.predicted))
    turned = Predictions.from_logits(swapped.logits, swapped.labels, features=val.features)
    with pytest.raises(InputError, match=r"higher scores for right predictions.*slope of -.*--raw"):
        TrustScore().fit(train.features, train.labels).calibrate(turned)


@pytest.mark.parametrize("right", [True, False])
def test_rows_all_right_or_all_wrong_fit_no_sigmoid(right):
    train, val = clouds(100, seed=5), clouds(100, seed=6)
    same = Predictions.from_logits(val.logits, (val.predicted + (not right)) % 4, features=val.features)
    with pytest.raises(InputError, match=f"none {'wrong' if right else 'right'}"):
        TrustScore().fit(train.features, train.labels).calibrate(same)


def test_rows_of_the_fit_are_noticed():
    train, val = clouds(300, seed=5), clouds(300, seed=6)
    fitted = TrustScore().fit(train.features, train.labels).calibrate(val)
    with pytest.warns(LeakWarning, match="optimistic"):
        assert fitted.predict(val).row_data.seen == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.predict(clouds(300, seed=7)).row_data.seen == 0


def test_save_and_load(tmp_path):
    train, val, test = (clouds(200, seed=s) for s in (5, 6, 7))
    fitted = TrustScore(alpha=0.1).fit(train.features, train.labels).calibrate(val)
    fitted.save(tmp_path / "trust.npz")
    again = FittedTrustScore.load(tmp_path / "trust.npz")
    assert again.options == fitted.options
    np.testing.assert_array_equal(again.predict(test).confidence, fitted.predict(test).confidence)
    with pytest.warns(LeakWarning):
        again.predict(val)


def test_progress_counts_every_row():
    train, p, seen = clouds(50), clouds(1203), []
    TrustScore().fit(train.features, train.labels).score(p.features, p.predicted, on_rows=seen.append)
    assert sum(seen) == 1203
    assert len(seen) == 3


# -- bad input --------------------------------------------------------------------------------------


def test_bad_inputs_say_what_to_do(tmp_path):
    train, p = clouds(50), clouds(20)
    fitted = TrustScore().fit(train.features, train.labels)
    bare = Predictions.from_logits(p.logits, p.labels)
    with pytest.raises(InputError, match="predict with features"):
        fitted.predict(bare)
    with pytest.raises(InputError, match="expected 3 features a row, got 2"):
        fitted.score(p.features[:, :2], p.predicted)
    with pytest.raises(InputError, match="predicted: expected 20 class numbers"):
        fitted.score(p.features, p.predicted[:-1])
    with pytest.raises(InputError, match="two classes, got one"):
        TrustScore().fit(train.features, np.zeros(50, dtype=int))
    with pytest.raises(InputError, match=r"class 1: expected at least 2 training rows, got 1.*neighbour='first'"):
        TrustScore().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    with pytest.raises(InputError, match=r"class 1: expected at least 10 training rows.*alpha=0"):
        TrustScore(alpha=0.1).fit(np.arange(15.0)[:, None], [0] * 10 + [1] * 5)
    with pytest.raises(InputError, match="finite"):
        TrustScore().fit(np.full((50, 3), np.nan), train.labels)
    with pytest.raises(InputError, match="class numbers"):
        TrustScore().fit(train.features, train.labels / 2)
    with pytest.raises(InputError, match="did you mean 'second'"):
        TrustScore(neighbour="secnd")
    with pytest.raises(InputError, match="alpha"):
        TrustScore(alpha=1.0)
    with pytest.raises(InputError, match="among"):
        TrustScore(alpha=0.1, among=1)
    p.save(tmp_path / "p.npz")
    for name in ("p.npz", "none.npz"):
        with pytest.raises(InputError, match="a fitted TrustScore"):
            FittedTrustScore.load(tmp_path / name)
