"""The numbers of docs/methods/vectors.md#losses: 4 samples, 3 classes, computed there with independent code."""

import math

import pytest

pytest.importorskip("torch")
import slow_losses
import torch

from calibrant.losses import CATALOGUE, Term, make
from calibrant.losses._soft import soft_accuracy

LOGITS = [[2, 0, -1], [0, 1.5, 0.2], [0.1, 0, -0.2], [3, -1, -2]]
LABELS = [0, 0, 0, 0]

ROWS = {
    "ce": 0.7675196774,
    "erl:beta=0.1": 0.7023272032,
    "label_smoothing:epsilon=0.1": 0.8733530108,
    "label_smoothing:epsilon=0.1,form=others": 0.9262696774,
    "focal:gamma=1": 0.5627617078,
    "focal:gamma=3": 0.3516442809,
    "flsd": 0.2707581889,
    "dual_focal:gamma=5": 0.4146415655,
    "brier": 0.4566421944,
    "margin:margin=1,alpha=0.1": 0.8575196774,
    "cpc": 0.7675196774 + 0.4873355864 + 0.4019588373,
    "cpc:bec=0": 0.7675196774 + 0.4873355864,
    "cpc:bdc=0": 0.7675196774 + 0.4019588373,
}
TERMS = {
    "mmce": 0.1540511676**2,
    "mmce_weighted": 0.5628837904,
    "mmce_weighted:form=code": 0.6258225915,
    "mdca": 0.2755805804,
    "dece:bins=15": 0.3608460053,
    "sece:h=0.01": 0.3611341533,
    "sece:h=0.01,accuracy=hard": 0.3678171623,
    "sece:h=0.1": 0.2749225830,
    "sece:h=0.1,accuracy=hard": 0.2814299998,
    "soft_binned_ece:bins=15,temperature=0.01": 0.4178729650,
    "soft_binned_ece:bins=15,temperature=0.01,p=1": 0.3269279396,
}
SPECS = ROWS | TERMS


@pytest.fixture
def z():
    return torch.tensor(LOGITS, dtype=torch.float64)


@pytest.fixture
def y():
    return torch.tensor(LABELS)


def test_the_samples(z, y):
    assert z.softmax(1)[:, 0].tolist() == pytest.approx([0.8437947, 0.1491849, 0.3779781, 0.9755588], abs=5e-8)
    assert (z.argmax(1) == y).tolist() == [True, False, True, True]


@pytest.mark.parametrize("spec", SPECS)
def test_number_of_the_specification(z, y, spec):
    loss = CATALOGUE.make(spec)
    assert isinstance(loss, Term) == (spec in TERMS)
    assert loss(z, y).item() == pytest.approx(SPECS[spec], abs=1e-9)


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_number_on_the_way_to_a_gradient_and_in_float32(z, y, spec):
    assert CATALOGUE.make(spec)(z.requires_grad_(), y).item() == pytest.approx(SPECS[spec], abs=1e-9)
    assert CATALOGUE.make(spec)(z.detach().float(), y).item() == pytest.approx(SPECS[spec], abs=2e-5)


@pytest.mark.parametrize("spec", TERMS)
def test_a_term_is_added_to_its_partner(z, y, spec):
    cls = CATALOGUE.find(spec.partition(":")[0])
    partner = CATALOGUE.make(cls.partner)(z, y).item()
    assert make(spec)(z, y).item() == pytest.approx(partner + cls.weight * TERMS[spec], abs=1e-8)


def test_mmce_is_the_square_of_the_root_printed(z, y):
    assert math.sqrt(CATALOGUE.make("mmce")(z, y).item()) == pytest.approx(0.1540511676, abs=1e-9)


def test_pairwise_constraints_one_by_one(z, y):
    ce = CATALOGUE.make("ce")(z, y).item()
    assert CATALOGUE.make("cpc:bec=0")(z, y).item() - ce == pytest.approx(0.4873355864, abs=1e-9)
    assert CATALOGUE.make("cpc:bdc=0")(z, y).item() - ce == pytest.approx(0.4019588373, abs=1e-9)


def test_soft_accuracy(z, y):
    assert soft_accuracy(z, y, slope=100.0).tolist() == pytest.approx([1, 0, 0.97326796, 1], abs=5e-9)


def test_avuc_at_the_threshold_of_the_second_epoch(z, y):
    """The threshold printed is the one these samples lead to."""
    loss = CATALOGUE.make("avuc")
    loss.start(samples=4, epochs=2)
    loss.start_epoch(0)
    loss(z, y)
    loss.start_epoch(1)
    assert loss.threshold.item() == pytest.approx(0.7223583285, abs=1e-7)  # kept in float32
    assert loss(z, y).item() == pytest.approx(0.1809201121, abs=1e-9)


def test_the_slow_twins_agree_with_the_specification(z, y):
    for spec, value in SPECS.items():
        name, _, text = spec.partition(":")
        loss = CATALOGUE.make(spec)
        options = {key: getattr(loss, key) for key, _, _ in (part.partition("=") for part in text.split(",")) if key}
        slow = getattr(slow_losses, name)(z, y, **options)
        assert (slow if spec in TERMS else slow_losses.mean(slow)) == pytest.approx(value, abs=1e-9), spec
    assert slow_losses.avuc_threshold(z, y) == pytest.approx(0.7223583285, abs=1e-9)
    assert slow_losses.avuc(z, y, threshold=0.7223583285) == pytest.approx(0.1809201121, abs=1e-9)
    assert slow_losses.mean(slow_losses.bdc(z, y)) == pytest.approx(0.4873355864, abs=1e-9)
    assert slow_losses.mean(slow_losses.bec(z, y)) == pytest.approx(0.4019588373, abs=1e-9)
