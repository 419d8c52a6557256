"""Thresholds beside scikit-learn's TunedThresholdClassifierCV and MAPIE's risk control: `make slow`."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import Predictions

pytestmark = pytest.mark.slow


def test_a_threshold_by_cost_is_as_cheap_as_one_that_was_tuned():
    """scikit-learn searches the cheapest threshold on cross-fitted rows; ours follows from the costs alone.

    Both scores are calibrated (logistic regression of logistic data). The tuned threshold carries the noise of the
    search, the one by cost does not; on held-out rows the costs differ by less than their noise.
    """
    linear = pytest.importorskip("sklearn.linear_model")
    selection = pytest.importorskip("sklearn.model_selection")
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 4))
    y = (rng.random(6000) < 1 / (1 + np.exp(-(x @ [1.5, -1, 0.5, 0] - 2.5)))).astype(int)

    def gain(truth, positive):
        return -(20 * ((truth == 1) & (positive == 0)).sum() + ((truth == 0) & (positive == 1)).sum())

    train, test = slice(0, 3000), slice(3000, 6000)
    tuned = selection.TunedThresholdClassifierCV(
        linear.LogisticRegression(), scoring=metrics.make_scorer(gain), thresholds=200, cv=5
    ).fit(x[train], y[train])
    model = linear.LogisticRegression().fit(x[train], y[train])
    p = Predictions.binary(model.predict_proba(x[test])[:, 1], y[test])
    d = cal.decide(p, cost="fn=20,fp=1")
    own, hindsight = d.costs[:2]
    theirs = -gain(y[test], tuned.predict(x[test])) / 3000
    print(f"\nours {d.threshold:.4f}: {own.cost:.4f}; tuned {tuned.best_threshold_:.4f}: {theirs:.4f}")
    assert d.threshold == pytest.approx(1 / 21)
    assert abs(theirs - own.cost) < own.high - own.cost
    assert hindsight.cost <= min(theirs, own.cost) + 1e-12


@pytest.mark.parametrize("method", ["bonferroni_holm", "fixed_sequence"])
def test_mapie_controls_the_precision_too(method):
    """MAPIE tests 20 listed thresholds with Hoeffding-Bentkus p-values; ours walks over all scores with binomial ones.

    Both are safe here: the precision of all rows above each threshold is at least 50 %. Ours calls more rows. (In its
    list no threshold may be without positives: the p-value is NaN there, and it finds none.)
    """
    control = pytest.importorskip("mapie.risk_control")
    rng = np.random.default_rng(0)
    s = rng.beta(1, 4, 20_000)
    y = (rng.random(20_000) < s).astype(int)
    theirs = control.BinaryClassificationController(
        lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]),
        "precision",
        target_level=0.5,
        confidence_level=0.95,
        best_predict_param_choice="recall",
        list_predict_params=np.linspace(0.3, 0.7, 20),
        fwer_method=method,
    ).calibrate(s[:, None], y)
    ours = cal.decide(Predictions.binary(s, y), min_precision=0.5)
    big = np.random.default_rng(1).beta(1, 4, 1_000_000)
    print(f"\nours {ours.threshold:.4f}; MAPIE {theirs.best_predict_param:.4f}")
    assert ours.threshold <= theirs.best_predict_param + 0.01
    assert min(big[big >= t].mean() for t in (ours.threshold, theirs.best_predict_param)) >= 0.5
