"""The size space of NATS-Bench: 32,768 choices of five widths around one cell."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.nats import BEST, EDGES, WIDTHS, find_size, read_cell, read_widths, sizes
from calibrant.nas.spaces._base import Layer, Space, halve_size, halving


@dataclass(frozen=True)
class Size(Space):
    """Five widths, each of 8, 16, .., 64: stem and first cell, halving block, cell, halving block, cell.

    The last width is also that of the head's input: networks differ in their features, not only in their cost.

    >>> space = Size()
    >>> space.params("8:8:8:16:32"), space.flops("8:8:8:16:32"), len(space.neighbours("8:8:8:16:32"))
    (49202, 6.84065, 35)
    """

    width: int = 8  # channels that stand for 8: 4 halves every layer

    title: ClassVar[str] = "NATS-Bench size space"
    reference: ClassVar[str] = "Dong, Liu, Musial, Gabrys, TPAMI 2021"
    extremes: ClassVar[tuple[str, ...]] = (
        *(":".join([str(width)] * 5) for width in WIDTHS),
        "8:16:32:48:64",
        "64:48:32:16:8",
    )

    def archs(self) -> tuple[str, ...]:
        return sizes()

    def find(self, arch: str) -> str:
        return find_size(arch)

    def changes(self, arch: str) -> list[str]:
        now = arch.split(":")
        places = [(layer, str(width)) for layer in range(len(now)) for width in WIDTHS if str(width) != now[layer]]
        return [":".join([*now[:layer], width, *now[layer + 1 :]]) for layer, width in places]

    def layers(self, arch: str, channels: int, size: int) -> tuple[list[Layer], int]:
        c1, c2, c3, c4, c5 = (c // 8 * self.width for c in read_widths(arch))
        second, third = halve_size(size), halve_size(halve_size(size))
        stack = [Layer(3, channels, c1, size), *_cell(c1, c1, size)]
        stack += [*halving(c1, c2, second), *_cell(c2, c3, second)]
        return [*stack, *halving(c3, c4, third), *_cell(c4, c5, third)], c5

    def model(self, arch: str) -> str:
        return f"nats_size:channels={self.find(arch)},width={self.width}"


def _cell(inside: int, outside: int, size: int) -> list[Layer]:
    """The convolutions of the one cell of this space; a skip between different widths is one as well."""
    layers = []
    for name, (source, _) in zip(read_cell(BEST), EDGES, strict=True):
        width = inside if source == 0 else outside
        if name.startswith("nor_conv"):
            layers.append(Layer(int(name[-1]), width, outside, size))
        elif name == "skip_connect" and width != outside:
            layers.append(Layer(1, width, outside, size))
    return layers
