"""How do calibration and accuracy interact? The seventh question of the benchmark study."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number
from calibrant.nas.questions._columns import ECE
from calibrant.nas.questions._resamples import FEW

GOOD = 0.9
LITTLE = 0.2


@dataclass(frozen=True)
class Accuracy(Question):
    """Whether more accurate networks are better calibrated, among good networks and among all.

    Where fewer than 20 networks are above 90 %, the most accurate quarter stands in for them, and the number says so.

    >>> Accuracy().needs
    ('accuracy', 'pre_ECE_15')
    """

    title: ClassVar[str] = "How do calibration and accuracy interact?"
    order: ClassVar[int] = 7
    method: ClassVar[str] = "Kendall's tau-b of accuracy and ECE over topologies above 90 % accuracy, and over all."
    published: ClassVar[str] = (
        "Above 90 % accuracy ECE falls as accuracy rises; over all networks there is no relation. (The poster calls "
        "it a trade-off, the paper says the opposite, which is what its figure shows.)"
    )
    needs: ClassVar[tuple[str, ...]] = ("accuracy", ECE)
    wants: ClassVar[tuple[str, ...]] = ("auc_cifar10c",)

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        import polars as pl

        copies, pictures = [], []
        good: list[Number] = []
        every: list[Number] = []
        for data in n.data("topology"):
            unique = n.of("topology", data).filter(pl.col("accuracy").is_not_null())
            best, words = unique.filter(pl.col("accuracy") > GOOD), "above 90 % accuracy"
            if best.height < FEW:
                best = unique.sort("accuracy", descending=True, maintain_order=True).head(-(-unique.height // 4))
                words = "the most accurate quarter (too few above 90 %)"
            for frame, numbers, where in ((best, good, words), (unique, every, "unique topologies")):
                r = n.resample(frame, ("accuracy", ECE))
                numbers.append(number("tau of accuracy and ECE", f"{data}, {where}", r.n, r.tau("accuracy", ECE)))
                colour = ",colour=auc_cifar10c" if frame["auc_cifar10c"].is_not_null().any() else ""
                columns = frame.select(*self.needs, *self.wants)
                pictures.append(
                    Picture(f"{data}, {where}", f"study_scatter:most=600,x=accuracy,y={ECE}{colour}", columns)
                )
            r = n.resample(n.of("topology", data, unique=False), ("accuracy", ECE))
            e = r.value_of_tau("accuracy", ECE)
            copies.append(number("tau of accuracy and ECE", f"{data}, all with copies", r.n, e))
        claims = [
            check_claim("among good networks ECE falls as accuracy rises", good, below=0.0),
            check_claim("over all networks accuracy says little about ECE", every, below=LITTLE, above=-LITTLE),
        ]
        return claims, good + every + copies, pictures
