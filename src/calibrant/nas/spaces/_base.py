"""Base class of spaces: every network by index and by text, its neighbours, its size, and how to build it."""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from calibrant.core.catalogue import check_options, spec_of
from calibrant.core.errors import InputError

MILLION = 1e6
DATA = {"cifar10": (10, 32), "cifar100": (100, 32), "imagenet16_120": (120, 16)}  # classes, pixels a side


@dataclass(frozen=True)
class Layer:
    """A convolution, from which parameters and multiply-adds are counted."""

    kernel: int
    inside: int
    outside: int
    size: int  # pixels a side of what it makes
    norm: bool = True  # a norm behind it, with two numbers a channel

    @property
    def params(self) -> int:
        return self.kernel**2 * self.inside * self.outside + (2 * self.outside if self.norm else 0)

    @property
    def flops(self) -> int:
        """The number of multiply-adds; the benchmark counts none for norms and pools."""
        return self.kernel**2 * self.inside * self.outside * self.size**2


@dataclass(frozen=True)
class Space:
    """Networks that differ in their architecture alone; options make the same networks smaller.

    An entry defines `archs`, `find`, `changes`, `layers` and `model`.
    """

    title: ClassVar[str]
    reference: ClassVar[str]
    extremes: ClassVar[tuple[str, ...]] = ()  # architectures that a sample holds before random ones

    def __post_init__(self) -> None:
        check_options(self)

    # -- what an entry defines ------------------------------------------------------------------

    def archs(self) -> tuple[str, ...]:
        """Every architecture, in the order of the benchmark's index."""
        raise TypeError(f"{type(self).__name__} does not list its architectures: define archs")

    def find(self, arch: str) -> str:
        """The usual text of an architecture that is given as text or as index."""
        raise TypeError(f"{type(self).__name__} does not read architectures: define find")

    def changes(self, arch: str) -> list[str]:
        """The architectures that differ in one place."""
        raise TypeError(f"{type(self).__name__} does not say what is near: define changes")

    def layers(self, arch: str, channels: int, size: int) -> tuple[list[Layer], int]:
        """The convolutions of the network on images of so many channels and pixels, and the width of its head."""
        raise TypeError(f"{type(self).__name__} does not say how it is built: define layers")

    def model(self, arch: str) -> str:
        """The spec of the network in the catalogue of models."""
        raise TypeError(f"{type(self).__name__} does not say how it is built: define model")

    def key(self, arch: str) -> str:
        """A key that is equal for architectures that compute the same functions."""
        return self.find(arch)

    def is_constant(self, arch: str) -> bool:
        """Whether the network ignores the image."""
        return False

    # -- what follows ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.archs())

    def index(self, arch: str) -> int:
        return _places(self)[self.find(arch)]

    def neighbours(self, arch: str) -> list[str]:
        """The architectures that differ in one place, in the order of their indices."""
        return sorted(self.changes(self.find(arch)), key=self.index)

    def unique(self, arch: str) -> str:
        """The architecture with the lowest index that computes the same functions."""
        return _firsts(self)[self.key(arch)]

    def uniques(self) -> tuple[str, ...]:
        """One architecture of each class, by index."""
        return tuple(_firsts(self).values())

    def copies(self) -> dict[str, int]:
        """How many architectures compute the same functions as each, itself included."""
        keys = {arch: self.key(arch) for arch in self.archs()}
        counts = Counter(keys.values())
        return {arch: counts[key] for arch, key in keys.items()}

    def sample(self, count: int, *, seed: int = 0, extremes: bool = True) -> list[str]:
        """Different architectures, no two of which compute the same functions: extremes first, then random ones."""
        every = self.uniques()
        if not 1 <= count <= len(every):
            raise InputError("sample", expected=f"1 to {len(every)}", got=str(count), fix="ask for fewer networks")
        first = [self.find(arch) for arch in self.extremes][:count] if extremes else []
        rest = sorted(set(every) - {self.unique(arch) for arch in first}, key=self.index)
        order = np.random.default_rng(seed).permutation(len(rest))[: count - len(first)]
        return first + [rest[i] for i in order]

    def params(self, arch: str, *, classes: int = 10, channels: int = 3) -> int:
        """The number of trained parameters."""
        layers, width = self.layers(self.find(arch), channels, 32)
        return sum(layer.params for layer in layers) + 2 * width + (width + 1) * classes

    def flops(self, arch: str, *, classes: int = 10, channels: int = 3, size: int = 32) -> float:
        """Millions of multiply-adds for one image of `size` pixels a side, as the benchmark counts them."""
        layers, width = self.layers(self.find(arch), channels, size)
        return (sum(layer.flops for layer in layers) + (width + 1) * classes) / MILLION

    @property
    def spec(self) -> str:
        """The text that makes this space again."""
        return spec_of(self)


def halving(inside: int, outside: int, size: int) -> list[Layer]:
    """The residual block between two stages, which makes images of `size`."""
    return [
        Layer(3, inside, outside, size),
        Layer(3, outside, outside, size),
        Layer(1, inside, outside, size, norm=False),
    ]


def halve_size(size: int) -> int:
    return (size + 1) // 2


@cache
def _places(space: Space) -> dict[str, int]:
    return {arch: i for i, arch in enumerate(space.archs())}


@cache
def _firsts(space: Space) -> dict[str, str]:
    first: dict[str, str] = {}
    for arch in space.archs():
        first.setdefault(space.key(arch), arch)
    return first
