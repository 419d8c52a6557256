"""ONNX graphs of maps against the maps, in onnxruntime; alone and behind a classifier."""

import json
import sys

import numpy as np
import pytest
from export_maps import (
    BY_TASK,
    HAND_BUILT,
    NAMES,
    K,
    damaged_map,
    fresh,
    group_map,
    map_of,
    map_of_task,
    shaped_rows,
    softmax,
)

from calibrant.repairing.export import onnx as to_onnx_module

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx
import onnxruntime as runtime
from onnx import TensorProto, helper, numpy_helper

from calibrant.core.errors import InputError
from calibrant.core.maps.export_check import TOLERANCE
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import STEPS, Linear
from calibrant.core.predictions import Predictions
from calibrant.repairing.export.onnx import to_onnx
from calibrant.repairing.fit import fit

TEMPERATURE = Map(calibrator="temperature", k=K, steps=(Linear(np.array(0.5), np.array(0.0)),), parameters={"T": 2.0})


def run(path, outputs, **inputs):
    return runtime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(outputs, inputs)


def classifier(path, *, outputs=("scores",), k=K, opset=17, softmax=False, kind=TensorProto.FLOAT):
    """features (batch, 3) -> as many outputs of k columns as there are names."""
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(3, k)).astype(np.float32), "weight")
    nodes = [helper.make_node("MatMul", ["features", "weight"], ["raw"])]
    nodes += [
        helper.make_node(
            "sum to one, as probabilities are" if softmax else "Cast", ["raw"], [o], **({} if softmax else {"to": kind})
        )
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
def test_onnx_equals_the_map(name, tmp_path):
    m = map_of(name)
    done = to_onnx(m, tmp_path / "m.onnx")
    logits, probs = fresh(m)
    (output,) = run(done.path, ["calibrated_logits"], logits=logits)
    assert output.dtype == np.float32
    np.testing.assert_allclose(softmax(output), probs, atol=TOLERANCE)
    assert done.largest_difference < 1e-6
    assert len(run(done.path, None, logits=logits[:1])[0]) == 1


@pytest.mark.parametrize(("task", "name"), BY_TASK)
def test_other_shapes(task, name, tmp_path):
    m = map_of_task(task, name)
    done = to_onnx(m, tmp_path / "m.onnx")
    logits, probs = shaped_rows(m)
    (output,) = run(done.path, ["calibrated_logits"], logits=logits)
    assert output.shape == logits.shape
    got = softmax(output) if task == "choice" else 1 / (1 + np.exp(-output.astype(np.float64)))
    np.testing.assert_allclose(got, probs, atol=1e-6)
    if task == "choice":
        assert (output[np.isinf(logits)] == -np.inf).all()


def test_a_network_of_one_output_gets_the_map_of_its_score(tmp_path):
    net, m = classifier(tmp_path / "net.onnx", k=1), map_of_task("binary", "isotonic")
    done = to_onnx(m, tmp_path / "both.onnx", append_to=net)
    scores, calibrated = run(done.path, ["scores", "calibrated_logits"], features=np.eye(3, dtype=np.float32))
    assert scores.shape == calibrated.shape == (3, 1)
    expected = m.apply(Predictions.binary(scores[:, 0].astype(np.float64), [0, 1, 0], logits=True)).score
    np.testing.assert_allclose(1 / (1 + np.exp(-calibrated[:, 0].astype(np.float64))), expected, atol=1e-6)
    with pytest.raises(InputError, match="batch x 1"):
        to_onnx(m, tmp_path / "no.onnx", append_to=classifier(tmp_path / "wide.onnx"))


def test_the_model_says_which_map_it_is(tmp_path):
    model = onnx.load(to_onnx(TEMPERATURE, tmp_path / "m.onnx").path)
    facts = json.loads({one.key: one.value for one in model.metadata_props}["calibrant.map"])
    assert facts["calibrator"] == "temperature"
    assert facts["parameters"] == {"T": 2.0}
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


def test_append_chooses_the_logits_output(tmp_path):
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
    [
        ({"k": 3}, "batch x 4"),
        ({"softmax": True}, "sum to one, as probabilities are"),
        ({"kind": TensorProto.INT64}, "INT64"),
    ],
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


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_a_missing_package(module, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="calibrant\\[onnx\\]"):
        to_onnx(TEMPERATURE, tmp_path / "m.onnx")


def test_a_wrong_export_is_not_written(tmp_path, monkeypatch):

    wrong = Map(calibrator="wrong", k=K, steps=(Linear(np.array(0.6), np.array(0.0)),))
    right = to_onnx_module._alone
    monkeypatch.setattr(to_onnx_module, "_alone", lambda m: right(wrong))
    with pytest.raises(InputError, match="report this map"):
        to_onnx(TEMPERATURE, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


# -- behind classifiers that give probabilities ------------------------------------------------------


def graph(path, nodes, outputs, *, constants=(), domain=False, features=3):
    """features (batch, 3) -> outputs, given as names with types and sizes."""
    x = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", features])
    infos = [helper.make_tensor_value_info(*one) for one in outputs]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)][1 if domain else 0 :]
    model = helper.make_model(
        helper.make_graph(nodes, "net", [x], infos, list(constants)),
        opset_imports=opsets if domain else opsets[:1],
        ir_version=8,
    )
    onnx.save(model, path)
    return path


