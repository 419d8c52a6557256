"""The scikit-learn estimator: scikit-learn's own list of promises, and ours."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.repairing.sklearn import CalibratedClassifier


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(900, 12, n_informative=6, n_redundant=6, n_classes=3, random_state=0)
    return train_test_split(X, np.array(["cat", "dog", "eel"])[y], random_state=0)


@parametrize_with_checks(
    [
        CalibratedClassifier(LogisticRegression(), cv=3),
        CalibratedClassifier(LogisticRegression(), method="affine", cv=3),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:Can't check:UserWarning")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", ["temperature", "isotonic_ovr", "vector", "temperature+isotonic_ovr"])
def test_it_repairs_naive_bayes(data, method):
    X, X_test, y, y_test = data
    before = log_loss(y_test, GaussianNB().fit(X, y).predict_proba(X_test))
    fitted = CalibratedClassifier(GaussianNB(), method=method).fit(X, y)
    probs = fitted.predict_proba(X_test)
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-12)
    assert log_loss(y_test, probs) < before
    assert set(fitted.predict(X_test)) <= {"cat", "dog", "eel"}


def test_the_estimator_sees_all_rows_and_the_map_only_unseen_ones(data):
    X, X_test, y, _ = data
    fitted = CalibratedClassifier(RandomForestClassifier(20, random_state=0), method="temperature", cv=3).fit(X, y)
    alone = RandomForestClassifier(20, random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted.estimator_.predict_proba(X_test), alone.predict_proba(X_test))
    assert fitted.map_.fit.converged
    # On its own rows the forest is always right, so that there is nothing to fit.
    prefit = CalibratedClassifier(alone, method="temperature", cv="prefit").fit(X, y)
    assert prefit.map_.fit.diagnosis.startswith("every prediction is right")


@pytest.mark.parametrize(("old", "new"), [([0.3, 0.3, 0.4], [0.1, 0.2, 0.7]), (0.3, 0.1)], ids=["three", "two"])
def test_a_map_for_another_base_rate_takes_the_place_of_the_fitted_one(data, old, new):
    X, X_test, y, _ = data
    y = y == "cat" if np.isscalar(old) else y
    fitted = CalibratedClassifier(GaussianNB(), method="vector" if np.ndim(old) else "platt").fit(X, y)
    before, ratio = fitted.predict_proba(X_test), np.divide(new, old)
    fitted.map_ = cal.adapt(fitted.map_, from_rates=old, to_rates=new)
    expected = before * (ratio if np.ndim(old) else [(1 - new) / (1 - old), ratio])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X_test), expected, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X_test), fitted.classes_[expected.argmax(axis=1)])


def test_prefit_leaves_the_estimator_alone(data):
    X, X_test, y, y_test = data
    inner = GaussianNB().fit(X, y)
    fitted = CalibratedClassifier(inner, cv="prefit").fit(X_test, y_test)
    assert fitted.estimator_ is inner
    with pytest.raises(InputError, match="fox"):
        CalibratedClassifier(inner, cv="prefit").fit(X_test, np.full(len(y_test), "fox"))


def test_margins_are_logits(data):
    X, _, y, _ = data
    many = CalibratedClassifier(RidgeClassifier(), method="temperature").fit(X, y)
    assert many.predict_proba(X).shape == (len(X), 3)
    np.testing.assert_array_equal(many.predict(X), many.estimator_.predict(X))
    two = CalibratedClassifier(RidgeClassifier(), method="temperature").fit(X, y == "cat")
    np.testing.assert_array_equal(two.predict(X), two.estimator_.predict(X))
    assert two.map_.k == 2


def test_weights_are_repeated_rows(data):
    X, X_test, y, _ = data
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    inner = GaussianNB().fit(X, y)

    def prefit():
        return CalibratedClassifier(inner, method="temperature", cv="prefit")

    a = prefit().fit(X, y, sample_weight=weights)
    rows = np.repeat(np.arange(len(y)), weights)
    b = prefit().fit(X[rows], y[rows])
    np.testing.assert_allclose(a.predict_proba(X_test), b.predict_proba(X_test), rtol=1e-9)
    shares = np.random.default_rng(1).random(len(y))
    some, more = (prefit().fit(X, y, sample_weight=s * shares) for s in (1, 64))
    np.testing.assert_allclose(some.predict_proba(X_test), more.predict_proba(X_test), rtol=1e-9)
    assert np.abs(some.predict_proba(X_test) - b.predict_proba(X_test)).max() > 1e-6
    CalibratedClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=weights + 1)  # which knows no weights


def test_it_works_inside_scikit_learn(data):
    X, _, y, _ = data
    pipeline = make_pipeline(StandardScaler(), CalibratedClassifier(GaussianNB(), cv=3))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.5
    grid = GridSearchCV(CalibratedClassifier(GaussianNB()), {"method": ["identity", "temperature"]}, cv=3)
    assert grid.fit(X, y).best_params_["method"] in ("identity", "temperature")
    split = CalibratedClassifier(GaussianNB(), cv=KFold(4, shuffle=True, random_state=0)).fit(X, y)
    assert split.map_.fit.converged


@pytest.mark.parametrize("method", ["isotonic", "platt", "beta", "auto", "temperature", "vector"])
def test_two_classes_calibrate_the_positive_one(method):
    """5 % positives and a naive model: the mean is the base rate, the loss near that of scikit-learn's own."""
    X, y = make_classification(6000, 10, n_informative=4, n_redundant=5, weights=[0.95], random_state=1)
    X, X_test, y, y_test = train_test_split(X, np.array(["benign", "malignant"])[y], random_state=0)
    fitted = make_pipeline(StandardScaler(), CalibratedClassifier(GaussianNB(), method=method, cv=3)).fit(X, y)
    probs, last = fitted.predict_proba(X_test), fitted[-1]
    assert last.map_.task == "binary"
    assert last.classes_.tolist() == ["benign", "malignant"]
    if method in ("isotonic", "platt", "beta", "auto"):
        assert abs(probs[:, 1].mean() - (y_test == "malignant").mean()) < 0.01
    if method == "isotonic":
        theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3, ensemble=False).fit(X, y)
        np.testing.assert_allclose(probs[:, 1], theirs.predict_proba(X_test)[:, 1], atol=1e-6)
    if method == "auto":
        for other in ("isotonic", "sigmoid"):
            theirs = CalibratedClassifierCV(GaussianNB(), method=other, cv=3, ensemble=False).fit(X, y)
            assert log_loss(y_test, probs) < log_loss(y_test, theirs.predict_proba(X_test)) + 1e-3
    np.testing.assert_array_equal(fitted.predict(X_test), last.classes_[probs.argmax(axis=1)])


def test_bad_input(data):
    X, _, y, _ = data
    with pytest.raises(InputError, match="temperature"):
        CalibratedClassifier(GaussianNB(), method="temprature").fit(X, y)
    with pytest.raises(InputError, match="at least 2 samples"):
        CalibratedClassifier(GaussianNB()).fit(X[:3], ["a", "b", "a"])
    with pytest.raises(InputError, match="a fold without one"):
        CalibratedClassifier(GaussianNB(), cv=KFold(3)).fit(X[:9], list("aaabbbccc"))
    with pytest.raises(InputError, match="sample_weight"):
        CalibratedClassifier(GaussianNB()).fit(X, y, sample_weight=-np.ones(len(y)))
