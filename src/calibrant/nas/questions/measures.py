"""How reliable are the measures? The second question of the benchmark study."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number, plain
from calibrant.nas.questions._columns import ECE, SEVEN, short

OTHERS = tuple(f"pre_{name}" for name in SEVEN[1:])
DOUBTED = "pre_cwCE_em_15"
PUBLISHED = {
    "cifar10": dict(zip(OTHERS, (0.98, 0.81, 0.98, 0.93, 0.91, 0.36), strict=True)),
    "imagenet16_120": dict(zip(OTHERS, (0.96, 0.81, 0.97, 0.95, 0.96, -0.15), strict=True)),
}
LIKE = 0.5


@dataclass(frozen=True)
class Measures(Question):
    """Whether measures of calibration order networks alike.

    Measures that agree may share a fault: agreement with ECE is no proof of either.

    >>> Measures().needs[-1]
    'pre_cwCE_em_15'
    """

    title: ClassVar[str] = "How reliable are the measures?"
    order: ClassVar[int] = 2
    method: ClassVar[str] = "Kendall's tau-b of six measures with ECE within one data set, over all topologies."
    published: ClassVar[str] = (
        "Most measures order networks alike; the class-wise error with bins of equal mass does not, and is not "
        "reliable."
    )
    needs: ClassVar[tuple[str, ...]] = (ECE, *OTHERS)

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        numbers, copies, pictures = [], [], []
        for data in n.data("topology"):
            unique = n.of("topology", data)
            for column in OTHERS:
                r, name = n.resample(unique, (ECE, column)), f"tau of ECE and {short(column)}"
                known = PUBLISHED.get(plain(data), {}).get(column)
                numbers.append(number(name, f"{data}, unique topologies", r.n, r.tau(ECE, column), published=known))
                r = n.resample(n.of("topology", data, unique=False), (ECE, column))
                copies.append(number(name, f"{data}, all with copies", r.n, r.value_of_tau(ECE, column)))
            names = {column: short(column) for column in self.needs}
            pictures.append(
                Picture(f"Seven measures on {data}", "rank_heatmap", unique.select(names.keys()).rename(names))
            )
        doubted = [x for x in numbers if x.name.endswith(f" {short(DOUBTED)}")]
        rest = [x for x in numbers if x not in doubted]
        claims = [
            check_claim("ECE_em, cwCE, KSCE, KDECE and MMCE order networks as ECE does", rest, above=LIKE),
            check_claim("cwCE_em does not order networks as ECE does", doubted, below=LIKE),
        ]
        return claims, numbers + copies, pictures
