"""The topology space of NATS-Bench: 15,625 wirings of one cell, 6,466 of them different."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.nats import BEST, EDGES, OPERATIONS, cells, find_cell, read_cell, write_cell
from calibrant.nas.spaces._base import Layer, Space, halve_size, halving


@dataclass(frozen=True)
class Topology(Space):
    """Cells of four nodes and six edges, each with one of five operations, in three stages.

    341 cells let nothing of the image through: such networks are constant, and their calibration means nothing.

    >>> space = Topology()
    >>> space.params("11"), space.flops("11"), len(space.neighbours("11"))
    (802426, 113.95137, 24)
    """

    width: int = 16  # channels of the first stage
    cells: int = 5  # of each stage

    title: ClassVar[str] = "NATS-Bench topology space (NAS-Bench-201)"
    reference: ClassVar[str] = "Dong, Liu, Musial, Gabrys, TPAMI 2021"
    extremes: ClassVar[tuple[str, ...]] = (
        *(write_cell([name] * 6) for name in OPERATIONS),
        *(BEST, "0"),
        *(write_cell(["none"] * 5 + [name]) for name in OPERATIONS if name != "none"),  # constant, as is all none
    )

    def archs(self) -> tuple[str, ...]:
        return cells()

    def find(self, arch: str) -> str:
        return find_cell(arch)

    def changes(self, arch: str) -> list[str]:
        now = read_cell(arch)
        places = [(edge, name) for edge in range(len(now)) for name in OPERATIONS if name != now[edge]]
        return [write_cell([*now[:edge], name, *now[edge + 1 :]]) for edge, name in places]

    def key(self, arch: str) -> str:
        """A key that is equal for cells that the benchmark counts as isomorphic: 6466 different keys.

        >>> cell = "|skip_connect~0|+|none~0|none~1|+|{}~0|{}~1|none~2|"
        >>> one, other = cell.format("nor_conv_1x1", "avg_pool_3x3"), cell.format("avg_pool_3x3", "nor_conv_1x1")
        >>> Topology().key(one) == Topology().key(other)
        True
        """
        terms: dict[int, list[str]] = {}
        keys = {0: "0"}
        for name, (source, to) in zip(read_cell(find_cell(arch)), EDGES, strict=True):
            before = keys[source]
            gone = name == "none" or before == "#"
            term = "#" if gone else before if name == "skip_connect" else f"({before})@{name}"
            terms.setdefault(to, []).append(term)
            keys[to] = "+".join(sorted(terms[to]))
        return keys[3]

    def is_constant(self, arch: str) -> bool:
        """Whether no path leads from the image to the end of the cell.

        >>> Topology().is_constant("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|nor_conv_3x3~2|")
        True
        """
        reached = {0}
        for name, (source, to) in zip(read_cell(find_cell(arch)), EDGES, strict=True):
            if name != "none" and source in reached:
                reached.add(to)
        return 3 not in reached

    def layers(self, arch: str, channels: int, size: int) -> tuple[list[Layer], int]:
        kernels = [int(name[-1]) for name in read_cell(arch) if name.startswith("nor_conv")]
        width, stack = self.width, [Layer(3, channels, self.width, size)]
        for stage in range(3):
            if stage:
                size, width = halve_size(size), 2 * width
                stack += halving(width // 2, width, size)
            stack += [Layer(kernel, width, width, size) for kernel in kernels] * self.cells
        return stack, width

    def model(self, arch: str) -> str:
        return f"nats_topology:cell={self.find(arch)},width={self.width},cells={self.cells}"
