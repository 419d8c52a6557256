"""The leak guard: shared rows are found, chance and coarse scores are not taken for them."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.maps.leak_check import KEPT, LEAK, Fingerprint
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import RowData

CONTINUOUS = ("logits", "float32")
COARSE = ("stated", "decimals=2", "decimals=3", "decimals=4")


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def draw(kind, n, rng, ids=None):
    """Fresh rows: ten logits; two classes of float32 softmax; 15 stated confidences; rounded probabilities."""
    k = 10 if kind == "logits" else 2
    z = 3 * rng.normal(size=(n, k))
    labels = np.minimum((rng.random((n, 1)) > softmax(z).cumsum(axis=1)).sum(axis=1), k - 1)
    if kind == "logits":
        return Predictions.from_logits(z.astype(np.float32), labels, ids=ids)
    probs = softmax(z.astype(np.float32))
    if kind == "stated":
        shares = np.arange(1, 16) ** 3.0
        sure = rng.choice(np.linspace(0.3, 0.99, 15).round(2), size=n, p=shares / shares.sum())
        probs = np.stack([1 - sure, sure], axis=1)
    elif kind != "float32":
        sure = probs[:, 1].astype(np.float64).round(int(kind.partition("=")[2]))
        probs = np.stack([1 - sure, sure], axis=1)
    return Predictions.from_probs(probs, labels, ids=ids)


def joined(p, q):
    ids = None if p.ids is None else np.concatenate([p.ids, q.ids])
    make = Predictions.from_logits if p.score_type == "logits" else Predictions.from_probs
    return make(np.concatenate([p.values, q.values]), np.concatenate([p.labels, q.labels]), ids=ids)


def leaky(kind, n, share, rng):
    """Rows of a fit, and fresh rows of which this share are from the fit."""
    fitted, fresh, few = draw(kind, n, rng), draw(kind, n, rng), round(share * n)
    return fitted, joined(fresh.take(np.arange(n - few)), fitted.take(rng.choice(n, few, replace=False)))


def alarms(kind, n, times, rng):
    return sum(Fingerprint.of(draw(kind, n, rng)).share_seen(draw(kind, n, rng)) > 0 for _ in range(times))


@pytest.mark.parametrize("kind", [*CONTINUOUS, *COARSE])
def test_fresh_rows_are_fresh(kind):
    rng = np.random.default_rng(12)
    assert sum(alarms(kind, n, times, rng) for n, times in ((20, 60), (100, 60), (1000, 20), (20_000, 2))) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*CONTINUOUS, *COARSE])
def test_false_alarms_are_below_one_in_a_thousand(kind):
    rng = np.random.default_rng(13)
    for n, times in ((20, 6000), (100, 6000), (300, 4000), (1000, 2000), (5000, 400), (200_000, 10)):
        count = alarms(kind, n, times, rng)
        assert count <= 1 + 2 * times / 1000, (kind, n)  # Poisson noise around less than one in 1,000
        assert count / times < 0.001 or times < 4000, (kind, n, count)


@pytest.mark.parametrize("kind", CONTINUOUS)
@pytest.mark.parametrize("n", [300, 1030, 20_000])
def test_five_percent_of_shared_rows_are_found(kind, n):
    rng = np.random.default_rng(n)
    for _ in range(3):
        fitted, mixed = leaky(kind, n, 0.05, rng)
        assert LEAK <= Fingerprint.of(fitted).share_seen(mixed) < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_five_percent_of_shared_rows_are_found_at_any_size(kind):
    rng = np.random.default_rng(14)
    for n, times in ((250, 500), (300, 500), (1000, 300), (1030, 300), (5000, 100), (200_000, 8)):
        count = sum(Fingerprint.of(a).share_seen(b) > 0 for a, b in (leaky(kind, n, 0.05, rng) for _ in range(times)))
        assert count >= 0.99 * times, (kind, n, count)


@pytest.mark.parametrize("kind", [*CONTINUOUS, *COARSE])
def test_the_whole_set_is_recognised_even_if_it_is_coarse(kind):
    p = draw(kind, 500, np.random.default_rng(1))
    assert Fingerprint.of(p).share_seen(p.take(np.random.default_rng(2).permutation(500))) == 1.0


def test_few_shared_rows_are_no_alarm():
    fitted, mixed = leaky("logits", 2000, 0.01, np.random.default_rng(3))
    assert Fingerprint.of(fitted).share_seen(mixed) == 0.0  # below the share that is told
    same = Predictions.from_probs([[0.9, 0.1]] * 100, [0] * 90 + [1] * 10)
    assert Fingerprint.of(same).share_seen(same) == 0.0  # two sets with one score always look alike


def test_a_part_of_the_rows_is_found_among_many():
    p = draw("logits", 40_000, np.random.default_rng(4))
    part = p.take(np.arange(2000))
    assert Fingerprint.of(p).share_seen(part) == 1.0
    assert Fingerprint.of(part).share_seen(p) == pytest.approx(0.05, abs=0.02)


# -- names ----------------------------------------------------------------------------------------


def test_names_tell_shared_rows_of_coarse_scores():
    rng = np.random.default_rng(5)
    fitted = draw("stated", 1000, rng, ids=np.array([f"question {i}" for i in range(1000)]))
    fresh = draw("stated", 950, rng, ids=np.array([f"question {i}" for i in range(1000, 1950)]))
    guard = Fingerprint.of(fitted)
    assert guard.share_seen(fresh) == 0.0
    assert guard.share_seen(joined(fresh, fitted.take(np.arange(50)))) == pytest.approx(0.05, abs=0.03)
    unnamed = Predictions.from_probs(fitted.values[:50], fitted.labels[:50])
    assert guard.share_seen(unnamed) == 0.0


@pytest.mark.parametrize("kind", [*CONTINUOUS, *COARSE])
@pytest.mark.parametrize("in_order", [True, False])
def test_row_numbers_are_no_names(kind, in_order):
    rng = np.random.default_rng(6)
    for _ in range(10):
        pair = [draw(kind, 400, rng) for _ in range(2)]
        if in_order:  # both files begin with the rows of class 0
            pair = [p.take(np.argsort(p.labels, kind="stable")) for p in pair]
        a, b = (Predictions._from_valid(p.values, p.labels, p.score_type, RowData(ids=np.arange(400))) for p in pair)
        assert Fingerprint.of(a).share_seen(b) == 0.0


def test_numbers_and_texts_are_the_same_names():
    rng = np.random.default_rng(7)
    p = draw("stated", 300, rng, ids=np.arange(300) + 1000)
    texts = Predictions.from_probs(p.values, p.labels, ids=[f"{i}" for i in p.ids])
    assert Fingerprint.of(p).share_seen(texts.take(np.arange(20))) == 1.0


# -- the same rows in another form ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["logits", "float32", "decimals=4"])
@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv"])
def test_every_kind_of_file_holds_the_same_rows(kind, suffix, tmp_path):
    p = draw(kind, 300, np.random.default_rng(8))
    p.save(tmp_path / f"p.{suffix}")
    again = Predictions.load(tmp_path / f"p.{suffix}")
    assert Fingerprint.of(again).to_dict() == Fingerprint.of(p).to_dict()


def test_a_constant_added_to_a_row_changes_nothing():
    rng = np.random.default_rng(9)
    p = Predictions.from_logits(rng.normal(size=(300, 4)), rng.integers(0, 4, 300))
    shifted = Predictions.from_logits(p.logits + rng.normal(size=(300, 1)), p.labels)
    assert Fingerprint.of(p).share_seen(shifted) > 0.99
    assert Fingerprint.of(p).share_seen(Predictions.from_probs(p.probs, p.labels)) > 0.99


# -- on disk --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [50, 5000])
@pytest.mark.parametrize("named", [True, False])
def test_it_comes_back_from_json(n, named):
    rng = np.random.default_rng(10)
    p = draw("decimals=3", n, rng, ids=np.arange(n) if named else None)
    guard = Fingerprint.of(p)
    again = Fingerprint.from_dict(json.loads(json.dumps(guard.to_dict())))
    assert again.to_dict() == guard.to_dict()
    assert len(guard.hashes) <= KEPT
    for q in (p, draw("decimals=3", n, rng)):
        assert again.share_seen(q) == guard.share_seen(q)


def test_a_fingerprint_of_another_version_is_refused():
    state = cal.fit(draw("logits", 50, np.random.default_rng(11)), "temperature").to_dict()
    with pytest.raises(InputError, match=r"damaged one \(the fingerprint is of another version\)"):
        cal.Map.from_dict(state | {"fingerprint": state["fingerprint"] | {"version": 3}})


# -- what reads it --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float32", "stated"])
def test_clean_rows_are_judged_as_other_rows(kind):
    rng = np.random.default_rng(15)
    val, test = draw(kind, 2000, rng), draw(kind, 2000, rng)
    report = cal.report(test, fit_on=val, calibrators=["temperature"], resamples=40)
    page = json.dumps(report.to_dict())
    assert "fitted on these very rows" not in page
    assert "flatter" not in page
