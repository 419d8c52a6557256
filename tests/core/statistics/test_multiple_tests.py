"""Holm's correction by hand, Benjamini and Hochberg's against scipy."""

import numpy as np
from scipy.stats import false_discovery_control

from calibrant.core.statistics.multiple_tests import benjamini_hochberg, holm


def test_holm_multiplies_by_the_tests_that_are_left_and_never_falls():
    given = np.array([0.03, 0.001, 0.02, np.nan, 0.5])
    # 4 x .001, 3 x .02, 2 x .03 is no less than that, 1 x .5
    np.testing.assert_allclose(holm(given), [0.06, 0.004, 0.06, np.nan, 0.5])


def test_holm_is_at_most_1_and_takes_no_tests():
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).tolist() == []


def test_benjamini_hochberg_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 100):
        given = np.round(rng.random(n) ** 3, 2)  # with ties
        np.testing.assert_allclose(benjamini_hochberg(given), false_discovery_control(given), rtol=1e-15)
    assert benjamini_hochberg(np.array([])).tolist() == []
