"""Torch modules and torch.export programs of maps against the maps; the dispatcher of all exports."""

import copy
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

pytest.importorskip("torch")
import torch
from torch import nn

import calibrant as cal
from calibrant.calibrators import names
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.torch.map_module import TorchMap
from calibrant.repairing.export.export import export


@pytest.mark.parametrize("name", NAMES)
def test_module_equals_the_map(name):
    m = map_of(name)
    logits, probs = fresh(m)
    output = m.to_torch()(torch.tensor(logits).double())
    np.testing.assert_allclose(softmax(output.numpy()), probs, atol=1e-9)
    assert m.to_torch()(torch.tensor(logits)).dtype == torch.float32


@pytest.mark.parametrize(("task", "name"), BY_TASK)
def test_other_tasks(task, name):
    m = map_of_task(task, name)
    logits, probs = shaped_rows(m)
    output = m.to_torch()(torch.tensor(logits))
    assert output.shape == logits.shape
    np.testing.assert_allclose(softmax(output.numpy()) if task == "choice" else output.sigmoid(), probs, atol=1e-6)
    if task == "choice":
        assert (output[torch.tensor(np.isinf(logits))] == -torch.inf).all()
    else:
        column = torch.tensor(logits).reshape(2, 100, 1)  # a network of one output
        torch.testing.assert_close(m.to_torch()(column), output.reshape(2, 100, 1))
        assert m.to_torch()(torch.tensor(0.3)).shape == ()


@pytest.mark.parametrize(("task", "name"), [("binary", "isotonic"), ("confidence", "ets"), ("choice", "ets+isotonic")])
def test_programs_of_other_tasks(task, name, tmp_path):
    m = map_of_task(task, name)
    export(m, "torch", tmp_path / "m.pt2")
    logits, probs = shaped_rows(m)
    values = torch.export.load(tmp_path / "m.pt2").module()(torch.tensor(logits))
    np.testing.assert_allclose(softmax(values.numpy()) if task == "choice" else values.sigmoid(), probs, atol=1e-6)


@pytest.mark.parametrize("name", ["number", "vector", "matrix", "line top", "mix"])
def test_the_logits_are_the_maps_logits(name):
    from calibrant.core.predictions import Predictions

    m = map_of(name)
    logits, _ = fresh(m)
    expected = m.apply(Predictions.from_logits(logits, np.zeros(len(logits)))).logits
    np.testing.assert_allclose(m.to_torch()(torch.tensor(logits).double()).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("name", HAND_BUILT)
def test_gradients_flow_and_are_finite(name):
    z = torch.tensor(np.concatenate([fresh(map_of(name))[0], 50 * np.eye(K, dtype=np.float32)]), requires_grad=True)
    TorchMap(map_of(name))(z).square().sum().backward()
    assert torch.isfinite(z.grad).all()
    if name in ("number", "matrix", "line classes", "sigmoid logits top", "mix"):
        assert (z.grad != 0).any()


def test_in_a_network():
    backbone = nn.Linear(3, K)
    net = nn.Sequential(backbone, map_of("stair top").to_torch())
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    assert net(torch.zeros(5, 3)).shape == (5, K)
    assert copy.deepcopy(net)(torch.zeros(0, 3)).shape == (0, K)


@pytest.mark.parametrize("name", ["matrix", "stair classes", "line top", "sigmoid probs classes", "everything"])
def test_any_leading_shape(name):
    module, z = TorchMap(map_of(name)), torch.randn(6, K, generator=torch.Generator().manual_seed(0))
    flat = module(z)
    torch.testing.assert_close(module(z.reshape(2, 3, K)), flat.reshape(2, 3, K))
    torch.testing.assert_close(module(z[0]), flat[0])


@pytest.mark.parametrize("name", ["matrix", "stair classes", "sigmoid probs top"])
def test_casting_the_network_keeps_the_map_exact(name):
    module, z = TorchMap(map_of(name)), torch.randn(20, K, generator=torch.Generator().manual_seed(0))
    expected = module(z)
    for cast in (module.half(), module.float(), module.to(torch.bfloat16), module.to("cpu", torch.float16)):
        torch.testing.assert_close(cast(z), expected, rtol=0, atol=0)
    assert module.half()(z.half()).dtype == torch.float16
    assert all(b.device.type == "meta" for b in module.to("meta").buffers())


def test_state_dict_round_trip(tmp_path):
    first, second = TorchMap(map_of("stair classes")), TorchMap(map_of("stair classes"))
    for buffer in second.buffers():
        buffer.zero_()
    torch.save(first.state_dict(), tmp_path / "m.pt")
    second.load_state_dict(torch.load(tmp_path / "m.pt", weights_only=True))
    z = torch.tensor(fresh(map_of("stair classes"))[0])
    torch.testing.assert_close(first(z), second(z), rtol=0, atol=0)


@pytest.mark.parametrize("name", [*names(), "sharp", "jump classes", "zeros top", "top, linear, top"])
def test_the_exported_program(name, tmp_path):
    m = map_of(name)
    done = export(m, "torch", tmp_path / "m.pt2")
    logits, probs = fresh(m)
    program = torch.export.load(tmp_path / "m.pt2").module()
    for rows in (1, 7, len(logits)):  # any batch size
        np.testing.assert_allclose(softmax(program(torch.tensor(logits[:rows])).numpy()), probs[:rows], atol=1e-5)
    assert done.format == "torch"
    assert done.largest_difference < 1e-6


def test_damaged_input(tmp_path):
    with pytest.raises(InputError, match="one per group"):
        group_map().to_torch()
    with pytest.raises(InputError, match="a whole map"):
        damaged_map().to_torch()
    with pytest.raises(InputError, match="4 classes"):
        map_of("number").to_torch()(torch.zeros(2, 3))


def test_the_dispatcher(tmp_path):
    pytest.importorskip("onnxruntime")
    for to in ("onnx", "python", "torch"):
        done = export(map_of("number"), to, tmp_path / "folder" / f"m.{to}")
        assert done.path.stat().st_size > 100
        assert done.format == to
    with pytest.raises(InputError, match="did you mean 'onnx'"):
        export(map_of("number"), "onxx", tmp_path / "m")
    with pytest.raises(InputError, match="the format onnx"):
        export(map_of("number"), "torch", tmp_path / "m", append_to="net.onnx")
    with pytest.raises(InputError, match="a classifier to append to"):
        export(map_of("number"), "onnx", tmp_path / "m", output="logits")
    with pytest.raises(InputError, match="a folder"):
        export(map_of("number"), "python", tmp_path)
    with pytest.raises(InputError, match="one per group"):
        export(group_map(), "torch", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_torch_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="pip install torch"):
        export(map_of("number"), "torch", tmp_path / "m")


@pytest.mark.parametrize("name", ["temperature", "vector", "matrix"])
def test_an_affine_map_is_folded_into_the_last_layer(name):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 4)), rng.integers(0, 3, 200)
    head = torch.nn.Linear(4, 3).double()
    p = cal.Predictions.from_logits(head(torch.tensor(x)).detach().numpy(), y)
    m = cal.fit(p, name)
    m.to_torch().fold_into(head)
    assert head(torch.tensor(x)).detach().numpy() == pytest.approx(m.apply(p).logits, abs=1e-9)


