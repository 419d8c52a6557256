"""Calibrators of one score against slow twins and peers, and on rows that teach little or nothing."""

import json

import numpy as np
import pytest
import slow_calibrators as slow

from calibrant.calibrators import make
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions

TOP = {
    "platt": slow.platt,
    "platt:smooth=true": slow.platt_smooth,
    "beta": slow.beta,
    "histogram": slow.histogram,
    "histogram:bins=4": lambda *data: slow.histogram(*data, bins=4),
    "isotonic": slow.isotonic,
    "bbq": slow.bbq,
    "bbq:score=bic": slow.bbq_bic,
    "spline": slow.spline,
    "spline:knots=3": lambda *data: slow.spline(*data, knots=3),
    "scaling_binning": slow.scaling_binning,
    "scaling_binning:bins=4": lambda *data: slow.scaling_binning(*data, bins=4),
    "centred_isotonic": slow.centred_isotonic,
    "venn_abers": slow.venn_abers,
}
OVR = {
    "beta:scope=ovr": slow.beta,
    "histogram:scope=ovr": slow.histogram,
    "isotonic_ovr": slow.isotonic_nudged,
    "bbq:scope=ovr": slow.bbq,
    "scaling_binning:scope=ovr": slow.scaling_binning,
    "centred_isotonic:scope=ovr": slow.centred_isotonic,
    "venn_abers:scope=ovr": slow.venn_abers,
}
SPECS = [*TOP, *OVR, "platt:scope=ovr", "platt:scope=ovr,smooth=true", "irm"]
FITTED_BY_NEWTON = ("platt", "beta", "scaling_binning")


def draw_rows(n, k, seed, *, sharpness=2.0):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    return Predictions.from_logits(sharpness * z, (z + rng.gumbel(size=(n, k))).argmax(axis=1))


def tied(n, k, seed, *, step=20):
    """Probabilities that are multiples of 1 / step, zeros and ones among them; labels near them."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(0.6 * np.ones(k), size=n)
    probs = rng.multinomial(step, truth) / step
    labels = (np.log(truth + 1e-3) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return Predictions.from_probs(probs, labels)


def falling(n, seed):
    """The surer, the wronger."""
    rng = np.random.default_rng(seed)
    top = np.round(rng.uniform(0.5, 1, size=n), 2)
    return Predictions.from_probs(np.column_stack([top, 1 - top]), (rng.uniform(size=n) < top - 0.3).astype(int))


def wavy(n, seed):
    """Right in the middle and wrong at both ends: a slope of beta calibration wants to be below 0."""
    rng = np.random.default_rng(seed)
    top = rng.uniform(0.5, 1, size=n)
    chance = 0.9 - 3 * np.abs(top - 0.75)
    return Predictions.from_probs(np.column_stack([top, 1 - top]), (rng.uniform(size=n) > chance).astype(int))


CASES = {
    "60 rows": lambda: draw_rows(60, 3, 1),
    "two classes": lambda: draw_rows(75, 2, 2),
    "40 rows, 5 classes": lambda: draw_rows(40, 5, 3, sharpness=0.5),
    "ties": lambda: tied(64, 3, 4),
    "coarse ties": lambda: tied(90, 4, 5, step=6),
    "surer is wronger": lambda: falling(50, 6),
    "right in the middle": lambda: wavy(60, 7),
}


def others(p, seed=0):
    """The same rows, rows between them, and the corners."""
    rng = np.random.default_rng(seed)
    a, b = p.probs[rng.permutation(p.n)], p.probs[rng.permutation(p.n)]
    between = (a + b) / 2
    for c in range(p.k):  # a sum may miss a tie by its last bit, which is no question for a twin that rounds
        known = np.unique(p.probs[:, c])
        near = known[np.abs(known[:, None] - between[:, c]).argmin(axis=0)]
        between[:, c] = np.where(np.abs(near - between[:, c]) < 1e-12, near, between[:, c])
    probs = np.concatenate([p.probs, between, rng.dirichlet(np.ones(p.k), size=50), np.eye(p.k)])
    return Predictions.from_probs(probs, np.zeros(len(probs), dtype=int))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("spec", TOP)
def test_top_is_its_slow_twin(spec, case):
    p = CASES[case]()
    q = others(p)
    fitted = make(spec).fit(p)
    assert fitted.fit.converged, fitted.fit
    expected = TOP[spec](p.confidence, p.correct.astype(float), q.confidence)
    tolerance = 1e-7 if spec.startswith(FITTED_BY_NEWTON) else 1e-10
    np.testing.assert_allclose(fitted.apply(q).confidence, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("spec", OVR)
def test_one_against_the_rest_is_its_slow_twin(spec, case):
    p = CASES[case]()
    q = others(p)
    fitted = make(spec).fit(p)
    if not fitted.fit.converged:
        assert fitted.fit.diagnosis.startswith("separable: ")
        return
    values = [OVR[spec](p.probs[:, c], (p.labels == c).astype(float), q.probs[:, c]) for c in range(p.k)]
    total = np.sum(values, axis=0)
    expected = np.where(total > 0, values / np.where(total > 0, total, 1), 1 / p.k).T
    tolerance = 1e-7 if spec.startswith(FITTED_BY_NEWTON) else 1e-10
    np.testing.assert_allclose(fitted.apply(q).probs, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("seed", range(5))
def test_platt_of_every_class_is_its_slow_twin(seed):
    p, q = draw_rows(80, 3, seed), draw_rows(50, 3, seed + 10)
    values = [slow.platt_of_logits(p.logits[:, c], (p.labels == c).astype(float), q.logits[:, c]) for c in range(p.k)]
    expected = np.transpose(values / np.sum(values, axis=0))
    np.testing.assert_allclose(make("platt:scope=ovr").fit(p).apply(q).probs, expected, atol=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_irm_is_its_slow_twin(case):
    p = CASES[case]()
    q = others(p)
    onehot = np.eye(p.k)[p.labels]
    values = slow.isotonic_nudged(p.probs.ravel(), onehot.ravel(), q.probs.ravel()).reshape(q.n, q.k)
    got = make("irm").fit(p).apply(q)
    np.testing.assert_allclose(got.probs, values / values.sum(axis=1, keepdims=True), atol=1e-10)
    np.testing.assert_array_equal(got.predicted, q.predicted)


@pytest.mark.parametrize("seed", range(40))
def test_venn_abers_on_small_sets_with_ties(seed):
    """Every pattern of ties, at, below and above every score."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 15))
    scores = rng.integers(0, 5, size=n) / 10 + 0.55 if seed % 2 else rng.uniform(0.5, 1, size=n)
    labels = rng.integers(0, 2, size=n)
    p = Predictions.from_probs(np.column_stack([scores, 1 - scores]), labels)
    at = p.confidence
    new = np.concatenate([at, np.nextafter(at, 0.5), np.nextafter(at, 1), [0.5, 0.501, 0.999, 1.0]])
    q = Predictions.from_probs(np.column_stack([new, 1 - new]), np.zeros(len(new), dtype=int))
    expected = slow.venn_abers(at, p.correct.astype(float), q.confidence)
    np.testing.assert_allclose(make("venn_abers").fit(p).apply(q).confidence, expected, rtol=0, atol=1e-12)


