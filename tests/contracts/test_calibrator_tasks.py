"""One list of promises about shapes and weights, run over every calibrator in the catalogue."""

import dataclasses
import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import find, make, names
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions
from calibrant.repairing.fit import fit

NAMES = names()
SCOPED = [name for name in NAMES if any(field.name == "scope" for field in dataclasses.fields(find(name)))]
SPECS = [
    *NAMES,
    *(f"{name}:scope=ovr" for name in SCOPED),
    "ets:loss=nll",
    "temperature:solver=gd1000",
    "bbq:score=bic",
]
TASKS = ("multiclass", "binary", "confidence", "choice")
PAIRS = [(spec, task) for spec in SPECS for task in TASKS if task in make(spec).tasks]
BY_FOLDS = {"ms_odir", "dirichlet"}  # their strengths are chosen by dealing rows, which weights do not repeat
BY_SEARCH = {"ets": 1e-4, "vector": 1e-4, "matrix": 1e-4, "svs": 1e-4, "sms": 1e-4}  # of an optimiser, in probability
N = 160


def rows(task, seed=0, n=N):
    """How to build predictions of this task from some of the rows, with ties among the scores."""
    rng = np.random.default_rng(seed)
    z = np.round(1.5 * rng.normal(size=(n, 4)), 1)
    exists = np.ones((n, 4), dtype=bool)
    exists[::3, 3] = exists[::5, 2] = False
    if task == "choice":
        y = np.where(exists, z + rng.gumbel(size=z.shape), -np.inf).argmax(axis=1)
        return lambda i, **more: Predictions.from_logits(2 * z[i], y[i], mask=exists[i], **more)
    if task == "multiclass":
        y = (z + rng.gumbel(size=z.shape))[:, :3].argmax(axis=1)
        return lambda i, **more: Predictions.from_logits(2 * z[i, :3], y[i], **more)
    y = (z[:, 0] - 1 + rng.logistic(size=n) > 0).astype(int)
    build = Predictions.binary if task == "binary" else Predictions.from_confidence
    return lambda i, **more: build(2 * z[i, 0], y[i], logits=True, **more)


def two(spec):
    """Calibrators of two classes alone get scores of two classes."""
    return make(spec).binary


def of_task(spec, task, seed=0, n=N):
    if task == "multiclass" and two(spec):
        rng = np.random.default_rng(seed)
        z, y = np.round(rng.normal(size=(n, 2)), 1), rng.integers(0, 2, n)
        return lambda i, **more: Predictions.from_logits(z[i], y[i], **more)
    return rows(task, seed, n)


@pytest.mark.parametrize(("spec", "task"), PAIRS)
def test_every_shape_it_names_is_repaired_and_kept(spec, task):
    p, other = (of_task(spec, task, seed)(np.arange(N)) for seed in (0, 1))
    fitted_map = fit(p, spec)
    q = fitted_map(other)
    assert (fitted_map.task, q.task, q.n) == (task, task, N)
    assert np.isfinite(q.probs).all()
    assert (q.probs >= 0).all()
    np.testing.assert_allclose(q.probs.sum(axis=1), 1, atol=1e-9)
    assert fitted_map.keeps_argmax == make(spec).keeps(task)
    if fitted_map.keeps_argmax:
        np.testing.assert_array_equal(q.predicted, other.predicted)
    if task == "choice":
        assert (q.probs[~other.row_data.option_mask] == 0).all()
        hot = fit(q, "fixed_temperature:T=1e5").apply(q)  # behind any map, however hot
        assert (hot.probs[~other.row_data.option_mask] == 0).all()
    again = Map.from_dict(json.loads(fitted_map.to_json()))
    np.testing.assert_array_equal(again.apply(other).probs, q.probs)


@pytest.mark.parametrize("spec", SPECS)
def test_other_shapes_are_refused_and_what_works_is_named(spec):
    for task in set(TASKS) - set(make(spec).tasks):
        p = rows(task)(np.arange(N))
        with pytest.raises(InputError, match=r"use one of .*temperature"):
            fit(p, spec)
        with pytest.raises(InputError):
            make(spec).fit(p)


