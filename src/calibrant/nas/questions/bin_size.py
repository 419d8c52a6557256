"""What does the number of bins do? The third question of the benchmark study."""

from dataclasses import dataclass
from operator import truediv
from typing import ClassVar

from calibrant.core.statistics.estimate import compute_from
from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number, plain
from calibrant.nas.questions._columns import BIN_COUNTS

STATES = ("pre", "post")
PUBLISHED = {"pre_ECE_5": 0.053, "pre_ECE_500": 0.062, "post_ECE_5": 0.015, "post_ECE_500": 0.097}  # about, CIFAR-10
FEWEST, MOST = BIN_COUNTS[0], BIN_COUNTS[-1]


@dataclass(frozen=True)
class BinSize(Question):
    """How ECE grows with the number of bins, before and after temperature scaling.

    The growth depends on the number of test images; and `post_` columns have a fifth fewer of them than `pre_` columns.

    >>> len(BinSize().needs)
    18
    """

    title: ClassVar[str] = "What does the number of bins do?"
    order: ClassVar[int] = 3
    method: ClassVar[str] = (
        "Median ECE over topologies for nine numbers of bins, before and after temperature scaling; how often larger "
        "the median is with 500 bins than with 5; Kendall's tau-b between 15 bins and the others."
    )
    published: ClassVar[str] = (
        "The number of bins matters much more after temperature scaling: report several for post-hoc results."
    )
    needs: ClassVar[tuple[str, ...]] = tuple(f"{state}_ECE_{m}" for state in STATES for m in BIN_COUNTS)

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        growth, numbers, pictures = [], [], []
        for data in n.data("topology"):
            unique, where = n.of("topology", data), f"{data}, unique topologies"
            r = n.resample(unique, self.needs)
            grown = {}
            for state in STATES:
                for m in BIN_COUNTS:
                    column = f"{state}_ECE_{m}"
                    known = PUBLISHED.get(column) if plain(data) == "cifar10" else None
                    median = r.median(column)
                    numbers.append(number(f"median {column}", where, r.n, median, kind="share", published=known))
                fewest, most = f"{state}_ECE_{FEWEST}", f"{state}_ECE_{MOST}"
                grown[state] = compute_from(truediv, r.median(most), r.median(fewest))
                name = f"{state}: ECE_{MOST} / ECE_{FEWEST}"
                numbers.append(number(name, where, r.n, grown[state], kind="factor"))
                for m in (FEWEST, MOST):
                    tau = r.tau(f"{state}_ECE_15", f"{state}_ECE_{m}")
                    numbers.append(number(f"{state}: tau of ECE_15 and ECE_{m}", where, r.n, tau))
            more = compute_from(truediv, grown["post"], grown["pre"])
            growth.append(number("growth after / growth before", where, r.n, more, kind="factor"))
            pictures.append(Picture(f"ECE by number of bins on {data}", "study_boxes", unique.select(self.needs)))
            full = n.resample(n.of("topology", data, unique=False), self.needs)
            for column in PUBLISHED:
                e = full.value_of_median(column)
                numbers.append(number(f"median {column}", f"{data}, all with copies", full.n, e, kind="share"))
        claims = [check_claim("more bins raise ECE more after temperature scaling than before", growth, above=1.0)]
        return claims, growth + numbers, pictures
