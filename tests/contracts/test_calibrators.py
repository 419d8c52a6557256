"""One list of promises, run over every calibrator in the catalogue."""

import dataclasses
import json
import math
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from entry_docstrings import check_docstring

import calibrant as cal
from calibrant.calibrators import Calibrator, find, make, names
from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.repairing.fit import fit

NAMES = names()
SCOPED = [name for name in NAMES if any(field.name == "scope" for field in dataclasses.fields(find(name)))]
SPECS = [*NAMES, *(f"{name}:scope=ovr" for name in SCOPED), "temperature+isotonic", "ets:loss=nll"]
RAW_SIGMOIDS = "platt:scope=ovr"  # of single logits: they do not hold the softmax, as its caution says
SHARPNESS = 2.5


def draw_rows(n, k, seed, *, sharpness=1.0, scale=1.5):
    """Logits and labels drawn from their softmax: calibrated when sharpness is 1, overconfident above."""
    rng = np.random.default_rng(seed)
    z = scale * rng.normal(size=(n, k))
    return sharpness * z, (z + rng.gumbel(size=(n, k))).argmax(axis=1)


def recipes(spec):
    return [make(one) for one in spec.split("+")]


def keeps_argmax(spec):
    return all(one.keeps_argmax for one in recipes(spec))


def classes(spec):
    return 2 if any(one.binary for one in recipes(spec)) else 3


def last(spec):
    """The recipe whose probabilities come out."""
    return recipes(spec)[-1]


def data(spec, n=300, seed=0, *, sharpness=SHARPNESS):
    return Predictions.from_logits(*draw_rows(n, classes(spec), seed, sharpness=sharpness))


def brier_rows(p):
    return ((p.probs - np.eye(p.k)[p.labels]) ** 2).sum(axis=1)


def loss_rows(spec, p):
    """The loss of each row that this calibrator is judged by."""
    return brier_rows(p) if last(spec).says_zero else -p.true_log_prob


def same(a, b, atol=0.0):
    return np.allclose(a.probs, b.probs, rtol=0, atol=atol) and np.array_equal(a.predicted, b.predicted)


def is_valid(q):
    return bool(np.isfinite(q.probs).all() and (q.probs >= 0).all() and np.allclose(q.probs.sum(axis=1), 1, atol=1e-9))


# -- what it says about itself --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    cls = find(name)
    assert cls.title
    assert cls.title[0].isupper()
    assert cls.reference
    assert isinstance(cls.keeps_argmax, bool)
    assert isinstance(cls.binary, bool)
    assert cls.complexity in (0, 1, 2, 3)
    assert (cls.complexity == 0) == (name == "identity")


