"""Fits on one logit per row read the logit: rows whose probabilities are equal as floats are told apart."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import make
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions

RNG = np.random.default_rng(0)
Z = RNG.uniform(30, 60, 4000)
Y = (RNG.random(4000) < (Z - 30) / 30).astype(int)
NEW = [38.0, 45.0, 55.0, 59.0]
TRUTH = (np.array(NEW) - 30) / 30


def scores(z, y=None, *, task):
    make_predictions = Predictions.binary if task == "binary" else Predictions.from_confidence
    return make_predictions(z, y, logits=True)


@pytest.mark.parametrize("task", ["binary", "confidence"])
@pytest.mark.parametrize("name", ["isotonic", "venn_abers", "histogram", "spline"])
def test_a_fit_by_order_follows_logits_beyond_the_last_probability(name, task):
    fitted = make(name).fit(scores(Z, Y, task=task))
    assert fitted(scores(NEW, task=task)).score == pytest.approx(TRUTH, abs=0.08)
    again = Map.from_dict(json.loads(fitted.to_json()))
    assert again(scores(NEW, task=task)).score.tolist() == fitted(scores(NEW, task=task)).score.tolist()


def test_isotonic_is_that_of_scikit_learn_on_the_logits():
    sklearn = pytest.importorskip("sklearn.isotonic")
    theirs = sklearn.IsotonicRegression(out_of_bounds="clip").fit(Z, Y).predict(NEW)
    assert make("isotonic").fit(scores(Z, Y, task="binary"))(scores(NEW, task="binary")).score == pytest.approx(theirs)


@pytest.mark.parametrize("scale", [1.0, 10.0, 1000.0])
def test_platt_is_affine_scaling_of_the_logit(scale):
    p = scores(scale * (Z - 45) / 7, Y, task="binary")
    platt, affine = make("platt").fit(p), make("affine").fit(p)
    assert platt.parameters == pytest.approx(affine.parameters)
    assert platt.parameters["a"] * scale == pytest.approx(
        make("platt").fit(scores((Z - 45) / 7, Y, task="binary")).parameters["a"]
    )
    assert (np.diff(platt(scores(np.sort(p.values[:, 1]), task="binary")).score) >= 0).all()


@pytest.mark.parametrize("name", ["isotonic", "platt"])
def test_decision_functions_of_scikit_learn_models_may_be_large(name):
    pytest.importorskip("sklearn")
    from sklearn.base import BaseEstimator, ClassifierMixin

    from calibrant.repairing.sklearn import CalibratedClassifier

    class Margin(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            self.fitted_ = True
            return self

        def decision_function(self, X):
            return np.asarray(X)[:, 0]

    X = Z[:, None]
    model = CalibratedClassifier(Margin().fit(X, Y), method=name, cv="prefit").fit(X, Y)
    assert model.predict_proba(np.array(NEW)[:, None])[:, 1] == pytest.approx(TRUTH, abs=0.1)


@pytest.mark.parametrize("name", ["isotonic", "venn_abers", "histogram", "spline", "platt"])
def test_probabilities_are_fitted_as_probabilities(name):
    p = cal.Predictions.binary(1 / (1 + np.exp(-(Z - 45) / 7)), Y)
    assert all(getattr(step, "on", "probs") == "probs" for step in make(name).fit(p).steps)


@pytest.mark.parametrize("name", ["isotonic", "venn_abers", "histogram", "spline", "platt"])
def test_exports_read_the_same_logits(name, tmp_path):
    torch = pytest.importorskip("torch")
    z = RNG.normal(0, 3, 300)
    fitted = make(name).fit(scores(z, (RNG.random(300) < 1 / (1 + np.exp(-z))).astype(int), task="binary"))
    at = np.linspace(-20, 40, 101)
    expected = fitted(scores(at, task="binary")).score
    assert torch.sigmoid(fitted.to_torch()(torch.tensor(at))).numpy() == pytest.approx(expected, abs=1e-9)
    for to in ("python", "onnx"):  # an export proves itself against the map
        cal.export(fitted, to, tmp_path / f"map.{to}")
