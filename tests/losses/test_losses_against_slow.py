"""Every loss against its slow twin, and against the measure of the same name where there is one."""

import numpy as np
import pytest
import slow_losses
import torch

from calibrant.core.predictions import Predictions
from calibrant.losses import find, names
from calibrant.measures import make as make_measure

SIZES = [(2, 2), (3, 2), (17, 2), (2, 3), (8, 5), (33, 10), (5, 40)]
OPTIONS = {
    "lp_norm": [{}, {"alpha": 0.3, "p": 2.0}, {"alpha": 1.0, "p": 7.5}, {"p": 1.3}],
    "erl": [{}, {"beta": 0.0}, {"beta": 2.0}],
    "label_smoothing": [{}, {"epsilon": 0.0}, {"epsilon": 0.9}, {"form": "others"}, {"epsilon": 0.9, "form": "others"}],
    "focal": [{}, {"gamma": 0.0}, {"gamma": 0.5}, {"gamma": 1.0}, {"gamma": 2.7}],
    "flsd": [{}, {"low": 1.3, "high": 0.7, "switch": 0.5}],
    "dual_focal": [{}, {"gamma": 0.0}, {"gamma": 0.5}, {"gamma": 1.0}],
    "margin": [{}, {"margin": 0.0}, {"margin": 1.0, "alpha": 2.0}],
    "cpc": [{}, {"bdc": 0.1}, {"bec": 0.0}, {"bdc": 0.0}],
    "mmce": [{}, {"width": 0.05}],
    "mmce_weighted": [{}, {"width": 0.05}, {"form": "code"}],
    "dece": [{}, {"bins": 1}, {"bins": 7, "temperature": 0.1, "slope": 10.0}],
    "sece": [
        *({}, {"h": 0.1}, {"h": 2.0}, {"form": "eq5"}, {"leave_one_out": True}, {"h": 0.1, "leave_one_out": True}),
        *({"accuracy": "hard"}, {"accuracy": "hard", "leave_one_out": True, "h": 0.1}, {"slope": 5.0}),
    ],
    "soft_binned_ece": [{}, {"p": 1.0}, {"p": 3.5}, {"bins": 4, "temperature": 0.1}, {"bins": 1}],
    "sb_avuc": [{}, {"kappa": 0.1}, {"temperature": 0.1}, {"kappa": 0.9, "temperature": 3.0}],
    **{name: [{}] for name in ("ce", "flsc", "brier", "avuc", "mdca", "dca")},
}
ELSEWHERE = {"crl", "mixup"}  # they need more than logits and labels: below, and test_losses_memory.py
CASES = [(name, options) for name, all_options in OPTIONS.items() for options in all_options]
ROWS = {f.__name__ for f in slow_losses.ROWS}


def batch(n, k, seed=0, scale=2.0):
    rng = np.random.default_rng(1000 * n + 10 * k + seed)
    logits = scale * rng.normal(size=(n, k))
    labels = np.where(rng.random(n) < 0.6, logits.argmax(axis=1), rng.integers(0, k, size=n))
    return logits, labels


def test_every_loss_has_a_twin():
    assert set(OPTIONS) | ELSEWHERE == set(names())
    assert {f.__name__ for f in (*slow_losses.ROWS, *slow_losses.TERMS)} == set(OPTIONS) | {"crl"}


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda x: x if isinstance(x, str) else str(x))
def test_loss_is_its_slow_twin(name, options, n, k):
    if name == "cpc" and k == 2 and options.get("bec", 1.0):
        pytest.skip("needs three classes")
    logits, labels = batch(n, k)
    slow = getattr(slow_losses, name)(logits.tolist(), labels.tolist(), **options)
    z, y = torch.tensor(logits), torch.tensor(labels)
    if name in ROWS:
        assert find(name)(reduction="none", **options)(z, y).tolist() == pytest.approx(slow, rel=1e-9, abs=1e-11)
        slow = slow_losses.mean(slow)
    root = options.get("p", 2.0) > 1 and name in ("soft_binned_ece", "lp_norm")
    near = pytest.approx(slow, rel=1e-9, abs=1e-7 if root else 1e-11)  # 1e-12 is added under these roots
    assert float(find(name)(**options)(z, y)) == near
    assert float(find(name)(reduction="sum", **options)(z, y) / n) == near
    closed = find(name)(**options)(z.clone().requires_grad_(), y)  # another way, where there is a closed form
    assert closed.item() == near


@pytest.mark.parametrize("score", ["max", "margin", "entropy"])
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_ranking_is_its_slow_twin(score, n, k):
    logits, labels = batch(n, k)
    for epoch in (0, 1, 7):
        counts = np.random.default_rng(epoch).integers(0, epoch + 1, size=n)
        slow = slow_losses.crl(logits.tolist(), labels.tolist(), counts.tolist(), epoch, score)
        loss = find("crl")(score=score)
        loss.start(n, 10)
        loss.start_epoch(epoch)
        loss.counts.copy_(torch.tensor(counts))
        value = loss(torch.tensor(logits), torch.tensor(labels), torch.arange(n))
        assert float(value) == pytest.approx(slow, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("seed", [0, 1])
def test_losses_are_measures_where_the_names_meet(n, k, seed):
    logits, labels = batch(n, k, seed)
    p = Predictions.from_logits(logits, labels)
    z, y = torch.tensor(logits), torch.tensor(labels)
    for name, options, measure in [
        ("ce", {}, "nll"),
        ("brier", {}, "brier"),
        ("sece", {"accuracy": "hard"}, "sece"),
        ("sece", {"accuracy": "hard", "h": 0.1, "leave_one_out": True}, "sece:h=0.1,leave_one_out=true"),
        ("sece", {"accuracy": "hard", "form": "eq5"}, "sece:form=eq5"),
        ("dca", {}, "ece:bins=1"),
        ("mdca", {}, "classwise:bins=1"),
        ("soft_binned_ece", {"bins": 1, "p": 1.0}, "ece:bins=1"),
    ]:
        assert float(find(name)(**options)(z, y)) == pytest.approx(make_measure(measure)(p), abs=1e-9), name
    assert float(find("mmce")()(z, y)) == pytest.approx(make_measure("mmce")(p) ** 2, abs=1e-9)
    erl = float(find("ce")()(z, y) - find("erl")(beta=1.0)(z, y))
    assert erl == pytest.approx(make_measure("entropy")(p), abs=1e-9)


def test_hard_bins_and_ranks_make_the_usual_error():
    """With steep soft bins and ranks, DECE is ECE with as many bins."""
    logits, labels = batch(60, 4)
    p = Predictions.from_logits(logits, labels)
    loss = find("dece")(bins=10, temperature=1e-6, slope=1e6)
    value = float(loss(torch.tensor(logits), torch.tensor(labels)))
    assert value == pytest.approx(make_measure("ece:bins=10")(p), abs=1e-4)
