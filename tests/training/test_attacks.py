"""Attacks: closed forms, the ball, what they may ask, and one that is stronger than another."""

import pytest

pytest.importorskip("torch")
import torch
from torch import nn

from calibrant.training.attacks import FGSM, PGD, Square, accuracy_under, make_attack

EPS = 0.05


@pytest.fixture(scope="module")
def images():
    random = torch.Generator().manual_seed(0)
    x = torch.rand(60, 2, 8, 8, generator=random)
    labels = (x[:, 0, :4].mean((1, 2)) > x[:, 0, 4:].mean((1, 2))).long()
    return x, labels


@pytest.fixture(scope="module")
def network(images):
    """A small one, trained to be mostly right."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 3))
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        nn.functional.cross_entropy(layers(images[0]), images[1]).backward()
        optimizer.step()
    assert (layers(images[0]).argmax(1) == images[1]).all()
    return layers.eval()


def rows(x):
    return torch.arange(len(x))


def accuracy(network, x, labels):
    return float((network(x).argmax(1) == labels).double().mean())


def test_fgsm_of_a_linear_model_moves_against_its_weights():
    """Of two classes, the gradient points from the label's weights to the other's."""
    linear = nn.Sequential(nn.Flatten(), nn.Linear(12, 2)).double()
    x = torch.full((2, 3, 2, 2), 0.5, dtype=torch.float64)
    away = (linear[1].weight[1] - linear[1].weight[0]).view(3, 2, 2).sign()
    expected = 0.5 + EPS * torch.stack([away, -away])
    torch.testing.assert_close(FGSM(eps=EPS)(linear, x, torch.tensor([0, 1]), rows(x)), expected)


@pytest.mark.parametrize("attack", [FGSM(eps=EPS), PGD(eps=EPS), Square(eps=0.3, queries=200)])
def test_attacks_stay_in_the_ball_and_weaken_the_network(attack, network, images):
    x, labels = images
    attacked = attack(network, x, labels, rows(x))
    assert float((attacked - x).abs().max()) <= attack.eps + 1e-6
    assert 0 <= float(attacked.min()) <= float(attacked.max()) <= 1
    assert accuracy(network, attacked, labels) < 1
    assert not attacked.requires_grad
    torch.testing.assert_close(attacked, attack(network, x, labels, rows(x)))


@pytest.mark.parametrize("attack", [FGSM(eps=EPS), PGD(eps=EPS, steps=5), Square(eps=EPS, queries=20)])
def test_attacks_do_not_depend_on_the_batches(attack, network, images):
    x, labels = images
    whole = attack(network, x, labels, rows(x), 3)
    parts = [attack(network, x[r], labels[r], r, 3) for r in rows(x).split(7)]
    torch.testing.assert_close(torch.cat(parts), whole)


def test_pgd_is_at_least_as_strong_as_fgsm(network, images):
    x, labels = images
    loss = {
        attack: nn.functional.cross_entropy(network(attack(network, x, labels, rows(x))), labels).item()
        for attack in (FGSM(eps=EPS), PGD(eps=EPS), PGD(eps=EPS, steps=80))
    }
    fgsm, pgd, longer = loss.values()
    assert fgsm < pgd <= longer
    sizes = (0.0, 0.01, 0.03, 0.08)
    weak, strong = (accuracy_under(attack, network, x, labels, sizes) for attack in (FGSM(), PGD()))
    assert weak[0.0] == strong[0.0] == 1.0
    assert all(strong[size] <= weak[size] for size in sizes)
    assert list(strong.values()) == sorted(strong.values(), reverse=True)
    assert strong[0.08] < 0.5


def test_square_needs_no_gradients_and_keeps_to_its_budget(network, images):
    x, labels = images
    asked = []

    def logits_of(batch):
        assert not torch.is_grad_enabled()
        asked.append(len(batch))
        return network(batch).round(decimals=2)  # whose gradient is zero everywhere

    attacked = Square(eps=0.001, queries=25)(logits_of, x, labels, rows(x))
    assert len(asked) == 25  # too small to fool all: every query is used
    assert asked == sorted(asked, reverse=True)
    asked.clear()
    attacked = Square(eps=0.5, queries=1000)(logits_of, x, labels, rows(x))
    assert accuracy(network, attacked, labels) == 0
    assert len(asked) < 1000


def test_squares_shrink_at_the_published_points():
    attack = Square(queries=10_000, share=0.8)
    shares = {query: 0.8 / attack._share_at(query) for query in (1, 10, 11, 51, 201, 501, 1001, 2001, 4001, 6001, 8001)}
    assert list(shares.values()) == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert Square(queries=100)._share_at(50) == 0.8 / 128  # as at 5,000 of 10,000


def test_names():
    assert make_attack("square:eps=8/255, queries=10") == Square(eps=8 / 255, queries=10)
    assert make_attack("fgsm") == FGSM()
