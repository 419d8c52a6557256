"""One list of promises, run over every loss in the catalogue."""

import math
import pickle

import numpy as np
import pytest
from entry_docstrings import check_docstring

pytest.importorskip("torch")
import torch
from torch.autograd import gradcheck, gradgradcheck

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.losses import CATALOGUE, Loss, RowLoss, Term, find, names

NAMES = names()
ROWS = [name for name in NAMES if issubclass(find(name), RowLoss)]
TERMS = [name for name in NAMES if issubclass(find(name), Term)]
MORE = [  # options that go other ways through the code
    *("focal:gamma=0", "focal:gamma=0.5", "focal:gamma=1", "dual_focal:gamma=0.5", "flsd:high=0.5"),
    *("flsc:first=0.5", "lp_norm:p=2", "lp_norm:p=1.5", "label_smoothing:form=others", "margin:margin=0"),
    *("cpc:bec=0", "mmce_weighted:form=code", "sece:form=eq5", "sece:leave_one_out=true", "sece:accuracy=hard"),
    *("soft_binned_ece:p=1", "soft_binned_ece:p=3", "sb_avuc:temperature=0.1", "crl:score=margin"),
    *("crl:score=entropy", "mixup:base=focal"),
]
SPECS = [*NAMES, *MORE]
GENTLE = {  # smooth enough for finite differences
    "dece": "dece:temperature=0.2,slope=5",
    "sece": "sece:h=0.2,slope=5",
    "sece:form=eq5": "sece:form=eq5,h=0.2,slope=5",
    "sece:leave_one_out=true": "sece:leave_one_out=true,h=0.2,slope=5",
    "sece:accuracy=hard": "sece:accuracy=hard,h=0.2",
}
DTYPES = [torch.float32, torch.float64]
B, K = 12, 4


def loss_of(spec, samples=B, reduction=None):
    """The loss or the term alone, with a past where it has a memory: half the samples right in one epoch of two."""
    option = f"{',' if ':' in spec else ':'}reduction={reduction}" if reduction else ""
    loss = CATALOGUE.make(spec + option)
    loss.start(samples=samples, epochs=4)
    if spec.startswith("crl"):
        loss.start_epoch(2)
        loss.counts.copy_((torch.arange(samples) % 3).clamp_max(2))
    return loss.eval()  # what it learns from a call must not change the next


def call(loss, z, y):
    return loss(z, y, torch.arange(len(y)))