def test_titles_are_unique_and_the_issue_is_there():
    titles = [find(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)
    asked = """identity temperature temperature_ece fixed_temperature vector matrix ms_odir dirichlet platt beta
    histogram isotonic isotonic_ovr irm bbq ets spline scaling_binning svs sms quadratic affine centred_isotonic
    venn_abers"""
    assert set(asked.split()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_a_summary_a_caution_and_an_example(name):
    check_docstring(find(name))


@pytest.mark.parametrize("name", NAMES)
def test_is_a_frozen_dataclass(name):
    recipe = make(name)
    assert isinstance(recipe, Calibrator)
    assert dataclasses.is_dataclass(recipe)
    assert recipe == find(name)()
    assert hash(recipe) == hash(find(name)())
    for field in (*(f.name for f in dataclasses.fields(recipe)), "something"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(recipe, field, 1)


# -- names and options ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_default_spec_is_the_name(name):
    assert spec_of(make(name)) == name


@pytest.mark.parametrize("name", NAMES)
def test_unknown_option_is_refused_with_the_nearest(name):
    options = [field.name for field in dataclasses.fields(find(name))]
    if not options:
        with pytest.raises(InputError, match="has no options"):
            make(f"{name}:bins=5")
        return
    with pytest.raises(InputError, match="did you mean"):
        make(f"{name}:{options[0]}x=1")


@pytest.mark.parametrize("name", NAMES)
def test_wrong_values_are_refused(name):
    hints = get_type_hints(find(name))
    for field in dataclasses.fields(find(name)):
        hint = hints[field.name]
        wrong = ["abc", ""]
        if hint is float:
            wrong += ["nan", "inf"]
        if get_origin(hint) is Literal:
            wrong += [f"{word}x" for word in get_args(hint)]
        for text in wrong:
            with pytest.raises(InputError):
                make(f"{name}:{field.name}={text}")
        if get_origin(hint) is Literal:
            with pytest.raises(InputError):
                find(name)(**{field.name: "tpo"})


@pytest.mark.parametrize("name", [name for name in NAMES if find(name).binary])
def test_two_classes_only_is_said(name):
    with pytest.raises(InputError, match="two classes"):
        fit(Predictions.from_logits(*draw_rows(30, 3, 0)), name)


# -- the fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_leaves_its_input_alone(spec):
    p, fresh = data(spec), data(spec)
    fitted_map = fit(p, spec)
    fitted_map.apply(p)
    assert np.array_equal(p.values, fresh.values)
    assert np.array_equal(p.labels, fresh.labels)
    assert np.array_equal(p.probs, fresh.probs)
    assert np.array_equal(p.confidence, fresh.confidence)
    assert fitted_map.k == p.k
    assert fitted_map.keeps_argmax == keeps_argmax(spec)
    assert fitted_map.fit.converged, fitted_map.fit
    assert fitted_map.fit.gradient is None or fitted_map.fit.gradient < 1e-6
    assert last(spec).says_zero or (fitted_map.apply(p).probs > 0).all()


@pytest.mark.parametrize("spec", SPECS)
def test_same_data_same_map(spec):
    assert fit(data(spec), spec).to_json() == fit(data(spec), spec).to_json()


@pytest.mark.parametrize("spec", SPECS)
def test_does_not_see_the_order_of_rows(spec):
    p, other = data(spec), data(spec, seed=1)
    order = np.random.default_rng(2).permutation(p.n)
    calibrated, again = fit(p, spec).apply(other), fit(p.take(order), spec).apply(other)
    if last(spec).picks:
        assert abs(calibrated.true_log_prob.mean() - again.true_log_prob.mean()) < 0.05
    else:
        assert same(calibrated, again, 1e-5 if last(spec).complexity > 1 else 1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_learns_from_the_rows_if_it_says_so(name):
    one, other = (fit(data(name, seed=seed, sharpness=sharpness), name) for seed, sharpness in ((0, 1.0), (1, 4.0)))
    assert (one.to_dict()["steps"] != other.to_dict()["steps"]) == find(name).learns


@pytest.mark.parametrize("spec", [spec for spec in SPECS if last(spec).learns])
def test_repairs_overconfidence(spec):
    """Logits times 2.5; on other rows the loss falls, beyond four standard errors."""
    val, test = data(spec, 2000, seed=3), data(spec, 2000, seed=4)
    fitted_map = fit(val, spec).apply(test)
    change = loss_rows(spec, fitted_map) - loss_rows(spec, test)
    assert change.mean() + 4 * change.std() / math.sqrt(test.n) < 0, (change.mean(), change.std())
    if last(spec).holds_temperature:
        truth = test.with_temperature(SHARPNESS)
        worse = -fitted_map.true_log_prob.mean() + truth.true_log_prob.mean()
        assert worse < 0.02, "not near the loss of the truth"


@pytest.mark.parametrize("spec", SPECS)
def test_leaves_calibrated_data_about_as_it_is(spec):
    """On other rows not worse than nothing by more than its parameters' cost, d / 2n each, and four standard errors."""
    if not last(spec).learns or spec == RAW_SIGMOIDS:
        return
    val, test = data(spec, 2000, seed=5, sharpness=1.0), data(spec, 2000, seed=6, sharpness=1.0)
    change = loss_rows(spec, fit(val, spec).apply(test)) - loss_rows(spec, test)
    parameters = 15 * classes(spec)
    assert change.mean() < parameters / (2 * val.n) + 4 * change.std() / math.sqrt(test.n)
    assert abs(change.mean()) < 0.05


# -- predictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [spec for spec in SPECS if keeps_argmax(spec)])
@pytest.mark.parametrize("rows", ["usual", "ties", "saturated", "float32 ties", "other rows"])
def test_keeps_predictions_if_it_says_so(spec, rows):
    k, rng = classes(spec), np.random.default_rng(7)
    p = data(spec, 200, seed=8)
    ties = rng.integers(-2, 3, size=(200, k))
    q = {
        "usual": p,
        "ties": Predictions.from_logits(ties.astype(np.float64), p.labels),
        "saturated": Predictions.from_logits(1e4 * np.sign(ties), p.labels),
        "float32 ties": Predictions.from_logits((ties * 0.1).astype(np.float32), p.labels),
        "other rows": Predictions.from_logits(*draw_rows(200, k, 9, sharpness=30.0)),
    }[rows]
    for learnt_on in (p, q):
        out = fit(learnt_on, spec).apply(q)
        assert np.array_equal(out.predicted, q.predicted)
        assert np.array_equal(out.correct, q.correct)
        assert is_valid(out)


@pytest.mark.parametrize("spec", SPECS)
def test_survives_json(spec, tmp_path):
    p, other = data(spec), data(spec, seed=1)
    fitted_map = fit(p, spec)
    fitted_map.save(tmp_path / "map.json")
    expected = fitted_map.apply(other)
    for again in (Map.from_dict(fitted_map.to_dict()), cal.load_map(tmp_path / "map.json")):
        out = again.apply(other)
        assert np.array_equal(out.probs, expected.probs)
        assert np.array_equal(out.predicted, expected.predicted)
        assert again.to_json() == fitted_map.to_json()
        assert (again.calibrator, again.k, again.keeps_argmax, again.fit) == (
            fitted_map.calibrator,
            fitted_map.k,
            fitted_map.keeps_argmax,
            fitted_map.fit,
        )
        with pytest.warns(cal.LeakWarning):
            again(p)
    assert [file.name for file in tmp_path.iterdir()] == ["map.json"]
    assert json.loads((tmp_path / "map.json").read_text())["calibrator"] == spec


@pytest.mark.parametrize("spec", SPECS)
def test_takes_probabilities_and_single_precision(spec):
    p = data(spec, sharpness=1.0)
    probs = Predictions.from_probs(p.probs, p.labels)
    single = Predictions.from_logits(p.logits.astype(np.float32), p.labels)
    half = Predictions.from_probs(p.probs.astype(np.float32), p.labels)
    expected = fit(p, spec).apply(p)
    for other in (probs, single, half):
        out = fit(other, spec).apply(other)
        assert out.probs.dtype == np.float64
        assert is_valid(out)
        if other is single or not (last(spec).sees_constants or spec == RAW_SIGMOIDS):
            assert np.abs(out.probs - expected.probs).max() < (0.1 if last(spec).picks else 1e-3)


# -- rows that teach little or nothing ------------------------------------------------------------


def hard(name, k):
    z, y = draw_rows(40, k, 10)
    top = z.argmax(axis=1)
    cases = {
        "missing class": (z, np.minimum(y, k - 2)),
        "one class": (z, np.zeros(40, dtype=int)),
        "all correct": (z, top),
        "all wrong": (z, (top + 1) % k),
        "constant logits": (np.full((40, k), 0.3), y),
        "zero logits, one class": (np.zeros((40, k)), np.zeros(40, dtype=int)),
        "two rows": (z[:2], y[:2]),
        "two rows of one class": (z[:2], np.array([1, 1])),
        "fewer rows than numbers": (z[:6], y[:6]),
        "huge logits": (1e4 * np.sign(z), y),
        "huge logits, all correct": (1e4 * z, top),
        "huge logits, all wrong": (1e4 * z, (top + 1) % k),
        "tiny logits": (1e-12 * z, y),
        "repeated row": (np.tile(z[:1], (40, 1)), y),
    }
    return Predictions.from_logits(*cases[name])


HARD = [
    "missing class",
    "one class",
    "all correct",
    "all wrong",
    "constant logits",
    "zero logits, one class",
    "two rows",
    "two rows of one class",
    "fewer rows than numbers",
    "huge logits",
    "huge logits, all correct",
    "huge logits, all wrong",
    "tiny logits",
    "repeated row",
]


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("spec", SPECS)
def test_hard_rows_give_a_valid_map(spec, case):
    """Never NaN, never a warning (they are errors here), never a refusal."""
    k = classes(spec) if classes(spec) == 2 else 4
    p = hard(case, k)
    fitted_map = fit(p, spec)
    assert fitted_map.fit.diagnosis
    if not fitted_map.fit.converged:
        assert fitted_map.fit.diagnosis != "converged"
    again = Map.from_dict(json.loads(fitted_map.to_json()))
    for q in (p, Predictions.from_logits(*draw_rows(50, k, 11)), hard("huge logits", k)):
        assert is_valid(again.apply(q))
        assert again.apply(q).predicted.shape == (q.n,)
        if fitted_map.keeps_argmax:
            assert np.array_equal(again.apply(q).predicted, q.predicted)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_map_is_made_from_nan(bad):
    z, y = draw_rows(20, 3, 0)
    z[3, 1] = bad
    with pytest.raises(InputError, match="finite numbers"):
        fit(Predictions.from_logits(z, y))
