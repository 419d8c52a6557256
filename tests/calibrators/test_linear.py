"""Calibrators of whole rows (temperature, vector, matrix, their regularised forms, ETS) against slow twins and peers.

The twins write the objective down plainly, k (k + 1) numbers in a flat list, and hand it to scipy from another start.
"""

import itertools
import re
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import calibrant as cal
from calibrant.calibrators import _linear, _odir, make
from calibrant.calibrators._linear import GRADIENT_ENOUGH, LinearFit, Ridge, fit_linear
from calibrant.core.maps.map import Fit
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.cross_fit import folds_by_confidence


def draw_rows(n, k, seed, *, sharpness=2.0, skew=0.6):
    """Overconfident logits whose classes also differ in scale and offset, so that every parameter has work to do."""
    rng = np.random.default_rng(seed)
    z = 1.2 * rng.normal(size=(n, k))
    truth = z * (1 + skew * np.linspace(-0.5, 0.5, k)) + skew * rng.normal(size=k)
    return Predictions.from_logits(sharpness * z, (truth + rng.gumbel(size=(n, k))).argmax(axis=1))


SMALL = [(80, 3, 1), (120, 4, 2), (60, 2, 3)]


def nll(z, y, w, b):
    u = z @ w.T + b if w.ndim == 2 else z * w + b
    return -log_softmax(u, axis=1)[np.arange(len(y)), y].mean()


