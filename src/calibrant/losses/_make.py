"""The catalogue of losses, and sums of them: `"focal:gamma=1 + 0.5*mdca"`."""

import math
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

    The name of a term alone is the sum of its paper, with its partner; what has a weight is as it is written, so
    `"1*mdca"` is the term and nothing else.

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
    weights = [1.0 if weight is None else weight for weight, _ in parts]
    losses = [_entry(name, reduction) for _, name in parts]
    if len(losses) == 1 and parts[0][0] is None:
        only = losses[0]
        if not isinstance(only, Term):
            return only
        losses, weights = [_entry(only.partner, only.reduction), only], [1.0, only.weight]
    return Sum(weights=tuple(weights), losses=tuple(losses), reduction=losses[0].reduction)


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
        if {loss.reduction for loss in self.losses} != {self.reduction}:
            got = ", ".join(loss.reduction for loss in self.losses)
            raise InputError("sum of losses", expected="one reduction for all", got=got, fix="ask for it in make")
        if any(hasattr(loss, "mix") for loss in self.losses):
            fix = 'put the sum into it: Mixup(base=make("ce + 0.5*mdca"))'
            raise InputError("sum of losses", expected="losses of plain labels", got="mixup", fix=fix)

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        first, *rest = self._terms()
        total: Tensor = first[0] * first[1](logits, labels, ids)
        for weight, loss in rest:
            total = total + weight * loss(logits, labels, ids)
        return total

    def start(self, samples: int, epochs: int) -> None:
        for loss in self.losses:
            loss.start(samples, epochs)

    def start_epoch(self, epoch: int) -> None:
        for loss in self.losses:
            loss.start_epoch(epoch)

    def extra_repr(self) -> str:
        terms = [f"{w:g}*{loss.extra_repr()}" for w, loss in self._terms()]
        plain = len(terms) > 1 and self.weights[0] == 1  # a term alone keeps its weight, which says that it is alone
        return " + ".join(terms).removeprefix("1*" if plain else "")

    def _terms(self) -> list[tuple[float, Loss]]:
        return list(zip(self.weights, self.losses, strict=True))


def _parse(text: str) -> tuple[float | None, str]:
    """The weight, if one is written, and the name with its options."""
    weight, star, name = text.rpartition("*")
    try:
        value = float(weight) if star else None
        stuck = "+" in re.sub(r"\de\+\d", "", name)
        if stuck or not (value is None or 0 <= value < math.inf):
            raise ValueError
    except ValueError:
        raise InputError(
            "loss",
            expected="weight*name",
            got=f"'{text}'",
            fix='write sums as "ce + 0.5*mdca", with spaces round the + and weights of 0 or more',
        ) from None
    return value, name.strip()


def _entry(spec: str, reduction: Reduction) -> Loss:
    if "reduction=" in spec or reduction == "mean":
        return CATALOGUE.make(spec)
    return CATALOGUE.make(f"{spec}{',' if ':' in spec else ':'}reduction={reduction}")
