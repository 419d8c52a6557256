"""Decide claims by rows: paired differences over seeds in each cell, their mean over cells, and a verdict.

A cell is one place of the grid without its seed: a data set and a network. Every cell has a variance of its own, so the
mean over cells has Welch and Satterthwaite's degrees of freedom (docs/studies.md, verdicts).

Where seeds are random halves of the same test images (`after.halves`), values of two seeds share images, and so do
cells: variances have Nadeau and Bengio's correction, and cells are averaged seed by seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.statistics.estimate import Estimate, Normal
from calibrant.studying.plan import Claim, Entry, Plan, among

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.05  # the probability that any verdict of a plan is wrong by chance
POWER = 0.8
OVERLAP = 1.0  # of halves: images to judge by over images to fit on (Nadeau and Bengio 2003)
MOST_SEEDS = 1_000_000  # beyond it nobody looks for the number that would settle a claim

Verdict = Literal["held", "did not hold", "depends on the data set", "inconclusive", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DECIDED: tuple[Verdict, ...] = ("held", "did not hold", "depends on the data set")


@dataclass(frozen=True)
class PairedDifference:
    """A mean paired difference with its interval, and the smallest difference that would be found 4 times in 5."""

    difference: float
    low: float | None = None  # None where a cell has one seed
    high: float | None = None
    detectable: float | None = None
    pairs: int = 0  # trainings of both, with the same seed, data and network


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim with its verdict: the difference over all cells, and that of each cell."""

    claim: Claim
    verdict: Verdict
    level: float  # of the interval over all cells; the intervals of cells share it
    claims: int  # how many claims of the plan its trainings can judge: the level is corrected for them, run or not
    overall: PairedDifference | None = None
    cells: tuple[tuple[str, PairedDifference], ...] = ()  # "cifar10, resnet18" and its difference
    seeds_to_settle: int | None = None  # of an inconclusive claim, in every cell; None: no number would

    def to_dict(self) -> dict[str, Any]:
        overall = vars(self.overall) if self.overall else dict.fromkeys(PairedDifference.__dataclass_fields__)
        cells = {name: dict(vars(interval)) for name, interval in self.cells}
        own = ("verdict", "level", "claims", "seeds_to_settle")
        return {**vars(self.claim), **{name: getattr(self, name) for name in own}, **overall, "cells": cells}


def decide_claims(plan: Plan, rows: "pl.DataFrame") -> list[Finding]:
    """Decide every claim, at a level that keeps the probability of any wrong verdict at 5 % (Holm).

    A claim is two one-sided hypotheses (lower, higher), and a decided claim has rejected one of them. So after `r`
    decisions of `m` claims, 2 m - r hypotheses are left, whatever the dependence between claims.
    """
    count, overlap = count_decidable(plan), _overlap(plan)
    differences = [_differences(claim, plan, rows) for claim in plan.claim]
    decided: dict[int, Finding] = {}
    while True:
        level = LEVEL / max(1.0, count - len(decided) / 2)
        findings = [
            decided.get(number) or decide_by_cells(claim, cells, level, count, overlap)
            for number, (claim, cells) in enumerate(zip(plan.claim, differences, strict=True))
        ]
        now = {number: finding for number, finding in enumerate(findings) if finding.verdict in DECIDED}
        if len(now) == len(decided):
            return findings
        decided = now


def count_decidable(plan: Plan) -> int:
    """Count the claims whose entries all have trainings at this scale, where the claims are made."""
    cells, entries = list(plan.cells()), plan.rows
    needed = [({entries[e].method for e in (claim.of, *claim.rivals)}, claim.where) for claim in plan.claim]
    return sum(methods <= {method for method, place in cells if among(place, where)} for methods, where in needed)


def decide_claim(claim: Claim, plan: Plan, rows: "pl.DataFrame", level: float = LEVEL) -> Finding:
    """Decide one claim at a level; the interval is about other seeds in the same cells, not about other data sets."""
    return decide_by_cells(claim, _differences(claim, plan, rows), level, 1, _overlap(plan))


def _overlap(plan: Plan) -> float:
    return OVERLAP if plan.after.halves else 0.0


