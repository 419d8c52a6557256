"""The test of calibration rejects calibrated models seldom, clusters or not."""

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.core.errors import InputError


def clustered(clusters, rows, correlation, seed, off=0.0):
    """Calibrated scores whose outcomes depend on each other within clusters."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rows)
    n = len(cluster)
    noise = np.sqrt(correlation) * rng.normal(size=clusters)[cluster]
    noise += np.sqrt(1 - correlation) * rng.normal(size=n)
    scores = norm.cdf(0.8 + 0.8 * np.sqrt(0.5) * (rng.normal(size=clusters)[cluster] + rng.normal(size=n)))
    return cal.Predictions.from_confidence(scores, norm.cdf(noise) < scores - off, clusters=cluster)


@pytest.mark.parametrize(("clusters", "rows", "correlation"), [(20, 25, 0.5), (50, 20, 0.9), (100, 10, 0.5)])
def test_calibrated_clusters_are_seldom_rejected(clusters, rows, correlation):
    """Drawing labels row by row rejects 17 to 58 % of them."""
    sets = (clustered(clusters, rows, correlation, seed) for seed in range(200))
    chances = np.array([cal.calibration_test(p, "ece", resamples=300).p_value for p in sets])
    assert 0.01 <= np.mean(chances < 0.05) <= 0.10


def test_miscalibrated_clusters_are_rejected():
    chances = [
        cal.calibration_test(clustered(60, 10, 0.3, seed, off=0.2), "ece", resamples=300).p_value for seed in range(20)
    ]
    assert np.mean(np.array(chances) < 0.05) >= 0.9


def test_a_measure_without_residuals_cannot_be_tested_in_clusters():
    with pytest.raises(InputError, match="rows in clusters"):
        cal.calibration_test(clustered(20, 5, 0.5, 0), "nll")


def test_too_few_clusters_give_no_p_value():
    test = cal.calibration_test(clustered(5, 50, 0.5, 0), "ece", resamples=50)
    assert np.isnan(test.p_value)
    assert test.reason == "too few clusters for an interval: 5, at least 10 are needed"
    assert test.to_dict()["p_value"] is None
