"""Rankings: few false statements when models are alike, ranks that hold the truth, groups by their rule."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from calibrant.core.statistics.estimate import Draws, Estimate, combine
from calibrant.measuring.rank_groups import rank_models


def noise_of(values, draws, **more):
    return [
        Estimate(value=float(value), noise=Draws(lower=noise, upper=noise, **({"test": "normal"} | more)))
        for value, noise in zip(values, draws.T, strict=True)
    ]


def test_models_that_are_alike_are_seldom_told_apart():
    rng, false = np.random.default_rng(0), 0
    for _ in range(200):
        draws = rng.standard_normal((400, 8))
        false += rank_models(noise_of(rng.standard_normal(8), draws), 1).worse.any()
    assert false <= stats.binom.ppf(0.999, 200, 0.06)  # 5 %, and a little for 400 draws
    assert false >= 1


def test_ranks_hold_the_truth_and_tell_far_models_apart():
    rng, truth = np.random.default_rng(1), np.array([0.0, 0.5, 5.0, 5.2, 12.0, 20.0])
    missed = 0
    for _ in range(100):
        ranking = rank_models(noise_of(truth + rng.standard_normal(6), rng.standard_normal((400, 6))), 1)
        missed += ((ranking.first > np.arange(1, 7)) | (ranking.last < np.arange(1, 7))).any()
        assert ranking.worse[[0, 1], [5, 4]].all()
    assert missed <= stats.binom.ppf(0.999, 100, 0.06)


def test_step_down_tells_more_apart_than_the_first_step():
    rng = np.random.default_rng(2)
    draws = rng.standard_normal((4000, 3)) * [1, 1, 0.01]
    difference = draws[:, :, None] - draws[:, None, :]
    error = difference.std(axis=0) + np.eye(3)
    first = np.quantile((difference / error).reshape(len(draws), -1).max(axis=1), 0.95)
    assert rank_models(noise_of([0.0, 50.0, 80.0], draws), 1).critical < first


def test_a_merit_is_ranked_downwards_and_undefined_values_not_at_all():
    draws = 0.001 * np.random.default_rng(3).standard_normal((500, 4))
    ranking = rank_models(noise_of([0.2, np.nan, 0.9, 0.5], draws), -1)
    assert ranking.order == (2, 3, 0)
    assert ranking.group.tolist() == [3, 0, 1, 2]
    assert ranking.first.tolist() == ranking.last.tolist() == [3, 0, 1, 2]
    assert ranking.told_apart == 1.0


def test_a_group_is_its_leader_and_all_that_are_not_worse():
    draws = np.random.default_rng(4).standard_normal((2000, 4)) * [0.01, 0.01, 0.01, 3.0]
    ranking = rank_models(noise_of([0.0, 0.2, 0.4, 0.6], draws), 1)
    assert ranking.group.tolist() == [1, 2, 3, 1]  # the last is too noisy to be worse than anybody
    assert (ranking.first[3], ranking.last[3]) == (1, 4)
    assert ranking.groups == 3


def test_values_without_noise_differ_if_they_differ():
    ranking = rank_models(noise_of([0.1, 0.1, 0.2], np.zeros((100, 3))), 1)
    assert ranking.group.tolist() == [1, 1, 2]


def test_one_model_is_a_ranking_of_its_own():
    ranking = rank_models(noise_of([0.1], np.zeros((10, 1))), 1)
    assert (ranking.order, ranking.group.tolist()) == ((0,), [1])
    assert np.isnan(ranking.told_apart)


def test_a_jump_counts_only_if_every_resample_has_it():
    draws = np.zeros((1000, 2))
    draws[:30, 1] = 0.3  # value minus noise is 0 in 3 % of the resamples
    noise = noise_of([0.0, 0.3], draws)
    jumping = noise_of([0.0, 0.3], draws, test="jumps")
    assert rank_models(noise, -1).worse.any()
    assert not rank_models(jumping, -1).worse.any()
    weights = np.array([-1.0, 1.0])
    assert combine(noise, weights).p_value() < 1e-6
    assert combine(jumping, weights).p_value() == pytest.approx(2 * 31 / 1001)


def test_a_contrast_of_calibration_errors_takes_the_safe_side():
    rng = np.random.default_rng(6)
    upper = 0.01 * rng.standard_normal((4000, 2))
    plain_noise = noise_of([0.1, 0.13], upper)
    noise = [replace(e, noise=replace(e.noise, lower=np.abs(e.noise.upper))) for e in plain_noise]
    weights = np.array([-1.0, 1.0])
    safe, plain = combine(noise, weights), combine(plain_noise, weights)
    assert safe.limits()[0] < plain.limits()[0] < plain.limits()[1] < safe.limits()[1]
    assert safe.p_value() > plain.p_value()
    exact = 2 * stats.norm.sf(0.03 / (upper[:, 1] - upper[:, 0]).std())
    assert plain.p_value() == pytest.approx(exact, rel=0.1)
