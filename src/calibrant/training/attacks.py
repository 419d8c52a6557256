"""Adversarial attacks: the worst images within a distance, by which the robustness of a network is measured.

Images are floats in [0, 1], (B, channels, height, width), before normalisation; no pixel moves by more than `eps`
(the L-infinity norm). The network is what is asked: `logits_of(x)` gives its logits.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from calibrant.core.config.convert import Bounds, NotNegative, build, check_fields
from calibrant.core.config.overrides import read_changes
from calibrant.core.errors import unknown_name

LogitsOf = Callable[[Tensor], Tensor]
Share = Annotated[float, Bounds(least=0, most=1)]


@dataclass(frozen=True)
class Attack:
    """Images that fool a network, made from images and labels; the same for the same seed, in any batches."""

    eps: Share = 1 / 255

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, logits_of: LogitsOf, x: Tensor, labels: Tensor, rows: Tensor, seed: int = 0) -> Tensor:
        """The attacked images; `rows` number them in their data set, for random numbers of their own."""
        raise TypeError(f"{type(self).__name__} does not say how it attacks: define __call__")

    def near(self, moved: Tensor, x: Tensor) -> Tensor:
        """Clip moved images to within eps of x and to the range of an image."""
        return torch.clamp(moved, x - self.eps, x + self.eps).clamp(0, 1)


@dataclass(frozen=True)
class FGSM(Attack):
    """One step of eps along the sign of the gradient of the cross-entropy (Goodfellow, Shlens, Szegedy, ICLR 2015)."""

    def __call__(self, logits_of: LogitsOf, x: Tensor, labels: Tensor, rows: Tensor, seed: int = 0) -> Tensor:
        return self.near(x + self.eps * _gradient(logits_of, x, labels)[1].sign(), x)


@dataclass(frozen=True)
class PGD(Attack):
    """Many small steps from a random start, each back into the ball (Madry et al., ICLR 2018).

    Of all steps, that with the highest cross-entropy counts, so that more steps never make it weaker.
    """

    steps: Annotated[int, Bounds(1, 10_000)] = 40
    step: NotNegative = 0.0  # of one step; 0 is 2.5 eps / steps, enough to cross the ball
    random_start: bool = True

    def __call__(self, logits_of: LogitsOf, x: Tensor, labels: Tensor, rows: Tensor, seed: int = 0) -> Tensor:
        size, now = self.step or 2.5 * self.eps / self.steps, x
        if self.random_start:
            draws = np.stack([np.random.default_rng([seed, int(row)]).random(x.shape[1:]) for row in rows])
            start = torch.from_numpy(draws).to(x.device, x.dtype)
            now = self.near(x + self.eps * (2 * start - 1), x)
        best, most = now, torch.full((len(x),), -math.inf, device=x.device)
        for _ in range(self.steps):
            loss, gradient = _gradient(logits_of, now, labels)
            best, most = _keep(loss > most, now, loss, best, most)
            now = self.near(now + size * gradient.sign(), x)
        with torch.no_grad():
            loss = cross_entropy(logits_of(now), labels, reduction="none")
        return _keep(loss > most, now, loss, best, most)[0]


@dataclass(frozen=True)
class Square(Attack):
    """Random squares, kept where they lower the margin: no gradients, `queries` looks at the network at most.

    Images that are fooled are asked no more (Andriushchenko, Croce, Flammarion, Hein, ECCV 2020).
    """

    queries: Annotated[int, Bounds(1, 1_000_000)] = 5000
    share: Share = 0.8  # of the pixels in the first squares; later ones are smaller

    def __call__(self, logits_of: LogitsOf, x: Tensor, labels: Tensor, rows: Tensor, seed: int = 0) -> Tensor:
        rng = np.random.default_rng(seed)
        _, channels, height, width = x.shape

        def signs(*shape: int) -> Tensor:
            return torch.from_numpy(rng.choice((-1.0, 1.0), size=shape)).to(x.device, x.dtype)

        with torch.no_grad():
            best = self.near(x + self.eps * signs(channels, 1, width), x)  # stripes
            margin = _margin(logits_of(best), labels)
            for query in range(1, self.queries):
                left = torch.nonzero(margin > 0)[:, 0]
                side = min(max(round(math.sqrt(self._share_at(query) * height * width)), 1), height, width)
                top, start = rng.integers(height - side + 1), rng.integers(width - side + 1)
                colour = signs(channels, 1, 1)
                if len(left) == 0:
                    break
                candidates = best[left]
                candidates[:, :, top : top + side, start : start + side] += 2 * self.eps * colour
                candidates = self.near(candidates, x[left])
                reached = _margin(logits_of(candidates), labels[left])
                better = reached < margin[left]
                best[left[better]], margin[left[better]] = candidates[better], reached[better]
        return best

    def _share_at(self, query: int) -> float:
        """The share of pixels to change, halved at fixed points of 10,000 queries, or at the same parts of fewer."""
        done = int(query / self.queries * 10_000)
        halvings = sum(done > point for point in (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000))
        return math.ldexp(self.share, -halvings)


ATTACKS: dict[str, type[Attack]] = {"fgsm": FGSM, "pgd": PGD, "square": Square}


def make_attack(spec: str) -> Attack:
    """An attack from its name and options.

    >>> make_attack("pgd:eps=8/255,steps=10")
    PGD(eps=0.03137254901960784, steps=10, step=0.0, random_start=True)
    """
    name, _, options = spec.partition(":")
    if name not in ATTACKS:
        raise unknown_name("attack", name, ATTACKS)
    kind = ATTACKS[name]
    return build(kind, read_changes(kind, filter(None, map(str.strip, options.split(","))), option=f"attack {name}:"))


def accuracy_under(
    attack: Attack, logits_of: LogitsOf, x: Tensor, labels: Tensor, eps: Iterable[float], *, seed: int = 0
) -> dict[float, float]:
    """The accuracy on attacked images, for each of several sizes of the attack."""
    rows, accuracies = torch.arange(len(x)), {}
    for size in eps:
        attacked = dataclasses.replace(attack, eps=size)(logits_of, x, labels, rows, seed)
        with torch.no_grad():
            accuracies[size] = float((logits_of(attacked).argmax(1) == labels).double().mean())
    return accuracies


def _gradient(logits_of: LogitsOf, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The cross-entropy of every image, and its gradient by the pixels."""
    with torch.enable_grad():
        moved = x.detach().clone().requires_grad_()
        loss = cross_entropy(logits_of(moved), labels, reduction="none")
        (gradient,) = torch.autograd.grad(loss.sum(), moved)
    return loss.detach(), gradient


def _keep(better: Tensor, x: Tensor, loss: Tensor, best: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    return torch.where(better[:, None, None, None], x, best), torch.where(better, loss, most)


def _margin(logits: Tensor, labels: Tensor) -> Tensor:
    """The logit of the label less the largest other one: above 0 where the network is right."""
    own = one_hot(labels, logits.shape[1]).bool()
    return logits[own] - logits.masked_fill(own, -math.inf).amax(1)
