"""Can robustness measure calibration? The fourth question of the benchmark study."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.curves.ranking import kendall
from calibrant.core.statistics.estimate import Estimate, compute_from
from calibrant.nas.questions._base import Claim, Networks, Number, Picture, Question, check_claim, number
from calibrant.nas.questions._columns import ECE, short
from calibrant.nas.questions._resamples import FEW

if TYPE_CHECKING:
    import polars as pl

CALIBRATION = ("accuracy", "pre_ECE_em_15", "pre_KSCE", "pre_MMCE")
ATTACKED = ("pgd_1.0", "square_1.0")
CORRUPTED = ("corrupt_shot_noise", "corrupt_frost", "corrupt_glass_blur", "corrupt_snow")
OUTSIDE = ("auc_cifar10c", "auc_svhn", "auc_digits", "auc_fashion")  # the last two stand in for SVHN
COMPARED = (*CALIBRATION, *ATTACKED, *CORRUPTED, *OUTSIDE)
ORDERS = {"most": True, "least": False}  # accurate first; sorted in descending order or not
STEPS = 15
FIRST = 1000


@dataclass(frozen=True)
class Robustness(Question):
    """Whether robust accuracies and out-of-distribution AUROCs follow ECE, among the N most accurate networks.

    The released notebook sorts upwards and takes the head, the N least accurate: both orders are computed here.

    >>> len(Robustness().needs)
    11
    """

    title: ClassVar[str] = "Can robustness measure calibration?"
    order: ClassVar[int] = 4
    method: ClassVar[str] = (
        "Kendall's tau-b of ECE with twelve columns over the N most accurate topologies, N from 1,000 in 15 steps (a "
        "fifteenth of a smaller table), and over the N least accurate, which the released notebook takes."
    )
    published: ClassVar[str] = (
        "Corruption accuracy follows calibration broadly, other robustness measures only among highly accurate "
        "networks; out-of-distribution AUROC is unreliable over mixed populations. (tau of .43 to .55 at N = 1,000; "
        "AUROC about 0 from N = 4,000. The figure is of the N least accurate networks, by the released notebook.)"
    )
    needs: ClassVar[tuple[str, ...]] = (ECE, *CALIBRATION, *ATTACKED, *CORRUPTED)
    wants: ClassVar[tuple[str, ...]] = OUTSIDE

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        first: dict[str, list[Number]] = {order: [] for order in ORDERS}
        corrupted, outside, pictures = [], [], []
        numbers: list[Number] = []
        for data in n.data("topology"):
            unique = n.of("topology", data).drop_nulls("accuracy")
            whole = f"{data}, unique topologies"
            taus = {q: _tau(n, unique, q, whole) for q in COMPARED}
            numbers += taus.values()
            numbers += [
                _tau(n, n.of("topology", data, unique=False), q, f"{data}, all with copies", False) for q in COMPARED
            ]
            corrupted += [taus[q] for q in CORRUPTED if taus[q].networks]
            outside += [taus[q] for q in OUTSIDE if taus[q].networks]
            for order, descending in ORDERS.items():
                ranked = unique.sort("accuracy", descending=descending, maintain_order=True)
                head = ranked.head(_sizes(ranked.height)[0])
                where = f"{data}, the {head.height} {order} accurate"
                mean, robust = _robust(n, head, where)
                first[order].append(mean)
                numbers += [*robust, *(_tau(n, head, q, where) for q in (*CALIBRATION, *OUTSIDE))]
                pictures += _pictures(ranked, data, order)
        known = {order: [x for x in numbers if x.networks] for order, numbers in first.items()}
        says = "ECE is the higher, the higher the robust accuracy, among the {} accurate networks"
        claims = [
            check_claim(says.format("most"), known["most"], above=0.3),
            check_claim("corruption accuracy follows ECE over all networks", corrupted, above=0.05),
            check_claim(
                "out-of-distribution AUROC says little about ECE over all networks", outside, below=0.2, above=-0.2
            ),
            check_claim(says.format("least"), known["least"], above=0.3, main=False),
        ]
        numbers = [x for x in numbers if x.networks]
        return claims, first["most"] + first["least"] + numbers, pictures


def _sizes(n: int) -> list[int]:
    """Numbers N of most accurate networks: 1000, 2000, ... and all; of fewer than 3000, fifteenths of all."""
    step = FIRST if n >= 3 * FIRST else max(FEW, -(-n // STEPS))
    return [*list(range(step, n, step))[: STEPS - 1], n]


def _tau(n: Networks, frame: "pl.DataFrame", column: str, where: str, intervals: bool = True) -> Number:
    r = n.resample(frame, (ECE, column))
    e = r.tau(ECE, column) if intervals else r.value_of_tau(ECE, column)
    return number(f"tau of ECE and {short(column)}", where, r.n, e)


def _robust(n: Networks, frame: "pl.DataFrame", where: str) -> tuple[Number, list[Number]]:
    """tau of ECE with the robust accuracies that the data set has, and their mean."""
    robust = [q for q in (*ATTACKED, *CORRUPTED) if frame[q].is_not_null().any()]
    r = n.resample(frame, (ECE, *robust))
    taus = {q: r.tau(ECE, q) for q in robust}
    mean = Estimate(value=float("nan"))
    if taus:
        mean = compute_from(lambda *values: sum(values) / len(values), *taus.values())
    name = "mean tau of ECE and robust accuracies"
    numbers = [number(f"tau of ECE and {short(q)}", where, r.n, e) for q, e in taus.items()]
    return number(name, where, r.n if robust else 0, mean), numbers


def _pictures(ranked: "pl.DataFrame", data: str, order: str) -> list[Picture]:
    """tau against N, in two pictures that have colours enough."""
    import polars as pl

    pictures = []
    for kind, columns in (("robust accuracies", (*ATTACKED, *CORRUPTED)), ("other columns", (*CALIBRATION, *OUTSIDE))):
        rows: list[dict[str, Any]] = []
        for size in _sizes(ranked.height):
            head = ranked.head(size)
            for column in columns:
                both = head.select(ECE, column).drop_nulls().to_numpy()
                both = both[np.isfinite(both).all(axis=1)]
                rows.append({"N": size, "tau": kendall(both[:, 0], both[:, 1]), "column": short(column)})
        table = pl.DataFrame(rows)
        if table["tau"].is_finite().any():
            words = f"Kendall's tau-b of ECE with {kind} over the N {order} accurate topologies on {data}."
            title = f"The N {order} accurate on {data}: {kind}"
            pictures.append(Picture(title, "study_scatter:most=600,x=N,y=tau,colour=column", table, words))
    return pictures
