"""Losses that remember (avuc, crl, flsc) and the one that mixes its batches (mixup)."""

import copy

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from calibrant.core.errors import InputError
from calibrant.losses import CATALOGUE, make
from calibrant.losses.mixup import MixedLabels, Mixup

B, K = 8, 3


@pytest.fixture
def z():
    return torch.tensor(2 * np.random.default_rng(3).normal(size=(B, K)))


@pytest.fixture
def y():
    return torch.arange(B) % K


@pytest.fixture
def ids():
    return torch.arange(B)


def entropies(z):
    log_probs = z.log_softmax(1)
    return -(log_probs.exp() * log_probs).sum(1)


# -- accuracy versus uncertainty ------------------------------------------------------------------


def test_avuc_threshold_is_midway_between_right_and_wrong(z, y):
    loss = CATALOGUE.make("avuc")
    assert loss.threshold.item() == 1.0
    loss.start(samples=B, epochs=3)
    loss.start_epoch(0)
    assert loss.threshold.item() == 1.0
    loss(z[:3], y[:3])
    loss(z[3:], y[3:])
    assert loss.threshold.item() == 1.0  # until the epoch is over
    loss.start_epoch(1)
    right = z.argmax(1) == y
    midway = (entropies(z)[right].mean() + entropies(z)[~right].mean()) / 2
    assert loss.threshold.item() == pytest.approx(midway.item(), rel=1e-6)


def test_avuc_forgets_the_epoch_before_the_last(z, y):
    loss, fresh = CATALOGUE.make("avuc"), CATALOGUE.make("avuc")
    loss.start_epoch(0)
    loss(5 * z, y)
    loss.start_epoch(1)
    for one in (loss, fresh):
        one(z, y)
        one.start_epoch(2)
    assert loss.threshold.item() == fresh.threshold.item()


@pytest.mark.parametrize("right", [True, False])
def test_avuc_threshold_stays_where_one_group_is_empty(z, right):
    loss = CATALOGUE.make("avuc")
    loss(z, z.argmax(1) if right else z.argmin(1))
    loss.start_epoch(1)
    assert loss.threshold.item() == 1.0


def test_avuc_start_forgets(z, y):
    loss = CATALOGUE.make("avuc")
    loss(z, y)
    loss.start_epoch(1)
    loss(z, y)
    loss.start(samples=B, epochs=3)
    assert loss.threshold.item() == 1.0
    loss.start_epoch(0)
    assert loss.threshold.item() == 1.0


@pytest.mark.parametrize("name", ["avuc", "crl"])
def test_nothing_is_learnt_while_judging(name, z, y, ids):
    loss = CATALOGUE.make(name)
    loss.start(samples=B, epochs=2)
    before = copy.deepcopy(loss.state_dict())
    with torch.no_grad():
        loss(z, y, ids)
    loss.eval()(z, y, ids)
    assert all(torch.equal(value, before[key]) for key, value in loss.state_dict().items())
    loss.train()(z, y, ids)
    assert not all(torch.equal(value, before[key]) for key, value in loss.state_dict().items())


def test_memory_holds_no_graph(z, y, ids):
    loss = make("ce + avuc + crl")
    loss.start(samples=B, epochs=2)
    z.requires_grad_()
    for epoch in range(2):
        loss.start_epoch(epoch)
        loss(z, y, ids).backward()
    assert not any(value.requires_grad for value in loss.state_dict().values())


# -- correctness ranking --------------------------------------------------------------------------


def test_crl_counts_by_id(z, y):
    loss = CATALOGUE.make("crl")
    loss.start(samples=20, epochs=2)
    loss.start_epoch(0)
    ids = torch.tensor([19, 3, 5, 7, 11, 13, 2, 0])
    assert loss(z, y, ids).item() == 0  # no past yet
    right = (z.argmax(1) == y).double()
    expected = torch.zeros(20, dtype=torch.float64)
    expected[ids] = right
    assert loss.counts.tolist() == expected.tolist()