def decide_by_cells(claim: Claim, cells: dict[str, Array], level: float, claims: int, overlap: float = 0.0) -> Finding:
    """Decide a claim by its paired differences: for each cell an array of seeds and rivals.

    With an overlap, seeds are halves of the same images: see `standard_error`.
    """
    if not cells:
        return Finding(claim=claim, verdict="not run", level=level, claims=claims)
    shared = min(len(differences) for differences in cells.values())
    together = (
        [np.mean([differences[:shared] for differences in cells.values()], axis=0)] if overlap else list(cells.values())
    )
    overall = paired_difference(claim, together, level, overlap)
    by_cell = tuple(
        (name, paired_difference(claim, [differences], level / len(cells), overlap))
        for name, differences in cells.items()
    )
    verdicts = {verdict_of(claim, interval) for interval in (overall, *(interval for _, interval in by_cell))}
    opposite = {"held", "did not hold"} <= verdicts
    verdict: Verdict = "depends on the data set" if opposite else verdict_of(claim, overall)
    needed = settling_seeds(claim, list(cells.values()), level) if verdict == "inconclusive" and not overlap else None
    return Finding(
        claim=claim,
        verdict=verdict,
        level=level,
        claims=claims,
        overall=overall,
        cells=by_cell,
        seeds_to_settle=needed,
    )


def verdict_of(claim: Claim, interval: PairedDifference) -> Verdict:
    """The verdict by the interval alone: all of it on the claimed side, all of it on the other, or neither.

    >>> claim = Claim(says="a is lower", of="a", measure="ece", is_="lower", against="b")
    >>> verdict_of(claim, PairedDifference(-0.015, -0.02, -0.01)), verdict_of(claim, PairedDifference(0.0, -0.01, 0.01))
    ('held', 'inconclusive')
    """
    low, high = interval.low, interval.high
    if low is None or high is None:
        return "inconclusive"
    if claim.is_ == "equal":
        if -claim.within <= low and high <= claim.within:
            return "held"
        return "did not hold" if low > claim.within or high < -claim.within else "inconclusive"
    if claim.is_ == "higher":
        low, high = -high, -low
    return "held" if high < 0 else "did not hold" if low > 0 else "inconclusive"


def agrees(claim: Claim, difference: float) -> bool:
    """Whether a difference without an interval, as papers print it, is on the claimed side."""
    if claim.is_ == "equal":
        return abs(difference) <= claim.within
    return difference < 0 if claim.is_ == "lower" else difference > 0


def paired_difference(claim: Claim, cells: Sequence[Array], level: float, overlap: float = 0.0) -> PairedDifference:
    """The difference between an entry and its rival, or the rival at the claimed rank, averaged over cells.

    "Among the best r of m rivals" is about the r-th best rival. Its difference is an order statistic of m differences,
    and it is inside the r-th bounds of their intervals, each at a share of the level: r rivals are at least as good,
    m - r + 1 are at most as good (partial conjunction, Benjamini and Heller 2008). One rival gives the t interval.
    """
    rivals, pairs = cells[0].shape[1], sum(len(cell) for cell in cells)
    sign = -1.0 if claim.is_ == "higher" else 1.0
    columns = [[sign * cell[:, j] for cell in cells] for j in range(rivals)]
    means = [float(np.mean([cell.mean() for cell in column])) for column in columns]
    difference = sign * _value_at_rank(means, claim.rank)
    if any(len(cell) < 2 for cell in cells):
        return PairedDifference(difference, pairs=pairs)
    errors = [standard_error(column, overlap) for column in columns]
    estimates = [
        Estimate(value=mean, noise=Normal(error=error, freedom=freedom))
        for mean, (error, freedom) in zip(means, errors, strict=True)
    ]
    lows = [e.limits(1 - level / (rivals - claim.rank + 1))[0] for e in estimates]
    highs = [e.limits(1 - level / claim.rank)[1] for e in estimates]
    low, high = sorted((sign * _value_at_rank(lows, claim.rank), sign * _value_at_rank(highs, claim.rank)))
    detectable = None
    if rivals == 1:
        error, freedom = errors[0]
        detectable = claim.within + noncentrality(level, freedom) * error
    return PairedDifference(difference, low, high, detectable, pairs)


