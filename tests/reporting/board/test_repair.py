"""Repairs of a board: fitted on one half, judged on the other, with the maps of the library."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.measuring.model_noise import Answers
from calibrant.reporting.board.repair import judged_half, repair


def test_halves_are_halves_and_follow_the_seed():
    judged = judged_half(1001, 3)
    assert judged.sum() == 500
    assert (judged == judged_half(1001, 3)).all()
    assert (judged != judged_half(1001, 4)).any()


def test_every_judged_answer_is_repaired_by_the_other_half():
    rng = np.random.default_rng(0)
    scores, hits = np.round(rng.random((2, 400)), 1), rng.random((2, 400)) < 0.5
    used = rng.random((2, 400)) < 0.9
    judged = judged_half(400, 0)
    transfer = repair(Answers(scores, hits, used), judged, "platt")
    for i in range(2):
        train, test = np.flatnonzero(used[i] & ~judged), np.flatnonzero(used[i] & judged)
        p, q = (cal.Predictions.from_confidence(scores[i, rows], hits[i, rows].astype(int)) for rows in (train, test))
        np.testing.assert_allclose(transfer.answers.confidence[i, test], cal.fit(p, "platt")(q).confidence, atol=1e-12)
        assert np.isnan(transfer.answers.confidence[i, ~judged]).all()
        assert (transfer.answers.used[i] == (used[i] & judged)).all()


def test_errors_of_the_halves_do_not_cancel():
    """A constant confidence becomes the accuracy of the fitted half: its ECE is the difference of the halves."""
    hits = np.random.default_rng(1).random((1, 300)) < 0.6
    judged = judged_half(300, 0)
    transfer = repair(Answers(np.full((1, 300), 0.9), hits, np.ones((1, 300), dtype=bool)), judged, "isotonic")
    after = transfer.answers.confidence[0, judged]
    assert after == pytest.approx(hits[0, ~judged].mean())
    assert abs(after.mean() - hits[0, judged].mean()) > 0.005


def test_a_model_with_one_answer_has_no_map():
    used = np.zeros((1, 20), dtype=bool)
    used[0, 3] = True
    transfer = repair(Answers(np.full((1, 20), 0.5), used, used), judged_half(20, 0), "isotonic")
    assert transfer.maps == (None,)
    assert not transfer.answers.used.any()
