"""Rows without labels: built, saved, loaded and calibrated; whatever needs labels says so."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import InputError, Predictions

LOGITS = np.random.default_rng(0).normal(size=(6, 3))
SCORES = np.array([0.1, 0.8, 0.6, 0.3])


def forms():
    return {
        "logits": Predictions.from_logits(LOGITS, None),
        "probs": Predictions.from_probs(np.full((3, 2), 0.5), None),
        "binary": Predictions.binary(SCORES, None),
        "margin": Predictions.binary(SCORES, None, logits=True),
        "confidence": Predictions.from_confidence(SCORES, None),
        "choice": Predictions.from_logits(LOGITS, None, mask=LOGITS.min(axis=1, keepdims=True) < LOGITS),
    }


@pytest.mark.parametrize("form", forms())
def test_labels_are_not_known(form):
    p = forms()[form]
    assert not p.labelled
    assert "without labels" in repr(p)
    assert np.isfinite(p.confidence).all()
    for ask in ("labels", "outcome", "correct", "true_prob", "curve"):
        with pytest.raises(InputError, match="rows without labels"):
            getattr(p, ask)
    with pytest.raises(InputError, match="rows without labels"):
        cal.measure(p, "ece")
    assert "Predictions" in p._repr_html_()


@pytest.mark.parametrize("form", forms())
def test_rows_are_taken_and_scaled_without_labels(form):
    p = forms()[form]
    assert not p.take([1, 0]).labelled
    np.testing.assert_array_equal(p.take([1, 0]).values, p.values[[1, 0]])
    assert not p.with_temperature(2.0).labelled
    assert not p.with_confidence(np.full(p.n, 0.5)).labelled


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("form", forms())
def test_files_may_have_no_labels(form, suffix, tmp_path):
    p, file = forms()[form], tmp_path / f"p{suffix}"
    p.save(file)
    with pytest.raises(InputError, match=r"named (labels?|correct)"):
        Predictions.load(file)
    q = Predictions.load(file, labels="optional")
    assert (q.labelled, q.task, q.n) == (False, p.task, p.n)
    np.testing.assert_allclose(q.probs, p.probs, rtol=1e-12)


def test_a_file_with_labels_keeps_them(tmp_path):
    Predictions.binary(SCORES, [0, 1, 1, 0]).save(tmp_path / "p.csv")
    assert Predictions.load(tmp_path / "p.csv", labels="optional").labels.tolist() == [0, 1, 1, 0]


def test_few_rows_are_enough_to_calibrate():
    assert Predictions.from_logits(np.zeros((1, 10)), None).n == 1
    assert Predictions.binary([0.4], None).n == 1


def test_a_map_is_applied_without_labels():
    p = Predictions.from_logits(np.random.default_rng(1).normal(size=(200, 3)) * 3, np.arange(200) % 3)
    m = cal.fit(p, "temperature")
    np.testing.assert_array_equal(m(Predictions.from_logits(LOGITS, None)).values, m(cal_like(LOGITS)).values)


def cal_like(logits):
    return Predictions.from_logits(logits, np.zeros(len(logits), dtype=int))


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_saved_weights_are_those_that_were_given(tmp_path, suffix):
    given = np.array([0.2, 0.4, 0.6, 0.1])
    p = Predictions.binary([0.1, 0.2, 0.9, 0.3], None, weights=given)
    p.save(tmp_path / f"p{suffix}")
    if suffix == ".npz":
        saved = np.load(tmp_path / "p.npz")["weights"]
    else:
        saved = np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True)["weight"]
    assert saved == pytest.approx(given, rel=1e-12)
