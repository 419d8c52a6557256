"""What is proved about the losses: the two theorems of doc004, and where the gammas of FLSD come from."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calibrant.core.errors import InputError
from calibrant.losses import CATALOGUE
from calibrant.losses.flsd import best_gamma

TASKS = st.tuples(st.integers(1, 5), st.integers(2, 8))
LOGITS = arrays(np.float64, TASKS, elements=st.floats(-30, 30))
GAMMAS = st.floats(1, 8)


def entropy(z):
    log_probs = z.log_softmax(1)
    return -(log_probs.exp() * log_probs).sum(1)


def each_label(z):
    """Every row with every label."""
    b, k = z.shape
    return z.repeat_interleave(k, 0), torch.arange(k).repeat(b)


@given(LOGITS, st.floats(1, 20))
def test_larger_logits_are_more_confident(logits, t):
    """Theorem 1: max softmax(t z) >= max softmax(z) for t > 1."""
    z = torch.from_numpy(logits)
    assert ((t * z).softmax(1).amax(1) >= z.softmax(1).amax(1) - 1e-12).all()


@given(LOGITS, GAMMAS)
@example(np.zeros((1, 2)), 1.0)
@example(np.array([[30.0, -30.0]]), 1.0)
@example(np.array([[1e-3, 0.0, -30.0]]), 8.0)
def test_focal_is_above_cross_entropy_minus_entropy(logits, gamma):
    """Theorem 2: FL_gamma >= CE - gamma H(p) for gamma >= 1, for every label."""
    z, y = each_label(torch.from_numpy(logits))
    focal = CATALOGUE.find("focal")(gamma=gamma, reduction="none")(z, y)
    erl = CATALOGUE.find("erl")(beta=gamma, reduction="none")(z, y)
    ce = CATALOGUE.find("ce")(reduction="none")(z, y)
    assert (focal >= ce - gamma * entropy(z) - 1e-10).all()
    assert (focal >= erl - 1e-10).all()  # which is the right side


def test_the_proof_of_theorem_2_needs_gamma_of_1_or_more():
    """(1 - p)^gamma >= 1 - gamma p is what it uses, and it fails below 1."""
    assert (1 - 0.5) ** 0.5 < 1 - 0.5 * 0.5
    grid = np.linspace(0, 1, 101)
    assert all(((1 - grid) ** gamma >= 1 - gamma * grid - 1e-12).all() for gamma in (1, 1.5, 3, 8))


@given(LOGITS, st.floats(0, 8), st.floats(0, 8))
def test_focal_falls_with_gamma_from_cross_entropy(logits, a, b):
    z, y = each_label(torch.from_numpy(logits))
    low, high = (CATALOGUE.find("focal")(gamma=g, reduction="none")(z, y) for g in sorted((a, b)))
    ce = CATALOGUE.find("ce")(reduction="none")(z, y)
    assert (high <= low + 1e-12).all()
    assert (low <= ce + 1e-12).all()
    assert torch.allclose(CATALOGUE.find("focal")(gamma=0.0, reduction="none")(z, y), ce, rtol=0, atol=1e-12)


@given(LOGITS, st.floats(0, 8))
def test_dual_focal_is_above_focal(logits, gamma):
    z, y = each_label(torch.from_numpy(logits))
    focal, dual = (CATALOGUE.find(name)(gamma=gamma, reduction="none")(z, y) for name in ("focal", "dual_focal"))
    assert (dual >= focal - 1e-12).all()


# -- the gamma of a sample ------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "gamma"), [(0.2, 4.8506), (0.25, 3.0702), (0.3, 1.9572), (0.4, 0.6805)])
def test_best_gamma_of_the_specification(p, gamma):
    assert best_gamma(p) == pytest.approx(gamma, abs=5e-5)


@pytest.mark.parametrize("p", [0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.45])
def test_at_the_best_gamma_the_gradient_is_that_of_cross_entropy(p):
    gamma = best_gamma(p)
    g = (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)
    assert g == pytest.approx(1, abs=1e-9)
    z = torch.tensor([[p, 1 - p]], dtype=torch.float64).log().requires_grad_()
    y = torch.tensor([0])
    slopes = [torch.autograd.grad(CATALOGUE.make(s)(z, y), z)[0] for s in (f"focal:gamma={gamma!r}", "ce")]
    assert torch.allclose(*slopes, rtol=0, atol=1e-9)


@pytest.mark.parametrize("p", [-0.1, 0.0, 1.0, 2.0, math.nan])
def test_best_gamma_of_no_probability(p):
    with pytest.raises(InputError, match="between 0 and 1"):
        best_gamma(p)
