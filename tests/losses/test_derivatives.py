"""What learning a gamma needs, focal rows differentiated twice, and that closed forms keep out of the way of it."""

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from calibrant.core.predictions import Predictions
from calibrant.core.torch.focal import focal_rows
from calibrant.losses import CATALOGUE, cpc, names
from calibrant.losses._closed import ClosedLoss
from calibrant.measures import make as make_measure

CLOSED = [name for name in names() if issubclass(CATALOGUE.find(name), ClosedLoss)]
# Of torch itself, when forward mode is first used.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")


def draw_batch(b=6, k=4, seed=0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    return torch.tensor(2 * rng.normal(size=(b, k)), dtype=dtype), torch.tensor(rng.integers(0, k, size=b))


# -- focal_rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("each", [True, False])
def test_twice_in_logits_and_gamma(gamma, each):
    z, y = draw_batch()
    gammas = torch.full((6,) if each else (), gamma, dtype=torch.float64).requires_grad_()
    inputs = (z.requires_grad_(), gammas)
    assert gradcheck(lambda a, b: focal_rows(a, y, b), inputs, check_forward_ad=True)
    assert gradgradcheck(lambda a, b: focal_rows(a, y, b), inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_derivative_in_gamma_by_its_formula(gamma):
    z, y = draw_batch()
    gammas = torch.full((6,), gamma, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(focal_rows(z, y, gammas).sum(), gammas)
    log_p = z.log_softmax(1).gather(1, y[:, None])[:, 0]
    u = 1 - log_p.exp()
    assert torch.allclose(slope, -(u**gamma) * u.log() * log_p, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_mixed_derivative_by_its_formula_forwards_and_backwards(gamma):
    """d/dgamma of the derivative along a direction of logits is the derivative of s along it.

    docs/methods/meta.md#the-hypergradient
    """
    z, y = draw_batch()
    direction = torch.ones_like(z).cumsum(1).sin()
    gammas = torch.full((6,), gamma, dtype=torch.float64)

    def s(logits):
        return torch.func.grad(lambda g: focal_rows(logits, y, g).sum())(gammas)

    _, forwards = torch.func.jvp(s, (z,), (direction,))
    leaf, exponents = z.clone().requires_grad_(), gammas.clone().requires_grad_()
    (grad,) = torch.autograd.grad(focal_rows(leaf, y, exponents).sum(), leaf, create_graph=True)
    (backwards,) = torch.autograd.grad((grad * direction).sum(), exponents)
    probs = z.softmax(1)
    p = probs.gather(1, y[:, None])[:, 0]
    p_dot = p * (direction.gather(1, y[:, None])[:, 0] - (probs * direction).sum(1))
    u = 1 - p
    by_p = u ** (gamma - 1) * p.log() * (gamma * u.log() + 1) - u**gamma * u.log() / p
    assert torch.allclose(forwards, by_p * p_dot, rtol=1e-9, atol=1e-13)
    assert torch.allclose(backwards, by_p * p_dot, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("size", [20.0, 100.0, 1e4])
def test_finite_twice_however_sure(dtype, gamma, size):
    for sign in (1, -1):
        z = (sign * size * torch.eye(3, dtype=dtype)).requires_grad_()
        gammas = torch.full((3,), gamma, dtype=dtype, requires_grad=True)
        rows = focal_rows(z, torch.arange(3), gammas)
        first = torch.autograd.grad(rows.sum(), (z, gammas), create_graph=True)
        second = torch.autograd.grad(sum(part.sum() for part in first), (z, gammas))
        assert all(torch.isfinite(part).all() for part in (rows, *first, *second))


# -- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOSED)
def test_second_derivatives_agree_in_every_way(name):
    """Slopes in closed form are numbers: any way to differentiate them again must leave the closed form."""
    z, y = draw_batch(b=3)
    loss = CATALOGUE.make(name)
    direction = torch.ones_like(z).cumsum(0).cos()
    leaf = z.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf, y), leaf, create_graph=True)
    (expected,) = torch.autograd.grad((grad * direction).sum(), leaf)
    hessian = torch.func.hessian(lambda logits: loss(logits, y))(z)
    _, by_jvp = torch.func.jvp(torch.func.grad(lambda logits: loss(logits, y)), (z,), (direction,))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(z.clone().requires_grad_(), direction)
        (slopes,) = torch.autograd.grad(loss(dual, y), dual, create_graph=True)
        by_dual = forward_ad.unpack_dual(slopes).tangent
    for product in (torch.einsum("ijkl,kl->ij", hessian, direction), by_jvp, by_dual):
        assert torch.allclose(product, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_a_graph_can_be_walked_twice(name):
    z, y = draw_batch()
    value = CATALOGUE.make(name)(z.requires_grad_(), y)
    once, again = (torch.autograd.grad(value, z, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(once, again)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_pairs_of_classes_in_chunks(monkeypatch, reduction):
    z, y = draw_batch(b=5, k=9)
    loss = CATALOGUE.make(f"cpc:reduction={reduction}")
    results = []
    for chunk in (1 << 22, 5 * 8 * 3, 1):
        monkeypatch.setattr(cpc, "CHUNK", chunk)
        leaf = z.clone().requires_grad_()
        value = loss(leaf, y)
        results.append((value.detach(), torch.autograd.grad(value, leaf)[0]))
    for value, grad in results[1:]:
        assert torch.allclose(value, results[0][0], rtol=1e-12)
        assert torch.allclose(grad, results[0][1], rtol=1e-12, atol=1e-15)


# -- devices and measures -------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_nothing_is_made_on_another_device_and_nothing_waits(name):
    """On torch's meta device there are shapes without numbers: any look at a value would fail."""
    loss = CATALOGUE.make(name).to("meta")
    loss.start(samples=6, epochs=2)
    part = loss.inner if name == "mixup" else loss
    z = torch.zeros(6, 4, device="meta", requires_grad=True)
    y = torch.zeros(6, dtype=torch.long, device="meta")
    if hasattr(part, "rows"):
        values = [part.rows(z, y)]
    else:
        part.remember(z, y, y)
        values = [part.value(z, y, y)]
    if isinstance(part, ClosedLoss):
        values += part.closed_form(z.detach(), y, 0.5)
    loss.start_epoch(1)
    assert all(value.device.type == "meta" for value in values)


@pytest.mark.parametrize(("b", "k"), [(2, 2), (7, 3), (40, 10)])
def test_a_measure_with_one_bin_is_a_term(b, k):
    z, y = draw_batch(b, k)
    p = Predictions.from_logits(z.numpy(), y.numpy())
    twins = {"mdca": "classwise:bins=1", "dca": "ece:bins=1", "soft_binned_ece:bins=1,p=1": "ece:bins=1"}
    for loss, measure in twins.items():
        assert CATALOGUE.make(loss)(z, y).item() == pytest.approx(make_measure(measure)(p), abs=1e-12), loss
    entropy = CATALOGUE.make("ce")(z, y).item() - CATALOGUE.make("erl:beta=1")(z, y).item()
    assert entropy == pytest.approx(make_measure("entropy")(p), abs=1e-12)


def test_whole_numbers_as_options_are_real_numbers():
    z, y = draw_batch()
    steps = CATALOGUE.find("flsc")(first=5, second=2.5)
    steps.start(samples=6, epochs=350)
    steps.start_epoch(100)
    assert steps(z, y).item() == pytest.approx(CATALOGUE.make("focal:gamma=2.5")(z, y).item(), rel=1e-12)
    for low, high in ((4, 2.5), (2.5, 4)):
        split = CATALOGUE.find("flsd")(low=low, high=high, reduction="none")(z.float(), y)
        parts = [CATALOGUE.find("focal")(gamma=gamma, reduction="none")(z, y) for gamma in (low, high)]
        p = z.softmax(1).gather(1, y[:, None])[:, 0]
        assert torch.allclose(split.double(), torch.where(p < 0.2, *parts), rtol=1e-4, atol=1e-6)