def test_crl_hinge_by_hand():
    z = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]], dtype=torch.float64).log()
    y, ids = torch.tensor([0, 1, 1]), torch.arange(3)
    loss = CATALOGUE.make("crl")
    loss.start(samples=3, epochs=2)
    loss.start_epoch(0)
    loss(z, y, ids)
    loss.start_epoch(1)
    # right: yes, no, yes; pairs (0, 1): 1 - 0.3, (1, 2): 1 - 0.1, (2, 0): 0
    assert loss(z, y, ids).item() == pytest.approx((0.7 + 0.9) / 3, rel=1e-9)


def test_crl_start_forgets_and_sizes(z, y, ids):
    loss = CATALOGUE.make("crl")
    loss.start(samples=B, epochs=2)
    loss(z, y, ids)
    loss.start_epoch(1)
    loss.start(samples=B + 5, epochs=2)
    assert loss.counts.tolist() == [0] * (B + 5)
    assert loss.epoch.item() == 0


def test_crl_without_start_or_ids(z, y, ids):
    loss = CATALOGUE.make("crl")
    with pytest.raises(InputError, match=r"call loss\.start"):
        loss(z, y, ids)
    loss.start(samples=B, epochs=2)
    with pytest.raises(InputError, match="ids of the samples"):
        loss(z, y)
    with pytest.raises(InputError, match="ids of the samples"):
        make_started("crl")(z, y)


def make_started(spec):
    loss = make(spec)
    loss.start(samples=B, epochs=2)
    return loss


def test_ids_change_nothing_for_the_others(z, y, ids):
    for spec in ("ce", "focal", "flsc", "mdca", "avuc", "sece"):
        assert make(spec)(z, y, ids).item() == make(spec)(z, y).item()


# -- the schedule ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("epochs", "early", "late"), [(350, 100, 250), (7, 2, 5), (35, 10, 25), (10, 3, 8), (1, 1, 1)])
def test_flsc_gammas(epochs, early, late):
    loss = CATALOGUE.make("flsc")
    loss.start(samples=B, epochs=epochs)
    gammas = []
    for epoch in range(epochs):
        loss.start_epoch(epoch)
        gammas.append(loss.gamma.item())
    assert gammas == [5.0 if e < early else 3.0 if e < late else 1.0 for e in range(epochs)]


def test_flsc_is_focal_with_the_gamma_of_the_epoch(z, y):
    loss = CATALOGUE.make("flsc:first=4,second=2,third=0.5,early=0.5,late=0.75")
    loss.start(samples=B, epochs=4)
    for epoch, gamma in enumerate((4, 4, 2, 0.5)):
        loss.start_epoch(epoch)
        assert loss(z, y).item() == pytest.approx(CATALOGUE.find("focal")(gamma=gamma)(z, y).item(), rel=1e-12)


def test_flsc_start_goes_back(z, y):
    loss = CATALOGUE.make("flsc")
    loss.start_epoch(300)
    assert loss.gamma.item() == 1.0
    loss.start(samples=B, epochs=10)
    assert loss.gamma.item() == 5.0


# -- save and load --------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["avuc", "crl", "flsc", "ce + 0.5*avuc + crl", "mixup:base=flsc"])
@pytest.mark.parametrize("started", [True, False])
def test_state_goes_on_where_it_was(spec, started, z, y, ids):
    def step(loss, epoch):
        loss.start_epoch(epoch)
        return loss(z.roll(epoch, 0), y, ids).item()

    one, two = make(spec), make(spec)
    one.start(samples=B, epochs=4)
    for epoch in range(2):
        step(one, epoch)
    if started:
        two.start(samples=B, epochs=4)
    two.load_state_dict(one.state_dict())
    assert two(z, y, ids).item() == one(z, y, ids).item()
    if started:
        assert [step(one, epoch) for epoch in (2, 3)] == [step(two, epoch) for epoch in (2, 3)]


def test_copies_do_not_share_memory(z, y, ids):
    one = make("crl")
    one.start(samples=B, epochs=2)
    two = copy.deepcopy(one)
    two(z, y, ids)
    assert one.losses[1].counts.sum().item() == 0
    assert two.losses[1].counts.sum().item() > 0


