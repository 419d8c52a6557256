"""Does calibration generalise across tasks? The first question of the benchmark study."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number, plain
from calibrant.nas.questions._columns import ECE, SEVEN, short

if TYPE_CHECKING:
    import polars as pl

BEST = {("cifar10", "cifar100"): 0.14, ("cifar10", "imagenet16_120"): -0.23, ("cifar100", "imagenet16_120"): 0.12}
ALL = {("cifar10", "cifar100"): 0.36, ("cifar10", "imagenet16_120"): 0.14, ("cifar100", "imagenet16_120"): 0.66}
LIKE = 0.5  # tau-b at which three pairs of networks in four are ordered alike
COLUMNS = tuple(f"pre_{name}" for name in SEVEN)


@dataclass(frozen=True)
class AcrossTasks(Question):
    """Whether an architecture that is well calibrated on one data set is so on another.

    The study does not say by which data set its most accurate networks are chosen: here by the first of the table.

    >>> AcrossTasks().needs[:2]
    ('accuracy', 'pre_ECE_15')
    """

    top: int = 100

    title: ClassVar[str] = "Does calibration generalise across tasks?"
    order: ClassVar[int] = 1
    method: ClassVar[str] = (
        "Kendall's tau-b of seven measures between data sets, joined on the architecture, over the 100 most accurate "
        "topologies (on the first data set) and over all."
    )
    published: ClassVar[str] = "No: an architecture's calibration does not carry over to another data set."
    needs: ClassVar[tuple[str, ...]] = ("accuracy", *COLUMNS)

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        data = n.data("topology")
        best, every, copies, pictures = [], [], [], []
        if len(data) > 1:
            joined = _join(n, data, unique=True)
            top = joined.sort(_name(data[0], "accuracy"), descending=True, maintain_order=True).head(self.top)
            best = _taus(n, top, data, f"the {top.height} most accurate", BEST)
            every = _taus(n, joined, data, "unique topologies", ALL)
            copies = _taus(n, _join(n, data, unique=False), data, "all with copies", {}, intervals=False)
            names = {_name(d, column): f"{short(column)} {d}" for d in data for column in COLUMNS}
            columns = top.select(names.keys()).rename(names)
            pictures = [Picture(f"The {top.height} most accurate topologies", "rank_heatmap", columns)] * (
                len(data) < 6
            )
        claims = [
            check_claim(
                "the calibration of an accurate architecture does not carry over to another data set", best, below=LIKE
            ),
            check_claim(
                "over all networks CIFAR-100 and ImageNet16-120 order architectures alike",
                [x for x in every if x.published == ALL["cifar100", "imagenet16_120"]],
                above=LIKE,
                main=False,
            ),
        ]
        return claims, [*best, *every, *copies], pictures


def _join(n: Networks, data: list[str], *, unique: bool) -> "pl.DataFrame":
    """One row an architecture, with the columns of every data set."""
    frames = [
        n.of("topology", d, unique=unique).select("arch", **{_name(d, c): c for c in ("accuracy", *COLUMNS)})
        for d in data
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.join(frame.unique("arch", maintain_order=True), on="arch", how="inner", maintain_order="left")
    return whole


def _taus(
    n: Networks,
    frame: "pl.DataFrame",
    data: list[str],
    population: str,
    published: dict[tuple[str, str], float],
    *,
    intervals: bool = True,
) -> list[Number]:
    taus = []
    for a, b in combinations(data, 2):
        first, other = _name(a, ECE), _name(b, ECE)
        r = n.resample(frame, (first, other))
        e = r.tau(first, other) if intervals else r.value_of_tau(first, other)
        known = published.get((plain(a), plain(b)))
        taus.append(number("tau of ECE", f"{a} and {b}, {population}", r.n, e, published=known))
    return taus


def _name(data: str, column: str) -> str:
    return f"{data}/{column}"
