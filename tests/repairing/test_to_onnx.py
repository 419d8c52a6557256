"""ONNX graphs of maps against the maps, in onnxruntime; alone and behind a classifier."""

import json
import sys

import numpy as np
import pytest
from export_maps import (
    HAND_BUILT,
    NAMES,
    SHAPED,
    K,
    damaged_map,
    fresh,
    group_map,
    map_of,
    shaped_map,
    shaped_rows,
    softmax,
)

from calibrant.repairing import to_onnx as to_onnx_module

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx
import onnxruntime as runtime
from onnx import TensorProto, helper, numpy_helper

from calibrant.core.errors import InputError
from calibrant.core.exported import TOLERANCE
from calibrant.core.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.steps import STEPS, Linear, Step
from calibrant.repairing.to_onnx import to_onnx

TEMPERATURE = Map("temperature", K, (Linear(np.array(0.5), np.array(0.0)),), {"T": 2.0})


def run(path, outputs, **inputs):
    return runtime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(outputs, inputs)


def classifier(path, *, outputs=("scores",), k=K, opset=17, softmax=False, kind=TensorProto.FLOAT):
    """features (batch, 3) -> as many outputs of k columns as there are names."""
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(3, k)).astype(np.float32), "weight")
    nodes = [helper.make_node("MatMul", ["features", "weight"], ["raw"])]
    nodes += [
        helper.make_node("Softmax" if softmax else "Cast", ["raw"], [o], **({} if softmax else {"to": kind}))
        for o in outputs
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info(o, kind, ["batch", k]) for o in outputs],
        [weight],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def test_every_step_has_a_hand_built_map():
    assert {type(step) for m in HAND_BUILT.values() for step in m.steps} == set(STEPS.values())


@pytest.mark.parametrize("name", NAMES)
def test_parity(name, tmp_path):
    m = map_of(name)
    done = to_onnx(m, tmp_path / "m.onnx")
    logits, probs = fresh(m)
    (found,) = run(done.path, ["calibrated_logits"], logits=logits)
    assert found.dtype == np.float32
    np.testing.assert_allclose(softmax(found), probs, atol=TOLERANCE)
    assert done.largest_difference < 1e-6
    assert len(run(done.path, None, logits=logits[:1])[0]) == 1


@pytest.mark.parametrize(("shape", "name"), SHAPED)
def test_other_shapes(shape, name, tmp_path):
    m = shaped_map(shape, name)
    done = to_onnx(m, tmp_path / "m.onnx")
    logits, probs = shaped_rows(m)
    (found,) = run(done.path, ["calibrated_logits"], logits=logits)
    assert found.shape == logits.shape
    got = softmax(found) if shape == "choices" else 1 / (1 + np.exp(-found.astype(np.float64)))
    np.testing.assert_allclose(got, probs, atol=1e-6)
    if shape == "choices":
        assert (found[np.isinf(logits)] == -np.inf).all()


def test_a_network_of_one_output_gets_the_map_of_its_score(tmp_path):
    net, m = classifier(tmp_path / "net.onnx", k=1), shaped_map("binary", "isotonic")
    done = to_onnx(m, tmp_path / "both.onnx", append_to=net)
    scores, calibrated = run(done.path, ["scores", "calibrated_logits"], features=np.eye(3, dtype=np.float32))
    assert scores.shape == calibrated.shape == (3, 1)
    expected = m.apply(Predictions.binary(scores[:, 0].astype(np.float64), [0, 1, 0], logits=True)).score
    np.testing.assert_allclose(1 / (1 + np.exp(-calibrated[:, 0].astype(np.float64))), expected, atol=1e-6)
    with pytest.raises(InputError, match="batch x 1"):
        to_onnx(m, tmp_path / "no.onnx", append_to=classifier(tmp_path / "wide.onnx"))


def test_the_model_says_which_map_it_is(tmp_path):
    model = onnx.load(to_onnx(TEMPERATURE, tmp_path / "m.onnx").path)
    told = json.loads({one.key: one.value for one in model.metadata_props}["calibrant.map"])
    assert told["calibrator"] == "temperature"
    assert told["parameters"] == {"T": 2.0}
    assert model.opset_import[0].version >= 17


