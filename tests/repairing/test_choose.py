"""The honest choice: identity may win, simpler is preferred, the verdict has numbers, and nothing leaks."""

import re
from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
import calibrant.repairing.choose as choose_module
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.cross_fit import folds_by_confidence, random_folds
from calibrant.repairing.bound import clip_to_laplace
from calibrant.repairing.choose import CANDIDATES, OF_POSITIVES, fit_candidate, is_certain
from calibrant.repairing.cross_fit import cross_fit

CHANGE = r"NLL \d\.\d{3,} to \d\.\d{3,} \(change [+-]\d\.\d{4,} to [+-]\d\.\d{4,}\)"
FEW = ("identity", "temperature", "isotonic", "svs")


def draw_predictions(n=600, k=3, seed=0, *, sharpness=1.0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    return Predictions.from_logits(sharpness * z, (z + rng.gumbel(size=(n, k))).argmax(axis=1))


def noise(n=400, k=4, seed=0):
    """Labels that have nothing to do with the scores."""
    rng = np.random.default_rng(seed)
    return Predictions.from_logits(rng.normal(size=(n, k)), rng.integers(0, k, size=n))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_calibrated_data_needs_no_calibration(seed):
    choice = cal.choose(draw_predictions(seed=seed), FEW)
    assert choice.map.calibrator == "identity"
    assert choice.verdict.startswith("No calibration: no calibrator")
    p = draw_predictions(seed=9)
    np.testing.assert_allclose(choice.map.apply(p).probs, p.probs, atol=1e-15)


@pytest.mark.parametrize("seed", [1, 2])
def test_overconfident_data_gets_one_number(seed):
    p = draw_predictions(seed=seed, sharpness=2.5)
    choice = cal.choose(p)
    assert choice.map.calibrator == "temperature"  # of one number; beyond noise no other is better
    assert re.match(rf"Use temperature: it lowers the loss, {CHANGE}", choice.verdict)
    assert "chosen from 8 candidates by cross-fitting" in choice.map.fit.diagnosis
    assert [c.calibrator for c in choice.candidates] == list(CANDIDATES)
    chosen = next(c for c in choice.candidates if c.calibrator == choice.map.calibrator)
    assert chosen.high < 0
    assert chosen.low <= chosen.difference <= chosen.high
    assert f"(change {chosen.low:+.4f} to {chosen.high:+.4f})" in choice.verdict


def test_differences_are_from_identity():
    choice = cal.choose(draw_predictions(seed=1, sharpness=2.5), FEW)
    identity = choice.candidates[0]
    assert (identity.calibrator, identity.difference, identity.low, identity.high) == ("identity", 0.0, 0.0, 0.0)
    for c in choice.candidates:
        assert c.difference == pytest.approx(c.nll - identity.nll, abs=1e-12)
    assert identity.nll == pytest.approx(-draw_predictions(seed=1, sharpness=2.5).true_log_prob.mean(), abs=1e-9)


def test_identity_is_always_a_candidate_and_the_map_is_fitted_on_all_rows():
    p = draw_predictions(seed=1, sharpness=2.5)
    choice = cal.choose(p, ("temperature",))
    assert [c.calibrator for c in choice.candidates] == ["identity", "temperature"]
    assert choice.map.parameters == cal.fit(p, "temperature").parameters
    assert choice.map.fingerprint.share_seen(p) == 1.0


def test_keep_argmax_restricts_the_candidates():
    choice = cal.choose(
        draw_predictions(seed=1, sharpness=2.5), ("temperature", "isotonic", "svs", "vector"), keep_argmax=True
    )
    assert {c.calibrator for c in choice.candidates} == {"identity", "temperature", "isotonic"}
    assert all(c.keeps_argmax for c in choice.candidates)
    assert choice.map.keeps_argmax


def test_two_class_candidates_are_for_two_classes():
    names = ("temperature", "affine")
    assert [c.calibrator for c in cal.choose(draw_predictions(k=3), names).candidates] == ["identity", "temperature"]
    assert [c.calibrator for c in cal.choose(draw_predictions(k=2), names).candidates] == ["identity", *names]


def test_chains_are_candidates():
    choice = cal.choose(draw_predictions(seed=1, sharpness=2.5), ("temperature+isotonic",))
    assert [c.calibrator for c in choice.candidates] == ["identity", "temperature+isotonic"]


def test_a_tie_says_how_many_rows_would_settle_it():
    choice = cal.choose(draw_predictions(200, seed=2, sharpness=2.5), FEW)
    matches = re.search(
        r"Between temperature and (\w+) these 200 rows are inconclusive; about ([\d,]+) more", choice.verdict
    )
    assert matches, choice.verdict
    assert matches[1] in FEW
    assert int(matches[2].replace(",", "")) >= 1
    calm = cal.choose(draw_predictions(4000, seed=1, sharpness=4.0), ("temperature",))
    assert "inconclusive" not in calm.verdict


def test_no_calibration_names_the_nearest():
    verdicts = [cal.choose(draw_predictions(150, seed=seed), FEW).verdict for seed in range(8)]
    alone = [v for v in verdicts if v.startswith("No calibration: no calibrator")]
    assert len(alone) >= 6
    assert all(re.search(rf"The nearest is \w+, {CHANGE}", v) for v in alone)


def test_helps_is_said_only_where_the_interval_leaves_out_zero():
    """Of 40 calibrated data sets about one in forty may look improved, and then its interval says so too."""
    choices = [cal.choose(draw_predictions(150, seed=seed), ("temperature", "beta")) for seed in range(40)]
    helped = [c for c in choices if c.map.calibrator != "identity"]
    assert len(helped) <= 5
    for choice in helped:
        assert choice.ruling.of(choice.map.calibrator).high < 0
    assert all("it lowers the loss" not in c.verdict for c in choices if c not in helped)


def test_same_seed_same_choice():
    p = draw_predictions(200, seed=4, sharpness=1.3)
    first, again, other = (cal.choose(p, FEW, seed=seed) for seed in (0, 0, 1))
    assert first.verdict == again.verdict
    assert first.candidates == again.candidates
    assert first.map.to_json() == again.map.to_json()
    assert first.candidates != other.candidates


@pytest.mark.parametrize("name", ["matrix", "vector", "isotonic_ovr"])
def test_cross_fitting_does_not_leak(name):
    """Where there is nothing to learn beyond the rates, in-sample fits look good and cross-fitted ones do not."""
    p = noise(80, 4)
    base = cal.fit(p, "temperature").apply(p)  # the honest answer: know nothing
    inside = -cal.fit(p, name).apply(p).true_log_prob + base.true_log_prob
    honest = -cross_fit(p, name).true_log_prob + base.true_log_prob
    assert inside.mean() < 0
    assert honest.mean() > inside.mean() + 0.02
    assert honest.mean() > -2 * honest.std() / np.sqrt(p.n)


def test_cross_fit_rows_are_those_of_maps_fitted_on_the_others():
    p = draw_predictions(100, seed=5, sharpness=2.5)
    q = cross_fit(p, "temperature", folds=4, seed=3)
    shares = np.log(q.probs[:, :1] / q.probs[:, 1:2])[:, 0] / (p.logits[:, 0] - p.logits[:, 1])  # 1 / T of each row
    assert len(np.unique(shares.round(6))) == 4
    for beta in np.unique(shares.round(6)):
        others = p.take(np.abs(shares - beta) > 1e-6)
        assert others.n == 75
        assert 1 / cal.fit(others, "temperature").parameters["T"] == pytest.approx(beta, abs=2e-6)
    assert np.array_equal(q.labels, p.labels)


def test_folds_do_not_depend_on_the_labels():
    rng = np.random.default_rng(0)
    z, labels = rng.normal(size=(100, 3)), np.repeat([0, 1, 2], [60, 30, 10])
    p, q = Predictions.from_logits(z, labels), Predictions.from_logits(z, labels[::-1])
    assert np.array_equal(random_folds(p, 5, 0), random_folds(q, 5, 0))
    assert np.bincount(random_folds(p, 5, 0)).tolist() == [20] * 5


def test_equal_confidences_are_assigned_to_folds_whatever_their_labels():
    """Balanced over folds, the labels of rows of one score would tell the held-out ones."""
    labels = np.arange(400) % 2
    counts = np.bincount(folds_by_confidence(Predictions.binary(np.full(400, 0.5), labels), 5)[labels == 1])
    assert counts.tolist() != [40] * 5
    assert counts.sum() == 200


@pytest.mark.parametrize(("k", "n"), [(50, 500), (50, 1000)])
def test_calibrated_predictions_of_many_classes_are_left_alone(k, n):
    """With folds stratified by label, svs or sms won in 18 of 40 sets."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        z = 2.5 * rng.normal(size=(n, k))
        p = Predictions.from_logits(z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
        assert cal.choose(p, ("temperature", "svs")).map.calibrator == "identity"


def test_a_class_without_rows_is_named_and_calibrators_that_need_it_take_no_part():
    p = draw_predictions(600, 5, seed=3, sharpness=2.5)
    p = p.take(np.flatnonzero(p.labels != 3))
    choice = cal.choose(p, ("temperature", "svs", "isotonic_ovr", "histogram:scope=ovr"))
    assert [c.calibrator for c in choice.candidates] == ["identity", "temperature", "svs"]
    assert "Class 3 has no row" in choice.verdict
    assert "has no row" not in cal.choose(draw_predictions(600, 5, seed=3), FEW).verdict


ALIKE = {
    "all right": Predictions.from_logits([[1.0 + i % 3, 0.0] for i in range(20)], [0] * 20),
    "all wrong": Predictions.from_logits([[1.0 + i % 3, 0.0] for i in range(20)], [1] * 20),
    "all negative": Predictions.binary(np.linspace(0.01, 0.4, 2000), np.zeros(2000, dtype=int)),
    "all positive": Predictions.binary(np.linspace(0.01, 0.4, 2000), np.ones(2000, dtype=int)),
}


@pytest.mark.parametrize("outcomes", ALIKE)
def test_where_all_outcomes_are_alike_there_is_nothing_to_fit(outcomes):
    choice = cal.choose(ALIKE[outcomes])
    words = {
        "all right": "every prediction is right",
        "all wrong": "every prediction is wrong",
        "all negative": "every row is negative",
        "all positive": "every row is positive",
    }[outcomes]
    assert choice.map.calibrator == "identity"
    assert choice.verdict == f"No calibration: {words}, so there is nothing to fit."
    assert cal.fit(ALIKE[outcomes], "auto").steps == ()


@pytest.mark.parametrize("name", ["isotonic", "histogram", "temperature", "vector", "isotonic+temperature"])
def test_a_recommended_map_does_not_say_0_or_1(name):
    """Positives above 0.5, negatives below: 40 rows without an error do not make the next one certain."""
    s = np.concatenate([np.linspace(0.05, 0.4, 20), np.linspace(0.6, 0.95, 20)])
    p = Predictions.binary(s, np.arange(40) >= 20)
    m = cal.choose(p, (name,)).map
    assert m.calibrator == name
    assert m.parameters["bound"] == 1 / 42
    score = m.apply(Predictions.binary(np.linspace(0, 1, 101), np.zeros(101, dtype=int))).score
    assert score.min() >= 1 / 42 - 1e-12
    assert score.max() <= 41 / 42 + 1e-12


@pytest.mark.parametrize("name", ["temperature", "platt", "beta", "vector", "isotonic+temperature"])
def test_a_converged_fit_goes_no_further_than_its_rows(name):
    """Scores that are far too timid: five errors among 300 rows leave an optimum, and it says 0.99999 of fresh rows."""
    rng = np.random.default_rng(5)
    z = 4 * rng.normal(size=20_300)
    y = np.where(np.arange(z.size) % 60 == 0, z < 0, z > 0).astype(int)
    rows, fresh = (Predictions.binary(0.2 * z[part], y[part], logits=True) for part in (slice(300), slice(300, None)))
    plain, m = cal.fit(rows, name), cal.choose(rows, (name,)).map
    assert m.calibrator == name
    assert m.fit.converged
    assert m.parameters["bound"] == 1 / 302
    before, after = plain.apply(fresh).score, m.apply(fresh).score
    assert after.min() >= 1 / 302 - 1e-12
    assert after.max() <= 301 / 302 + 1e-12
    if "isotonic" not in name:
        assert before.max() > 0.9995
        middle = (before > 2 / 302) & (before < 300 / 302)
        np.testing.assert_allclose(after[middle], before[middle], rtol=0, atol=1e-15)
        order = np.argsort(before)
        assert (np.diff(after[order])[np.diff(before[order]) > 1e-12] > 0).all()  # no ties: rankings stay


def test_the_bound_keeps_predictions_and_leaves_cooling_maps_alone():
    timid, sure = draw_predictions(300, seed=3, sharpness=0.2), draw_predictions(300, seed=3, sharpness=5.0)
    cold, warm = (cal.choose(p, ("temperature",)).map for p in (timid, sure))
    assert cold.parameters["T"] < 1
    assert "bound" in cold.parameters
    fresh = draw_predictions(5000, seed=4, sharpness=0.2)
    q = cold.apply(fresh)
    assert np.array_equal(q.predicted, fresh.predicted)
    assert np.array_equal(q.probs.argmax(axis=1), fresh.predicted)
    assert q.confidence.max() <= 301 / 302 + 1e-12
    assert warm.parameters == cal.fit(sure, "temperature").parameters  # T > 1: the network said more than the map does
    assert [step.name for step in warm.steps] == ["linear"]


def test_of_very_many_rows_a_random_part_decides(monkeypatch):
    monkeypatch.setattr(choose_module, "MOST_ELEMENTS", 1200)
    p = draw_predictions(900, seed=2, sharpness=2.5)
    choice = cal.choose(p, ("temperature",))
    assert choice.ruling.n == 400
    assert "of 400 rows drawn at random" in choice.verdict
    assert choice.map.parameters == cal.fit(p, "temperature").parameters  # all rows
    clusters = np.repeat(np.arange(90), 10)
    grouped = Predictions.from_logits(p.logits, p.labels, clusters=clusters)
    part = choose_module.random_part(grouped, 0)
    assert part.n == 400
    assert (np.bincount(part.clusters) == 10).all()


def test_cross_fit_carries_predictions_of_top_maps():
    p = draw_predictions(100, seed=5, sharpness=2.5)
    assert np.array_equal(cross_fit(p, "isotonic").predicted, p.predicted)


@pytest.mark.parametrize("folds", [0, 1, 101])
def test_folds_out_of_range_are_refused(folds):
    with pytest.raises(InputError, match="folds"):
        cross_fit(draw_predictions(100), "temperature", folds=folds)
    with pytest.raises(InputError, match="folds"):
        cal.choose(draw_predictions(100), FEW, folds=folds)


def test_unknown_candidates_are_refused():
    with pytest.raises(InputError, match="did you mean 'temperature'"):
        cal.choose(draw_predictions(50), ("temperatur",))


@pytest.mark.parametrize(
    "p",
    [
        Predictions.from_logits([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0]] * 4, [0, 1, 0] * 4),
        Predictions.from_logits([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0]] * 4, [1, 0, 1] * 4),
        Predictions.from_logits(np.zeros((12, 2)), [0, 1] * 6),
        Predictions.from_logits(np.tile([2.0, 0.0], (12, 1)), [0] * 12),
    ],
    ids=["all correct", "all wrong", "constant", "one class"],
)
def test_hard_rows_still_give_a_choice(p):
    choice = cal.choose(p)
    assert choice.verdict
    assert "nan" not in choice.verdict
    assert np.isfinite(choice.map.apply(p).probs).all()
    choice.map.to_json()


def rare(n, seed, slope, shift):
    """About 5 % positives; scores are the truth with its log-odds stretched and moved."""
    rng = np.random.default_rng(seed)
    x = -4.2 + 2.4 * rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-x - 0.15))
    return 1 / (1 + np.exp(-slope * x - shift)), y.astype(int)


def log_loss(s, y):
    s = np.clip(s, 1e-12, 1 - 1e-12)
    return -np.where(y == 1, np.log(s), np.log1p(-s)).mean()


@pytest.mark.parametrize(("slope", "shift"), [(1.0, 2.5), (2.0, 0.0), (2.5, 4.0), (0.5, 0.0)])
def test_rare_positives_are_calibrated_as_positives(slope, shift):
    """On other rows at least as good as scikit-learn's two, and with the right mean."""
    pytest.importorskip("sklearn")
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    ours, isotonic, sigmoid, top = [], [], [], []
    for seed in range(3):
        (s, y), (fresh, truth) = rare(2000, seed, slope, shift), rare(20_000, 100 + seed, slope, shift)
        p, q = Predictions.binary(s, y), Predictions.binary(fresh, truth)
        calibrated = cal.fit(p, "auto")(q)
        assert calibrated.task == "binary"
        assert abs(calibrated.score.mean() - truth.mean()) < 0.01
        ours.append(log_loss(calibrated.score, truth))
        isotonic.append(log_loss(IsotonicRegression(out_of_bounds="clip").fit(s, y).predict(fresh), truth))
        sigmoid.append(log_loss(_SigmoidCalibration().fit(s, y).predict(fresh), truth))
        both = [Predictions.from_probs(np.stack([1 - v, v], axis=1), w) for v, w in ((s, y), (fresh, truth))]
        top.append(-cal.fit(both[0], "isotonic")(both[1]).true_log_prob.mean())
    assert np.mean(ours) <= min(np.mean(isotonic), np.mean(sigmoid)) + 1e-4
    assert max(ours) <= min(isotonic + sigmoid + top) + 0.02


@pytest.mark.parametrize("rows", [500, 2000])
def test_scores_of_a_forest_are_calibrated_though_some_positives_have_a_score_of_zero(rows):
    """At least as good as scikit-learn's two, with few positives too: votes of 0 and 1 leave no room for error."""
    pytest.importorskip("sklearn")
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.isotonic import IsotonicRegression

    ours, isotonic, sigmoid, before = [], [], [], []
    for seed in (20, 22, 23):
        x, y = make_classification(9000, 20, n_informative=6, weights=[0.95], flip_y=0.02, random_state=seed)
        forest = RandomForestClassifier(50, random_state=0).fit(x[:2000], y[:2000])
        s = forest.predict_proba(x[2000:])[:, 1]
        s, y, fresh, truth = s[:rows], y[2000 : 2000 + rows], s[2000:], y[4000:]
        choice = cal.choose(Predictions.binary(s, y))
        assert choice.map.calibrator != "identity"
        ours.append(log_loss(choice.map(Predictions.binary(fresh, truth)).score, truth))
        isotonic.append(log_loss(IsotonicRegression(out_of_bounds="clip").fit(s, y).predict(fresh), truth))
        sigmoid.append(log_loss(_SigmoidCalibration().fit(s, y).predict(fresh), truth))
        before.append(log_loss(fresh, truth))
    assert np.mean(ours) < np.mean(isotonic)
    assert np.mean(ours) <= np.mean(sigmoid) + (1e-4 if rows == 2000 else 2e-3)
    assert np.mean(ours) < np.mean(before) - 0.02


def test_rounded_scores_of_which_some_are_zero_keep_their_logits():
    """A rare event, scores of three digits: only calibrators of the logit repair the slope, and one of them wins."""
    s, y = rare(4000, 7, 1.6, 0.5)
    choice = cal.choose(Predictions.binary(s.round(3), y))
    assert (s.round(3) == 0).any()
    assert choice.map.calibrator in ("platt", "beta")


def test_the_sigmoid_of_the_score_is_that_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.calibration import _SigmoidCalibration

    s, y = rare(2000, 3, 1.0, 1.0)
    fresh = np.linspace(0, 1, 50)
    fitted_map = cal.fit(Predictions.binary(s, y), "platt:of=score")(Predictions.binary(fresh, np.arange(50) % 2))
    np.testing.assert_allclose(fitted_map.score, _SigmoidCalibration().fit(s, y).predict(fresh), atol=1e-6)


def test_certain_scores_are_calibrated_even_if_no_row_shows_an_error():
    s = np.repeat([0.0, 0.5], [100, 300])
    y = np.arange(400) >= 265  # 45 % of the others
    choice = cal.choose(Predictions.binary(s, y), ("beta", "platt", "platt:of=score"))
    assert choice.map.calibrator in ("beta", "platt:of=score")
    assert "leave no room for error" in choice.verdict
    assert 0 < choice.map(Predictions.binary(s, y)).score.min() < 0.02
    assert not is_certain(Predictions.binary(np.where(s == 0, -60.0, 0.0), y, logits=True))


@pytest.mark.parametrize("task", ["binary", "confidence", "choice"])
def test_candidates_are_those_that_suit_the_shape(task):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    y = rng.integers(0, 2, 300)
    p = {
        "binary": lambda: Predictions.binary(3 * z[:, 0], y, logits=True),
        "confidence": lambda: Predictions.from_confidence(3 * z[:, 0], y, logits=True),
        "choice": lambda: Predictions.from_logits(3 * z, y, mask=np.arange(3) < 3 - rng.integers(0, 2, 300)[:, None]),
    }[task]()
    tried = {c.calibrator for c in cal.choose(p).candidates}
    asked = (*CANDIDATES, *OF_POSITIVES) if task == "binary" else CANDIDATES
    assert tried == {name for name in asked if task in cal.calibrators.make(name).tasks}
    assert ("svs" in tried) == (task == "binary")
    kept = {c.calibrator for c in cal.choose(p, keep_argmax=True).candidates}
    assert ("isotonic" in kept) == (task != "binary")


def test_weights_and_clusters_reach_the_choice():
    rng = np.random.default_rng(1)
    z = 1.5 * rng.normal(size=(400, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    bad = np.arange(400) < 200
    z[bad] *= 5  # too sure, and of no weight
    w = np.where(bad, 1e-6, 1.0)
    chosen = cal.choose(Predictions.from_logits(z, y, weights=w), FEW)
    assert chosen.map.calibrator == "identity"
    assert cal.choose(Predictions.from_logits(z, y), FEW).map.calibrator != "identity"
    many = np.repeat(np.arange(40), 25)
    small = Predictions.from_logits(1.6 * z[200:240][many], y[200:240][many])
    grouped = Predictions.from_logits(1.6 * z[200:240][many], y[200:240][many], clusters=many)
    loose, strict = (cal.choose(p, ("temperature",)).candidates[1] for p in (small, grouped))
    assert strict.high - strict.low > 2 * (loose.high - loose.low)


def test_the_default_moves_the_mean_of_rare_events():
    """A temperature cannot: scores that are too high by a factor stay so."""
    s, y = rare(4000, 3, 1.0, 1.5)
    p = Predictions.binary(s, y)
    assert cal.fit(p)(Predictions.binary(s, None)).score.mean() == pytest.approx(y.mean(), abs=0.005)
    assert cal.fit(p, "temperature")(s).mean() > 1.5 * y.mean()


# -- measured by `make slow` --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 10, 30, 50, 100])
def test_calibrated_predictions_are_left_alone_in_38_of_40_sets(k):
    left_alone = 0
    for seed in range(40):
        rng = np.random.default_rng(1000 * k + seed)
        z = 2.5 * rng.normal(size=(500, k))
        p = Predictions.from_logits(z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
        left_alone += cal.choose(p).map.calibrator == "identity"
    assert left_alone >= 38


def problem(kind, n, k, seed):
    """Calibrated logits that have been sharpened, flattened, skewed by class, or left as they are."""
    rng = np.random.default_rng(seed)
    z = 2.5 * rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    skew = 0.7 * np.random.default_rng(k).normal(size=k)
    change = {"calibrated": z, "over": 1.7 * z, "under": 0.6 * z, "skewed": z + skew, "both": 1.7 * (z + skew)}
    return Predictions.from_logits(change[kind], y)


@pytest.mark.slow
def test_the_regret_of_auto_is_small():
    """The loss on 20,000 fresh rows above that of the best candidate fitted on the same rows, over 60 problems."""
    regrets = []
    for kind in ("calibrated", "over", "under", "skewed", "both"):
        for k in (2, 5, 20):
            for n in (200, 500, 1000, 4000):
                p, fresh = problem(kind, n, k, n + k), problem(kind, 20_000, k, 10 * n + k + 1)
                choice = cal.choose(p)
                losses = {
                    c.calibrator: -fit_candidate(p, c.calibrator).apply(fresh).true_log_prob.mean()
                    for c in choice.candidates
                }
                regrets.append(losses[choice.map.calibrator] - min(losses.values()))
    assert len(regrets) == 60
    assert np.mean(regrets) <= 0.002


# -- the same numbers, some rows at a time ----------------------------------------------------------


@pytest.mark.parametrize("name", ["temperature", "beta", "isotonic", "svs"])
def test_the_rule_judges_what_cross_fitting_gives(name):
    p = draw_predictions(300, sharpness=2.0)
    fold = choose_module.choose_folds(p, None, 0)
    slow = choose_module.measure_candidate(name, choose_module.cross_fit_candidate(p, name, fold))
    candidate = choose_module.rule_on(p, ["identity", name]).of(name)
    assert candidate.nll == pytest.approx(slow.mean, rel=1e-14)
    assert candidate.likelier == pytest.approx(
        slow.likelier_than(choose_module.measure_candidate("identity", p)), rel=1e-11
    )


@pytest.mark.parametrize("sharpness", [0.5, 3.0])
@pytest.mark.parametrize("name", ["temperature", "beta", "vector"])
def test_a_bound_looks_at_some_rows_at_a_time(monkeypatch, name, sharpness):
    p = draw_predictions(200, sharpness=sharpness)
    whole = fit_candidate(p, name)
    monkeypatch.setattr("calibrant.repairing.bound.KEEP_ELEMENTS", 7 * p.k)
    assert fit_candidate(p, name).to_json() == whole.to_json()


def test_one_row_that_a_map_makes_surer_bounds_it(monkeypatch):
    """The last of the rows, so that all blocks are looked at."""
    p = draw_predictions(40)
    m = cal.fit(p, "temperature")
    assert m.parameters["T"] < 100
    q = Predictions.from_logits(np.vstack([np.zeros((39, 3)), [[1.0, 0.0, 0.0]]]), p.labels)
    sharper = replace(m, steps=(replace(m.steps[0], weight=np.array(2.0)),))
    monkeypatch.setattr("calibrant.repairing.bound.KEEP_ELEMENTS", 5 * p.k)
    assert len(clip_to_laplace(sharper, q).steps) == 2
    assert len(clip_to_laplace(sharper, q.take(np.arange(39))).steps) == 1


@pytest.mark.parametrize(
    ("spec", "raw"),
    [
        ("platt:of=score", True),
        ("sigmoid:of=score", True),
        ("platt:of=score,smooth=true", True),
        ("platt", False),
        ("platt:of=score+platt", False),
    ],
)
def test_the_sigmoid_of_the_score_is_known_by_its_options_not_by_its_spelling(spec, raw):
    assert choose_module.measure_candidate(spec, Predictions.binary([0.0, 0.5, 1.0], [0, 1, 1])).of_raw_score is raw
