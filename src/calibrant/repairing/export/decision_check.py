"""Checks that exports of decisions share: scores to try them on, and the comparison of their decisions."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.maps.export_check import to_input, trial_logits
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.deciding.decision import Decision

MARGIN = 1e-6  # scores this close to a threshold, or costs this close to each other, may go either way


def trial_scores(m: Map) -> tuple[Floats, Predictions]:
    """Scores of the self-test in float32, as the map takes them, and the same as predictions."""
    logits = trial_logits(m)
    p = to_input(m, logits)
    if m.score_type == "logits":
        return logits, p
    probs = p.probs.astype(np.float32)
    q = p.with_values(probs.astype(np.float64), "probs")
    if m.one_score:
        s = probs[:, 1].astype(np.float64)
        q = p.with_values(np.stack([1 - s, s], axis=1), "probs")
        return probs[:, 1], q
    return probs, q


def compare_decisions(d: Decision, p: Predictions, decisions: npt.ArrayLike, format_name: str) -> None:
    """Raise an error unless an export decides as the decision does, wherever rounding cannot matter."""
    expected, got = d(p), np.asarray(decisions)
    steady = np.ones(p.n, dtype=bool)
    for by in (-MARGIN, MARGIN):
        steady &= _decide_nearby(d, p, by) == expected
    if got.shape != expected.shape or (got != expected)[steady].any() or not steady.any():
        differ = "another shape" if got.shape != expected.shape else f"{(got != expected)[steady].sum()} others"
        raise InputError(
            f"export to {format_name}",
            expected="the decisions of the decision",
            got=differ,
            fix="nothing was written; please report this decision as a bug",
        )


def _decide_nearby(d: Decision, p: Predictions, by: float) -> Ints:
    """Decisions by slightly moved thresholds, or by slightly changed costs of the first choice."""
    policy = d.policy
    if policy.matrix is not None:
        shift = by * np.abs(policy.matrix).max() * np.arange(policy.matrix.shape[1])
        policy = replace(policy, matrix=policy.matrix + shift)
    if policy.threshold is not None:
        policy = replace(policy, threshold=policy.threshold + by)
    if policy.lower is not None:
        policy = replace(policy, lower=policy.lower + by)
    return policy(d.calibrate(p))
