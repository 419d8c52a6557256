"""The slope of a network along a direction: against torch.func and against a difference quotient."""

import pytest
import torch
from torch.func import functional_call, jvp

from calibrant import models
from calibrant.train.forward_mode import Remembered, slope_along

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")

NETWORKS = [
    ("resnet_small:depth=8,width=4", 12),  # convolutions without a bias, batch norm
    ("vgg:depth=11", 32),  # convolutions with one
    ("vit:patch=4,width=16,depth=2,heads=2,mlp=32", 16),  # linear layers, attention
]


def made(name, size, kind=torch.float64):
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
    call, weights, v = made(name, size)
    with Remembered() as remembered:
        call(weights)
    assert remembered.kept
    expected = jvp(call, (weights,), (v,))[1]
    torch.testing.assert_close(slope_along(call, weights, v, []), expected)
    torch.testing.assert_close(slope_along(call, weights, v, remembered.kept), expected)
    e = 1e-9  # small, so that no ReLU and no maximum flips
    moved = [call({n: w + sign * e * v[n] for n, w in weights.items()}) for sign in (1, -1)]
    torch.testing.assert_close(expected, (moved[0] - moved[1]) / (2 * e), rtol=1e-3, atol=1e-3)


def test_what_was_kept_is_not_computed_again():
    call, weights, v = made(*NETWORKS[0])
    with Remembered() as remembered:
        call(weights)
    wrong = [torch.full_like(kept, torch.nan) for kept in remembered.kept]
    assert slope_along(call, weights, v, wrong).isnan().any()  # they are believed


def test_what_was_kept_in_another_precision_is_not_used():
    call, weights, v = made(*NETWORKS[0])
    with Remembered() as remembered:
        call(weights)
    half = [kept.bfloat16() for kept in remembered.kept]
    assert torch.equal(slope_along(call, weights, v, half), slope_along(call, weights, v, []))


def test_an_output_that_does_not_depend_on_the_weights():
    with pytest.raises(TypeError, match="does not depend"):
        slope_along(lambda w: torch.ones(2, 2), {"a": torch.ones(1)}, {"a": torch.ones(1)}, [])
