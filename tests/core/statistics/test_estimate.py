"""Each kind of noise against a plain second way to compute it, and what an estimate does with any of them."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant.core.statistics.estimate import (
    Distances,
    Draws,
    Estimate,
    Interval,
    Inverted,
    Levels,
    Normal,
    Parts,
    Widened,
    Widest,
    combine,
    compute_from,
    subtract,
)
from calibrant.core.statistics.sampling import OTHER, Sampling
from calibrant.measures import make

RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.1, 999)


def draws_of(value, noise=NOISE, **more):
    return Estimate(value=value, noise=Draws(lower=noise, upper=noise, **more))


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_draws_are_what_must_be_subtracted(confidence):
    tail = (1 - confidence) / 2
    low, high = draws_of(0.3).limits(confidence)
    assert low == pytest.approx(0.3 - np.quantile(NOISE, 1 - tail))
    assert high == pytest.approx(0.3 - np.quantile(NOISE, tail))


def test_each_end_takes_its_own_draws_and_undefined_ones_are_left_out():
    lower = np.append(NOISE, [np.nan, np.inf])
    e = Estimate(value=0.3, noise=Draws(lower=lower, upper=2 * lower))
    assert e.limits() == pytest.approx((0.3 - np.quantile(NOISE, 0.975), 0.3 - np.quantile(2 * NOISE, 0.025)))


def test_noise_alone_puts_the_lower_end_at_0_and_is_asked_only_where_it_matters():
    def never():
        raise AssertionError("asked")

    assert draws_of(0.1, null=never).interval().low < 0
    assert draws_of(0.5, null=lambda: np.full(100, 0.4)).interval().low > 0
    assert draws_of(0.5, null=lambda: np.full(100, 0.6)).interval().low == 0


def test_p_values_count_ties_as_the_other_side():
    """Three of four draws leave 0.1 above 0, one leaves exactly 0 but for rounding."""
    noise = np.array([0.0, 0.05, -0.05, 0.1 + 1e-16])
    assert draws_of(0.1, noise).p_value() == pytest.approx(2 * (1 + 1) / (4 + 1))
    assert draws_of(0.0, np.zeros(9)).p_value() == 1.0


def test_normal_p_values_are_those_of_the_standard_deviation():
    e = draws_of(0.2, test="normal")
    assert e.p_value() == pytest.approx(2 * stats.norm.sf((0.2 - NOISE.mean()) / NOISE.std()))


def test_few_clusters_widen_draws_as_student_does():
    few, many = (draws_of(0.2, freedom=freedom) for freedom in (9.0, np.inf))
    ratio = stats.t.ppf(0.975, 9) / stats.norm.ppf(0.975)
    assert 0.2 - few.limits()[0] == pytest.approx(ratio * (0.2 - many.limits()[0]))
    assert few.p_value() == pytest.approx(2 * stats.t.sf(stats.norm.isf(many.p_value() / 2), 9))


def test_clusters_count_by_their_sizes():
    """Nine clusters of one row and one of eleven: 20 squared over 9 + 121 are about three."""
    rows = Sampling(n=20, clusters=np.append(np.arange(9), np.full(11, 9)))
    assert rows.freedom == pytest.approx(400 / 130 - 1)
    assert Sampling(n=20).freedom == 19


def test_parts_are_a_t_interval_and_a_t_test():
    values = RNG.normal(0.2, 0.3, 100)
    e = Estimate(value=float(values.mean()), noise=Parts(values=values))
    peer = stats.ttest_1samp(values, 0)
    assert e.limits() == pytest.approx(tuple(peer.confidence_interval(0.95)))
    assert e.p_value() == pytest.approx(peer.pvalue)


@pytest.mark.parametrize("freedom", [3.0, np.inf])
def test_normal_noise_on_its_three_scales(freedom):
    z = stats.t.ppf(0.975, freedom)
    for link, apply, invert in (
        ("identity", lambda x: x, lambda x: x),
        ("log", np.log, np.exp),
        ("logit", lambda x: np.log(x / (1 - x)), lambda x: 1 / (1 + np.exp(-x))),
    ):
        e = Estimate(value=0.3, noise=Normal(error=0.2, freedom=freedom, link=link))
        assert e.limits() == pytest.approx((invert(apply(0.3) - 0.2 * z), invert(apply(0.3) + 0.2 * z)))
    assert Estimate(value=0.3, noise=Normal(error=0.2, freedom=freedom)).p_value() == pytest.approx(
        2 * stats.t.sf(1.5, freedom)
    )


def test_skewness_moves_both_ends_to_the_long_tail():
    z = stats.norm.ppf(0.975)
    low, high = Estimate(value=1.0, noise=Normal(error=0.1, skewness=0.5)).limits()
    shift = 0.5 * (1 + 2 * z * z) / 6
    assert (low, high) == pytest.approx((1 + 0.1 * (shift - z), 1 + 0.1 * (shift + z)))


def test_levels_of_two_values_are_clopper_and_pearson():
    noise = Levels(
        values=np.array([0.0, 5.0]), shares=np.array([0.9, 0.1]), counts=np.full(2, 40.0), unseen=(0.0, 0.0), rows=40.0
    )
    peer = stats.binomtest(4, 40).proportion_ci(0.8)
    assert Estimate(value=0.5, noise=noise).limits(0.8) == pytest.approx((5 * peer.low, 5 * peer.high))


def test_inversion_keeps_the_pairs_that_explain_the_values():
    chance = np.array([[0.5, 0.01], [0.2, 0.06]])
    noise = Inverted(a=np.array([0.1, 0.2]), b=np.array([0.1, 0.3]), chance=chance, least=0.001)
    assert noise.ends(0.1, 0.025) == Interval(pytest.approx(-0.1), pytest.approx(0.1))  # .01 explains nothing
    assert noise.p_value(0.1) == 0.5  # errors of .1 and .1


def test_the_widest_of_two_and_what_no_row_showed():
    narrow, wide = Normal(error=0.1), Normal(error=0.2)
    both = Estimate(value=1.0, noise=Widest(first=narrow, second=lambda: wide))
    assert both.limits() == Estimate(value=1.0, noise=wide).limits()
    first = Estimate(value=0.1, noise=Widest(first=narrow, second=lambda: wide, above=0.0))
    assert first.limits() == Estimate(value=0.1, noise=narrow).limits()  # which reaches below 0
    widened = Estimate(value=1.0, noise=Widened(noise=narrow, unseen=lambda tail: [1 - 40 * tail, 1.1]))
    assert widened.limits() == pytest.approx((0.0, 1 + 0.1 * stats.norm.ppf(0.975)))
    assert "widened" in widened.method


def test_distances_are_zero_where_either_sign_is():
    a, b = draws_of(0.3), draws_of(-0.31, 2 * NOISE)
    difference = subtract(a, b, ideal=0.0)
    assert difference.value == pytest.approx(0.01)
    assert difference.p_value() > 0.5
    assert isinstance(difference.noise, Distances)
    low, high = difference.limits()
    assert low < 0 < high


def test_intervals_hold_the_value_inside_the_bounds_with_the_margin():
    e = Estimate(value=0.02, noise=Normal(error=0.1), bounds=(0.0, 0.1), margin=0.05)
    assert e.limits() == (0.0, 0.1)
    biased = Estimate(value=0.5, noise=Draws(lower=np.full(9, 0.2), upper=np.full(9, 0.1)))
    assert biased.limits() == pytest.approx((0.3, 0.5))
    assert Estimate(value=0.04, noise=Normal(error=0.001), margin=0.05).p_value() == 1.0


def test_no_interval_has_a_reason():
    assert Estimate(value=1.0, reason="too few rows").why_none() == "too few rows"
    flat = Estimate(value=1.0, noise=Normal(error=0.0), no_width="all rows alike")
    assert (flat.interval(), flat.why_none()) == (None, "all rows alike")
    assert Estimate(value=0.0, noise=Normal(error=0.0)).limits() == (0.0, 0.0)  # identical rows: an answer
    assert np.isnan(Estimate(value=1.0, reason="too few rows").p_value())


def test_weighted_sums_take_the_safe_side_of_each_member():
    a = Estimate(value=1.0, noise=Draws(lower=NOISE + 0.1, upper=NOISE))
    b = Estimate(value=3.0, noise=Draws(lower=2 * NOISE + 0.2, upper=2 * NOISE))
    e = combine([a, b], np.array([-1.0, 1.0]))
    assert (e.value, e.terms) == (2.0, (1.0, 3.0))
    assert e.noise.lower == pytest.approx(2 * NOISE + 0.2 - NOISE)
    assert e.noise.upper == pytest.approx(2 * NOISE - (NOISE + 0.1))


def test_functions_of_numbers_on_the_same_resamples():
    a, b = RNG.normal(2, 0.1, 200), RNG.normal(4, 0.1, 200)
    one, two = (Estimate(value=v, noise=Draws.from_resamples(v, d)) for v, d in ((2.0, a), (4.0, b)))
    ratio = compute_from(lambda x, y: y / x, one, two)
    assert ratio.limits() == pytest.approx(tuple(4 - np.quantile(b / a, [0.975, 0.025])))


@pytest.mark.parametrize("spec", ["ece", "ks", "debiased"])
def test_estimates_of_other_rows_have_noise_of_their_own(spec):
    """With one seed for both, noise that is not shared would cancel: coverage .74 in place of .95."""
    m, covered, rng = make(spec), 0, np.random.default_rng(1)
    for seed in range(60):
        a, b = (
            cal.Predictions.binary(s := rng.random(300), rng.random(300) < np.clip(s + 0.1, 0, 1)) for _ in range(2)
        )
        low, high = m.estimate_difference(a, b, Sampling.pair(a, b, paired=False, seed=seed)).limits()
        covered += low <= 0 <= high
    assert covered >= 54


def test_a_pair_of_the_same_rows_shares_its_seed_and_clusters():
    p = cal.Predictions.binary([0.2, 0.8] * 10, [0, 1] * 10, clusters=np.arange(20) // 2)
    same, other = Sampling.pair(p, p, paired=True, seed=3), Sampling.pair(p, p, paired=False, seed=3)
    assert (same[0].seed, same[1].seed) == (3, 3)
    assert same[1].clusters is same[0].clusters
    assert (other[0].seed, other[1].seed) == (3, 3 + OTHER)
