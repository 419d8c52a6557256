"""Resamples: the same rows for the same seed, in one batch or in several, for one measure or many."""

import numpy as np
import pytest

from calibrant.core.statistics import bootstrap
from calibrant.core.statistics.bootstrap import resample_counts


@pytest.mark.parametrize("clusters", [None, np.arange(30) // 4], ids=["rows", "clusters"])
def test_batches_hold_the_same_resamples(clusters, monkeypatch):
    whole = np.concatenate(list(resample_counts(30, 20, 3, clusters)))
    monkeypatch.setattr(bootstrap, "BATCH_ELEMENTS", 210)
    parts = list(resample_counts(30, 20, 3, clusters))
    assert len(parts) == 3
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert (whole.sum(axis=1) == 30).all() or clusters is not None


def test_the_next_measure_gets_the_same_resamples_and_cannot_change_them():
    (first,), (second,) = resample_counts(50, 10, 0), resample_counts(50, 10, 0)
    assert first is second  # not drawn again
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 9
    (other,) = resample_counts(50, 10, 1)
    assert (other != first).any()
