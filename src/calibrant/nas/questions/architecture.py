"""Which architectural choices help? The fifth question of the benchmark study."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number, plain
from calibrant.nas.questions._columns import ECE

if TYPE_CHECKING:
    import polars as pl

BRACKETS = tuple((low, low + 40) for low in range(40, 320, 40))  # channels of the five layers together
PUBLISHED = {("imagenet16_120", 40): 0.016, ("imagenet16_120", 280): 0.068}  # medians of ECE
EDGES = ("0→1", "0→2", "1→2", "0→3", "1→3", "2→3")
NAMED = {"skip on 0→3": ("skip_connect", 3), "a convolution on 0→1": ("nor_conv", 0)}  # by the study
UNIQUE = 6_466  # topologies that compute different functions
WHOLE = UNIQUE // 2  # so many make the best of a table comparable with the best of the space
LITTLE = 0.2  # tau-b below which a choice says little


@dataclass(frozen=True)
class Architecture(Question):
    """Size, kernels and operations against ECE and the harmonic score of accuracy and calibration.

    A cell that computes the same may be written in several ways: edges are those of the representative.

    >>> kernels("|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|none~1|none~2|")
    10
    """

    top: int = 20

    title: ClassVar[str] = "Which architectural choices help?"
    order: ClassVar[int] = 5
    method: ClassVar[str] = (
        "Size space: medians of ECE and accuracy by the sum of the five widths, Kendall's tau-b of that sum with "
        "ECE, ECE before and after temperature scaling of uniform widths. Topologies: tau-b of 9 x (3x3 "
        "convolutions) + (1x1 convolutions) with ECE and with the harmonic score; operations on the edges of the 20 "
        "best by that score."
    )
    published: ClassVar[str] = (
        "It depends on size and data: on ImageNet16-120 the median ECE grows from 1.6 to 6.8 % with width, on "
        "CIFAR-10 it stays within 3.9 to 4.4 %. The 20 best topologies all have skip_connect on edge 0→3 and a "
        "convolution on edge 0→1."
    )
    needs: ClassVar[tuple[str, ...]] = ("accuracy", ECE, "post_ECE_15", "hcs")
    spaces: ClassVar[tuple[str, ...]] = ("topology", "size")

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        sizes, shares, kernel, numbers, pictures = [], [], [], [], []
        for data in n.data("size"):
            wide = _with(n.of("size", data), "width", width)
            r = n.resample(wide, ("width", ECE))
            sizes.append(
                (data, _accuracy(wide), number("tau of width and ECE", f"{data}, sizes", r.n, r.tau("width", ECE)))
            )
            numbers += [*_brackets(n, wide, data), *_uniform(n, wide, data)]
            pictures.append(_scatter(wide, "width", ECE, f"Width and ECE on {data}"))
        for data in n.data("topology"):
            cells, where = _with(n.of("topology", data), "kernels", kernels), f"{data}, unique topologies"
            r = n.resample(cells, ("kernels", ECE, "hcs"))
            kernel.append(number("tau of kernel parameters and ECE", where, r.n, r.tau("kernels", ECE)))
            numbers.append(number("tau of kernel parameters and HCS", where, r.n, r.tau("kernels", "hcs")))
            full = n.resample(_with(n.of("topology", data, unique=False), "kernels", kernels), ("kernels", ECE))
            e = full.value_of_tau("kernels", ECE)
            numbers.append(number("tau of kernel parameters and ECE", f"{data}, all with copies", full.n, e))
            shares += _edges(n, cells, data, self.top)
            pictures += [_scatter(cells, "kernels", y, f"Kernel parameters and {y} on {data}") for y in (ECE, "hcs")]
        hardest = [min(sizes, key=lambda size: size[1])[2]] if sizes else []
        best = [x for x in shares if x.name in NAMED]
        claims = [
            check_claim("wider networks calibrate worse on the hardest data set", hardest, above=0.0),
            self._best(best),
            check_claim("fewer parameters do not by themselves help", kernel, below=LITTLE, main=False),
        ]
        return claims, [x for _, _, x in sizes] + kernel + shares + numbers, pictures

    def _best(self, shares: list[Number]) -> Claim:
        """The claim about the 20 best networks of the space; the 20 best of a sample of 200 are not the same."""
        says = f"the {self.top} best topologies have skip_connect on edge 0→3 and a convolution on edge 0→1"
        whole = [x for x in shares if x.networks >= WHOLE]
        if shares and not whole:
            most = max(x.networks for x in shares)
            because = f"the {self.top} best of {most:,} networks here, of {UNIQUE:,} in the study"
            return Claim(says, "inconclusive", because)
        return check_claim(says, whole, above=0.8)


def width(arch: str) -> float:
    """The sum of the widths of the five layers: "8:16:24:32:40" is 120."""
    return float(sum(map(int, arch.split(":"))))


def operations(arch: str) -> list[str]:
    """The operations of a cell, by edge."""
    return [part.partition("~")[0] for part in arch.replace("+", "").split("|") if part]


def kernels(arch: str) -> int:
    """Parameters of the kernels of a cell, for one channel."""
    names = operations(arch)
    return 9 * names.count("nor_conv_3x3") + names.count("nor_conv_1x1")


def _with(frame: "pl.DataFrame", name: str, of: Callable[[str], float]) -> "pl.DataFrame":
    import polars as pl

    return frame.with_columns(pl.Series(name, [float(of(arch)) for arch in frame["arch"]], dtype=pl.Float64))


def _accuracy(frame: "pl.DataFrame") -> float:
    median = frame["accuracy"].median()
    return float(median) if isinstance(median, float) else float("inf")


def _brackets(n: Networks, wide: "pl.DataFrame", data: str) -> list[Number]:
    import polars as pl

    numbers = []
    for low, high in BRACKETS:
        last = pl.col("width") <= high if high == BRACKETS[-1][1] else pl.col("width") < high
        r = n.resample(wide.filter((pl.col("width") >= low) & last), (ECE, "accuracy"))
        where, known = f"{data}, widths {low} to {high}", PUBLISHED.get((plain(data), low))
        numbers.append(number("median ECE", where, r.n, r.median(ECE), kind="share", published=known))
        numbers.append(number("median accuracy", where, r.n, r.median("accuracy"), kind="share"))
    return [x for x in numbers if x.networks]


def _uniform(n: Networks, wide: "pl.DataFrame", data: str) -> list[Number]:
    """Networks whose layers are all of one width: a number each, so no interval."""
    numbers = []
    for row in wide.sort("width").iter_rows(named=True):
        widths = set(row["arch"].split(":"))
        if len(widths) == 1:
            where = f"{data}, all layers {widths.pop()} wide, accuracy {100 * (row['accuracy'] or 0):.1f} %"
            numbers += [
                Number(
                    name=f"{state} temperature scaling: ECE", where=where, networks=1, value=row[column], kind="share"
                )
                for state, column in (("before", ECE), ("after", "post_ECE_15"))
            ]
    return numbers


def _edges(n: Networks, cells: "pl.DataFrame", data: str, top: int) -> list[Number]:
    """Shares of operations on every edge among the best networks; intervals for those that the study names."""
    import polars as pl

    where, numbers = f"{data}, {min(top, cells.height)} best by HCS", []
    for name, (kind, edge) in NAMED.items():
        flags = pl.Series(name, [float(operations(arch)[edge].startswith(kind)) for arch in cells["arch"]])
        r = n.resample(cells.with_columns(flags.cast(pl.Float64)), ("hcs", name))
        e = r.statistic(lambda hcs, flag: _share(hcs, flag, top), "hcs", name)
        numbers.append(number(name, where, r.n, e, kind="share"))
    best = [operations(arch) for arch in cells.sort("hcs", descending=True, nulls_last=True)["arch"].head(top)]
    for edge, between in enumerate(EDGES):
        for name in sorted({ops[edge] for ops in best}):
            share = sum(ops[edge] == name for ops in best) / len(best)
            on_edge = f"{name} on {between}"
            numbers.append(Number(name=on_edge, where=where, networks=cells.height, value=share, kind="share"))
    return numbers


def _share(score: Array, flag: Array, top: int) -> float:
    best = np.argsort(-score, kind="stable")[:top]
    return float(flag[best].mean()) if len(best) else float("nan")


def _scatter(frame: "pl.DataFrame", x: str, y: str, title: str) -> Picture:
    return Picture(title, f"study_scatter:most=600,x={x},y={y}", frame.select(x, y))
