"""Does post-hoc calibration help all models alike? The sixth question of the benchmark study."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.statistics.estimate import subtract
from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number
from calibrant.nas.questions._columns import BIN_COUNTS

LIKE = 0.5
NOTHING = 0.05  # the figure shows -.01 to .01 in all 81 cells


@dataclass(frozen=True)
class PostHoc(Question):
    """Whether networks that are well calibrated before temperature scaling are so after it.

    The zeros of the published figure look like misaligned rows; the released notebooks have .04 to .37.

    >>> PostHoc().needs[0], PostHoc().needs[-1]
    ('pre_ECE_5', 'post_ECE_500')
    """

    title: ClassVar[str] = "Does post-hoc calibration help all models alike?"
    order: ClassVar[int] = 6
    method: ClassVar[str] = (
        "Kendall's tau-b between ECE before and after temperature scaling for nine numbers of bins, over topologies; "
        "the picture has all 81 pairs."
    )
    published: ClassVar[str] = (
        "No: well-calibrated networks are not necessarily better after temperature scaling. (tau between -.01 and "
        ".01 in the figure; .04 to .37, growing with the bins, in the released notebooks.)"
    )
    needs: ClassVar[tuple[str, ...]] = tuple(f"{state}_ECE_{m}" for state in ("pre", "post") for m in BIN_COUNTS)

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        same, growth, numbers, pictures = [], [], [], []
        for data in n.data("topology"):
            unique, where = n.of("topology", data), f"{data}, unique topologies"
            r, copies = (n.resample(f, self.needs) for f in (unique, n.of("topology", data, unique=False)))
            taus = {m: r.tau(f"pre_ECE_{m}", f"post_ECE_{m}") for m in BIN_COUNTS}
            same += [number(_name(m), where, r.n, e, published=0.0) for m, e in taus.items()]
            growth.append(number("tau at 500 bins - tau at 5", where, r.n, subtract(taus[5], taus[500])))
            for m in BIN_COUNTS:
                e = copies.value_of_tau(f"pre_ECE_{m}", f"post_ECE_{m}")
                numbers.append(number(_name(m), f"{data}, all with copies", copies.n, e))
            pictures.append(Picture(f"Before and after on {data}", "rank_heatmap", unique.select(self.needs)))
        usual = [x for x in same if x.name == _name(15)]
        claims = [
            check_claim(
                "networks that are better calibrated need not be so after temperature scaling", usual, below=LIKE
            ),
            check_claim(
                "ECE before and after have nothing to do with each other",
                same,
                below=NOTHING,
                above=-NOTHING,
                main=False,
            ),
            check_claim("they have more to do with each other, the more bins", growth, above=0.0, main=False),
        ]
        return claims, same + growth + numbers, pictures


def _name(bins: int) -> str:
    return f"tau of pre_ECE_{bins} and post_ECE_{bins}"
