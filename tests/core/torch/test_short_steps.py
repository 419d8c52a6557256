"""Short steps give what the long ones give."""

import pytest

pytest.importorskip("torch")
import torch

from calibrant.core.torch.short_steps import number, through_log_softmax, to_bits
from calibrant.losses import CATALOGUE


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_through_log_softmax_is_its_backward_pass(dtype):
    z = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype).requires_grad_()
    slopes = torch.arange(35, dtype=dtype).reshape(5, 7).cos()
    log_probs = z.log_softmax(1)
    (expected,) = torch.autograd.grad(log_probs, z, slopes)
    assert torch.equal(through_log_softmax(slopes, log_probs.detach()), expected)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_powers_of_two_are_probabilities(dtype, error):
    log_probs = torch.linspace(-12, 0, 50, dtype=dtype)
    assert torch.allclose(to_bits(log_probs.clone()).exp2_(), log_probs.exp(), rtol=error, atol=0)


def test_a_number_first_used_in_inference_mode_may_be_used_in_training():
    number.cache_clear()
    z, y = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1, 2, 0])
    with torch.inference_mode():
        CATALOGUE.make("flsd").closed_form(z, y, 0.25)
    assert not number(0.25, torch.float32).is_inference()
    z.requires_grad_()
    CATALOGUE.make("flsd")(z, y).backward()
    assert torch.isfinite(z.grad).all()
