"""The numbers of METHODS 14.2: 4 samples, 3 classes, computed there with independent code."""

import pytest
import torch

from calibrant.losses import find
from calibrant.losses._make import CATALOGUE
from calibrant.losses._soft import soft_accuracy, top_label

LOGITS = [[2.0, 0.0, -1.0], [0.0, 1.5, 0.2], [0.1, 0.0, -0.2], [3.0, -1.0, -2.0]]
LABELS = [0, 0, 0, 0]
CE = 0.7675196774

VALUES = {
    "ce": CE,
    "erl:beta=0.1": 0.7023272032,
    "label_smoothing:epsilon=0.1": 0.8733530108,
    "label_smoothing:epsilon=0.1,form=others": 0.9262696774,
    "focal:gamma=1": 0.5627617078,
    "focal": 0.3516442809,
    "flsd": 0.2707581889,
    "dual_focal": 0.4146415655,
    "brier": 0.4566421944,
    "mmce": 0.1540511676**2,
    "mmce_weighted": 0.5628837904,
    "mmce_weighted:form=code": 0.6258225915,
    "mdca": 0.2755805804,
    "margin:margin=1": 0.8575196774,
    "cpc:bec=0": CE + 0.4873355864,
    "cpc:bdc=0": CE + 0.4019588373,
    "dece": 0.3608460053,
    "sece": 0.3611341533,
    "sece:accuracy=hard": 0.3678171623,
    "sece:h=0.1": 0.2749225830,
    "sece:h=0.1,accuracy=hard": 0.2814299998,
    "soft_binned_ece": 0.4178729650,
    "soft_binned_ece:p=1": 0.3269279396,
}


@pytest.fixture
def batch():
    return torch.tensor(LOGITS, dtype=torch.float64), torch.tensor(LABELS)


@pytest.mark.parametrize("spec", VALUES)
def test_number_of_the_specification(batch, spec):
    assert float(CATALOGUE.make(spec)(*batch)) == pytest.approx(VALUES[spec], abs=1e-9)


@pytest.mark.parametrize("spec", VALUES)
def test_the_same_with_gradients_and_in_single_precision(batch, spec):
    """Closed forms are taken where gradients are wanted."""
    logits, labels = batch
    made = CATALOGUE.make(spec)
    assert made(logits.requires_grad_(), labels).item() == pytest.approx(VALUES[spec], abs=1e-9)
    assert made(logits.float(), labels).item() == pytest.approx(VALUES[spec], abs=1e-5)


def test_accuracy_versus_uncertainty_at_its_threshold(batch):
    loss = find("avuc")()
    loss.threshold.fill_(0.7223583285)
    assert float(loss(*batch)) == pytest.approx(0.1809201121, abs=1e-9)


def test_the_threshold_is_the_mean_of_the_mean_entropies(batch):
    loss = find("avuc")()
    loss(*batch)
    loss.start_epoch(1)
    assert float(loss.threshold) == pytest.approx(0.7223583285, abs=1e-6)


def test_soft_and_hard_accuracy(batch):
    assert soft_accuracy(*batch, 100.0).tolist() == pytest.approx([1, 0, 0.97326796, 1], abs=1e-8)
    assert top_label(*batch)[1].tolist() == [1, 0, 1, 1]