@pytest.mark.parametrize("name", ["temperature", "platt"])
def test_an_affine_map_of_one_logit_is_folded_into_the_last_layer(name):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    head = torch.nn.Linear(4, 1).double()
    p = cal.Predictions.binary(head(torch.tensor(x)).detach().numpy()[:, 0], y, logits=True)
    m = cal.fit(p, name)
    m.to_torch().fold_into(head)
    assert head(torch.tensor(x)).sigmoid().detach().numpy()[:, 0] == pytest.approx(m.apply(p).score, abs=1e-9)
    with pytest.raises(cal.InputError, match="got a curved one"):
        cal.fit(p, "isotonic").to_torch().fold_into(torch.nn.Linear(4, 1))


def test_a_map_that_cannot_be_folded_is_refused():
    rng = np.random.default_rng(0)
    p = cal.Predictions.from_logits(rng.normal(size=(200, 3)), rng.integers(0, 3, 200))
    with pytest.raises(cal.InputError, match="expected an affine map, got a curved one"):
        cal.fit(p, "isotonic").to_torch().fold_into(torch.nn.Linear(4, 3))
    with pytest.raises(cal.InputError, match="expected a layer with a bias"):
        cal.fit(p, "vector").to_torch().fold_into(torch.nn.Linear(4, 3, bias=False))


def test_a_program_is_written_through_a_dangling_link(tmp_path):
    rng = np.random.default_rng(0)
    p = cal.Predictions.from_logits(rng.normal(size=(200, 3)), rng.integers(0, 3, 200))
    (tmp_path / "link.pt2").symlink_to(tmp_path / "new" / "map.pt2")
    cal.export(cal.fit(p, "temperature"), "torch", tmp_path / "link.pt2")
    assert (tmp_path / "link.pt2").is_symlink()
    assert (tmp_path / "new" / "map.pt2").stat().st_size > 0


def test_images_have_their_classes_in_front():
    m = Map(calibrator="svs", k=3, steps=(Linear(np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.0, -0.1])),))
    z = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    out = m.to_torch()(z)
    assert out.shape == z.shape
    torch.testing.assert_close(out.movedim(1, -1), m.to_torch()(z.movedim(1, -1)))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["number", "everything"])
def test_it_is_traced_and_compiled_as_a_whole(name):
    module, z = TorchMap(map_of(name)), torch.randn(8, K, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.jit.trace(module, z)(z), module(z))
    torch.testing.assert_close(torch.compile(module, backend="eager", fullgraph=True)(z), module(z))


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 5, 4), (2, 3, 4, 5, 6)])
def test_the_axis_of_the_classes(shape):
    m = Map(calibrator="svs", k=3, steps=(Linear(np.array([0.5, 1.0, 2.0]), np.array([0.1, 0.0, -0.1])),))
    z = torch.randn(*shape, dtype=torch.float64)
    out = m.to_torch()(z)
    torch.testing.assert_close(out.movedim(1, -1), m.to_torch()(z.movedim(1, -1)))
    torch.testing.assert_close(m.to_torch(axis=1)(z), out)
    both = torch.randn(*shape[:-1], 3, dtype=torch.float64)
    with pytest.raises(InputError, match=r"where both fit. To fix it: say which: to_torch\(axis=1\)"):
        m.to_torch()(both)
    torch.testing.assert_close(m.to_torch(axis=1)(both).movedim(1, -1), m.to_torch(axis=-1)(both.movedim(1, -1)))
    with pytest.raises(InputError, match="use the map of this network"):
        m.to_torch(axis=-1)(z)
    with pytest.raises(InputError, match="axis: expected 1 or -1, got 0"):
        m.to_torch(axis=0)
