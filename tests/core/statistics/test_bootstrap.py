"""Resamples: the same rows for the same seed, in one batch or in several, for one measure or many."""

import numpy as np
import pytest

from calibrant.core.statistics import bootstrap
from calibrant.core.statistics.bootstrap import resample_counts


@pytest.mark.parametrize("kept", [0, 10_000])
@pytest.mark.parametrize("clusters", [None, np.arange(30) // 4], ids=["rows", "clusters"])
def test_batches_hold_the_same_resamples(clusters, kept, monkeypatch):
    whole = np.concatenate(list(resample_counts(30, 20, 3, clusters)))
    monkeypatch.setattr(bootstrap, "BATCH_ELEMENTS", 210)
    monkeypatch.setattr(bootstrap, "KEPT_ELEMENTS", kept)
    parts = list(resample_counts(30, 20, 3, clusters))
    assert len(parts) == 3
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert (whole.sum(axis=1) == 30).all() or clusters is not None


def test_the_next_measure_gets_the_same_resamples_without_drawing_them_again(monkeypatch):
    (first,) = resample_counts(50, 10, 0)
    first[0, 0] = 99  # a measure may use the array as it likes
    monkeypatch.setattr(bootstrap, "_draw_counts", None)
    (second,) = resample_counts(50, 10, 0)
    assert (second.sum(axis=1) == 50).all()
    assert (second[1:] == first[1:]).all()
