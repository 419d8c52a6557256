"""Steps on plain arrays, operation by operation, against the views of Predictions."""

import numpy as np
import pytest
from export_maps import BY_TASK, NAMES, fresh, map_of, map_of_task, shaped_rows
from numpy.testing import assert_allclose

from calibrant.core.maps.arrays import ARRAYS
from calibrant.core.maps.operations import BatchScores
from calibrant.core.maps.steps import Linear, Step


def run(m, scores):
    for step in m.steps:
        scores = step.run(scores, step)
    return scores.probs


@pytest.mark.parametrize("name", NAMES)
def test_plain_arrays_give_the_numbers_of_the_map(name):
    m = map_of(name)
    logits, probs = fresh(m)
    assert_allclose(run(m, BatchScores(ops=ARRAYS, values=logits.astype(np.float64), k=m.k)), probs, atol=1e-12)


@pytest.mark.parametrize(("task", "name"), [pair for pair in BY_TASK if pair[0] != "choice"])
def test_plain_arrays_of_one_score(task, name):
    m = map_of_task(task, name)
    logits, probs = shaped_rows(m)
    both = np.stack([np.zeros(len(logits)), logits], axis=1).astype(np.float64)
    second = np.ones((len(logits), 1), dtype=np.int64)
    assert_allclose(
        run(m, BatchScores(ops=ARRAYS, values=both, k=2, top=second, one_score=True))[:, 1], probs, atol=1e-12
    )


def test_a_step_says_what_it_does():
    class New(Step):
        name = "new"

    with pytest.raises(TypeError, match="run"):
        New()


def test_a_step_of_a_new_kind_runs_everywhere(tmp_path):
    from calibrant.core.maps.map import Map
    from calibrant.repairing.export.onnx import to_onnx

    class Half(Linear):
        def run(self, s, c):
            return s.next(s.ops.affine(s.logits, c.weight, c.bias), False, s.top)

    m = Map(calibrator="half", k=3, steps=(Half(np.array(0.5), np.array(0.0)),))
    assert to_onnx(m, tmp_path / "m.onnx").largest_difference < 1e-6
