"""The slope of a network along a direction: against torch.func and against a difference quotient."""

import pytest

pytest.importorskip("torch")
import torch
from torch.func import functional_call, jvp

from calibrant import models
from calibrant.training.forward_mode import OutputRecorder, OutputReplay, slope_along

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")

NETWORKS = [
    ("resnet_small:depth=8,width=4", 12),  # convolutions without a bias, batch norm
    ("vgg:depth=11", 32),  # convolutions with one
    ("vit:patch=4,width=16,depth=2,heads=2,mlp=32", 16),  # linear layers, attention
]


def build(name, size, kind=torch.float64):
    torch.manual_seed(0)
    network = models.build(name, models.Shape(5, 3, size)).to(kind).train()
    x = torch.randn(6, 3, size, size, dtype=kind)
    weights = {n: w.detach() for n, w in network.named_parameters()}
    v = {n: torch.randn_like(w) for n, w in weights.items()}
    buffers = {n: b.clone() for n, b in network.named_buffers()}

    def call(w):
        return functional_call(network, {**w, **{n: b.clone() for n, b in buffers.items()}}, (x,))

    return call, weights, v


@pytest.mark.parametrize(("name", "size"), NETWORKS)
def test_with_and_without_what_was_kept(name, size):
    call, weights, v = build(name, size)
    with OutputRecorder() as remembered:
        call(weights)
    assert remembered.outputs
    expected = jvp(call, (weights,), (v,))[1]
    torch.testing.assert_close(slope_along(call, weights, v, []), expected)
    torch.testing.assert_close(slope_along(call, weights, v, remembered.outputs), expected)
    e = 1e-9  # small, so that no ReLU and no maximum flips
    moved = [call({n: w + sign * e * v[n] for n, w in weights.items()}) for sign in (1, -1)]
    torch.testing.assert_close(expected, (moved[0] - moved[1]) / (2 * e), rtol=1e-3, atol=1e-3)


def test_what_was_kept_is_not_computed_again():
    call, weights, v = build(*NETWORKS[0])
    with OutputRecorder() as remembered:
        call(weights)
    wrong = [(torch.full_like(output, torch.nan), 0) for output, _ in remembered.outputs]
    assert slope_along(call, weights, v, wrong).isnan().any()  # they are believed
    with OutputReplay(wrong):
        assert call(weights).isnan().any()


@pytest.mark.parametrize(("name", "size"), NETWORKS)
def test_what_was_kept_has_its_gradients(name, size):
    call, weights, _ = build(name, size)
    leaves = {n: w.clone().requires_grad_() for n, w in weights.items()}
    with OutputRecorder() as remembered:
        logits = call(leaves)
    expected = torch.autograd.grad((logits**2).sum(), list(leaves.values()))
    with OutputReplay(remembered.outputs):
        again = call(leaves)
    assert torch.equal(again, logits)
    for gradient, slope in zip(torch.autograd.grad((again**2).sum(), list(leaves.values())), expected, strict=True):
        torch.testing.assert_close(gradient, slope)


def test_what_was_changed_in_place_is_computed_again():
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(inplace=True), torch.nn.Conv2d(2, 2, 3))
    x, weights = torch.randn(2, 1, 8, 8), {n: w.detach() for n, w in network.named_parameters()}
    v = {n: torch.randn_like(w) for n, w in weights.items()}

    def call(w):
        return functional_call(network, w, (x,)).flatten(1)

    with OutputRecorder() as remembered:
        logits = call(weights)
    torch.testing.assert_close(slope_along(call, weights, v, remembered.outputs), jvp(call, (weights,), (v,))[1])
    with OutputReplay(remembered.outputs):
        torch.testing.assert_close(call(weights), logits)


@pytest.mark.parametrize("padding", ["same", 1, (1, 1)])
def test_convolutions_called_in_every_way(padding):
    x, weight = torch.randn(2, 2, 8, 8).double(), torch.randn(4, 1, 3, 3).double().requires_grad_()

    def call(w):
        return torch.nn.functional.conv2d(x, w["w"], None, 1, padding, 1, 2).flatten(1)

    with OutputRecorder() as remembered:
        out = call({"w": weight})
    with OutputReplay(remembered.outputs):
        again = call({"w": weight})
    slopes = [torch.autograd.grad((z**2).sum(), weight)[0] for z in (out, again)]
    torch.testing.assert_close(*slopes)


def test_what_was_kept_in_another_precision_is_not_used():
    call, weights, v = build(*NETWORKS[0])
    with OutputRecorder() as remembered:
        call(weights)
    half = [(output.bfloat16(), 0) for output, _ in remembered.outputs]
    assert torch.equal(slope_along(call, weights, v, half), slope_along(call, weights, v, []))


def test_an_output_that_does_not_depend_on_the_weights():
    with pytest.raises(TypeError, match="does not depend"):
        slope_along(lambda w: torch.ones(2, 2), {"a": torch.ones(1)}, {"a": torch.ones(1)}, [])