def softmax_nodes(ending):
    """Ways to write a softmax that do not end in a Softmax."""
    rng = np.random.default_rng(3)
    constants = [
        numpy_helper.from_array(rng.normal(size=(3, K)).astype(np.float32), "w"),
        numpy_helper.from_array(np.float32(1e-7), "low"),
        numpy_helper.from_array(np.float32(1), "high"),
        numpy_helper.from_array(np.float32(1000), "many"),
        numpy_helper.from_array(np.array([1]), "axis"),
    ]
    node = helper.make_node
    nodes = [node("MatMul", ["features", "w"], ["z"]), node("Softmax", ["z"], ["p"], axis=-1)]
    nodes += {
        "softmax": [node("Identity", ["p"], ["scores"])],
        "clamp": [node("Clip", ["p", "low", "high"], ["scores"])],
        "cast": [node("Cast", ["p"], ["half"], to=TensorProto.FLOAT16), node("Cast", ["half"], ["scores"], to=1)],
        "round": [
            node("Mul", ["p", "many"], ["large"]),
            node("Round", ["large"], ["whole"]),
            node("Div", ["whole", "many"], ["scores"]),
        ],
        "exp / sum": [
            node("Exp", ["z"], ["e"]),
            node("ReduceSum", ["e", "axis"], ["total"], keepdims=1),
            node("Div", ["e", "total"], ["scores"]),
        ],
    }[ending]
    return nodes, constants


@pytest.mark.parametrize("ending", ["softmax", "clamp", "cast", "round", "exp / sum"])
def test_probabilities_are_not_taken_for_logits(ending, tmp_path):
    nodes, constants = softmax_nodes(ending)
    net = graph(tmp_path / "net.onnx", nodes, [("scores", TensorProto.FLOAT, ["batch", K])], constants=constants)
    with pytest.raises(InputError, match="sum to one, as probabilities are"):
        to_onnx(TEMPERATURE, tmp_path / "new.onnx", append_to=net)
    to_onnx(TEMPERATURE, tmp_path / "new.onnx", append_to=net, scores="probs")
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    before, after = run(tmp_path / "new.onnx", ["scores", "calibrated_probs"], features=x)
    before = np.maximum(before.astype(np.float64), 1e-12)
    flatter = np.sqrt(before) / np.sqrt(before).sum(axis=1, keepdims=True)  # T = 2
    np.testing.assert_allclose(after, flatter, atol=1e-5)