# -- peers --------------------------------------------------------------------------------------


def test_isotonic_is_scikit_learns():
    sklearn = pytest.importorskip("sklearn.isotonic")
    for p in (draw_rows(500, 4, 1), tied(400, 3, 2)):
        q = others(p)
        peer = sklearn.IsotonicRegression(out_of_bounds="clip").fit(p.confidence, p.correct.astype(float))
        ours = make("isotonic").fit(p).apply(q).confidence
        np.testing.assert_allclose(ours, peer.predict(q.confidence), atol=1e-12)


def test_platt_is_scikit_learns_unpenalised_regression():
    linear = pytest.importorskip("sklearn.linear_model")
    p = draw_rows(500, 4, 3)
    peer = linear.LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(
        slow.logit(p.confidence)[:, None], p.correct
    )
    ours = make("platt").fit(p).parameters
    assert ours["a"] == pytest.approx(float(peer.coef_[0, 0]), abs=1e-5)
    assert ours["b"] == pytest.approx(float(peer.intercept_[0]), abs=1e-5)


def test_beta_is_scikit_learns_unpenalised_regression():
    linear = pytest.importorskip("sklearn.linear_model")
    p = draw_rows(2000, 3, 8)
    s = np.clip(p.confidence, 1e-6, 1 - 1e-6)
    features = np.column_stack([np.log(s), -np.log1p(-s)])
    peer = linear.LogisticRegression(C=np.inf, tol=1e-12, solver="newton-cholesky").fit(features, p.correct)
    ours = make("beta").fit(p).parameters
    assert min(ours["a"], ours["b"]) > 0
    np.testing.assert_allclose([ours["a"], ours["b"]], peer.coef_[0], atol=1e-6)
    assert ours["c"] == pytest.approx(float(peer.intercept_[0]), abs=1e-6)


def test_histogram_is_that_of_verified_calibration():
    peer = pytest.importorskip("calibration.utils")
    for p in (draw_rows(503, 4, 4), tied(200, 3, 5)):
        q = others(p)
        bins = peer.get_equal_bins(p.confidence.tolist(), num_bins=15)
        theirs = peer.get_histogram_calibrator(p.confidence.tolist(), p.correct.tolist(), bins)(q.confidence)
        np.testing.assert_allclose(make("histogram").fit(p).apply(q).confidence, theirs, atol=1e-12)


def test_scaling_binning_is_that_of_verified_calibration():
    """Its Platt is penalised a little and stops early, so its bins are taken on our values."""
    peer = pytest.importorskip("calibration.utils")
    p = draw_rows(503, 4, 6)
    values = make("platt").fit(p).apply(p).confidence
    theirs = peer.get_discrete_calibrator(values, peer.get_equal_bins(values.tolist(), num_bins=15))(values)
    np.testing.assert_allclose(make("scaling_binning").fit(p).apply(p).confidence, theirs, atol=1e-9)


