"""The numbers of a report are those of the measures, and everything it is asked that makes no sense is refused."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import calibrant as cal
from calibrant import calibrators
from calibrant.core.curves.binning import Binning
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.shares import wilson
from calibrant.data import FOLDER
from calibrant.deciding.costs import CostRule, read_rule
from calibrant.repairing.choose import CANDIDATES, OF_POSITIVES, choose, fit_candidate
from calibrant.repairing.rule import CandidateLosses, decide
from calibrant.reporting.build import build
from calibrant.reporting.calibrator_trials import calibrators_for
from calibrant.reporting.cost import CostTable
from calibrant.reporting.page import page
from calibrant.reporting.segments import by_group, by_prediction, check_groups


def small(n=150, k=3, seed=0, sharpness=2.5):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    return Predictions.from_logits(sharpness * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))


def quick(p, **options):
    return build(p, **({"calibrators": ["temperature"], "resamples": 40} | options))


# -- numbers ----------------------------------------------------------------------------------------


def test_numbers_are_those_of_measure(one, test):
    for n in one.models[0].numbers:
        m = cal.measure(test, n.measure, resamples=60)
        assert (n.value, n.low, n.high, n.definition) == (m.value, m.low, m.high, m.definition)
        assert n.meaning


def test_changes_are_those_of_compare(one, test, val):
    for t in one.models[0].trials[1:]:
        after = fit_candidate(val, t.calibrator)(test)
        for c in t.changes:
            alone = cal.compare(test, after, c.measure, resamples=60)
            assert c == replace(alone, matched_by=None)  # rows of one file need no matching
        assert t.predictions_changed == (after.predicted != test.predicted).sum()
        assert t.values["gap"] == cal.measures.make("gap")(after)


def test_cross_fitting_is_that_of_choose():
    from calibrant.repairing.cross_fit import cross_fit

    p = small()
    t = quick(p).models[0].trials[1]
    assert t.values["nll"] == cal.measures.make("nll")(cross_fit(p, "temperature"))


def test_bins_are_those_of_the_option():
    p = small()
    m = quick(p, bins=7).models[0]
    assert [b.n for b in m.bins] == p.top_label.bins(Binning(7)).count.tolist()
    assert {"ece:bins=7", "ece:bins=7,scheme=mass", "mce:bins=7"} <= {n.measure for n in m.numbers}
    assert m.noise.observed == cal.measures.make("ece:bins=7")(p)


def test_the_same_seed_gives_the_same_report_and_json_holds_it(three):
    a, b = (quick(small(), seed=3, cost="threshold=0.8").to_dict() for _ in range(2))
    assert a == b
    assert json.loads(json.dumps(a, allow_nan=False)) == a
    assert a["calibrant_report"] == 1
    assert "curve" not in a["models"][0]["trials"][0]
    assert json.loads(json.dumps(three.to_dict(), allow_nan=False))["ranking"]["order"]


def test_the_date_comes_from_the_epoch(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert quick(small()).provenance.date == "1970-01-02"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH"):
        quick(small())


def test_the_fingerprint_follows_the_numbers():
    p = small()
    same, other = small(), small(seed=1)
    prints = [quick(q).provenance.sources[0].sha256 for q in (p, same, other)]
    assert prints[0] == prints[1] != prints[2]


def test_leaked_rows_are_said_once_and_without_a_warning():
    p = small()
    with pytest.warns(cal.LeakWarning):
        q = cal.fit(p, "temperature")(p)
    assert any("optimistic" in caution for caution in quick(q).models[0].cautions)


def test_a_failing_calibrator_is_a_line_not_a_crash(monkeypatch):
    from calibrant.calibrators.temperature import Temperature

    def fail(self, p):
        raise InputError("temperature", expected="luck", got="none", fix="try again")

    monkeypatch.setattr(Temperature, "fit", fail)
    m = quick(small(), calibrators=["temperature", "isotonic"]).models[0]
    assert (m.trials[1].outcome, m.best in ("identity", "isotonic")) == ("failed", True)
    assert "expected luck" in m.trials[1].words


def test_every_data_set_makes_a_report(any_data):
    r = build(any_data, resamples=40, cost="wrong=5,abstain=1", calibrators=["temperature", "isotonic"])
    json.dumps(r.to_dict(), allow_nan=False)
    assert r.models[0].verdict.text


def test_the_choice_is_that_of_choose_on_the_fitting_rows():
    """The rows that it is judged on have no part in it: one question, one answer."""
    val, test = (Predictions.load(FOLDER / f"demo_{part}.npz") for part in ("val", "test"))
    few, specs = val.take(np.arange(600)), ["temperature", "isotonic", "svs", "sms"]
    for keep in (False, True):
        chosen = choose(few, specs, keep_argmax=keep).ruling
        m = build(test, fit_on=few, calibrators=specs, keep_argmax=keep, resamples=40).models[0]
        assert (m.best, m.ruling.of(m.best).nll) == (chosen.chosen, chosen.of(chosen.chosen).nll)
    assert m.ruling.n == few.n
    assert m.ruling.words.startswith(f"Use {m.best}: it lowers the loss of the 600 rows of the fitting set, NLL")


def test_a_choice_that_these_rows_speak_against_is_not_recommended():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(1500, 3))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    honest, doubled = Predictions.from_logits(z, labels), Predictions.from_logits(2 * z, labels)
    m = build(honest, fit_on=doubled, calibrators=["temperature"], resamples=40).models[0]
    assert (m.ruling.chosen, m.best) == ("temperature", "identity")
    assert m.verdict.action == "Use it uncalibrated: temperature, chosen on the fitting set, makes these rows worse."
    assert "but raises the loss of these rows" in m.verdict.text


def test_nothing_is_fitted_on_a_single_row():
    with pytest.raises(InputError, match="expected at least 2"):
        build(small(), fit_on=small().take(np.arange(1)))


def test_large_data_try_fewer_calibrators():
    p = small()
    assert calibrators_for(p, p) == CANDIDATES[1:]
    wide = Predictions.from_logits(np.zeros((2000, 600)), np.zeros(2000, int))
    quick = tuple(name for name in CANDIDATES[1:] if calibrators.make(name).slow is None)
    assert calibrators_for(wide, wide) == quick
    assert calibrators_for(wide.take(np.arange(1000)), None, models=2) == quick
    for few in (None, wide.take(np.arange(1000))):
        assert set(CANDIDATES[1:]) - set(calibrators_for(wide.take(np.arange(1000)), few)) == {"sms"}


def test_what_was_not_tried_is_said(monkeypatch):
    from calibrant.reporting.markdown import markdown

    for name in ("ets", "svs", "sms"):
        monkeypatch.setattr(calibrators.find(name), "slow", 0)
    r = build(small(), resamples=40)
    assert r.models[0].not_tried == ("ets", "svs", "sms")
    assert "Not tried, because it takes long on so many rows and classes: ets, svs and sms." in markdown(r)
    assert quick(small()).models[0].not_tried == ()  # asked for one only


# -- where it is worst ------------------------------------------------------------------------------


def test_classes_and_groups_are_means_of_their_rows(one, test):
    m = one.models[0]
    assert sum(s.n for s in m.classes.rows) == test.n
    plain = next(s for s in m.groups.rows if s.name == "plain")
    rows = test.groups == "plain"
    assert (plain.n, plain.says) == (rows.sum(), pytest.approx(test.confidence[rows].mean()))
    assert plain.gap == pytest.approx(plain.says - plain.right)
    low, high = wilson(plain.right, plain.n)
    assert (plain.low, plain.high) == (pytest.approx(plain.says - high), pytest.approx(plain.says - low))


def test_the_bad_class_is_found_and_calibrated_ones_are_not():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(6000, 6))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    spoiled = z.argmax(axis=1) == 4
    z[spoiled] *= 4
    segments = by_prediction(Predictions.from_logits(z, labels), None, [f"c{i}" for i in range(6)])
    assert segments.rows[0].name == "c4"
    assert [s.name for s in segments.rows if s.beyond_noise] == ["c4"]
    assert "1 of 6 classes is off" in segments.words
    assert "when it predicts c4" in segments.words


def test_few_rows_are_never_beyond_noise():
    p = Predictions.from_probs([[0.99, 0.01]] * 9 + [[0.3, 0.7]] * 31, [1] * 9 + [1] * 31)
    assert not next(s for s in by_prediction(p, None, ["a", "b"]).rows if s.name == "a").beyond_noise


# -- cost -------------------------------------------------------------------------------------------


def cost_row(p, rule):
    table = CostTable(rule)
    table.add("identity", p)
    return table.rows[0]


def test_cost_by_hand():
    p = Predictions.from_probs([[0.9, 0.1], [0.85, 0.15], [0.6, 0.4], [0.3, 0.7]], [0, 1, 0, 1])
    row = cost_row(p, read_rule("wrong=5,abstain=1"))
    assert row.accepted == 0.5
    assert row.error == 0.5
    assert row.expected_cost == pytest.approx((0.1 * 5 + 0.15 * 5 + 1 + 1) / 4)
    assert row.actual_cost == pytest.approx((0 + 5 + 1 + 1) / 4)


def test_cost_matrix_by_hand(tmp_path):
    (tmp_path / "m.csv").write_text("0,1\n10,0\n")
    rule = read_rule(str(tmp_path / "m.csv"))
    p = Predictions.from_probs([[0.8, 0.2], [0.95, 0.05]], [0, 1])
    row = cost_row(p, rule)  # deciding 0 costs 10 p(1), deciding 1 costs p(0)
    assert row.expected_cost == pytest.approx((0.8 + 0.5) / 2)
    assert row.actual_cost == pytest.approx((1 + 10) / 2)
    assert quick(small(k=2, n=60), cost=CostRule(matrix=rule.matrix)).models[0].cost.rows[0].accepted == 1.0


def test_nothing_is_accepted():
    row = cost_row(small(), CostRule(threshold=1.0))
    assert (row.accepted, row.actual_cost) == (0, 0)
    assert row.error != row.error


def test_a_matrix_of_other_classes_is_refused():
    with pytest.raises(InputError, match="3 x 3"):
        quick(small(), cost=CostRule(matrix=np.eye(2)))


# -- several models ---------------------------------------------------------------------------------


def test_ranking_is_by_loss_with_paired_tests(three):
    after = {m.name: m.after(m.best).values["nll"] for m in three.models}
    assert list(three.ranking.order) == sorted(after, key=after.__getitem__)
    assert [m.name for m in three.models] == list(three.ranking.order)
    assert len(three.ranking.pairs) == 3
    assert [c.measure for c in three.ranking.pairs[0].changes] == ["nll", "ece", "accuracy", "auroc_correct"]
    assert three.ranking.pairs[0].changes[0].better in ("a", "neither")
    assert f"{three.ranking.order[0]} has the lowest loss (NLL" in three.ranking.words


def test_the_headline_follows_the_loss_after_calibration():
    """A sharp model with better refinement is behind before calibration and ahead after it."""
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(3000, 3))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    models = {
        "sharp": Predictions.from_logits(5 * z, labels),
        "blurred": Predictions.from_logits(0.8 * (z + rng.normal(size=z.shape)), labels),
    }
    r = quick(models)
    before = {m.name: m.after("identity").values["nll"] for m in r.models}
    assert before["sharp"] > before["blurred"]
    assert r.ranking.order == ("sharp", "blurred")
    assert [m.name for m in r.models] == ["sharp", "blurred"]
    assert "sharp has the lowest loss" in r.ranking.words
    assert "Uncalibrated, blurred is ahead" in r.ranking.words
    assert r.ranking.pairs[0].changes[0].better == "a"


def test_equal_models_cannot_be_told_apart():
    p = small()
    r = quick({"a": p, "b": p})
    assert "inconclusive" in r.ranking.words
    assert all(c.better == "neither" for c in r.ranking.pairs[0].changes)


def test_rows_are_matched_by_their_ids():
    p = small()
    ids = np.arange(p.n)
    a = Predictions.from_logits(p.values, p.labels, ids=ids)
    r = quick({"a": a, "b": a.take(ids[::-1])})
    assert r.models[0].numbers[0].value == r.models[1].numbers[0].value
    assert r.ranking.pairs[0].changes[0].difference == 0


def test_one_set_to_fit_on_for_each_model():
    p, v = small(), small(seed=1)
    r = quick({"a": p, "b": p}, fit_on={"a": v, "b": v})
    assert {m.judged_on for m in r.models} == {"held_out"}
    for fits in (v, {"a": v}):
        with pytest.raises(InputError, match="fit_on"):
            quick({"a": p, "b": p}, fit_on=fits)


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bins": 4}, "5 to 500"),
        ({"bins": 501}, "5 to 500"),
        ({"resamples": 39}, "at least 40"),
        ({"class_names": ["a", "b"]}, "3 names"),
        ({"class_names": ["a", "b", " "]}, "3 names"),
        ({"groups": np.arange(10)}, "shape"),
        ({"groups": np.arange(150)}, "at most 50"),
        ({"calibrators": ["temprature"]}, "did you mean 'temperature'"),
        ({"calibrators": ["affine"]}, "two classes"),
        ({"fit_on": small(k=4)}, "3 classes"),
    ],
)
def test_build_refuses_bad_options(options, words):
    with pytest.raises(InputError, match=words):
        quick(small(), **options)


@pytest.mark.parametrize("other", [small(n=140), small(k=4), small(seed=5)], ids=["rows", "classes", "labels"])
def test_models_on_different_rows_are_refused(other):
    with pytest.raises(InputError, match="CE and focal"):
        quick({"CE": small(), "focal": other})
    with pytest.raises(InputError, match="at least one model"):
        quick({})


def test_ten_thousand_groups_are_refused_unless_told_to_ignore_them():
    p = small()
    grouped = Predictions.from_logits(p.values, p.labels, groups=np.arange(p.n))
    with pytest.raises(InputError, match="--group-column none"):
        quick(grouped)
    assert quick(grouped, groups="none").models[0].groups is None
    with pytest.raises(InputError, match="10,000 in 10,000 rows"):
        check_groups(np.arange(10_000), 10_000)


# -- how sure ---------------------------------------------------------------------------------------


def test_more_rows_are_asked_for_until_they_are_enough():
    from calibrant.measuring.measure import Measurement
    from calibrant.reporting.parts import Noise
    from calibrant.reporting.precision import certainty

    ruling = decide([CandidateLosses(calibrator="identity", losses=np.ones(5), complexity=0, keeps_argmax=True)])
    gap = Measurement(measure="gap", value=0.02, low=0.01, high=0.03, n=1000, k=3, definition="")
    noise = Noise(0.02, 0.015, 0.02, 0.5, 0.5)
    assert certainty(1000, gap, noise, "calibrated", ruling).rows_wanted == 4000
    assert certainty(1000, gap, replace(noise, upper=0.009), "calibrated", ruling).rows_wanted == 1000
    assert certainty(1000, gap, noise, "over", ruling).rows_wanted == 4000
    assert "3,000 more" in " ".join(certainty(1000, gap, noise, "over", ruling).words)
    leaning = certainty(1000, gap, replace(noise, upper=0.03), "perhaps_over", ruling)
    assert "1,300 more rows would settle it" in " ".join(leaning.words)


# -- very many rows -------------------------------------------------------------------------------


def test_a_report_of_very_many_rows_looks_at_some_and_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(3000, 3))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    groups = np.where(np.arange(3000) % 2, "odd", "even")
    p = Predictions.from_logits(logits, labels, groups=groups)
    monkeypatch.setattr("calibrant.reporting.options.MOST_ROWS", 600)
    monkeypatch.setattr("calibrant.reporting.options.FEWEST_ROWS", 100)
    report = build(
        {"a": p, "b": p.with_temperature(2.0)}, fit_on={"a": p, "b": p}, calibrators=["temperature"], resamples=40
    )
    for model in report.models:
        assert model.n == 600
        assert model.cautions[0].startswith(
            "All numbers here are of 600 of the 3,000 rows, drawn at random with seed 0"
        )
        assert sum(s.n for s in model.groups.rows) == 600
        assert abs(model.right - p.correct.mean()) < 0.06
    assert [source.n for source in report.provenance.sources] == [3000] * 4
    assert "All numbers here are of 600 of the 3,000 rows" in page(report)
    again = build(
        {"a": p, "b": p.with_temperature(2.0)}, fit_on={"a": p, "b": p}, calibrators=["temperature"], resamples=40
    )
    assert again.to_dict() == report.to_dict()


def test_very_many_rows_are_resampled_less_often():
    from calibrant.reporting.build import _affordable

    class Rows:
        n = 50_000

    assert _affordable(Rows, 400) == 400
    Rows.n = 250_000
    assert _affordable(Rows, 400) == 200
    Rows.n = 10**7
    assert _affordable(Rows, 400) == 100


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (np.array(["é".encode(), b"\xff"] * 75), None),
        (np.array([1.5, 2.0] * 75), None),
        (np.ones(150, dtype=complex), "expected text or numbers, got type complex128"),
        (np.zeros(150, dtype="M8[D]"), "expected text or numbers"),
        (np.zeros(150, dtype=[("a", "f4")]), "expected text or numbers"),
        (np.zeros((150, 2)), "one value for each of 150 rows"),
    ],
)
def test_odd_groups_are_segments_or_refused(groups, says):
    p = small()
    if says is None:
        report = quick(p, groups=groups)
        assert {s.name for s in report.models[0].groups.rows} in ({"é", "\\xff"}, {"1.5", "2.0"})
        return
    with pytest.raises(InputError, match=says):
        check_groups(groups, p.n)


def test_binary_scores_have_candidates_of_their_own():
    rng = np.random.default_rng(0)
    s = rng.random(400)
    smooth = Predictions.binary(s, rng.random(400) < s)
    votes = Predictions.binary(np.round(s, 1), rng.random(400) < s)
    assert calibrators_for(smooth, votes) == (*CANDIDATES[1:], *OF_POSITIVES)
    r = build(smooth, fit_on=votes, resamples=40)
    assert [t.calibrator for t in r.models[0].trials[1:]] == [*CANDIDATES[1:], *OF_POSITIVES]


# -- several models of which only the confidence is known ---------------------------------------------


def test_models_with_confidences_only_are_joined_by_id():
    rng = np.random.default_rng(0)
    s, t = rng.uniform(0.5, 1, 300), rng.uniform(0.5, 1, 300)
    a = Predictions.from_confidence(s, rng.random(300) < s, ids=np.arange(300))
    b = Predictions.from_confidence(t, rng.random(300) < t, ids=np.arange(300)[::-1]).take(np.arange(20, 300))
    r = build({"a": a, "b": b}, calibrators=["temperature"], resamples=40)
    assert {m.n for m in r.models} == {280}
    assert next(m for m in r.models if m.name == "b").says == pytest.approx(b.score.mean())
    assert all("the 280 rows that every model has: a has 20 more" in m.cautions[0] for m in r.models)


def test_a_column_may_have_the_name_of_our_own_segments(p):
    groups = by_group(p, None, np.arange(p.n) % 2, "predicted class")
    assert "groups" in groups.words
    assert "when it predicts" not in groups.words


def test_a_report_goes_to_another_process(p):
    r = build(p, resamples=40)
    assert str(pickle.loads(pickle.dumps(r))) == str(r)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_rows_of_few_clusters_have_a_report_from_fewer_folds(count):
    rng = np.random.default_rng(count)
    z = rng.normal(size=(count, 6, 6))
    p = cal.Predictions.binary(1 / (1 + np.exp(-z)), (rng.random(z.shape) < 0.5).astype(int))
    report = cal.report(p)
    names = {figure.figure for figure in report.figures}
    assert ("decomposition" in names) == (count > 1)
    assert {number.low for number in report.models[0].numbers if number.measure == "ece"} == {None}
