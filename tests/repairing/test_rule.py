"""The one rule: what it needs to let a calibrator win, which of several it takes, and what it says about it."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.predictions import Predictions
from calibrant.data import DEMO_TEST, DEMO_VAL
from calibrant.repairing.choose import measure_candidate
from calibrant.repairing.rule import CandidateLosses, decide
from calibrant.reporting.build import build

N = 400
BASE = np.random.default_rng(0).exponential(size=N)


def judged(name, mean, spread, complexity=1, keeps_argmax=True, seed=1):
    """Losses that differ from the base by this mean exactly, with this spread."""
    noise = np.random.default_rng(seed).normal(size=N)
    noise = spread * (noise - noise.mean()) / noise.std()
    return CandidateLosses(
        calibrator=name, losses=BASE + mean + noise, complexity=complexity, keeps_argmax=keeps_argmax
    )


IDENTITY = CandidateLosses(calibrator="identity", losses=BASE, complexity=0, keeps_argmax=True)


def test_rows_of_a_cluster_count_as_one():
    """Every row twice, in a cluster: as sure as with the rows once, and less sure than by chance twice."""
    once = judged("temperature", -0.2, 1.0)
    twice, base = (np.repeat(losses, 2) for losses in (once.losses, BASE))
    pairs = np.repeat(np.arange(N), 2)
    clustered = CandidateLosses(calibrator="temperature", losses=twice, complexity=1, keeps_argmax=True, clusters=pairs)
    other = CandidateLosses(calibrator="identity", losses=base, complexity=0, keeps_argmax=True, clusters=pairs)
    assert clustered.ahead_of(other) == pytest.approx(once.ahead_of(IDENTITY))
    apart = CandidateLosses(calibrator="temperature", losses=twice, complexity=1, keeps_argmax=True).ahead_of(
        CandidateLosses(calibrator="identity", losses=base, complexity=0, keeps_argmax=True)
    )
    assert apart[1] == pytest.approx(once.ahead_of(IDENTITY)[1] / np.sqrt(2))


def test_a_lower_loss_within_noise_does_not_win():
    """1.5 standard errors below: closer to the lowest than the old rule asked for, but not significant."""
    tempting = judged("temperature", -1.5 * 0.05 / np.sqrt(N), 0.05)
    ruling = decide([IDENTITY, tempting])
    assert ruling.chosen == "identity"
    assert ruling.of("temperature").low < 0 < ruling.of("temperature").high
    assert ruling.of("temperature").significant == "neither"
    assert "no calibrator has a significantly lower loss" in ruling.words
    assert "it lowers the loss" not in ruling.words


def test_a_significant_gain_wins_and_is_given_with_its_interval():
    ruling = decide([IDENTITY, judged("temperature", -0.2, 1.0)])
    chosen = ruling.of("temperature")
    assert ruling.chosen == "temperature"
    assert chosen.significant == "better"
    assert chosen.high < 0
    assert ruling.choice_words.startswith(f"Use temperature: it lowers the loss, NLL {BASE.mean():.4f} to ")
    assert f"(change {chosen.low:+.4f} to {chosen.high:+.4f})" in ruling.words


def test_a_few_rows_that_weigh_much_win_without_an_interval():
    """Two positives with a score of 0: resamples may hold none of them, but calibrated scores would not allow them."""
    gain = np.full(N, -0.001)
    gain[[3, 300]] = 24.0
    calmer = CandidateLosses(calibrator="beta", losses=BASE - gain, complexity=1, keeps_argmax=True)
    ruling = decide([IDENTITY, calmer])
    assert (ruling.chosen, ruling.of("beta").significant) == ("beta", "neither")
    assert "Use beta: the labels are far likelier under it, NLL" in ruling.words
    assert ruling.of("beta").likelier == pytest.approx(48 - (N - 2) * 0.001)


def test_the_likelihood_counts_rows_clusters_and_shares_for_what_they_are():
    one, two = BASE[:6], BASE[:6] - np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])

    def likelier(**facts):
        return CandidateLosses(calibrator="beta", losses=two, complexity=1, keeps_argmax=True, **facts).likelier_than(
            CandidateLosses(calibrator="identity", losses=one, complexity=0, keeps_argmax=True)
        )

    assert likelier() == pytest.approx(6)
    assert likelier(weights=np.array([2.0, 1, 1, 1, 1, 1])) == pytest.approx(7)  # a row that occurs twice
    assert likelier(weights=np.array([1.5, 1.5, 1.5, 0.5, 0.5, 0.5])) == pytest.approx(6)  # shares: not above one row
    assert likelier(clusters=np.array([0, 0, 0, 1, 1, 1])) == pytest.approx(2)  # rows that came together: their mean


def test_a_hundred_times_as_likely_is_enough_and_less_is_not():
    """A gain of few rows, too noisy for its interval."""
    gain = np.zeros(N)
    gain[:4] = [9.0, -3.0, -3.0, 1.7]  # 4.7 in all; ln 100 is 4.605
    enough = decide(
        [IDENTITY, CandidateLosses(calibrator="temperature", losses=BASE - gain, complexity=1, keeps_argmax=True)]
    )
    assert (enough.chosen, enough.of("temperature").significant) == ("temperature", "neither")
    gain[3] = 1.5
    assert (
        decide(
            [IDENTITY, CandidateLosses(calibrator="temperature", losses=BASE - gain, complexity=1, keeps_argmax=True)]
        ).chosen
        == "identity"
    )


def test_a_simple_one_under_which_labels_are_far_less_likely_does_not_win():
    """Within one standard error of the lowest, by a few rows that the simple one gets badly wrong."""
    gain = np.zeros(N)
    gain[:3] = [9.0, -3.0, -1.0]
    simple = judged("temperature", -0.3, 0.1, complexity=1, seed=4)
    free = CandidateLosses(calibrator="sms", losses=simple.losses - gain, complexity=3, keeps_argmax=False)
    assert decide([IDENTITY, simple, free]).chosen == "sms"
    gain[0] = 8.0  # 4 in all
    assert (
        decide(
            [
                IDENTITY,
                simple,
                CandidateLosses(calibrator="sms", losses=simple.losses - gain, complexity=3, keeps_argmax=False),
            ]
        ).chosen
        == "temperature"
    )


@pytest.mark.parametrize("k", [2, 4])
def test_calibrated_predictions_seldom_look_less_likely(k):
    """Labels from the predictions themselves: other maps are seldom 20 times as likely."""
    often = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        z = 1.5 * rng.normal(size=(200, k))
        p = Predictions.from_logits(z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
        often += cal.choose(p, ["temperature", "isotonic"]).ruling.chosen != "identity"
    assert often <= 5


def test_harm_is_called_worse_and_never_wins():
    ruling = decide([IDENTITY, judged("isotonic", 0.2, 1.0)])
    assert ruling.of("isotonic").significant == "worse"
    assert (ruling.chosen, ruling.otherwise) == ("identity", "identity")


def test_the_simplest_near_the_lowest_wins():
    free = judged("sms", -0.300, 0.1, complexity=3, seed=2)
    near = judged("svs", -0.298, 0.1, complexity=2, seed=3)  # within one standard error, 0.1 * sqrt(2) / 20
    far = judged("temperature", -0.25, 0.1, complexity=1, seed=4)
    assert decide([IDENTITY, far, near, free]).chosen == "svs"
    assert decide([IDENTITY, far, free]).chosen == "sms"


def test_of_equally_simple_ones_the_first_wins():
    first, second = judged("temperature", -0.299, 0.1, seed=2), judged("ets", -0.3, 0.1, seed=3)
    assert decide([IDENTITY, first, second]).chosen == "temperature"
    assert decide([IDENTITY, second, first]).chosen == "ets"


def test_keeping_predictions_is_an_option_and_the_other_choice_is_said():
    kept, free = judged("temperature", -0.2, 0.1), judged("sms", -0.3, 0.1, 3, keeps_argmax=False, seed=2)
    free_to_change, keeping = (decide([IDENTITY, kept, free], keep_argmax=keep) for keep in (False, True))
    assert (free_to_change.chosen, free_to_change.otherwise) == ("sms", "temperature")
    assert (keeping.chosen, keeping.otherwise) == ("temperature", "sms")
    assert "if every prediction must stay, the choice is temperature" in free_to_change.words
    assert "if predictions may change, the choice is sms" in keeping.words
    assert decide([IDENTITY, kept]).option_words == ""


def test_what_is_open_is_said_with_the_rows_that_would_settle_it():
    first, second = judged("temperature", -0.3, 0.1, seed=2), judged("ets", -0.296, 0.1, seed=3)
    ruling = decide([IDENTITY, first, second])
    gap = second.losses - first.losses
    assert ruling.rival.calibrator == "ets"
    assert ruling.rival.rows == pytest.approx((1.96 * gap.std() / gap.mean()) ** 2, abs=1)
    assert "inconclusive" in ruling.rival_words
    assert decide([IDENTITY, first]).rival is None


def test_intervals_are_those_of_compare():
    rng = np.random.default_rng(3)
    z = 1.5 * rng.normal(size=(300, 3))
    p = Predictions.from_logits(2 * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
    q = p.with_temperature(1.7)
    candidate = decide(
        [measure_candidate("identity", p), measure_candidate("temperature", q)], resamples=100, seed=5
    ).of("temperature")
    expected = cal.compare(p, q, "nll", resamples=100, seed=5)
    assert (candidate.difference, candidate.low, candidate.high) == pytest.approx(
        (expected.difference, expected.low, expected.high)
    )
    assert candidate.significant == {"a": "worse", "b": "better", "neither": "neither"}[expected.better]


@pytest.mark.parametrize("keep_argmax", [False, True])
def test_auto_and_the_report_agree_on_the_demo(keep_argmax):
    val, test = cal.Predictions.load(DEMO_VAL), cal.Predictions.load(DEMO_TEST)
    by_auto = cal.choose(val, keep_argmax=keep_argmax).map.calibrator
    by_report = build(test, fit_on=val, keep_argmax=keep_argmax, resamples=200).models[0]
    assert by_report.best == by_auto == ("temperature" if keep_argmax else "sms")
    assert by_report.ruling.otherwise == ("sms" if keep_argmax else "temperature")
    assert by_report.ruling.keep_argmax is keep_argmax


def test_every_default_is_the_same():
    import inspect

    from calibrant.cli.repairing import fit
    from calibrant.repairing.rule import KEEP_ARGMAX

    for asks in (cal.choose, cal.report, build, decide, fit):
        assert inspect.signature(asks).parameters["keep_argmax"].default is KEEP_ARGMAX, asks
