"""A space of two networks, a search and a question."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.nas.questions import Question, check_claim, number
from calibrant.nas.searches import Search
from calibrant.nas.spaces import Layer, Space


@dataclass(frozen=True)
class Pair(Space):
    """A narrow and a wide network."""

    title: ClassVar[str] = "Pair"
    reference: ClassVar[str] = "-"

    def archs(self) -> tuple[str, ...]:
        return ("narrow", "wide")

    def find(self, arch: str) -> str:
        return self.archs()[int(arch)] if arch.isdigit() else arch

    def changes(self, arch: str) -> list[str]:
        return [other for other in self.archs() if other != arch]

    def layers(self, arch: str, channels: int, size: int) -> tuple[list[Layer], int]:
        width = 8 if arch == "narrow" else 16
        return [Layer(3, channels, width, size)], width

    def model(self, arch: str) -> str:
        return "flat"


@dataclass(frozen=True)
class InOrder(Search):
    """Walk from neighbour to neighbour, always to the first that is new."""

    title: ClassVar[str] = "In order"

    def walk(self, landscape: Any, tried: Any, rng: Any) -> Iterator[None]:
        at = landscape.sample(rng)
        while True:
            tried(at)
            yield
            at = next((other for other in landscape.neighbours(at) if other not in tried.values), landscape.sample(rng))


@dataclass(frozen=True)
class SpreadOfError(Question):
    """Is the median ECE above one percent?"""

    title: ClassVar[str] = "Is the median ECE above one percent?"
    order: ClassVar[int] = 99
    method: ClassVar[str] = "The median ECE over topologies."
    published: ClassVar[str] = "Nothing is published about it."
    needs: ClassVar[tuple[str, ...]] = ("pre_ECE_15",)

    def study(self, n: Any) -> Any:
        medians = []
        for data in n.data("topology"):
            r = n.resample(n.of("topology", data), self.needs)
            medians.append(number("median ECE", data, r.n, r.median("pre_ECE_15"), kind="share"))
        return [check_claim("the median ECE is above one percent", medians, above=0.01)], medians, []
