"""Maps: chains, groups, the leak guard, JSON that may be damaged, and the prediction that top maps carry along."""

import copy
import json
import os
import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import make
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves, Linear, LogProbs, Mix, Sigmoid
from calibrant.core.predictions import Predictions


def draw_predictions(n=200, k=3, seed=0, *, sharpness=2.5, **extras):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    return Predictions.from_logits(sharpness * z, (z + rng.gumbel(size=(n, k))).argmax(axis=1), **extras)


# -- chains ---------------------------------------------------------------------------------------


def test_a_chain_is_each_calibrator_on_what_the_one_before_gives():
    p, other = draw_predictions(), draw_predictions(seed=1)
    m = cal.fit(p, "temperature+isotonic")
    first = make("temperature").fit(p)
    second = make("isotonic").fit(first.apply(p))
    assert m.calibrator == "temperature+isotonic"
    assert len(m.steps) == len(first.steps) + len(second.steps)
    assert m.parameters["temperature.T"] == first.parameters["T"]
    expected = second.apply(first.apply(other))
    assert np.array_equal(m.apply(other).probs, expected.probs)
    assert np.array_equal(m.apply(other).predicted, other.predicted)
    assert m.keeps_argmax


def test_spaces_and_options_in_a_chain():
    m = cal.fit(draw_predictions(), " temperature + histogram:bins=4 ")
    assert m.calibrator == "temperature+histogram:bins=4"
    assert not cal.fit(draw_predictions(), "temperature+vector").keeps_argmax


@pytest.mark.parametrize("what", ["temperature+", "+", "", "temperature+isotonik", "temperature+affine"])
def test_a_broken_chain_is_refused(what):
    with pytest.raises(InputError):
        cal.fit(draw_predictions(), what)


def test_a_chain_reports_the_first_that_failed():
    p = Predictions.from_logits([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0]] * 4, [0, 1, 0] * 4)
    m = cal.fit(p, "temperature+isotonic")
    assert not m.fit.converged
    assert m.fit.diagnosis == "temperature: constant scores"


# -- groups ---------------------------------------------------------------------------------------


@pytest.fixture
def grouped():
    """Group a needs T = 3, group b T = 0.5; c has a single row."""
    a, b = draw_predictions(400, seed=2, sharpness=3.0), draw_predictions(400, seed=3, sharpness=0.5)
    logits = np.concatenate([a.logits, b.logits, [[1.0, 0.0, 0.0]]])
    groups = np.array(["a"] * 400 + ["b"] * 400 + ["c"])
    return Predictions.from_logits(logits, np.concatenate([a.labels, b.labels, [0]]), groups=groups)


def test_one_map_per_group(grouped):
    m = cal.fit(grouped, "temperature", by_group=True)
    assert set(m.groups) == {"a", "b"}  # one row teaches nothing
    assert m.groups["a"].parameters["T"] == pytest.approx(3.0, rel=0.3)
    assert m.groups["b"].parameters["T"] == pytest.approx(0.5, rel=0.3)
    whole = cal.fit(grouped, "temperature")
    new = draw_predictions(6, seed=4, groups=np.array(["a", "b", "c", "never seen", "b", "a"]))
    got = m.apply(new).probs
    for row, one in enumerate([m.groups["a"], m.groups["b"], whole, whole, m.groups["b"], m.groups["a"]]):
        expected = one.apply(Predictions._from_valid(new.logits[[row]], new.labels[[row]], "logits")).probs[0]
        np.testing.assert_allclose(got[row], expected, atol=1e-15)
    assert np.array_equal(m.apply(new).groups, new.groups)


def test_groups_survive_json_and_may_be_numbers(grouped, tmp_path):
    numbered = Predictions.from_logits(grouped.logits, grouped.labels, groups=np.array([7] * 400 + [8] * 400 + [9]))
    m = cal.fit(numbered, "isotonic", by_group=True)
    m.save(tmp_path / "m.json")
    again = cal.load_map(tmp_path / "m.json")
    assert set(again.groups) == {"7", "8"}
    new = draw_predictions(60, seed=5, groups=np.arange(60) % 4 + 6)
    assert np.array_equal(again.apply(new).probs, m.apply(new).probs)
    assert np.array_equal(again.apply(new).predicted, new.predicted)


def test_groups_that_are_missing_are_asked_for(grouped):
    with pytest.raises(InputError, match="add a column group"):
        cal.fit(draw_predictions(), "temperature", by_group=True)
    m = cal.fit(grouped, "temperature", by_group=True)
    with pytest.raises(InputError, match="add a column group"):
        m.apply(draw_predictions())
    with pytest.raises(InputError, match="predictions of 3 classes"):
        m.apply(draw_predictions(k=4, groups=np.array(["a"] * 200)))


