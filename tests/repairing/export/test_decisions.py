"""Decisions exported with their maps: the file decides as the decision does, for every task and policy."""

import json
import runpy

import numpy as np
import pytest
from commands import run

import calibrant as cal
from calibrant import InputError, Predictions

onnxruntime = pytest.importorskip("onnxruntime")


def rows(task, n=1500, seed=0):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 3)).astype(np.float32).astype(np.float64)
    y = (z + rng.gumbel(size=(n, 3))).argmax(axis=1)
    s = (1 / (1 + np.exp(-z[:, 0]))).astype(np.float32).astype(np.float64)
    hit = (rng.random(n) < s).astype(int)
    if task == "multiclass":
        return Predictions.from_logits(z, y)
    if task == "multiclass probs":
        return Predictions.from_probs(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), y)
    if task == "choice":
        mask = np.ones((n, 3), dtype=bool)
        mask[rng.random(n) < 0.3, 2] = False
        return Predictions.from_logits(z, np.where(mask[np.arange(n), y], y, 0), mask=mask)
    if task == "confidence":
        return Predictions.from_confidence(s, hit)
    return Predictions.binary(z[:, 0] if task == "binary logits" else s, hit, logits=task == "binary logits")


def scores_of(p):
    """The array that a decision takes."""
    if p.task in ("binary", "confidence"):
        return p.score if p.score_type == "probs" else p.values[:, 1] - p.values[:, 0]
    return p.values if p.row_data.option_mask is None else np.where(p.row_data.option_mask, p.values, -np.inf)


ALWAYS = [("temperature", {"max_error": 0.15}), ("identity", {"max_error": 1e-6})]
BINARY = [
    ("isotonic", {"cost": "fn=4,fp=1"}),
    ("beta", {"cost": "fn=4,fp=1,abstain=0.3"}),
    ("isotonic", {"min_precision": 0.6}),
    ("isotonic", {"max_error": 0.2}),
    ("beta", {"cost": [[0, 1, 0.3], [4, 0, 0.3]]}),
    ("platt", {"cost": "wrong=3,abstain=1"}),
]
CASES = [
    *((task, *case) for task in ("binary", "binary logits") for case in ALWAYS + BINARY),
    *(
        (task, *case)
        for task in ("confidence", "choice")
        for case in [*ALWAYS, ("platt", {"cost": "wrong=3,abstain=1"})]
    ),
    *((task, *case) for task in ("multiclass", "multiclass probs") for case in ALWAYS),
    ("multiclass", "isotonic", {"max_error": 0.2}),
    ("multiclass", "histogram", {"max_error": 0.2}),
    ("multiclass probs", "dirichlet", {"cost": 1 - np.eye(3)}),
    ("multiclass", "vector", {"cost": np.column_stack([1 - np.eye(3), np.full(3, 0.2)])}),
]


@pytest.mark.parametrize(("task", "calibrator", "wish"), CASES)
def test_a_file_decides_as_the_decision_does(tmp_path, task, calibrator, wish):
    d = cal.decide(rows(task), map=cal.fit(rows(task, 400, seed=1), calibrator), **wish)
    new = rows(task, 300, seed=2)
    cal.export(d, "onnx", tmp_path / "d.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "d.onnx", providers=["CPUExecutionProvider"])
    probs, decided = session.run(None, {"scores": scores_of(new).astype(np.float32)})
    assert decided.tolist() == d(new).tolist()
    q = d.calibrate(new)
    assert probs == pytest.approx(q.score if task.startswith(("binary", "confidence")) else q.probs, abs=1e-6)
    cal.export(d, "python", tmp_path / "d.py")
    decide = runpy.run_path(str(tmp_path / "d.py"))["decide"]
    if new.task in ("binary", "confidence"):
        decisions = [decide(s) for s in new.score.tolist()]
    elif new.row_data.option_mask is not None:
        decisions = [decide(z[e].tolist()) for z, e in zip(new.logits, new.row_data.option_mask, strict=True)]
    else:
        decisions = [decide(z) for z in new.logits.tolist()]
    assert [one[1] for one in decisions] == d(new).tolist()


def test_scores_at_a_step_of_the_map_are_on_the_side_of_the_threshold(tmp_path):
    """A map of bins gives a whole bin one value: rounding must not move all of its rows."""
    p = rows("binary", 3000)
    d = cal.decide(p, map=cal.fit(rows("binary", 600, seed=1), "histogram"), min_precision=0.6)
    s = d.calibrate(p).score
    assert (s == d.threshold).sum() > 20
    cal.export(d, "onnx", tmp_path / "d.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "d.onnx", providers=["CPUExecutionProvider"])
    assert session.run(["decision"], {"scores": p.score.astype(np.float32)})[0].tolist() == d(p).tolist()


def test_options_are_counted_among_those_of_the_question(tmp_path):
    """Of four options any of the last two may be missing, so that the place is not the number of the option."""
    rng = np.random.default_rng(0)
    z, mask = 2 * rng.normal(size=(800, 4)), np.ones((800, 4), dtype=bool)
    mask[np.arange(800), rng.integers(2, 4, 800)] = False
    y = np.where(mask, z + rng.gumbel(size=z.shape), -np.inf).argmax(axis=1)
    p = Predictions.from_logits(z, y, mask=mask)
    d = cal.decide(p, max_error=0.3)
    cal.export(d, "python", tmp_path / "d.py")
    assert "the place of the option among these or -1" in (tmp_path / "d.py").read_text()
    decide = runpy.run_path(str(tmp_path / "d.py"))["decide"]
    places = [decide(row[there].tolist())[1] for row, there in zip(z, mask, strict=True)]
    chosen = [-1 if place < 0 else np.flatnonzero(there)[place] for place, there in zip(places, mask, strict=True)]
    assert chosen == d(p).tolist()
    assert 3 in chosen


def test_the_command_and_what_the_file_says(tmp_path):
    onnx = pytest.importorskip("onnx")
    d = cal.decide(rows("binary"), cost="fn=4,fp=1")
    d.save(tmp_path / "d.json")
    run("export", "d.json", "--to", "onnx", "--out", "d.onnx", cwd=tmp_path)
    props = {one.key: one.value for one in onnx.load(tmp_path / "d.onnx").metadata_props}
    assert json.loads(props["calibrant.decision"])["policy"]["threshold"] == 0.2
    error = run("export", "d.json", "--to", "torch", "--out", "d.pt2", cwd=tmp_path, code=2).stderr
    assert "a decision alone, to onnx or python" in error
    with pytest.raises(InputError, match="a decision alone"):
        cal.export(d, "onnx", tmp_path / "x.onnx", append_to=tmp_path / "d.onnx")