def trees(path, k):
    """Two trees of skl2onnx's kind: a label and a probability of every class, no operator of the standard domain."""
    rng = np.random.default_rng(4)
    leaves = rng.dirichlet(np.ones(k), size=4) / 2
    ids = [(tree, leaf) for tree in (0, 1) for leaf in (1, 2) for _ in range(k)]
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["features"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0, 1, 1, 1],
        nodes_nodeids=[0, 1, 2] * 2,
        nodes_featureids=[0, 0, 0, 1, 0, 0],
        nodes_values=[0.0] * 6,
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2,
        nodes_truenodeids=[1, 0, 0] * 2,
        nodes_falsenodeids=[2, 0, 0] * 2,
        class_treeids=[tree for tree, _ in ids],
        class_nodeids=[leaf for _, leaf in ids],
        class_ids=list(range(k)) * 4,
        class_weights=leaves.ravel().tolist(),
        classlabels_int64s=list(range(k)),
        post_transform="NONE",
    )
    outputs = [("label", TensorProto.INT64, ["batch"]), ("probabilities", TensorProto.FLOAT, ["batch", k])]
    return graph(path, [node], outputs, domain=True)


def linear(path, k):
    """A logistic regression of skl2onnx's kind."""
    rng = np.random.default_rng(5)
    node = helper.make_node(
        "LinearClassifier",
        ["features"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        coefficients=rng.normal(size=3 * k).tolist(),
        intercepts=rng.normal(size=k).tolist(),
        classlabels_ints=list(range(k)),
        post_transform="SOFTMAX",
    )
    outputs = [("label", TensorProto.INT64, ["batch"]), ("probabilities", TensorProto.FLOAT, ["batch", k])]
    return graph(path, [node], outputs, domain=True)


@pytest.mark.parametrize("model", [trees, linear])
@pytest.mark.parametrize("binary", [False, True])
def test_trees_and_linear_models_are_calibrated_in_one_file(model, binary, tmp_path):
    """Their probabilities, of two classes too, by the map of P(positive): what the map says of what they give."""
    k = 2 if binary else K
    net = model(tmp_path / "net.onnx", k)
    x = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32)
    y = np.random.default_rng(2).integers(0, k, 200)
    probs = run(net, ["probabilities"], features=x)[0].astype(np.float64)
    rows = Predictions.binary(probs[:, 1], y) if binary else Predictions.from_probs(probs, y)
    m = fit(rows, "isotonic" if binary else "svs")
    with pytest.raises(InputError, match='scores="probs"'):
        to_onnx(m, tmp_path / "new.onnx", append_to=net)
    to_onnx(m, tmp_path / "new.onnx", append_to=net, scores="probs")
    label, before, after = run(tmp_path / "new.onnx", ["label", "probabilities", "calibrated_probs"], features=x)
    assert label.shape == (200,)
    np.testing.assert_allclose(before, probs, atol=1e-6)
    np.testing.assert_allclose(after, m.apply(rows).probs, atol=1e-5)


def test_logits_are_not_taken_for_probabilities(tmp_path):
    net = classifier(tmp_path / "net.onnx")
    with pytest.raises(InputError, match="expected probabilities, got numbers outside 0 to 1"):
        to_onnx(TEMPERATURE, tmp_path / "new.onnx", append_to=net, scores="probs")


@pytest.mark.parametrize("sides", [(5,), (5, 4), (5, 4, 2), (K, K, K)])
def test_images_and_volumes_keep_their_shape(sides, tmp_path):
    """(batch, classes, height, width, ...), as networks for segmentation give it."""
    axes = [f"side{i}" for i in range(len(sides))]
    kernel = np.random.default_rng(6).normal(size=(K, 3, *(1 for _ in sides))).astype(np.float32)
    x = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, *axes])
    z = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", K, *axes])
    node = helper.make_node("Conv", ["image", "w"], ["scores"])
    net = helper.make_graph([node], "net", [x], [z], [numpy_helper.from_array(kernel, "w")])
    model = helper.make_model(net, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    m = map_of("svs")
    to_onnx(m, tmp_path / "new.onnx", append_to=tmp_path / "net.onnx")
    image = np.random.default_rng(0).normal(size=(2, 3, *sides)).astype(np.float32)
    before, after = run(tmp_path / "new.onnx", ["scores", "calibrated_logits"], image=image)
    assert after.shape == before.shape == (2, K, *sides)
    rows = np.moveaxis(before, 1, -1).reshape(-1, K)
    expected = m.apply(Predictions.from_logits(rows, np.zeros(len(rows), dtype=int))).probs
    np.testing.assert_allclose(softmax(np.moveaxis(after, 1, -1).reshape(-1, K)), expected, atol=1e-5)