def draw_batch(b=B, k=K, seed=0, scale=1.5, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    return torch.tensor(scale * rng.normal(size=(b, k)), dtype=dtype), torch.tensor(rng.integers(0, k, size=b))


# -- what it says about itself --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    cls = find(name)
    assert issubclass(cls, Loss)
    assert cls.title[0].isupper()
    assert not cls.title.endswith(".")
    assert any(char.isdigit() for char in cls.reference)  # a year
    assert issubclass(cls, torch.nn.Module)


def test_titles_are_unique_and_the_specification_is_there():
    assert len({find(name).title for name in NAMES}) == len(NAMES)
    asked = """ce lp_norm erl label_smoothing focal flsd flsc dual_focal mmce mmce_weighted mixup brier dece sece
    soft_binned_ece avuc sb_avuc margin mdca dca cpc crl"""
    assert set(asked.split()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_a_summary_a_caution_and_an_example(name):
    check_docstring(find(name))


@pytest.mark.parametrize("name", TERMS)
def test_partner_of_a_term_is_a_loss_of_rows(name):
    assert isinstance(CATALOGUE.make(find(name).partner), RowLoss)
    assert find(name).weight > 0


@pytest.mark.parametrize("spec", SPECS)
def test_spec_makes_it_again(spec):
    loss = CATALOGUE.make(spec)
    assert spec_of(CATALOGUE.make(spec_of(loss))) == spec_of(loss)
    assert spec_of(loss) in repr(loss)
    z, y = draw_batch()
    assert call(loss_of(spec_of(loss)), z, y).item() == call(loss_of(spec), z, y).item()


@pytest.mark.parametrize("spec", SPECS)
def test_survives_a_pickle(spec):
    z, y = draw_batch()
    loss = loss_of(spec)
    assert call(pickle.loads(pickle.dumps(loss)), z, y).item() == call(loss, z, y).item()


# -- numbers --------------------------------------------------------------------------------------


def extremes(dtype):
    """Batches of logits that are large, saturated, equal, and mixed with ordinary ones."""
    eye = torch.eye(K, dtype=dtype)
    ordinary, _ = draw_batch(K, K, seed=5, dtype=dtype)
    yield from (size * torch.sign(ordinary) for size in (100, 1e4))
    yield from (size * eye for size in (20, 40, 100, 1e4))  # p of one class goes to 1
    yield from (-size * eye for size in (20, 100, 1e4))  # p of one class goes to 0
    yield torch.zeros(K, K, dtype=dtype)
    yield torch.full((K, K), 1e4, dtype=dtype)
    yield torch.cat([ordinary[:2], 1e4 * eye[2:]])
    yield torch.cat([1e4 * eye[:2], -100 * eye[2:]])


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("spec", SPECS)
def test_finite_however_large_the_logits(spec, dtype):
    labels = [torch.arange(K), (torch.arange(K) + 1) % K, torch.zeros(K, dtype=torch.long)]
    for z in extremes(dtype):
        for y in labels:
            z = z.clone().requires_grad_()
            value = call(loss_of(spec, samples=K), z, y)
            assert value.dtype == dtype
            assert torch.isfinite(value), (z, y)
            (grad,) = torch.autograd.grad(value, z)
            assert torch.isfinite(grad).all(), (z, y)


TWICE = [spec for spec in SPECS if spec != "lp_norm:p=1.5"]  # |z|^1.5 has none at 0


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("spec", TWICE)
def test_second_derivatives_finite_however_large_the_logits(spec, dtype):
    for z in extremes(dtype):
        for y in (torch.arange(K), (torch.arange(K) + 1) % K):
            z = z.clone().requires_grad_()
            (grad,) = torch.autograd.grad(call(loss_of(spec, samples=K), z, y), z, create_graph=True)
            assert torch.isfinite(grad).all(), (z, y)
            if grad.requires_grad:
                (second,) = torch.autograd.grad(grad.sum(), z, allow_unused=True)
                assert second is None or torch.isfinite(second).all(), (z, y)


@pytest.mark.parametrize("spec", SPECS)
def test_float32_is_close_to_float64(spec):
    z, y = draw_batch()
    assert call(loss_of(spec), z.float(), y).item() == pytest.approx(
        call(loss_of(spec), z, y).item(), rel=1e-4, abs=1e-5
    )


@pytest.mark.parametrize("spec", SPECS)
def test_a_constant_added_to_a_row_changes_nothing(spec):
    z, y = draw_batch()
    shift = torch.linspace(-50, 50, B, dtype=z.dtype)[:, None]
    same = math.isclose(call(loss_of(spec), z, y).item(), call(loss_of(spec), z + shift, y).item(), abs_tol=1e-9)
    assert same != loss_of(spec).sees_constants


@pytest.mark.parametrize("spec", [spec for spec in SPECS if not CATALOGUE.make(spec).sees_order])
def test_the_order_of_samples_and_of_classes_changes_nothing(spec):
    z, y = draw_batch()
    rows, columns = torch.randperm(B, generator=torch.Generator().manual_seed(0)), torch.tensor([2, 0, 3, 1])
    value = call(loss_of(spec), z, y).item()
    assert call(loss_of(spec), z[rows], y[rows]).item() == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert call(loss_of(spec), z[:, columns], columns.argsort()[y]).item() == pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_not_below_zero(spec):
    for seed in range(5):
        value = call(loss_of(spec), *draw_batch(seed=seed, scale=3)).item()
        assert value >= 0 or loss_of(spec).may_be_negative


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int64])
@pytest.mark.parametrize("name", NAMES)
def test_labels_of_any_whole_type(name, dtype):
    z, y = draw_batch()
    assert call(loss_of(name), z, y.to(dtype)).item() == call(loss_of(name), z, y).item()


