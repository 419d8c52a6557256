"""Every loss against its slow twin, for batches and numbers of classes small and larger."""

import inspect

import numpy as np
import pytest

pytest.importorskip("torch")
import slow_losses
import torch
from entry_options import options_of, values_of

from calibrant.core.predictions import Predictions
from calibrant.losses import CATALOGUE, Term, names
from calibrant.losses.mixup import MixedLabels
from calibrant.measures import make as make_measure

SIZES = [(b, k) for b in (2, 7, 64) for k in (2, 3, 10)]
OPTIONS = {  # settings of a loss, where more than its class itself suggests is worth a try
    "lp_norm": [{}, {"alpha": 0.5}, {"p": 2.0}, {"alpha": 0.3, "p": 3.5}, {"alpha": 0.0}],
    "erl": [{}, {"beta": 0.0}, {"beta": 1.5}],
    "label_smoothing": [{}, {"epsilon": 0.3}, {"epsilon": 0.1, "form": "others"}, {"epsilon": 0.0}],
    "focal": [{}, {"gamma": 0.0}, {"gamma": 0.5}, {"gamma": 1.0}, {"gamma": 7.25}],
    "flsd": [{}, {"low": 2.0, "high": 0.5}, {"switch": 0.6}],
    "dual_focal": [{}, {"gamma": 0.0}, {"gamma": 0.5}, {"gamma": 2.0}],
    "margin": [{}, {"margin": 0.0}, {"margin": 1.5, "alpha": 2.0}, {"alpha": 0.0}],
    "cpc": [{}, {"bdc": 0.1}, {"bec": 0.0}, {"bdc": 0.0, "bec": 2.5}],
    "mmce": [{}, {"width": 0.05}, {"width": 3.0}],
    "mmce_weighted": [{}, {"form": "code"}, {"width": 0.05}, {"width": 2.0, "form": "code"}],
    "dece": [{}, {"bins": 1}, {"bins": 4, "temperature": 0.1}, {"slope": 5.0}],
    "sece": [
        *({}, {"h": 0.1}, {"h": 0.1, "accuracy": "hard"}, {"form": "eq5"}, {"form": "eq5", "accuracy": "hard"}),
        *({"leave_one_out": True}, {"leave_one_out": True, "h": 0.001}, {"slope": 10.0, "h": 0.5}),
    ],
    "soft_binned_ece": [{}, {"p": 1.0}, {"p": 3.0, "bins": 7}, {"bins": 1}, {"temperature": 0.5}],
    "sb_avuc": [{}, {"kappa": 0.2}, {"temperature": 0.05}, {"kappa": 0.8, "temperature": 3.0}],
}
ELSEWHERE = {"crl", "mixup"}  # compared below: they need more than logits and labels


def twin_of(name):
    """The slow function of the same name, if there is one. A loss without a twin has its example to prove it."""
    twin = getattr(slow_losses, name, None)
    return twin if twin and list(inspect.signature(twin).parameters)[:2] == ["logits", "labels"] else None


def settings_of(name):
    """The default, then those listed above; of a loss that is not listed, another value of each option of its twin."""
    if name in OPTIONS:
        return OPTIONS[name]
    cls, parameters = CATALOGUE.find(name), inspect.signature(twin_of(name)).parameters
    options = [option for option in options_of(cls) if option in parameters]
    return [{}, *({option: value} for option in options for value in values_of(cls, option)[1:])]


TWINS = [name for name in names() if twin_of(name) and name not in ELSEWHERE]
CASES = [(name, options) for name in TWINS for options in settings_of(name)]
IDS = [f"{name}:{','.join(f'{key}={value}' for key, value in options.items())}" for name, options in CASES]


def draw_batch(b, k, seed, scale=2.0):
    rng = np.random.default_rng(seed)
    z = scale * rng.normal(size=(b, k))
    return torch.tensor(z), torch.tensor((z + 2 * rng.gumbel(size=(b, k))).argmax(axis=1))


def needs_three(name, options):
    return name == "cpc" and options.get("bec", 1.0) > 0


