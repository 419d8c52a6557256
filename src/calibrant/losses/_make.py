"""The catalogue of losses, and sums of them: `"focal:gamma=1 + 0.5*mdca"`."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor, nn

from calibrant.core.catalogue import Catalogue
from calibrant.core.errors import InputError
from calibrant.losses._base import Loss, Reduction, Term

CATALOGUE = Catalogue("calibrant.losses", Loss, "loss", reuse=False)  # a loss may have a memory


def make(spec: str, reduction: Reduction = "mean") -> Loss:
    """A fresh loss from its name, or from a weighted sum of names.

    >>> make("mdca")
    Sum(
      focal:gamma=1.0 + 1*mdca
      (parts): ModuleList(
        (0): Focal(focal:gamma=1.0)
        (1): MDCA(mdca)
      )
    )
    """
    parts = [_parse(part) for part in re.split(r"\s+\+\s+", spec.strip())]
    if len(parts) == 1 and parts[0][0] == 1.0:
        made = _entry(parts[0][1], reduction)
        if not isinstance(made, Term):
            return made
        parts = [_parse(made.partner), (made.weight, parts[0][1])]
    losses = [_entry(name, reduction) for _, name in parts]
    return Sum(weights=tuple(weight for weight, _ in parts), losses=tuple(losses), reduction=reduction)


@dataclass(eq=False, repr=False, kw_only=True)
class Sum(Loss):
    """A weighted sum of losses; hooks reach every part."""

    weights: tuple[float, ...] = ()
    losses: tuple[Loss, ...] = field(default=(), repr=False)

    title: ClassVar[str] = "Weighted sum"
    reference: ClassVar[str] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parts = nn.ModuleList(self.losses)

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        first, *rest = (w * loss(logits, labels, ids) for w, loss in zip(self.weights, self.losses, strict=True))
        return sum(rest, start=first)

    def start(self, samples: int, epochs: int) -> None:
        for loss in self.losses:
            loss.start(samples, epochs)

    def start_epoch(self, epoch: int) -> None:
        for loss in self.losses:
            loss.start_epoch(epoch)

    def extra_repr(self) -> str:
        shown = [f"{'' if w == 1 and i == 0 else f'{w:g}*'}{p.extra_repr()}" for i, (w, p) in enumerate(self._terms())]
        return " + ".join(shown)

    def _terms(self) -> list[tuple[float, Loss]]:
        return list(zip(self.weights, self.losses, strict=True))


def _parse(text: str) -> tuple[float, str]:
    weight, star, name = text.rpartition("*")
    try:
        return (float(weight) if star else 1.0), name.strip()
    except ValueError:
        raise InputError(
            "loss", expected="weight*name", got=f"'{text}'", fix='write sums as "ce + 0.5*mdca", with spaces round the +'
        ) from None


def _entry(spec: str, reduction: Reduction) -> Loss:
    if "reduction=" in spec or reduction == "mean":
        return CATALOGUE.make(spec)
    return CATALOGUE.make(f"{spec}{',' if ':' in spec else ':'}reduction={reduction}")