# -- mixup ----------------------------------------------------------------------------------------


def generator(seed):
    return torch.Generator().manual_seed(seed)


def test_mix_is_the_same_for_the_same_generator(y):
    x = torch.rand(B, 3, 4, 4, generator=generator(0))
    loss = Mixup(alpha=1.0)
    first, second, other = (loss.mix(x, y, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[1].partners, second[1].partners)
    assert first[1].share == second[1].share
    assert first[1].share != other[1].share


def test_mix_goes_on_with_a_generator(y):
    x = torch.rand(B, 2)
    loss, g = Mixup(alpha=1.0), generator(1)
    assert loss.mix(x, y, g)[1].share != loss.mix(x, y, g)[1].share


def test_mix_without_a_generator_follows_the_seed_of_torch(y):
    x = torch.rand(B, 2)
    shares = []
    for _ in range(2):
        torch.manual_seed(5)
        shares.append(Mixup(alpha=1.0).mix(x, y)[1].share)
    assert shares[0] == shares[1]


def test_mix_blends_inputs_with_the_partners_of_the_labels():
    labels = torch.arange(B)
    x = torch.rand(B, 3, dtype=torch.float64, generator=generator(4))
    kept = x.clone()
    mixed, pairs = Mixup(alpha=1.0).mix(x, labels, generator(3))
    expected = pairs.share * x + (1 - pairs.share) * x[pairs.partners]
    assert torch.allclose(mixed, expected, rtol=0, atol=1e-12)
    assert torch.equal(pairs.labels, labels)
    assert sorted(pairs.partners.tolist()) == labels.tolist()
    assert torch.equal(x, kept)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
def test_shares_follow_their_distribution(alpha):
    x, labels, g = torch.zeros(2, 1), torch.tensor([0, 1]), generator(0)
    loss = Mixup(alpha=alpha)
    shares = np.array([loss.mix(x, labels, g)[1].share for _ in range(1000)])
    assert ((shares >= 0) & (shares <= 1)).all()
    assert shares.mean() == pytest.approx(0.5, abs=0.05)
    assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.15)


@pytest.mark.parametrize("base", ["ce", "focal:gamma=1", "brier", "ce + 0.5*mdca", "mdca"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_loss_of_pairs_is_the_blend(base, share, reduction, z, y):
    partners = y.flip(0)
    loss, plain = Mixup(base=base, reduction=reduction), make(base, reduction)
    expected = share * plain(z, y) + (1 - share) * plain(z, partners)
    assert loss(z, MixedLabels(y, partners, share)).item() == pytest.approx(expected.item(), rel=1e-12)
    assert loss(z, y).item() == pytest.approx(plain(z, y).item(), rel=1e-12)


def test_base_may_be_a_loss(z, y):
    loss = Mixup(base=make("ce + 0.5*mdca", "sum"))
    assert loss.reduction == "sum"
    assert loss(z, y).item() == pytest.approx(make("ce + 0.5*mdca", "sum")(z, y).item(), rel=1e-12)


def test_some_rows_of_pairs(y):
    some = MixedLabels(y, y.flip(0), 0.3).rows(torch.tensor([1, 4]))
    assert some.labels.tolist() == y[[1, 4]].tolist()
    assert some.partners.tolist() == y.flip(0)[[1, 4]].tolist()
    assert some.share == 0.3


def test_hooks_reach_the_base():
    loss = make("mixup:base=flsc")
    loss.start(samples=B, epochs=7)
    loss.start_epoch(5)
    assert loss.inner.gamma.item() == 1.0


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_alpha_that_is_no_alpha(alpha):
    with pytest.raises(InputError):
        Mixup(alpha=alpha)


def test_images_of_whole_numbers_cannot_be_mixed(y):
    with pytest.raises(InputError, match="real numbers"):
        Mixup().mix(torch.zeros(B, 3, dtype=torch.uint8), y)
