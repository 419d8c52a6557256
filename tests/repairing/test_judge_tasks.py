"""The table of a repair has the measures of the task."""

import numpy as np

from calibrant import Predictions, fit
from calibrant.repairing.judge import measures_for, repair


def test_each_task_is_judged_by_its_measures():
    rng = np.random.default_rng(0)
    s = rng.random(200)
    y = rng.random(200) < s**2
    binary, bare = Predictions.binary(s, y), Predictions.from_confidence(s, y)
    assert measures_for(binary) == ["nll", "brier", "ece", "accuracy", "roc_auc"]
    assert measures_for(bare) == ["nll", "brier", "ece", "accuracy", "auroc_correct"]
    judged = repair(fit(binary, "platt"), binary, resamples=20)
    assert [c.measure for c in judged.changes] == measures_for(binary)