# -- the leak guard -------------------------------------------------------------------------------


def rows(p, which):
    order = np.random.default_rng(6).permutation(p.n)
    return p.take({"same": np.arange(p.n), "permuted": order, "half": order[: p.n // 2], "a few": order[:40]}[which])


@pytest.mark.parametrize("which", ["same", "permuted", "half", "a few"])
def test_fitting_rows_are_noticed(which):
    p = draw_predictions(400)
    m = cal.fit(p, "temperature")
    with pytest.warns(LeakWarning, match=r"about 100 % of these rows are among those this map was fitted on"):
        q = m(rows(p, which))
    assert q.row_data.seen == 1.0
    with pytest.warns(LeakWarning, match=r"was fitted on about 100 % of them"):
        cal.measure(q, "ece", resamples=0)


def test_other_rows_are_not():
    p = draw_predictions(400)
    m = cal.fit(p, "temperature")
    for seed in range(1, 6):
        q = m(draw_predictions(2000, seed=seed))
        assert q.row_data.seen == 0
        cal.measure(q, "ece", resamples=0)
    moved = Predictions.from_logits(p.logits + 1e-3 * np.random.default_rng(0).normal(size=p.logits.shape), p.labels)
    assert m(moved).row_data.seen == 0  # other numbers are other rows
    relabelled = Predictions.from_logits(p.logits, (p.labels + 1) % 3)
    assert m(relabelled).row_data.seen == 0


def test_the_form_of_the_numbers_does_not_hide_the_rows():
    p = draw_predictions(400)
    m = cal.fit(p, "temperature")
    for form in (Predictions.from_probs(p.probs, p.labels), Predictions.from_logits(p.logits + 3.0, p.labels)):
        with pytest.warns(LeakWarning):
            q = m(form)
        assert q.row_data.seen > 0.5


@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv"])
@pytest.mark.parametrize("name", ["temperature", "isotonic"])
def test_seen_and_predictions_survive_files(suffix, name, tmp_path):
    p = draw_predictions(100)
    m = cal.fit(p, name)
    with pytest.warns(LeakWarning):
        q = m(p)
    q.save(tmp_path / f"q.{suffix}")
    again = Predictions.load(tmp_path / f"q.{suffix}")
    assert again.row_data.seen == 1.0
    assert np.array_equal(again.predicted, p.predicted)
    assert np.array_equal(again.confidence, q.confidence)
    with pytest.warns(LeakWarning):
        cal.measure(again, "accuracy", resamples=0)
    clean = m(draw_predictions(100, seed=1))
    clean.save(tmp_path / f"clean.{suffix}")
    cal.measure(Predictions.load(tmp_path / f"clean.{suffix}"), "accuracy", resamples=0)


def test_seen_survives_a_second_map_and_a_choice_of_rows():
    p = draw_predictions(100)
    with pytest.warns(LeakWarning):
        q = cal.fit(p, "temperature")(p)
    assert q.take(np.arange(10)).row_data.seen == 1.0
    assert cal.fit(draw_predictions(seed=1), "temperature")(q).row_data.seen == 1.0


def test_apply_does_not_look():
    p = draw_predictions(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cal.fit(p, "temperature").apply(p).row_data.seen == 0


# -- the prediction that top maps carry along -----------------------------------------------------


@pytest.fixture
def doubtful():
    """Three classes; half the rows are sure and wrong, so that the predicted class gets less than another."""
    z = np.tile([3.0, 1.0, 0.0], (60, 1)) + 0.01 * np.arange(60)[:, None] * [1, 0, 0]
    return Predictions.from_logits(z, [0, 1, 2, 1, 1, 2] * 10)


@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv"])
@pytest.mark.parametrize("name", ["isotonic", "histogram:bins=3", "platt", "beta", "venn_abers", "spline"])
def test_small_confidences_do_not_change_the_prediction(name, suffix, doubtful, tmp_path):
    q = cal.fit(doubtful, name).apply(doubtful)
    assert (q.probs.argmax(axis=1) != doubtful.predicted).any()  # the vector alone would say otherwise
    assert np.array_equal(q.predicted, doubtful.predicted)
    q.save(tmp_path / f"q.{suffix}")
    again = Predictions.load(tmp_path / f"q.{suffix}")
    for one in (q, again):
        assert np.array_equal(one.predicted, doubtful.predicted)
        np.testing.assert_allclose(one.confidence, one.probs[np.arange(60), doubtful.predicted], atol=1e-15)
        assert cal.measures.make("accuracy")(one) == cal.measures.make("accuracy")(doubtful)
    gap = np.abs(again.confidence.mean() - again.correct.mean())
    assert cal.measures.make("ece:bins=1")(again) == pytest.approx(gap, abs=1e-12)
    assert np.array_equal(again.take([3, 5]).predicted, doubtful.predicted[[3, 5]])


# -- JSON -----------------------------------------------------------------------------------------

K = 3
EVERY_STEP = {
    "linear": Linear(np.eye(K), np.zeros(K)),
    "log_probs": LogProbs(),
    "mix": Mix(1.5, np.array([0.5, 0.3, 0.2])),
    "curves": Curves([np.array([0.2, 0.8])] * K, [np.array([0.1, 0.5, 0.9])] * K, "stair", "classes"),
    "line": Curves([np.array([0.2, 0.8])], [np.array([0.1, 0.9])], "line", "top"),
    "sigmoid": Sigmoid(np.ones((K, 4)), "probs", "classes"),
}


@pytest.fixture
def state():
    m = Map(
        calibrator="by hand",
        k=K,
        steps=tuple(EVERY_STEP.values()),
        parameters={"T": 1.5},
        fingerprint=cal.fit(draw_predictions()).fingerprint,
    )
    return json.loads(m.to_json())


def refused(state, tmp_path, match="damaged"):
    with pytest.raises(InputError, match=match):
        Map.from_dict(copy.deepcopy(state))
    path = tmp_path / "map.json"
    path.write_text(json.dumps(state))
    with pytest.raises(InputError, match=r"map\.json"):
        cal.load_map(path)


def test_a_whole_map_comes_back(state):
    again = Map.from_dict(state)
    assert json.loads(again.to_json()) == state
    assert np.isfinite(again.apply(draw_predictions()).probs).all()


def test_every_missing_field_is_an_error(state, tmp_path):
    for field in state:
        less = {name: value for name, value in state.items() if name != field}
        refused(less, tmp_path, match="something else" if field == "calibrant_map" else f"damaged.*{field}")
    for place, step in enumerate(state["steps"]):
        for field in step.keys() - {"on"}:  # what curves are read on: probabilities, unless a file says more
            less = copy.deepcopy(state)
            del less["steps"][place][field]
            refused(less, tmp_path, match=f"damaged.*{field}")
    for part in ("fit", "fingerprint"):
        for field in state[part]:
            less = copy.deepcopy(state)
            del less[part][field]
            refused(less, tmp_path)


STEPS, FIT, FINGERPRINT = ("steps",), "fit", "fingerprint"


@pytest.mark.parametrize(
    ("wrong", "fits"),
    [
        (None, {(FINGERPRINT,), (FIT, "gradient"), (FIT, "steps"), (FINGERPRINT, "ids")}),
        ("words", {("calibrator",), (FIT, "diagnosis")}),
        ([], {STEPS, (FINGERPRINT, "repeated")}),
        ({}, {(FINGERPRINT, "repeated")}),
        ([[]], set()),
        (True, {("keeps_argmax",), (FIT, "converged")}),
        ([1, "a"], set()),
        (-1, {(*STEPS, 0, "weight"), (*STEPS, 0, "bias"), (FIT, "gradient"), (FIT, "steps")}),
        (1e400, set()),
        ([None], set()),
        ([[0.1], [0.2, 0.3]], set()),
    ],
)
def test_a_value_is_refused_in_every_field_that_it_does_not_fit(wrong, fits, state):
    """In the fields that it fits, the map still gives probabilities."""
    places = [(name,) for name in state if name != "parameters"]
    places += [("steps", i, name) for i, step in enumerate(state["steps"]) for name in step]
    places += [(part, name) for part in ("fit", "fingerprint") for name in state[part]]
    p, accepted = draw_predictions(20), set()
    for place in places:
        changed = copy.deepcopy(state)
        inner = changed
        for part in place[:-1]:
            inner = inner[part]
        inner[place[-1]] = wrong
        try:
            m = Map.from_dict(changed)
        except InputError:
            continue
        accepted.add(place)
        q = m.apply(p)
        assert np.isfinite(q.probs).all(), place
        np.testing.assert_allclose(q.probs.sum(axis=1), 1, atol=1e-9)
        assert isinstance(m.to_json(), str), place
    assert accepted == fits


@pytest.mark.parametrize(
    ("step", "field", "value"),
    [
        (0, "weight", [[1.0, float("nan"), 0.0]] * 3),
        (0, "weight", [[1.0, 0.0]] * 3),
        (0, "weight", [1.0, 2.0]),
        (0, "bias", [0.0, 0.0]),
        (0, "bias", [float("inf"), 0.0, 0.0]),
        (2, "T", 0.0),
        (2, "T", -1.0),
        (2, "T", float("nan")),
        (2, "weights", [0.5, 0.5]),
        (2, "weights", [1.5, -0.5, 0.0]),
        (2, "weights", [0.9, 0.9, 0.9]),
        (3, "x", [[0.2, 0.8]] * 2),
        (3, "x", [[0.8, 0.2]] * 3),
        (3, "y", [[0.1, 0.9]] * 3),
        (3, "y", [[-0.1, 0.5, 0.9]] * 3),
        (3, "form", "stairs"),
        (3, "scope", "class"),
        (3, "scope", "top"),
        (4, "form", "stair"),
        (4, "scope", "classes"),
        (5, "coefficients", [[1.0] * 4]),
        (5, "coefficients", [[1.0] * 3] * 3),
        (5, "on", "logit"),
        (5, "scope", "shared"),
        (1, "step", "pickle"),
    ],
)
def test_wrong_shapes_words_and_numbers_are_refused(step, field, value, state, tmp_path):
    state["steps"][step][field] = value
    refused(state, tmp_path)


@pytest.mark.parametrize(("field", "value"), [("k", 4), ("k", 1), ("k", "3"), ("k", 3.0), ("keeps_argmax", "no")])
def test_steps_must_suit_the_number_of_classes(field, value, state, tmp_path):
    state[field] = value
    refused(state, tmp_path)


def test_groups_of_other_classes_are_refused(state, tmp_path):
    other = Map(calibrator="by hand", k=4, steps=()).to_dict()
    refused(state | {"groups": {"a": other}}, tmp_path)
    refused(state | {"groups": [1]}, tmp_path)
    refused(state | {"groups": {"a": None}}, tmp_path)


@pytest.mark.parametrize("version", [0, 2, "1", None, [1]])
def test_an_unknown_version_is_said(version, state, tmp_path):
    state["calibrant_map"] = version
    refused(state, tmp_path, match="expected version 1")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe\x00", b"[]", b"3", b"null", b'"map"', b"[" * 100_000, b"PK\3\4"]
)
def test_files_that_hold_no_map(content, tmp_path):
    path = tmp_path / "map.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"map\.json"):
        cal.load_map(path)


def test_no_file_and_a_folder(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for name, got in (("none.json", "no such file"), ("", "a folder"), ("pipe.json", "a pipe or a device")):
        with pytest.raises(InputError, match=f"got {got}"):
            cal.load_map(tmp_path / name)


def test_a_map_for_other_classes_says_so():
    m = cal.fit(draw_predictions(k=3), "temperature")
    for call in (m, m.apply):
        with pytest.raises(InputError, match="expected predictions of 3 classes, got 4 classes"):
            call(draw_predictions(k=4))


def test_a_map_with_nan_is_never_written(tmp_path):
    (tmp_path / "map.json").write_text("before")
    with pytest.raises(ValueError):  # noqa: PT011
        Map(calibrator="by hand", k=3, steps=(Linear(np.array(np.nan), np.array(0.0)),)).save(tmp_path / "map.json")
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [("map.json", "before")]


def test_repr_is_short():
    assert repr(cal.fit(draw_predictions(), "temperature")).startswith("Map(temperature, k=3, T=")
    assert len(repr(cal.fit(draw_predictions(), "matrix"))) < 200


# -- rows without labels -----------------------------------------------------------------------------


def test_scores_without_labels_are_calibrated():
    rng = np.random.default_rng(0)
    z, y = 3 * rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    p = Predictions.from_logits(z, y)
    np.testing.assert_array_equal(cal.fit(p, "svs")(z), cal.fit(p, "svs").apply(p).probs)
    q = Predictions.from_probs(p.probs, y)
    np.testing.assert_array_equal(cal.fit(q, "isotonic")(p.probs), cal.fit(q, "isotonic").apply(q).probs)
    b = Predictions.binary(rng.random(60), y > 0)
    np.testing.assert_array_equal(cal.fit(b, "platt")(b.score), cal.fit(b, "platt").apply(b).score)
    c = Predictions.from_confidence(rng.random(60), y > 0)
    m = cal.fit(c, "beta")
    np.testing.assert_array_equal(Map.from_dict(m.to_dict())(c.score), m.apply(c).score)


PROBS = np.array([[0.83306, 0.04895, 0.11799]])  # as transformers.pipeline gives them


def test_probabilities_are_not_taken_for_logits():
    m = Map(calibrator="temperature", k=3, steps=(Linear(np.array(0.5), np.array(0.0)),))
    with pytest.raises(InputError, match=r'that sum to one, as probabilities are. To fix it: say scores="probs" if'):
        m(PROBS)
    np.testing.assert_allclose(m(PROBS, scores="probs"), m.apply(Predictions.from_probs(PROBS, None)).probs)
    np.testing.assert_allclose(m(PROBS, scores="logits"), m.apply(Predictions.from_logits(PROBS, None)).probs)
    np.testing.assert_allclose(m.transform(PROBS, scores="probs"), m(PROBS, scores="probs"))
    with pytest.raises(InputError, match="did you mean 'probs'"):
        m(PROBS, scores="prob")
    m([[0.2, 0.4, 0.1]])  # no probabilities


def test_one_probability_per_row_is_not_taken_for_a_logit():
    m = Map(calibrator="temperature", k=2, task="binary", steps=(Linear(np.array(0.5), np.array(0.0)),))
    s = np.linspace(0.05, 0.95, 20)
    with pytest.raises(InputError, match=r'expected logits, got numbers from 0 to 1.* scores="probs"'):
        m(s)
    np.testing.assert_allclose(m(s, scores="probs"), m.apply(Predictions.binary(s, None)).score)
    assert m(s, scores="logits")[0] > 0.5
    assert m(s[:5])[0] > 0.5  # a few log-odds may all be small
    assert m(np.zeros(20))[0] == 0.5


def test_logits_are_not_taken_for_probabilities():
    m = Map(calibrator="identity", k=2, task="binary", steps=(), score_type="probs")
    with pytest.raises(InputError, match=r'scores from -2 to 3. To fix it: say scores="logits"'):
        m([-2.0, 3.0])
    np.testing.assert_allclose(m([-2.0, 3.0], scores="logits"), 1 / (1 + np.exp([2.0, -3.0])))
    with pytest.raises(InputError, match="divide by 100 if they are percent"):
        m([20.0, 30.0])


def test_probabilities_of_options():
    m = Map(calibrator="temperature", k=3, task="choice", steps=(Linear(np.array(0.5), np.array(0.0)),))
    p = Predictions.from_logits(np.log([[0.5, 0.5, 1], [0.2, 0.3, 0.5]]), None, mask=[[1, 1, 0], [1, 1, 1]])
    given = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]
    np.testing.assert_allclose(m(given, scores="probs"), m.apply(p).probs, atol=1e-12)
    with pytest.raises(InputError, match='scores="probs"'):
        m(given)


def test_a_map_has_its_temperature():
    p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    assert pytest.approx(1.82, abs=0.01) == cal.fit(p, "temperature").T
    with pytest.raises(AttributeError, match="the map of identity has no T"):
        _ = cal.fit(p, "identity").T


def test_scores_that_are_no_numbers_are_refused_with_what_helps():
    rng = np.random.default_rng(0)
    m = cal.fit(Predictions.binary(rng.random(60), rng.integers(0, 2, 60)), "platt")
    for scores, message in (
        (["a"], "scores: expected numbers"),
        ([{}], "scores: expected numbers"),
        ([[0.1], [0.2, 0.3]], "rows of different lengths"),
        ([0.2, np.nan], r"NaN in row 1 \(1 of 2 rows\). To fix it: leave these rows out"),
    ):
        with pytest.raises(InputError, match=message):
            m(scores)


def test_predictions_without_labels_are_calibrated():
    rng = np.random.default_rng(0)
    z, y = 3 * rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    m = cal.fit(Predictions.from_logits(z, y), "svs")
    q = m(Predictions.from_logits(z, None))
    assert not q.labelled
    np.testing.assert_array_equal(q.probs, m(z))
    np.testing.assert_array_equal(m(z[:1]), m(z)[:1])


def test_scores_of_another_shape_are_refused():
    p = Predictions.from_logits(np.eye(3) * 2, [0, 1, 2])
    with pytest.raises(InputError, match="expected rows of 3 scores"):
        cal.fit(p, "identity")([0.2, 0.8])
    with pytest.raises(InputError, match="expected predictions of 3 classes"):
        cal.fit(p, "identity")([[0.2, 2.0], [0.1, 0.9]])