@pytest.mark.parametrize("opset", [11, 13, 17, 20])
@pytest.mark.parametrize("name", ["dirichlet", "line classes", "stair top"])
def test_appended_to_a_classifier(opset, name, tmp_path):
    m = map_of(name)
    net = classifier(tmp_path / "net.onnx", opset=opset)
    done = to_onnx(m, tmp_path / "both.onnx", append_to=net)
    features = np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32)
    old, new = run(done.path, ["scores", "calibrated_logits"], features=features)
    np.testing.assert_array_equal(old, run(net, ["scores"], features=features)[0])
    np.testing.assert_allclose(softmax(new), softmax(run(_alone(m, tmp_path), None, logits=old)[0]), atol=1e-6)


def _alone(m, folder):
    return to_onnx(m, folder / "alone.onnx").path


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_other_types_of_logits(kind, tmp_path):
    to_onnx(TEMPERATURE, tmp_path / "both.onnx", append_to=classifier(tmp_path / "net.onnx", kind=kind))


def test_which_output(tmp_path):
    net = classifier(tmp_path / "net.onnx", outputs=("aux", "logits"))
    done = to_onnx(TEMPERATURE, tmp_path / "both.onnx", append_to=net)
    assert [one.name for one in onnx.load(done.path).graph.output] == ["aux", "logits", "calibrated_logits"]
    to_onnx(TEMPERATURE, tmp_path / "both.onnx", append_to=net, output="aux")
    with pytest.raises(InputError, match="outputs aux, logits"):
        to_onnx(TEMPERATURE, tmp_path / "both.onnx", append_to=net, output="head")
    net = classifier(tmp_path / "net.onnx", outputs=("aux", "head"))
    with pytest.raises(InputError, match="name one of these"):
        to_onnx(TEMPERATURE, tmp_path / "both.onnx", append_to=net)


def test_appended_twice(tmp_path):
    once = to_onnx(TEMPERATURE, tmp_path / "1.onnx", append_to=classifier(tmp_path / "net.onnx")).path
    twice = to_onnx(TEMPERATURE, tmp_path / "2.onnx", append_to=once, output="calibrated_logits").path
    features = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    raw, again = run(twice, ["scores", "calibrated_logits_2"], features=features)
    np.testing.assert_allclose(softmax(again), softmax(raw / 4), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"k": 3}, "batch x 4"), ({"softmax": True}, "Softmax"), ({"kind": TensorProto.INT64}, "INT64")],
)
def test_a_classifier_it_cannot_follow(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        to_onnx(TEMPERATURE, tmp_path / "both.onnx", append_to=classifier(tmp_path / "net.onnx", **options))
    assert not (tmp_path / "both.onnx").exists()


def test_damaged_input(tmp_path):
    out = tmp_path / "m.onnx"
    for content in (b"", b"not a model", b"\x08\x08"):
        (tmp_path / "net.onnx").write_bytes(content)
        with pytest.raises(InputError, match="a classifier in ONNX"):
            to_onnx(TEMPERATURE, out, append_to=tmp_path / "net.onnx")
    with pytest.raises(InputError, match="no such file"):
        to_onnx(TEMPERATURE, out, append_to=tmp_path / "gone.onnx")
    with pytest.raises(InputError, match="one per group"):
        to_onnx(group_map(), out)
    with pytest.raises(InputError, match="a whole map"):
        to_onnx(damaged_map(), out)
    assert not out.exists()


def test_a_step_it_does_not_know(tmp_path):
    class New(Step):
        def __call__(self, p):
            return p

    with pytest.raises(InputError, match="update calibrant"):
        to_onnx(Map("new", K, (New(),)), tmp_path / "m.onnx")


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_a_missing_package(module, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="calibrant\\[onnx\\]"):
        to_onnx(TEMPERATURE, tmp_path / "m.onnx")


def test_a_wrong_export_is_not_written(tmp_path, monkeypatch):

    wrong = Map("wrong", K, (Linear(np.array(0.6), np.array(0.0)),))
    right = to_onnx_module._alone
    monkeypatch.setattr(to_onnx_module, "_alone", lambda m: right(wrong))
    with pytest.raises(InputError, match="report this map"):
        to_onnx(TEMPERATURE, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
