"""The 102 of the benchmark study, the temperature behind them, and the decompositions."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.statistics.temperature import find_temperature
from calibrant.data import DEMO_TEST
from calibrant.measuring.decompose import brier_terms, ece_terms
from calibrant.measuring.harmonic_score import harmonic_score
from calibrant.measuring.measure_sets import BIN_BASED, OTHERS, study_columns


@pytest.fixture(scope="module")
def p():
    return cal.Predictions.load(DEMO_TEST)


def test_five_families_nine_counts_two_states(p):
    rows = cal.measure_set(p, "benchmark102")
    assert (len(BIN_BASED), len(OTHERS), len(rows)) == (45, 5, 100)
    names = [m.measure for m in rows]
    for family in ("ECE", "ECE_em", "cwCE", "cwCE_em", "MCE"):
        for bins in (5, 10, 15, 20, 25, 50, 100, 200, 500):
            assert {f"pre_{family}_{bins}", f"post_{family}_{bins}"} <= set(names)


def test_pre_is_on_all_rows_and_post_on_the_80_percent_that_did_not_fit_the_temperature(p):
    rows = {m.measure: m for m in cal.measure_set(p, "benchmark102")}
    fit_on, rest = p.split(0.2, seed=777)
    after = rest.with_temperature(find_temperature(fit_on).T)
    assert rows["pre_ECE_15"].n == p.n
    assert rows["post_ECE_15"].n == rest.n == round(0.8 * p.n)
    for column, spec in {
        "ECE_15": "ece",
        "cwCE_em_25": "classwise:bins=25,scheme=mass,mass_rule=midpoint",
        "NLL": "nll",
    }.items():
        assert rows[f"pre_{column}"].value == cal.measure(p, spec, resamples=0).value
        assert rows[f"post_{column}"].value == pytest.approx(cal.measure(after, spec, resamples=0).value, abs=1e-15)
    assert rows["post_NLL"].value < rows["pre_NLL"].value


def test_ood_auroc_is_the_chance_that_a_known_row_is_more_confident(p):
    unsure = cal.Predictions.from_logits(np.zeros((100, 10)), np.zeros(100, dtype=int))
    (row,) = [m for m in cal.measure_set(p, "benchmark102", ood={"svhn": unsure}) if m.measure == "auc_svhn"]
    assert row.value == 1.0
    (row,) = [m for m in cal.measure_set(p, "benchmark102", ood={"same": p}) if m.measure == "auc_same"]
    assert row.value == 0.5


@pytest.mark.parametrize("true", [0.02, 0.1, 1.0, 10.0, 100.0])
def test_temperature_has_zero_gradient_and_the_lowest_nll(true):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(3000, 4))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probs.cumsum(1) < rng.random((3000, 1))).sum(1)
    fit = find_temperature(cal.Predictions.from_logits(logits * true, labels))
    base = find_temperature(cal.Predictions.from_logits(logits, labels))
    assert fit.diagnosis == "converged"
    assert abs(fit.gradient) < 1e-10
    assert pytest.approx(true * base.T, rel=1e-7) == fit.T
    assert abs(base.T - 1) < 4 * base.stderr

    def nll(T):
        return cal.measure(cal.Predictions.from_logits(logits * true / T, labels), "nll:floor=0", resamples=0).value

    assert nll(fit.T) < min(nll(fit.T * 1.01), nll(fit.T / 1.01))


def test_temperature_names_why_there_is_no_optimum():
    z = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    assert find_temperature(cal.Predictions.from_logits(z, [0, 1, 0])).diagnosis == "separable"
    assert find_temperature(cal.Predictions.from_logits(z, [1, 0, 1])).diagnosis == "anti-informative"
    assert find_temperature(cal.Predictions.from_logits(z * 0, [1, 0, 1])).diagnosis == "constant scores"


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("bins", [1, 7, 100])
def test_brier_identity(p, scheme, bins):
    t = brier_terms(p.top_label, bins, scheme)
    whole = t["reliability"] - t["resolution"] + t["uncertainty"] + t["within_variance"] - t["within_covariance"]
    assert whole == pytest.approx(t["brier_top"], abs=1e-12)
    assert t["brier_top"] == pytest.approx(cal.measure(p, "brier:form=top", resamples=0).value, abs=1e-15)
    for name in ("reliability", "resolution"):
        assert t[name] == pytest.approx(cal.measure(p, f"{name}:bins={bins},scheme={scheme}", resamples=0).value)


def test_ece_terms_are_reported_and_never_asserted_equal():
    first = [[0.91, 0.06, 0.03], [0.83, 0.12, 0.05], [0.62, 0.27, 0.11], [0.56, 0.25, 0.19]]
    second = [[0.18, 0.71, 0.11], [0.09, 0.86, 0.05], [0.29, 0.28, 0.43], [0.04, 0.02, 0.94]]
    vector = cal.Predictions.from_probs([*first, *second], [0, 0, 1, 0, 1, 1, 0, 2])
    t = ece_terms(vector, 5)  # docs/methods/vectors.md#measures
    assert [t["alpha"], t["beta"], t["gamma"]] == pytest.approx([0.7325, 0.34375, 0.3125])
    assert t["alpha_minus_beta_minus_gamma"] == pytest.approx(0.07625)
    assert t["ece"] == pytest.approx(0.1)
    assert t["gap"] == pytest.approx(-0.0175)


def test_losses_split_into_calibration_and_refinement(p):
    losses = cal.decompose(p)["losses"]
    assert set(losses) == {f"{loss}, {by}" for loss in ("nll", "brier") for by in ("temperature", "isotonic")}
    for name, t in losses.items():
        loss, by = name.split(", ")
        assert t["calibration"] + t["refinement"] == pytest.approx(t["loss"], abs=1e-15)
        assert t["calibration"] > 0  # the demo network is overconfident
        assert t["refinement"] == pytest.approx(
            cal.measure(p, f"refinement:loss={loss},by={by}", resamples=0).value, abs=1e-15
        )
    sharper = p.with_temperature(0.5)  # changes calibration, hardly refinement
    assert cal.measure(sharper, "refinement", resamples=0).value == pytest.approx(
        losses["nll, temperature"]["refinement"], abs=2e-3
    )


def test_ks_of_lower_ranks_equals_a_plain_loop(p):
    probs = p.probs
    order = np.argsort(-probs, axis=1, kind="stable")
    for rank, within in ((2, False), (2, True), (3, True)):
        chosen = order[:, :rank] if within else order[:, rank - 1 : rank]
        scores = np.array([probs[i, c].sum() for i, c in enumerate(chosen)])
        hits = np.array([p.labels[i] in c for i, c in enumerate(chosen)])
        running = np.cumsum((scores - hits)[np.argsort(scores, kind="stable")]) / p.n
        spec = f"ks:rank={rank},within={str(within).lower()}"
        assert cal.measure(p, spec, resamples=0).value == pytest.approx(np.abs(running).max(), abs=1e-12)
    with pytest.raises(cal.InputError, match="1 to 10"):
        cal.measure(p, "ks:rank=11")


def test_study_columns_has_the_same_numbers_without_the_words(p):
    unsure = cal.Predictions.from_logits(np.zeros((100, 10)), np.zeros(100, dtype=int))
    columns = study_columns(p, ood={"svhn": unsure})
    rows = {m.measure: m.value for m in cal.measure_set(p, "benchmark102", ood={"svhn": unsure})}
    assert list(columns)[:101] == list(rows)
    assert {name: columns[name] for name in rows} == rows
    for column, spec in (BIN_BASED | OTHERS).items():
        assert columns[f"pre_{column}"] == pytest.approx(cal.measure(p, spec, resamples=0).value, abs=1e-14)
    fit_on, _ = p.split(0.2, seed=777)
    assert columns["T"] == find_temperature(fit_on).T
    assert columns["accuracy"] == p.correct.mean()
    assert columns["correct_confidence"] == p.confidence[p.correct].mean()
    assert columns["incorrect_confidence"] == p.confidence[~p.correct].mean()
    assert columns["hcs"] == harmonic_score(columns["accuracy"], columns["pre_ECE_15"])


def test_study_columns_of_a_constant_network():
    """Only the class counts decide: no temperature, ECE 0 at chance."""
    labels = np.arange(200) % 4
    columns = study_columns(cal.Predictions.from_logits(np.zeros((200, 4)), labels))
    assert (columns["accuracy"], columns["T"], columns["pre_ECE_15"]) == (0.25, 1.0, 0.0)
    assert columns["hcs"] == pytest.approx(0.4)
    all_right = cal.Predictions.from_logits(5 * np.eye(4)[labels], labels)
    assert np.isnan(study_columns(all_right)["incorrect_confidence"])