@pytest.mark.parametrize("spec", SPECS)
def test_inputs_stay_as_they_were(spec):
    z, y = draw_batch()
    z.requires_grad_()
    kept, labels = z.detach().clone(), y.clone()
    call(loss_of(spec).train(), z, y).backward()
    assert torch.equal(z.detach(), kept)
    assert torch.equal(y, labels)
    assert z.grad.shape == z.shape


# -- reductions and batches -----------------------------------------------------------------------


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.partition(":")[0] in ROWS])
def test_reductions_agree(spec):
    z, y = draw_batch()
    z.requires_grad_()
    none, mean, total = (call(loss_of(spec, reduction=reduction), z, y) for reduction in ("none", "mean", "sum"))
    assert none.shape == (B,)
    assert mean.shape == total.shape == ()
    assert none.sum().item() == pytest.approx(total.item(), rel=1e-12)
    assert none.mean().item() == pytest.approx(mean.item(), rel=1e-12)
    slopes = [torch.autograd.grad(value, z)[0] for value in (none.sum(), total, B * mean)]
    assert torch.allclose(slopes[0], slopes[1], rtol=1e-9, atol=1e-12)
    assert torch.allclose(slopes[0], slopes[2], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", TERMS)
def test_reductions_of_a_term(name):
    z, y = draw_batch()
    mean, total = (call(loss_of(name, reduction=reduction), z, y).item() for reduction in ("mean", "sum"))
    assert total == pytest.approx(B * mean, rel=1e-12)
    with pytest.raises(InputError, match="no value per row"):
        find(name)(reduction="none")


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec.partition(":")[0] in ROWS])
def test_rows_do_not_know_each_other(spec):
    z, y = draw_batch()
    rows = call(loss_of(spec, reduction="none"), z, y)
    for i in range(B):
        assert call(loss_of(spec), z[i : i + 1], y[i : i + 1]).item() == pytest.approx(rows[i].item(), rel=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_a_batch_of_one(spec):
    z, y = draw_batch(b=1)
    z.requires_grad_()
    value = call(loss_of(spec, samples=1), z, y)
    (grad,) = torch.autograd.grad(value, z)
    assert torch.isfinite(value)
    assert torch.isfinite(grad).all()
    if spec.partition(":")[0] in TERMS:
        assert value.item() == 0
        assert not grad.any()


@pytest.mark.parametrize("spec", SPECS)
def test_two_classes(spec):
    z, y = draw_batch(k=2)
    if spec in NAMES and find(spec).least_classes > 2:
        with pytest.raises(InputError, match="three classes or more"):
            call(loss_of(spec), z, y)
    else:
        assert math.isfinite(call(loss_of(spec), z, y).item())


# -- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_gradient_is_that_of_finite_differences(spec):
    z, y = draw_batch(b=5, k=4, seed=2)
    loss = loss_of(GENTLE.get(spec, spec), samples=5)
    assert gradcheck(lambda logits: call(loss, logits, y), (z.requires_grad_(),))


@pytest.mark.parametrize("spec", SPECS)
def test_gradient_is_the_same_on_the_way_to_a_second_one(spec):
    z, y = draw_batch()
    z.requires_grad_()
    value = call(loss_of(spec), z, y)
    (plain,) = torch.autograd.grad(value, z, retain_graph=True)
    (twice,) = torch.autograd.grad(value, z, create_graph=True)
    assert torch.allclose(plain, twice, rtol=1e-9, atol=1e-12)


SMOOTH = ("focal", "focal:gamma=0.5", "focal:gamma=1", "focal:gamma=0", "flsd", "flsc", "erl", "label_smoothing")


@pytest.mark.parametrize("spec", [*SMOOTH, "cpc", "brier", "ce", "dual_focal", "margin", "mmce", "mixup:base=focal"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_second_derivative_is_that_of_finite_differences(spec, reduction):
    z, y = draw_batch(b=3, k=4, seed=2)
    loss = loss_of(spec, samples=3, reduction=reduction)
    assert gradgradcheck(lambda logits: call(loss, logits, y), (z.requires_grad_(),))


@pytest.mark.parametrize("spec", SPECS)
def test_a_factor_goes_through(spec):
    z, y = draw_batch()
    z.requires_grad_()
    (once,) = torch.autograd.grad(call(loss_of(spec), z, y), z)
    (thrice,) = torch.autograd.grad(3 * call(loss_of(spec), z, y), z)
    assert torch.allclose(3 * once, thrice, rtol=1e-9, atol=1e-14)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own, when it first does this
@pytest.mark.parametrize("spec", SPECS)
def test_forward_mode_agrees_with_backward(spec):
    z, y = draw_batch(b=5)
    loss = loss_of(spec, samples=5)
    direction = torch.ones_like(z).cumsum(1).sin()
    _, slope = torch.func.jvp(lambda logits: call(loss, logits, y), (z,), (direction,))
    (grad,) = torch.autograd.grad(call(loss, z.requires_grad_(), y), z)
    assert slope.item() == pytest.approx((grad * direction).sum().item(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("spec", SPECS)
def test_functional_gradient_agrees(spec):
    z, y = draw_batch(b=5)
    loss = loss_of(spec, samples=5)
    values = torch.func.grad(lambda logits: call(loss, logits, y))(z)
    leaf = z.clone().requires_grad_()
    (grad,) = torch.autograd.grad(call(loss, leaf, y), leaf)
    assert torch.allclose(values, grad, rtol=1e-9, atol=1e-12)


# -- use ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_half_precision_and_autocast_give_float32(spec):
    z, y = draw_batch(dtype=torch.float32)
    layer = torch.nn.Linear(K, K)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(K) * 30)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = layer(z)
        assert logits.dtype == torch.bfloat16
        value = call(loss_of(spec), logits, y)
    assert value.dtype == torch.float32
    assert torch.isfinite(value)
    value.backward()
    assert torch.isfinite(layer.weight.grad).all()
    wide = call(loss_of(spec), logits.detach().float(), y)
    assert value.item() == pytest.approx(wide.item(), rel=1e-5, abs=1e-6)
    assert call(loss_of(spec), z.half(), y).dtype == torch.float32


@pytest.mark.parametrize("spec", SPECS)
def test_falls_under_gradient_descent(spec):
    z, y = draw_batch(b=32, seed=1)
    loss = loss_of(spec, samples=32)
    z.requires_grad_()
    first = call(loss, z, y)
    (grad,) = torch.autograd.grad(first, z)
    assert grad.any()
    step = 0.01 / grad.norm()
    values = [first.item()]
    for _ in range(5):
        (grad,) = torch.autograd.grad(call(loss, z, y), z)
        z = (z - step * grad).detach().requires_grad_()
        values.append(call(loss, z, y).item())
    assert values[-1] < values[0]


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_batch_gives_the_same_number(spec):
    z, y = draw_batch()
    assert call(loss_of(spec), z, y).item() == call(loss_of(spec), z.clone(), y.clone()).item()


@pytest.mark.parametrize("spec", SPECS)
def test_memory_layout_does_not_matter(spec):
    z, y = draw_batch()
    wide = torch.cat([z, z], 1)[:, :K]  # not contiguous
    turned = z.T.contiguous().T
    value = call(loss_of(spec), z, y).item()
    for other in (wide, turned):
        other = other.detach().requires_grad_()
        assert call(loss_of(spec), other, y).item() == pytest.approx(value, rel=1e-12, abs=1e-14)
        call(loss_of(spec), other, y).backward()
