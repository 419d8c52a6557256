"""How often the interval of an estimated base rate holds the truth, and how often the test errs: `make slow`.

The numbers are those of docs/methods/deciding.md#another-base-rate. About 15 minutes.
"""

import numpy as np
import pytest

import calibrant as cal
from calibrant import Predictions

pytestmark = pytest.mark.slow
SETS, RESAMPLES = 250, 200
SETTINGS = {  # base rates before and after, distance of the classes, labelled and unlabelled rows
    "a": (0.2, 0.4, 1.5, 1000, 2000),
    "b": (0.05, 0.02, 2.0, 3000, 3000),
    "c": (0.5, 0.8, 1.0, 800, 1500),
}


def draw(rng, n, rate, distance):
    """Scores of two normal classes by a model that is not calibrated."""
    y = rng.random(n) < rate
    x = rng.normal(size=n) + distance * y
    return 1 / (1 + np.exp(-(x * 1.3 - 1.0))), y.astype(int)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_interval_holds_the_truth_and_the_test_seldom_refutes_it(name):
    before, after, distance, labelled, today = SETTINGS[name]
    rng, covered, refuted = np.random.default_rng(0), 0, 0
    for i in range(SETS):
        p = Predictions.binary(*draw(rng, labelled, before, distance))
        q = Predictions.binary(draw(rng, today, after, distance)[0], None)
        rates = cal.base_rates(cal.fit(p, "platt"), p, q, resamples=RESAMPLES, seed=i)
        covered += rates.low[1] <= after <= rates.high[1]
        refuted += rates.refuted
    print(f"\n{name}: held {covered / SETS:.3f}, refuted {refuted / SETS:.3f}")
    noise = 2 * np.sqrt(0.05 * 0.95 / SETS)
    assert 0.93 - noise <= covered / SETS <= 0.99 + noise
    assert refuted / SETS <= 0.06 + noise