@pytest.mark.parametrize("task", TASKS)
def test_a_map_takes_its_own_shape_only(task):
    fitted_map = fit(rows(task)(np.arange(N)), "temperature")
    for other in set(TASKS) - {task}:
        with pytest.raises(InputError, match=f"the task {task} "):
            fitted_map(rows(other)(np.arange(N)))
    with pytest.raises(InputError, match="damaged"):
        Map.from_dict(fitted_map.to_dict() | {"task": "square"})


@pytest.mark.parametrize(("spec", "task"), PAIRS)
def test_whole_weights_are_repeated_rows(spec, task):
    build, everyone = of_task(spec, task), np.arange(N)
    w = np.random.default_rng(3).integers(0, 4, N)
    other = of_task(spec, task, seed=1)(everyone)
    if spec.partition(":")[0] in BY_FOLDS:
        w = np.full(N, 3)
        weighted, repeated = fit(build(everyone, weights=w), spec), fit(build(everyone), spec)
    else:
        weighted, repeated = fit(build(everyone, weights=w), spec), fit(build(np.repeat(everyone, w)), spec)
    tolerance = BY_SEARCH.get(spec.partition(":")[0], 1e-9)
    np.testing.assert_allclose(weighted.apply(other).probs, repeated.apply(other).probs, atol=tolerance, rtol=0)
    assert weighted.fit.converged == repeated.fit.converged


