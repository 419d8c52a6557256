"""Temperature scaling: the interval of T counts what was drawn, rows or clusters."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.predictions import Predictions


def patients(count, images, seed, k):
    """Rows of patients whose images are alike: some are overconfident, some are not."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(count), images)
    z = 2 * rng.normal(size=(count, k))[clusters] + 0.3 * rng.normal(size=(count * images, k))
    sharper = np.exp(0.4 * rng.normal(size=count))[clusters, None]
    return z * sharper, (z + rng.gumbel(size=(count, k))[clusters]).argmax(axis=1), clusters


@pytest.mark.parametrize("k", [2, 4])
def test_the_interval_is_that_of_resampled_clusters(k):
    z, y, clusters = patients(60, 50, 1, k)
    m = cal.fit(Predictions.from_logits(z, y, clusters=clusters), "temperature")
    rng, draws = np.random.default_rng(0), []
    members = [np.flatnonzero(clusters == c) for c in range(60)]
    for _ in range(150):
        rows = np.concatenate([members[c] for c in rng.integers(60, size=60)])
        draws.append(np.log(cal.fit(Predictions.from_logits(z[rows], y[rows]), "temperature").parameters["T"]))
    width = np.log(m.parameters["T_high"] / m.parameters["T_low"])
    assert width == pytest.approx(2 * 2.0 * np.std(draws), rel=0.25)
    alone = cal.fit(Predictions.from_logits(z, y), "temperature")
    assert alone.parameters["T"] == m.parameters["T"]
    assert width > 3 * np.log(alone.parameters["T_high"] / alone.parameters["T_low"])


def test_clusters_of_one_row_are_rows():
    z, y, _ = patients(400, 1, 2, 3)
    rows = cal.fit(Predictions.from_logits(z, y), "temperature").parameters
    each = cal.fit(Predictions.from_logits(z, y, clusters=np.arange(400)), "temperature").parameters
    assert np.log(each["T_high"]) == pytest.approx(np.log(rows["T_high"]), abs=0.05)


def test_one_cluster_has_no_interval():
    z, y, _ = patients(1, 60, 3, 3)
    y[:5] = (y[:5] + 1) % 3
    m = cal.fit(Predictions.from_logits(z, y, clusters=np.zeros(60, dtype=int)), "temperature")
    assert (m.parameters["T_low"], m.parameters["T_high"]) == (0, np.inf)
