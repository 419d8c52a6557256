"""The table of a repair asks what the shape can answer."""

import numpy as np

from calibrant import Predictions, fit
from calibrant.repairing.judge import repair, shown_for


def test_each_shape_is_judged_by_what_it_can_answer():
    rng = np.random.default_rng(0)
    s = rng.random(200)
    y = rng.random(200) < s**2
    binary, bare = Predictions.binary(s, y), Predictions.from_confidence(s, y)
    assert shown_for(binary) == ["nll", "brier", "ece", "accuracy", "roc_auc"]
    assert shown_for(bare) == ["nll", "brier", "ece", "accuracy", "auroc_correct"]
    judged = repair(fit(binary, "platt"), binary, resamples=20)
    assert [c.measure for c in judged.changes] == shown_for(binary)