def test_nearly_every_loss_has_a_slow_twin():
    assert len(TWINS) + len(ELSEWHERE) >= 22
    assert set(names()) >= ELSEWHERE | set(OPTIONS)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_same_as_the_slow_twin(name, options):
    for b, k in SIZES:
        if k == 2 and needs_three(name, options):
            continue
        for seed in range(3):
            z, y = draw_batch(b, k, seed=100 * b + 10 * k + seed)
            loss = CATALOGUE.find(name)(**options)
            expected = twin_of(name)(z, y, **options)
            if isinstance(loss, Term):
                assert loss(z, y).item() == pytest.approx(expected, rel=1e-9, abs=1e-9), (b, k, seed)
            else:
                rows = CATALOGUE.find(name)(**options, reduction="none")(z, y)
                assert rows.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9), (b, k, seed)
                through = loss(z.requires_grad_(), y)  # a closed form where there is one
                assert through.item() == pytest.approx(np.mean(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("b", "k"), SIZES)
def test_gradient_of_focal_by_its_formula(gamma, b, k):
    z, y = draw_batch(b, k, seed=b + k)
    CATALOGUE.find("focal")(gamma=gamma, reduction="sum")(z.requires_grad_(), y).backward()
    np.testing.assert_allclose(z.grad, slow_losses.focal_gradient(z.detach(), y, gamma), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("epoch", "epochs"), [(0, 350), (99, 350), (100, 350), (249, 350), (250, 350), (2, 7), (4, 6)])
def test_flsc_follows_its_schedule(epoch, epochs):
    z, y = draw_batch(7, 3, seed=epoch)
    loss = CATALOGUE.find("flsc")()
    loss.start(samples=7, epochs=epochs)
    loss.start_epoch(epoch)
    assert loss(z, y).item() == pytest.approx(np.mean(slow_losses.flsc(z, y, epoch, epochs)), rel=1e-9)


@pytest.mark.parametrize(("b", "k"), SIZES)
def test_avuc_after_an_epoch(b, k):
    z, y = draw_batch(b, k, seed=b * k)
    again, labels = draw_batch(b, k, seed=b * k + 1)
    loss = CATALOGUE.find("avuc")()
    loss.start(samples=b, epochs=2)
    loss.start_epoch(0)
    for rows in torch.arange(b).split(3):
        loss(z[rows], y[rows])
    loss.start_epoch(1)
    threshold = slow_losses.avuc_threshold(z, y)
    assert loss.threshold.item() == pytest.approx(threshold, rel=1e-6)
    assert loss(again, labels).item() == pytest.approx(slow_losses.avuc(again, labels, threshold), rel=1e-9)


@pytest.mark.parametrize("score", ["max", "margin", "entropy"])
@pytest.mark.parametrize(("b", "k"), SIZES)
def test_crl_over_epochs(score, b, k):
    samples, counts = b + 3, [0] * (b + 3)
    loss = CATALOGUE.find("crl")(score=score)
    loss.start(samples=samples, epochs=5)
    rng = np.random.default_rng(b + k)
    values = []
    for epoch in range(5):
        loss.start_epoch(epoch)
        order = rng.permutation(samples)
        for ids in (order[:b], order[b:]):  # the whole epoch, so that the least count moves
            z, y = draw_batch(len(ids), k, seed=int(rng.integers(1000)))
            expected = slow_losses.crl(z, y, counts, epoch, ids.tolist(), score)
            values.append(loss(z, y, torch.tensor(ids)).item())
            assert values[-1] == pytest.approx(expected, rel=1e-6, abs=1e-7)  # counts are kept in float32
            for i, (_, right) in zip(ids.tolist(), slow_losses.top_label(z, y), strict=True):
                counts[i] += int(right)
    assert values[0] == values[1] == 0.0
    assert max(values) > 0
    assert loss.counts.tolist() == counts


@pytest.mark.parametrize(("b", "k"), SIZES)
def test_mixup_is_a_blend_of_cross_entropies(b, k):
    z, y = draw_batch(b, k, seed=b)
    partners = y.roll(1)
    rows = CATALOGUE.find("mixup")(reduction="none")(z, MixedLabels(y, partners, 0.3))
    assert rows.tolist() == pytest.approx(slow_losses.mixup(z, y, partners, 0.3), rel=1e-9)


# -- the measures are a third implementation ------------------------------------------------------

MEASURES = {  # loss: measure
    "ce": "nll:floor=0",
    "brier": "brier",
    "sece:accuracy=hard": "sece",
    "sece:accuracy=hard,h=0.1": "sece:h=0.1",
    "sece:accuracy=hard,form=eq5": "sece:form=eq5",
    "sece:accuracy=hard,leave_one_out=true": "sece:leave_one_out=true",
}


@pytest.mark.parametrize(("b", "k"), SIZES)
def test_same_as_the_measures(b, k):
    z, y = draw_batch(b, k, seed=b + 20 * k)
    p = Predictions.from_logits(z.numpy(), y.numpy())
    for loss, measure in MEASURES.items():
        assert CATALOGUE.make(loss)(z, y).item() == pytest.approx(make_measure(measure)(p), rel=1e-9, abs=1e-9), loss
    for width in (0.1, 0.4):
        squared = CATALOGUE.find("mmce")(width=width)(z, y).item()
        assert squared == pytest.approx(make_measure(f"mmce:width={width}")(p) ** 2, rel=1e-9, abs=1e-12)
    assert CATALOGUE.make("dca")(z, y).item() == pytest.approx(abs(make_measure("gap")(p)), abs=1e-12)