@pytest.mark.parametrize(("spec", "task"), [pair for pair in PAIRS if pair[1] in ("classes", "binary")])
def test_scaling_weights_changes_nothing(spec, task):
    build, everyone = of_task(spec, task), np.arange(N)
    w = np.random.default_rng(4).random(N) + 0.1
    other = of_task(spec, task, seed=1)(everyone)
    one, thousand = (fit(build(everyone, weights=w * factor), spec).apply(other) for factor in (1, 1024))
    np.testing.assert_allclose(one.probs, thousand.probs, atol=1e-12)
    fitted_map = fit(build(everyone, weights=np.where(everyone < N // 2, 1.0, 1e-9)), spec)
    alone = fit(build(np.arange(N // 2)), spec).apply(other)
    smooth = not any(isinstance(step, Curves) for step in fitted_map.steps)  # knots stand at scores of light rows too
    if smooth and not make(spec).picks:
        np.testing.assert_allclose(fitted_map.apply(other).probs, alone.probs, atol=1e-4)


def test_a_group_of_options_of_another_number_is_taken():
    fitted_map = fit(rows("choice")(np.arange(N)), "ets")
    z, exists = np.random.default_rng(0).normal(size=(20, 6)), np.ones((20, 6), dtype=bool)
    exists[:, 5] = False
    q = fitted_map(Predictions.from_logits(z, z[:, :5].argmax(axis=1), mask=exists))
    assert (q.probs[:, 5] == 0).all()
    hot, plain, flat = fitted_map.steps[0].weights
    e = np.exp(z[:, :5])
    h = np.exp(z[:, :5] / fitted_map.steps[0].T)
    expected = hot * h / h.sum(1, keepdims=True) + plain * e / e.sum(1, keepdims=True) + flat / 5
    np.testing.assert_allclose(q.probs[:, :5], expected, atol=1e-12)


def test_what_is_left_is_shared_among_options_that_exist():
    p = Predictions.from_logits([[900.0, 0.0, 0.0], [900.0, 0.0, -np.inf]], [0, 0])
    q = p.with_confidence([0.4, 0.4])
    np.testing.assert_allclose(q.probs, [[0.4, 0.3, 0.3], [0.4, 0.6, 0.0]])


def test_temperature_of_choices_is_that_of_rows_of_one_width():
    rng = np.random.default_rng(2)
    z, y = 2 * rng.normal(size=(300, 4)), rng.integers(0, 4, 300)
    y[:200] = z[:200].argmax(axis=1)
    wide = np.full((300, 7), -np.inf)
    wide[:, :4] = z
    plain, choices = (
        fit(Predictions.from_logits(z, y), "temperature"),
        fit(Predictions.from_logits(wide, y), "temperature"),
    )
    assert choices.parameters == pytest.approx(plain.parameters, rel=1e-9)
    assert choices.fit.gradient < 1e-9
    wrong = (z.argmin(axis=1)).astype(int)
    assert make("temperature").fit(Predictions.from_logits(wide, wrong)).fit.diagnosis == "anti-informative"


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_a_cluster_stay_together(task):
    clusters = np.repeat(np.arange(N // 4), 4)
    p = rows(task)(np.arange(N), clusters=clusters)
    from calibrant.core.statistics.cross_fit import folds_by_confidence, random_folds

    for fold in (folds_by_confidence(p, 5), random_folds(p, 5, 0)):
        assert all(len(set(fold[clusters == c])) == 1 for c in range(N // 4))
        assert np.bincount(fold).tolist() == [N // 5] * 5
    choice = cal.choose(p)
    assert np.isfinite(choice.candidates[1].nll)
    with pytest.raises(InputError, match="clusters"):
        cal.choose(p, folds=N // 2)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("by", ["temperature", "isotonic"])
@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_refinement_of_every_shape_with_weights(task, by, loss):
    w = np.random.default_rng(5).random(N) + 0.1
    p = rows(task)(np.arange(N), weights=w)
    refinement = cal.measures.make(f"refinement:by={by},loss={loss}")(p)
    calibration = cal.measures.make(f"calibration:by={by},loss={loss}")(p)
    whole = cal.measures.make(loss)(p)
    assert refinement + calibration == pytest.approx(whole, abs=1e-12)
    assert 0 < refinement < (2 if by == "isotonic" else whole + 0.02)


@pytest.mark.parametrize("task", TASKS)
def test_decompositions_add_up_and_weights_repeat_rows(task):
    build, w = rows(task), np.random.default_rng(6).integers(0, 4, N)
    weighted, repeated = build(np.arange(N), weights=w), build(np.repeat(np.arange(N), w))
    a, b = cal.decompose(weighted), cal.decompose(repeated)
    assert a["brier"] == pytest.approx(b["brier"], abs=1e-12)
    assert a["ece"] == pytest.approx(b["ece"], abs=1e-12)
    t = a["brier"]
    parts = t["reliability"] - t["resolution"] + t["uncertainty"] + t["within_variance"] - t["within_covariance"]
    assert parts == pytest.approx(t["brier_top"], abs=1e-12)
    if task in ("binary", "confidence"):
        assert t["brier_top"] == pytest.approx(cal.measures.make("brier")(weighted), abs=1e-12)
    shares = build(np.arange(N), weights=np.random.default_rng(7).random(N))
    assert sum(cal.decompose(shares)["losses"]["nll, isotonic"].values()) > 0


@pytest.mark.parametrize("labels", ["some right", "all right", "all wrong"])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_by_one_margin_and_by_all_logits_agree(labels, weighted):
    """A third option that no row has makes the general way of the same problem."""
    rng = np.random.default_rng(8)
    z = (3 * rng.normal(size=(5000, 2))).astype(np.float32)
    top = z.argmax(axis=1)
    y = {"some right": np.where(rng.random(5000) < 0.7, top, 1 - top), "all right": top, "all wrong": 1 - top}[labels]
    w = rng.random(5000) if weighted else None
    wide = np.concatenate([z, np.full((5000, 1), -np.inf, dtype=np.float32)], axis=1)
    margin, general = (make("temperature").fit(Predictions.from_logits(s, y, weights=w)) for s in (z, wide))
    assert margin.parameters == pytest.approx(general.parameters, rel=1e-6)
    assert margin.parameters["T"] == pytest.approx(general.parameters["T"], rel=1e-9)
    assert margin.fit.diagnosis == general.fit.diagnosis


@pytest.mark.parametrize("distinct", [40_000, 500])
def test_fingerprints_of_many_rows_hold_the_smallest_hashes(distinct):
    from calibrant.core.maps.leak_check import KEPT, Fingerprint, _hash_rows

    rng = np.random.default_rng(9)
    p = Predictions.binary(rng.normal(size=distinct)[rng.integers(0, distinct, 40_000)], np.zeros(40_000), logits=True)
    fingerprint, (hashes, counts) = Fingerprint.of(p), np.unique(_hash_rows(p), return_counts=True)
    assert min(KEPT // 4, len(hashes)) <= len(fingerprint.hashes) <= KEPT
    np.testing.assert_array_equal(fingerprint.hashes, hashes[: len(fingerprint.hashes)])
    np.testing.assert_array_equal(fingerprint.counts, counts[: len(fingerprint.hashes)])
    assert fingerprint.share_seen(p) == 1.0