def slow(z, y, shape, penalty=lambda w, b: 0.0, *, seed=0):
    """The optimum by plain BFGS with a numerical check of nothing: value, weight and bias, from a random start."""
    k = z.shape[1]
    size = k if shape == "vector" else k * k
    hot = np.eye(k)[y]

    def split(x):
        return x[:size].reshape((k,) if shape == "vector" else (k, k)), x[size:]

    def objective(x):
        w, b = split(x)
        return nll(z, y, w, b) + penalty(w, b)

    def gradient(x):
        w, b = split(x)
        u = z @ w.T + b if w.ndim == 2 else z * w + b
        r = (softmax(u, axis=1) - hot) / len(y)
        gw = r.T @ z if w.ndim == 2 else (r * z).sum(axis=0)
        plain = np.concatenate([gw.ravel(), r.sum(axis=0)])
        step = 1e-6  # of a quadratic penalty central differences are exact up to rounding
        moves = step * np.eye(len(x))
        return plain + [(penalty(*split(x + m)) - penalty(*split(x - m))) / (2 * step) for m in moves]

    start = np.random.default_rng(seed).normal(size=size + k)
    optimum = minimize(objective, start, jac=gradient, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return optimum.fun, *split(optimum.x)


def centred(w, b):
    """Weights and biases without the constant that the softmax does not see."""
    return (w - w.mean(axis=0) if w.ndim == 2 else w), b - b.mean()


def structured_penalty(n, k, w, b):
    v = (np.diag(w) if w.ndim == 2 else w) - 1
    off = (w - np.diag(np.diag(w))).ravel() if w.ndim == 2 else np.zeros(1)
    return k / n * (v @ v + b @ b) + k * (k - 1) / n * (off @ off)


def structured_logits(p):
    """Temperature, then 1 / (n + 1) of the uniform distribution, then logarithms (docs/methods/calibrators.md#svs)."""
    T = cal.fit(p, "temperature").parameters["T"]
    share = 1 / (p.n + 1)
    return np.log((1 - share) * softmax(p.logits / T, axis=1) + share / p.k)


def last_linear(m):
    return m.steps[-1].weight, m.steps[-1].bias


# -- against slow twins ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_unregularised_scaling_is_its_slow_twin(name, size):
    p = draw_rows(*size)
    m = cal.fit(p, name)
    assert m.fit.converged, m.fit
    value, w, b = slow(p.logits, p.labels, name)
    assert m.parameters["objective"] == pytest.approx(value, abs=1e-8)
    assert nll(p.logits, p.labels, *last_linear(m)) == pytest.approx(value, abs=1e-8)
    for ours, theirs in zip(centred(*last_linear(m)), centred(w, b), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert -m.apply(p).true_log_prob.mean() == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize(("name", "shape"), [("svs", "vector"), ("sms", "matrix")])
def test_structured_scaling_is_its_slow_twin(name, shape, size):
    p = draw_rows(*size)
    u = structured_logits(p)
    m = cal.fit(p, name)
    assert m.fit.converged, m.fit
    value, w, b = slow(u, p.labels, shape, lambda w, b: structured_penalty(p.n, p.k, w, b))
    assert m.parameters["objective"] == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(last_linear(m)[0], w, atol=1e-4)  # unique: no constant is free
    np.testing.assert_allclose(last_linear(m)[1], b, atol=1e-4)
    expected = softmax((u @ w.T if shape == "matrix" else u * w) + b, axis=1)
    np.testing.assert_allclose(m.apply(p).probs, expected, atol=1e-5)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize("strength", [1e-2, 1.0, 1e4])
def test_odir_objective_is_its_slow_twin(strength, size):
    p, k = draw_rows(*size), size[1]

    def penalty(w, b):
        off = sum(w[i, j] ** 2 for i in range(k) for j in range(k) if i != j)
        return strength / (k * (k - 1)) * off + strength / k * (b @ b)

    value, w, b = slow(p.logits, p.labels, "matrix", penalty)
    fitted = fit_linear(p.logits, p.labels, "matrix", penalty=_odir.odir(strength, strength, k))
    assert fitted.fit.converged
    assert fitted.objective == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(fitted.weight, w, atol=1e-3)
    np.testing.assert_allclose(fitted.bias, b, atol=1e-3)


@pytest.mark.parametrize("select", ["cross_validation", "cal_ece"])
@pytest.mark.parametrize("name", ["ms_odir", "dirichlet"])
def test_strength_is_the_choice_of_a_plain_loop(name, select):
    p = draw_rows(90, 3, 5)
    z = p.logits if name == "ms_odir" else np.log(np.maximum(p.probs, 1e-12))
    fold = folds_by_confidence(Predictions.from_logits(z, p.labels), 5)
    scores = {}
    for strength in (1e4, 1e3, 1e2, 10.0, 1.0, 1e-1, 1e-2):
        penalty = _odir.odir(strength, strength, p.k)
        if select == "cal_ece":
            f = fit_linear(z, p.labels, "matrix", penalty=penalty)
            q = Predictions.from_logits(z @ f.weight.T + f.bias, p.labels)
            scores[strength] = cal.measures.make("ece:bins=15")(q)
            continue
        total = 0.0
        for inside in range(5):
            f = fit_linear(z[fold != inside], p.labels[fold != inside], "matrix", penalty=penalty)
            total += nll(z[fold == inside], p.labels[fold == inside], f.weight, f.bias) * (fold == inside).sum()
        scores[strength] = total / p.n
    best = min(scores, key=scores.get)
    m = cal.fit(p, f"{name}:select={select}")
    assert m.parameters["strength"] == m.parameters["bias_strength"] == best
    assert m.parameters["score"] == pytest.approx(scores[best], abs=1e-5)
    again = fit_linear(z, p.labels, "matrix", penalty=_odir.odir(best, best, p.k))
    np.testing.assert_allclose(last_linear(m)[0], again.weight, atol=1e-4)


def test_the_grid_of_both_strengths_is_at_least_as_good():
    p = draw_rows(60, 3, 6)
    plain, grid = (cal.fit(p, f"ms_odir:grid={word}").parameters for word in ("false", "true"))
    assert grid["score"] <= plain["score"] + 1e-6  # fits end at a gradient of 1e-6


# -- the two solvers, and any start ---------------------------------------------------------------


@pytest.mark.parametrize("penalty", [None, Ridge(0.02, 0.1, 0.02), Ridge(0.0, 1.0, 0.3)])
def test_newton_and_lbfgs_agree(penalty, monkeypatch):
    p = draw_rows(150, 4, 7)
    first = fit_linear(p.logits, p.labels, "matrix", penalty=penalty)
    monkeypatch.setattr(_linear, "LARGEST", 0)
    second = fit_linear(p.logits, p.labels, "matrix", penalty=penalty)
    assert first.fit.converged
    assert second.fit.converged, second.fit
    assert first.fit.steps != second.fit.steps  # two ways indeed
    assert first.objective == pytest.approx(second.objective, abs=1e-8)
    for a, b in zip(centred(first.weight, first.bias), centred(second.weight, second.bias), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("shape", ["vector", "matrix"])
@pytest.mark.parametrize("penalty", [None, Ridge(0.02, 0.1, 0.02)])
def test_any_start_reaches_the_optimum(shape, penalty, solver, monkeypatch):
    if solver == "lbfgs":
        monkeypatch.setattr(_linear, "LARGEST", 0)
    p, rng = draw_rows(150, 3, 8), np.random.default_rng(9)
    best = fit_linear(p.logits, p.labels, shape, penalty=penalty)
    for scale in (0.1, 1.0, 5.0, 200.0):
        w, b = scale * rng.normal(size=(3,) if shape == "vector" else (3, 3)), scale * rng.normal(size=3)
        fitted = fit_linear(p.logits, p.labels, shape, penalty=penalty, begin=LinearFit(w, b, 0.0, Fit()))
        assert fitted.fit.converged, fitted.fit
        assert fitted.objective == pytest.approx(best.objective, abs=1e-8)


@pytest.mark.parametrize("name", ["vector", "matrix", "svs", "sms", "ms_odir", "dirichlet"])
def test_convergence_is_proved_by_the_gradient(name):
    p = draw_rows(200, 4, 10)
    m = cal.fit(p, name)
    assert m.fit.converged
    assert m.fit.gradient < GRADIENT_ENOUGH
    assert m.fit.diagnosis == "converged"


def test_a_fit_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(_linear, "LARGEST", 0)
    m = cal.fit(draw_rows(200, 4, 10), "matrix:iterations=1")
    assert not m.fit.converged
    assert m.fit.gradient > GRADIENT_ENOUGH
    assert re.match(r"stopped after [12] steps, largest gradient entry", m.fit.diagnosis)


LINEAR = ["vector", "matrix", "svs", "sms", "ms_odir", "dirichlet"]


def missing_class():
    """Overconfident rows of five classes, of which class 3 has none to fit on, and held-out rows of all of them."""
    p = draw_rows(1200, 5, 11)
    p = Predictions.from_logits(2.5 * p.logits, p.labels)
    return p.take(np.flatnonzero(p.labels[:600] != 3)), p.take(np.arange(600, 1200))


@pytest.mark.parametrize("name", LINEAR)
def test_a_class_without_rows_keeps_its_probability(name):
    """About that of temperature scaling, which treats all classes alike; with a ridge alone it fell to next to 0."""
    few, p = missing_class()
    m, temperature = cal.fit(few, name), cal.fit(few, "temperature")
    before, after = temperature.apply(p), m.apply(p)
    of_class = p.labels == 3
    assert -after.true_log_prob[of_class].mean() < -before.true_log_prob[of_class].mean() + 0.2
    assert -after.true_log_prob.mean() < -before.true_log_prob.mean()
    assert after.probs[:, 3].mean() > 0.75 * before.probs[:, 3].mean()
    assert m.fit.converged
    assert "class 3 is not among the labels: its logit moves like the mean of the others" in m.fit.diagnosis


@pytest.mark.parametrize("name", LINEAR)
def test_an_absent_class_moves_like_the_mean_of_the_others(name):
    few, _ = missing_class()
    w, b = last_linear(cal.fit(few, name))
    others = [0, 1, 2, 4]
    assert b[3] == pytest.approx(b[others].mean())
    if name in ("vector", "svs"):
        assert w[3] == pytest.approx(w[others].mean())
        return
    small = w[np.ix_(others, others)]
    own = np.diag(small).mean() - small[~np.eye(4, dtype=bool)].mean()
    assert w[3, 3] == pytest.approx(own)
    np.testing.assert_allclose(w[3, others], (small - own * np.eye(4)).mean(axis=0))
    assert (w[others, 3] == 0).all()


@pytest.mark.parametrize("name", LINEAR)
def test_labels_of_one_class_leave_nothing_to_fit(name):
    p = draw_rows(50, 3, 2)
    m = cal.fit(Predictions.from_logits(p.logits, np.ones(50, dtype=int)), name)
    w, b = last_linear(m)
    assert "all labels are class 1: there is nothing to fit" in m.fit.diagnosis
    assert (b == 0).all()
    assert len(np.unique(w if w.ndim == 1 else np.diag(w))) == 1


# -- peers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "peer"), [("svs", "SVSCalibrator"), ("sms", "SMSCalibrator")])
def test_structured_scaling_is_that_of_probmetrics(name, peer):
    """The same objective, so never worse than the peer's, and the same probabilities up to its tolerance."""
    pytest.importorskip("probmetrics")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from probmetrics.calibrators import logistic

        p = draw_rows(200, 3, 12)
        theirs = getattr(logistic, peer)()
        theirs.fit(p.probs, p.labels)
        probs = theirs.predict_proba(p.probs)
    m = cal.fit(p, name)
    np.testing.assert_allclose(m.apply(p).probs, probs, atol=2e-3)
    u = structured_logits(p)
    if name == "svs":
        w, b = theirs.v_.astype(float), theirs.b_.astype(float)
        assert m.parameters["objective"] <= nll(u, p.labels, w, b) + structured_penalty(p.n, p.k, w, b) + 1e-9


def test_matrix_scaling_is_scikit_learns_unpenalised_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    p = draw_rows(200, 3, 13)
    theirs = linear_model.LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(p.logits, p.labels)
    m = cal.fit(p, "matrix")
    np.testing.assert_allclose(m.apply(p).probs, theirs.predict_proba(p.logits), atol=1e-4)
    for ours, other in zip(centred(*last_linear(m)), centred(theirs.coef_, theirs.intercept_), strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-3)


def test_temperature_is_scikit_learns():
    calibration = pytest.importorskip("sklearn.calibration")
    scaler = getattr(calibration, "_TemperatureScaling", None)
    if scaler is None:
        pytest.skip("this scikit-learn has no temperature scaling")
    p = draw_rows(300, 4, 14)
    theirs = scaler().fit(p.logits, p.labels)
    assert cal.fit(p, "temperature").parameters["T"] == pytest.approx(1 / theirs.beta_, rel=1e-3)


# -- temperature ----------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [0.02, 0.1, 1.0, 10.0, 100.0])
def test_certified_temperature(T):
    """The derivative of the NLL is zero there, the interval holds the truth, and a plain search agrees."""
    rng = np.random.default_rng(15)
    z = rng.normal(size=(4000, 5)) * 2
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = Predictions.from_logits(z * T, y)
    m = cal.fit(p, "temperature")
    fitted_T, low, high = (m.parameters[name] for name in ("T", "T_low", "T_high"))
    assert m.fit.converged
    assert m.fit.diagnosis == "converged"
    assert m.fit.gradient < 1e-9
    assert low < T < high
    assert low < fitted_T < high
    q = softmax(p.logits / fitted_T, axis=1)
    slope = ((q * p.logits).sum(axis=1) - p.logits[np.arange(p.n), y]).mean() / fitted_T
    assert abs(slope) < 1e-9
    one = cal.fit(Predictions.from_logits(z, y), "temperature").parameters["T"]
    assert fitted_T == pytest.approx(one * T, rel=1e-6)


@pytest.mark.parametrize(
    ("logits", "labels", "diagnosis", "T"),
    [
        ([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0]], [0, 1, 0], "separable", 0.01),
        ([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0]], [1, 0, 1], "anti-informative", 100.0),
        ([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]], [0, 1, 0], "constant scores", 1.0),
        ([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [0, 0, 0], "separable", 0.01),
        ([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [1, 1, 1], "anti-informative", 100.0),
    ],
)
def test_named_diagnoses_instead_of_absurd_numbers(logits, labels, diagnosis, T, tmp_path):
    m = make("temperature").fit(Predictions.from_logits(logits, labels))  # cal.fit leaves such rows alone
    assert (m.fit.converged, m.fit.diagnosis, m.parameters["T"]) == (False, diagnosis, T)
    m.save(tmp_path / "map.json")
    again = cal.load_map(tmp_path / "map.json")
    assert again.parameters["T"] == T
    assert again.parameters["T_low"] == 0.0
    assert again.parameters["T_high"] is None


@pytest.mark.parametrize("seed", [16, 17])
@pytest.mark.parametrize("bins", [5, 15])
def test_temperature_by_ece_is_a_plain_loop(seed, bins):
    p = draw_rows(60, 3, seed)
    grid = 0.25 + 0.05 * np.arange(56)
    eces = []
    for T in grid:
        q = softmax(p.logits / T, axis=1)
        confidence, correct = q.max(axis=1), q.argmax(axis=1) == p.labels
        place = np.ceil(confidence * bins).astype(int)
        eces.append(sum(abs((confidence - correct)[place == b].sum()) for b in range(1, bins + 1)) / p.n)
    best = grid[np.array(eces) <= min(eces) + 1e-12]
    m = cal.fit(p, f"temperature_ece:low=0.25,high=3.0,step=0.05,bins={bins}")
    assert m.parameters["T"] == pytest.approx(best[np.abs(best - 1).argmin()], abs=1e-12)
    assert m.parameters["ece"] == pytest.approx(min(eces), abs=1e-12)


def test_ties_of_the_ece_grid_go_to_the_temperature_nearest_one():
    p = Predictions.from_logits(np.zeros((6, 2)), [0, 1, 0, 1, 0, 1])  # every temperature gives the same
    assert cal.fit(p, "temperature_ece:low=0.3,high=3,step=0.1").parameters["T"] == pytest.approx(1.0)
    assert cal.fit(p, "temperature_ece:low=1.5,high=3,step=0.5").parameters["T"] == 1.5


# -- ensemble temperature scaling -----------------------------------------------------------------


def simplex(parts):
    return [
        np.array([a, b, parts - a - b]) / parts
        for a, b in itertools.product(range(parts + 1), repeat=2)
        if a + b <= parts
    ]


@pytest.mark.parametrize("loss", ["brier", "nll"])
@pytest.mark.parametrize(("seed", "sharpness"), [(18, 0.5), (19, 2.0), (20, 6.0)])
def test_ets_weights_beat_a_grid_on_the_simplex(loss, seed, sharpness):
    p = draw_rows(150, 3, seed, sharpness=sharpness)
    m = cal.fit(p, f"ets:loss={loss}")
    T, weights = m.parameters["T"], np.array(m.parameters["weights"])
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    parts = np.stack([softmax(p.logits / T, axis=1), softmax(p.logits, axis=1), np.full((p.n, 3), 1 / 3)])
    hot = np.eye(3)[p.labels]

    def score(w):
        q = np.tensordot(w, parts, 1)
        return ((q - hot) ** 2).sum(axis=1).mean() if loss == "brier" else -np.log((q * hot).sum(axis=1)).mean()

    values = {tuple(w): score(w) for w in simplex(40)}
    assert score(weights) <= min(values.values()) + 1e-7
    np.testing.assert_allclose(m.apply(p).probs, np.tensordot(weights, parts, 1), atol=1e-12)


@pytest.mark.parametrize("seed", [18, 19])
def test_ets_temperature_beats_a_grid(seed):
    p = draw_rows(150, 3, seed)
    hot = np.eye(3)[p.labels]

    def brier(T):
        return ((softmax(p.logits / T, axis=1) - hot) ** 2).sum(axis=1).mean()

    assert brier(cal.fit(p, "ets").parameters["T"]) <= min(brier(T) for T in np.linspace(0.05, 5, 500)) + 1e-9


def test_ets_with_all_weight_on_the_first_is_temperature_scaling():
    from calibrant.core.maps.steps import Mix

    p = draw_rows(50, 4, 21)
    for T in (0.3, 1.0, 4.0):
        plain = make(f"fixed_temperature:T={T}").fit(p).apply(p)
        mixed = Mix(T, np.array([1.0, 0.0, 0.0]))(p)
        np.testing.assert_allclose(mixed.probs, plain.probs, atol=1e-15)
        assert np.array_equal(mixed.predicted, plain.predicted)


@pytest.mark.parametrize("name", ["vector", "matrix"])
def test_a_thousand_plain_steps_stop_short_and_say_so(name):
    p = draw_rows(200, 4, 10)
    early, best = cal.fit(p, f"{name}:solver=gd1000"), cal.fit(p, name)
    w, b = (np.ones(4) if name == "vector" else np.eye(4)), np.zeros(4)
    for _ in range(1000):
        u = p.logits * w + b if name == "vector" else p.logits @ w.T + b
        e = np.exp(u - u.max(axis=1, keepdims=True))
        off = (e / e.sum(axis=1, keepdims=True) - np.eye(4)[p.labels]) / p.n
        w, b = (
            w - 0.001 * ((off * p.logits).sum(axis=0) if name == "vector" else off.T @ p.logits),
            b - 0.001 * off.sum(0),
        )
    np.testing.assert_allclose(early.steps[-1].weight, w, atol=1e-12)
    np.testing.assert_allclose(early.steps[-1].bias, b, atol=1e-12)
    assert not early.fit.converged
    assert early.fit.diagnosis == "stopped after 1000 steps of 0.001"
    assert early.parameters["objective"] > best.parameters["objective"]
