"""Measures of the positive class: known numbers, other libraries' numbers, and what is refused."""

import warnings

import numpy as np
import pytest
from synthetic import draw_rows

import calibrant as cal
from calibrant.core.errors import InputError, ReversedScoresWarning
from calibrant.measures import make
from calibrant.measuring.standard import STANDARD, standard

NAMES = ("roc_auc", "average_precision")
S, Y = [0.95, 0.75, 0.35, 0.15, 0.55, 0.72], [1, 0, 0, 1, 1, 1]  # docs/methods/vectors.md#measures-of-a-binary-score


def scores(n=300, seed=0):
    rng = np.random.default_rng(seed)
    s = np.round(rng.beta(1, 6, n), 2)  # with ties
    return s, (rng.random(n) < s).astype(int)


def test_binary_measures_equal_the_methods_vector():
    p = cal.Predictions.binary(S, Y)
    expected = {"roc_auc": 0.5, "gap": -0.08833333, "brier": 0.28181667, "nll": 0.78197194, "ece:bins=5": 0.36166667}
    for what, value in expected.items():
        assert make(what)(p) == pytest.approx(value, abs=1e-8)


def test_scikit_learn_finds_the_same():
    metrics = pytest.importorskip("sklearn.metrics")
    s, y = scores()
    w = np.random.default_rng(1).random(len(s)) + 0.1
    for weights in (None, w):
        p = cal.Predictions.binary(s, y, weights=weights)
        assert make("roc_auc")(p) == pytest.approx(metrics.roc_auc_score(y, s, sample_weight=weights))
        assert make("average_precision")(p) == pytest.approx(
            metrics.average_precision_score(y, s, sample_weight=weights)
        )


@pytest.mark.parametrize("name", NAMES)
def test_of_two_classes_the_second_is_positive(name):
    s, y = scores()
    binary = cal.Predictions.binary(s, y)
    classes = cal.Predictions.from_probs(np.stack([1 - s, s], axis=1), y)
    assert make(name)(classes) == make(name)(binary)
    order = np.random.default_rng(2).permutation(len(s))
    assert make(name)(binary.take(order)) == pytest.approx(make(name)(binary), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_one_kind_of_rows_has_no_ranking(name):
    for label in (0, 1):
        assert np.isnan(make(name)(cal.Predictions.binary([0.2, 0.9], [label, label])))


@pytest.mark.parametrize("name", NAMES)
def test_other_shapes_are_refused(name):
    others = (
        cal.Predictions.from_logits(*draw_rows(20, 3, seed=0)),
        cal.Predictions.from_confidence([0.9, 0.4], [1, 0]),
        cal.Predictions.from_logits([[1.0, 0.0, -np.inf], [0.0, 1.0, 2.0], [2.0, 0.0, 1.0]], [0, 2, 0]),
    )
    for p in others:
        for ask in (cal.measure, lambda p, name: make(name)(p)):
            with pytest.raises(InputError, match="scores of the positive class, or of two classes"):
                ask(p, name)


def test_standard_measures_follow_the_shape():
    s, y = scores()
    assert standard(cal.Predictions.from_logits(*draw_rows(20, 3, seed=0))) == STANDARD
    for p in (cal.Predictions.binary(s, y), cal.Predictions.from_confidence(s, y)):
        names = [m.measure for m in cal.measure(p, "standard", resamples=20)]
        assert names == list(standard(p))
        assert ("roc_auc" in names) == (p.task == "binary")
        assert "classwise" not in names


def test_scores_of_the_negative_class_are_noticed():
    rng = np.random.default_rng(0)
    scores = rng.random(300)
    positive = rng.random(300) < scores
    with pytest.warns(ReversedScoresWarning, match="If the scores are P\\(negative\\), give 1 - scores"):
        cal.measure(cal.Predictions.binary(1 - scores, positive), "roc_auc", resamples=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.measure(cal.Predictions.binary(scores, positive), "roc_auc", resamples=100)