def settling_seeds(claim: Claim, cells: Sequence[Array], level: float) -> int | None:
    """The number of seeds per cell that would decide the claim four times in five, if the estimates were the truth.

    That is, if the mean difference (to the rival at the claimed rank) and the variance of each cell were the true ones:
    the smallest number at which the difference that could be seen is at most the distance from the mean to the
    nearest boundary of the claim, 0 or `within`. None without an interval, or where it would take more than a million.

    >>> seen = np.array([[-0.5], [0.5], [-1.5], [-2.5]])  # mean -1, standard deviation 1.29
    >>> settling_seeds(Claim(says="c", of="a", measure="ece", is_="lower", against="b"), [seen], 0.05)
    16
    """
    if any(len(cell) < 2 for cell in cells):
        return None
    sign = -1.0 if claim.is_ == "higher" else 1.0
    means = sign * np.mean([cell.mean(axis=0) for cell in cells], axis=0)
    rival = int(np.argsort(-means, kind="stable")[claim.rank - 1])
    distance = abs(abs(float(means[rival])) - claim.within)
    share = claim.rank if means[rival] < 0 else len(means) - claim.rank + 1  # of the bound that has to cross 0
    variances = np.array([float(cell[:, rival].var(ddof=1)) for cell in cells])
    if distance <= 0 or variances.max() <= 0:
        return None
    freedom = float(variances.sum() ** 2 / (variances**2).sum())  # times n - 1: Welch and Satterthwaite, n in each cell

    def enough(n: int) -> bool:
        error = float(np.sqrt(variances.sum() / n)) / len(cells)
        return noncentrality(level / share, freedom * (n - 1)) * error <= distance

    if not enough(MOST_SEEDS):
        return None
    few, many = 1, 2
    while not enough(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def standard_error(cells: Sequence[Array], overlap: float = 0.0) -> tuple[float, float]:
    """Standard error of the mean over cells of the mean over seeds, and Welch and Satterthwaite's degrees of freedom.

    Seeds that split the same rows again and again are not independent: with n of them the variance of their mean is
    taken as that of a value times 1/n + `overlap`, the rows to judge by over the rows to fit on (Nadeau and Bengio).

    >>> standard_error([np.array([1.0, 3.0]), np.array([2.0, 4.0])])  # variances 2 and 2, of two seeds each
    (0.7071067811865476, 2.0)
    """
    variances = np.array([float(cell.var(ddof=1)) * (1 / len(cell) + overlap) for cell in cells])
    freedoms = np.array([len(cell) - 1 for cell in cells])
    total = float(variances.sum())
    largest = float(variances.max())
    if largest <= 0.0:
        return 0.0, float(freedoms.sum())
    shares = variances / largest  # squares of tiny variances would be zero
    return total**0.5 / len(cells), float(shares.sum() ** 2 / (shares**2 / freedoms).sum())


@cache
def noncentrality(level: float, freedom: float) -> float:
    """The difference in standard errors that a two-sided t-test at a level finds with a probability of 0.8."""
    from scipy.optimize import brentq
    from scipy.stats import nct

    reach = _reach(level, freedom)
    return float(brentq(lambda shift: float(nct.sf(reach, freedom, shift)) - POWER, 0.0, 4 * reach + 10))


@cache
def _reach(level: float, freedom: float) -> float:
    from scipy.stats import t

    return float(t.ppf(1 - level / 2, freedom))


def _value_at_rank(values: list[float], rank: int) -> float:
    """The value of the rival at a rank: the `rank`-th largest difference is to the `rank`-th best rival."""
    return sorted(values, reverse=True)[rank - 1]


def _differences(claim: Claim, plan: Plan, rows: "pl.DataFrame") -> dict[str, Array]:
    """The differences `of` minus each rival (or a number) for every seed that all have, by cell."""
    import polars as pl

    entries, place = plan.rows, [key for key in plan.grid if key in rows.columns]
    rows = rows.filter((pl.col("measure") == claim.measure) & (pl.col("set") == claim.set))
    for key, allowed in claim.where.items():
        rows = rows.filter(pl.col(key).is_in(allowed)) if key in rows.columns else rows
    ours = _values(rows, entries[claim.of], place)
    others = [_values(rows, entries[rival], place) for rival in claim.rivals] or [dict.fromkeys(ours, claim.than)]
    cells: dict[str, list[list[float]]] = {}
    for at, value in ours.items():
        if all(at in other for other in others):
            name = ", ".join(str(v) for k, v in zip(place, at, strict=True) if k != "seed")
            cells.setdefault(name, []).append([value - other[at] for other in others])
    return {name: np.array(values) for name, values in cells.items()}


def _values(rows: "pl.DataFrame", entry: Entry, place: list[str]) -> dict[tuple[Any, ...], float]:
    import polars as pl

    own = rows.filter(
        (pl.col("method") == entry.method)
        & (pl.col("calibrator") == entry.calibrator)
        & (pl.col("rescorer") == entry.rescorer)
        & pl.col("value").is_not_null()
    )
    return {tuple(row[key] for key in place): row["value"] for row in own.to_dicts()}