# -- rows that teach little ---------------------------------------------------------------------


def absent(n=60):
    p = draw_rows(n, 4, 1)
    return Predictions.from_logits(p.values, np.minimum(p.labels, 2))


def answered(*, right):
    p = draw_rows(40, 3, 2)
    return Predictions.from_logits(p.values, p.predicted if right else (p.predicted + 1) % 3)


def huge():
    rng = np.random.default_rng(3)
    return Predictions.from_logits(1e4 * rng.integers(-1, 2, size=(50, 3)).astype(float), rng.integers(0, 3, size=50))


HARD = {
    "absent class": absent,
    "one class": lambda: Predictions.from_logits(draw_rows(30, 3, 4).values, np.ones(30, dtype=int)),
    "all correct": lambda: answered(right=True),
    "all wrong": lambda: answered(right=False),
    "constant scores": lambda: Predictions.from_probs([[0.5, 0.3, 0.2]] * 20, [0, 0, 1, 2] * 5),
    "constant logits": lambda: Predictions.from_logits(np.zeros((20, 3)), [0, 0, 1, 2] * 5),
    "constant and all correct": lambda: Predictions.from_probs([[0.7, 0.3]] * 10, [0] * 10),
    "two rows": lambda: Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0]),
    "two equal rows": lambda: Predictions.from_probs([[0.9, 0.1]] * 2, [0, 1]),
    "fewer rows than bins": lambda: draw_rows(7, 3, 5),
    "huge logits": huge,
    "enormous logits": lambda: Predictions.from_logits(huge().values * 1e300, huge().labels),
    "separated": lambda: Predictions.from_probs(
        [[s, 1 - s] for s in np.linspace(0.51, 0.99, 20)], (np.arange(20) < 8).astype(int)
    ),
    "certain and wrong": lambda: Predictions.from_probs(np.eye(3), [1, 2, 0]),
    "certain and right": lambda: Predictions.from_probs(np.eye(3), [0, 1, 2]),
    "float32": lambda: Predictions.from_logits(
        draw_rows(50, 3, 6).values.astype(np.float32), draw_rows(50, 3, 6).labels
    ),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("spec", SPECS)
def test_hard_rows_give_a_map_of_probabilities_and_a_word(spec, case):
    p = HARD[case]()
    fitted = make(spec).fit(p)
    assert fitted.fit.diagnosis
    assert fitted.fit.converged or fitted.fit.diagnosis.startswith("separable: ")
    restored = Map.from_dict(json.loads(fitted.to_json()))
    for q in (p, others(p)):
        r = fitted.apply(q)
        assert np.isfinite(r.probs).all()
        assert r.probs.min() >= 0
        assert r.probs.max() <= 1 + 1e-12
        np.testing.assert_allclose(r.probs.sum(axis=1), 1, atol=1e-9)
        np.testing.assert_array_equal(restored.apply(q).probs, r.probs)
        if fitted.keeps_argmax:
            np.testing.assert_array_equal(r.predicted, q.predicted)


@pytest.mark.parametrize("spec", ["platt", "beta"])
@pytest.mark.parametrize(("case", "expected"), [("all correct", 41 / 42), ("all wrong", 1 / 42)])
def test_one_answer_gives_laplaces_rule(spec, case, expected):
    fitted = make(spec).fit(HARD[case]())
    assert not fitted.fit.converged
    np.testing.assert_allclose(fitted.apply(draw_rows(20, 3, 9)).confidence, expected, atol=1e-9)


@pytest.mark.parametrize("spec", ["platt", "beta", "isotonic", "histogram", "centred_isotonic"])
def test_constant_scores_give_the_share_of_hits(spec):
    p = HARD["constant scores"]()
    np.testing.assert_allclose(make(spec).fit(p).apply(p).confidence, 0.5, atol=1e-9)


@pytest.mark.parametrize("spec", SPECS)
def test_the_order_of_rows_does_not_matter(spec):
    p = tied(64, 3, 4)
    other = make(spec).fit(p.take(np.random.default_rng(0).permutation(p.n)))
    np.testing.assert_allclose(other.apply(p).probs, make(spec).fit(p).apply(p).probs, atol=1e-9)


@pytest.mark.parametrize("spec", ["histogram:bins=0", "scaling_binning:bins=-1", "spline:knots=1"])
def test_options_out_of_range_are_refused(spec):
    with pytest.raises(ValueError, match="expected"):
        make(spec)


def test_promises_follow_the_scope():
    assert make("platt").keeps_argmax
    assert not make("platt:scope=ovr").keeps_argmax
    assert not make("platt:scope=ovr").fit(draw_rows(60, 3, 1)).keeps_argmax
    assert [make(s).complexity for s in ("platt", "platt:scope=ovr", "bbq", "bbq:scope=ovr")] == [1, 2, 3, 3]


@pytest.mark.parametrize("spec", SPECS)
def test_two_rows_a_class(spec):
    p = draw_rows(300, 150, 1)
    assert np.isfinite(make(spec).fit(p).apply(p).probs).all()
