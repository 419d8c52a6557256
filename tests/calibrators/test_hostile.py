"""Every calibrator on logits that nobody should have: each fits, applies finitely and survives its JSON."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.calibrators import CATALOGUE
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions

SLOW = ("dirichlet", "ms_odir")  # 36 fits each
EACH_CLASS = ("platt:scope=ovr", "beta:scope=ovr", "histogram:scope=ovr", "bbq:scope=ovr", "venn_abers:scope=ovr")
PAPERS = ("vector:solver=gd1000", "matrix:solver=gd1000", "temperature:solver=gd1000")
SPECS = (*CATALOGUE.names(), *EACH_CLASS, *PAPERS)


@functools.cache
def hostile(k: int, n: int = 24) -> dict[str, Predictions]:
    rng = np.random.default_rng(k)
    z = rng.normal(size=(n, k))
    top = z.argmax(axis=1)
    labels = np.where(rng.random(n) < 0.7, top, rng.integers(0, k, n))
    size = z / np.abs(z).max()
    each = {
        **{f"{far:g}": (size * far, labels) for far in (500.0, 1e4, 1e30, 1e308)},
        "two ends": (np.where(z > 0, 1.79e308, -1.79e308), labels),
        "mixed rows": (size * 10.0 ** rng.integers(-300, 308, (n, 1)), labels),
        "mixed columns": (size * 10.0 ** rng.integers(-5, 300, (n, k)), labels),
        "constant": (np.full((n, k), 3.0), labels),
        "constant rows": (np.repeat(size[:, :1] * 1e308, k, axis=1), labels),
        "shifted rows": (z + 1e6 * rng.normal(size=(n, 1)), labels),
        "tiny": (z * 1e-300, labels),
        "one row": (z[:1] * 500, labels[:1]),
        "two rows": (z[:2], labels[:2]),
        "one class": (z * 1e4, np.zeros(n, dtype=np.int64)),
        "always right": (z * 500, top),
        "always wrong": (z * 500, (top + 1) % k),
        "float32": ((size * 3e38).astype(np.float32), labels),
    }
    return {name: Predictions.from_logits(one, y) for name, (one, y) in each.items()}


def check(spec: str, p: Predictions, *others: Predictions) -> None:
    m = CATALOGUE.make(spec).fit(p)  # which cal.fit does not ask where outcomes are all alike
    again = Map.from_dict(m.to_dict())
    assert again.to_json() == m.to_json()
    for q in (p, *others):
        out = m.apply(q)
        assert np.isfinite(out.values).all()
        assert (out.probs >= 0).all()
        np.testing.assert_allclose(out.probs.sum(axis=1), 1, atol=1e-9)
        assert np.array_equal(again.apply(q).probs, out.probs)
        if m.keeps_argmax:
            of_predicted = out.values[np.arange(q.n), q.predicted]
            tied = of_predicted == out.values.max(axis=1)  # 1e-300 over a T of 1e29 is 0 in every class
            assert np.all((out.predicted == q.predicted) | tied)


@pytest.mark.parametrize("spec", SPECS)
def test_what_fits_applies_finitely(spec):
    recipe = CATALOGUE.make(spec)
    for k in (2,) if recipe.binary or spec in (*SLOW, *PAPERS, "temperature_ece") else (2, 5):
        cases = hostile(k)
        names = ("1e+308", "500", "mixed rows", "one row", "one class") if spec in SLOW else cases
        for name in names:
            check(spec, cases[name], cases["two ends"], cases["shifted rows"])


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("k", [2, 3, 10, 50])
def test_what_fits_applies_finitely_for_more_classes(spec, k):
    if CATALOGUE.make(spec).binary and k > 2:
        return
    cases = hostile(k, 60)
    for p in cases.values():
        check(spec, p, *cases.values(), Predictions.from_probs(p.probs, p.labels))


QUICK = ("temperature", "vector", "svs", "isotonic", "isotonic_ovr", "platt", "platt:scope=ovr", "beta", "ets", "irm")


@given(data=st.data(), k=st.integers(2, 4), n=st.integers(1, 6), spec=st.sampled_from(QUICK))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_finite_logits_at_all(data, k, n, spec):
    rows = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=k, max_size=k)
    z = np.array(data.draw(st.lists(rows, min_size=n, max_size=n)))
    labels = data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    check(spec, Predictions.from_logits(z, labels))


def test_one_row_that_says_nothing_beside_one_of_logits_hundreds_apart():
    """The bound of the gradient and the interval of T overflow, which is no reason to complain."""
    p = Predictions.from_logits(np.array([[0.0, 1.0, -702.0], [0.0, 0.0, 6.5e-103]]), [1, 0])
    check("temperature", p)


@given(
    weight=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=9, max_size=9),
    bias=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
    shape=st.sampled_from([(), (3,), (3, 3)]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_finite_weights_at_all(weight, bias, shape):
    size = int(np.prod(shape))
    m = Map(calibrator="by hand", k=3, steps=(Linear(np.array(weight[:size]).reshape(shape), np.array(bias)),))
    for p in hostile(3).values():
        out = m.apply(p)
        assert np.isfinite(out.values).all()
        np.testing.assert_allclose(out.probs.sum(axis=1), 1, atol=1e-9)


def test_a_huge_weight_picks_the_largest():
    """softmax(1e308 z) is one for the largest logit, and even where two are equal."""
    p = Predictions.from_logits([[500.0, 500.0 - 1e-9, -3.0], [2.0, 2.0, 1.0]], [0, 1])
    out = Map(calibrator="by hand", k=3, steps=(Linear(np.array(1e308), np.array(0.0)),)).apply(p)
    assert out.probs.tolist() == [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]


def test_temperature_does_not_depend_on_the_scale():
    """Logits a million million times larger need a temperature a million million times higher."""
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(200, 3))
    labels = np.where(rng.random(200) < 0.6, z.argmax(axis=1), rng.integers(0, 3, 200))
    small, large = (
        cal.fit(Predictions.from_logits(z * s, labels), "temperature").parameters["T"] for s in (1, 2.0**40)
    )
    assert large / 2.0**40 == pytest.approx(small, rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nothing_that_is_not_finite_is_written(bad, tmp_path):
    with pytest.raises(InputError, match="finite numbers"):
        Map(calibrator="by hand", k=2, steps=(Linear(np.array([1.0, bad]), np.zeros(2)),))
    p = Predictions._from_valid(np.array([[bad, 0.0], [1.0, 0.0]]), np.zeros(2, dtype=np.int64), "logits")
    for suffix in ("npz", "parquet", "csv"):
        with pytest.raises(InputError, match="finite predictions"):
            p.save(tmp_path / f"p.{suffix}")
    assert not list(tmp_path.iterdir())


def test_a_full_matrix_of_too_many_classes_is_refused():
    p = Predictions.from_logits(np.zeros((2, 3001)), [0, 1])
    for spec in ("matrix", "sms"):
        with pytest.raises(InputError, match="use svs, vector or temperature"):
            cal.fit(p, spec)


def test_classes_without_a_row_take_no_part_in_the_fit():
    """With most classes absent, `vector` finds the optimum among the two that have rows."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(40, 9))
    labels = rng.choice([2, 7], 40)
    p = Predictions.from_logits(z, labels)
    m = cal.fit(p, "vector")
    step = m.steps[0]
    assert m.fit.converged
    assert "7 classes (0, 1, 3, ...) are not among the labels" in m.fit.diagnosis
    two = Predictions.from_logits(z[:, [2, 7]], (labels == 7).astype(int))
    for c in (2, 7):
        for array in (step.weight, step.bias):
            for by in (-1e-3, 1e-3):
                moved = array.copy()
                moved[c] += by
                pair = (moved, step.bias) if array is step.weight else (step.weight, moved)
                assert -Linear(*(one[[2, 7]] for one in pair))(two).true_log_prob.mean() > m.parameters["objective"]
    for c in (0, 1, 3, 4, 5, 6, 8):
        assert step.weight[c] == pytest.approx(step.weight[[2, 7]].mean())
        assert step.bias[c] == pytest.approx(step.bias[[2, 7]].mean())


# -- few rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4])
def test_auto_needs_no_more_folds_than_rows(n):
    p = Predictions.from_probs([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]][:n], [0, 1, 1, 1][:n])
    assert cal.choose(p).map.k == 2
    with pytest.raises(InputError, match=rf"expected 2 to {n} \(the rows\), got 5\. To fix it: use {n}\."):
        cal.choose(p, folds=5)


def test_one_row_is_too_few_for_folds():
    p = Predictions.from_probs([[0.9, 0.1]], [0])
    with pytest.raises(InputError, match="at least 2 rows, got 1"):
        cal.choose(p)


@pytest.mark.parametrize("spec", ["dirichlet", "ms_odir"])
def test_one_row_takes_the_strongest_penalty(spec):
    m = CATALOGUE.make(spec).fit(Predictions.from_probs([[0.6, 0.4]], [0]))
    assert m.parameters["strength"] == 1e4
    assert "nan" not in repr(m)  # no score was counted
    assert "score" not in m.parameters
    assert np.isfinite(m.steps[-1].weight).all()
