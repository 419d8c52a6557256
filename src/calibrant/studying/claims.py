"""Claims against rows: paired differences over seeds, an interval corrected for the number of claims, a verdict."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.studying.plan import Claim, Entry, Plan, among

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.05  # that any one of a plan's verdicts is wrong by chance
POWER = 0.8

Verdict = Literal["held", "did not hold", "cannot be told", "not run"]


@dataclass(frozen=True)
class Finding:
    """A claim with what the rows say: the mean paired difference, its corrected interval, and the verdict."""

    claim: Claim
    verdict: Verdict
    difference: float | None
    low: float | None
    high: float | None
    pairs: int  # trainings of both, with the same seed, data and network
    detectable: float | None  # the smallest difference that these runs would have shown, 4 times in 5
    by_cell: dict[str, float]  # the mean difference in each cell: "cifar10, resnet18"

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self.claim), **{k: v for k, v in vars(self).items() if k != "claim"}}


def judge_all(plan: Plan, rows: "pl.DataFrame") -> list[Finding]:
    """Every claim; the more of them the plan's runs can speak of, the wider their intervals (Bonferroni)."""
    return [judge(claim, plan, rows, LEVEL / max(1, spoken_of(plan))) for claim in plan.claim]


def spoken_of(plan: Plan) -> int:
    """How many claims have trainings of both entries, at this scale, where they are made."""
    cells, entries = list(plan.cells()), plan.rows
    needed = [({entries[e].method for e in (claim.of, claim.against) if e}, claim.where) for claim in plan.claim]
    return sum(methods <= {method for method, place in cells if among(place, where)} for methods, where in needed)


def judge(claim: Claim, plan: Plan, rows: "pl.DataFrame", level: float = LEVEL) -> Finding:
    """One claim. Cells are taken as given: the interval is about other seeds, not about other data sets."""
    cells = _differences(claim, plan, rows)
    few = [d for d in cells.values() if len(d) < 2]
    by_cell = {name: float(d.mean()) for name, d in cells.items()}
    pairs = sum(len(d) for d in cells.values())
    if not cells:
        return Finding(claim, "not run", None, None, None, 0, None, {})
    mean = float(np.mean(list(by_cell.values())))
    if few:
        return Finding(claim, "cannot be told", mean, None, None, pairs, None, by_cell)
    error, freedom = standard_error(list(cells.values()))
    from scipy.stats import t

    reach = float(t.ppf(1 - level / 2, freedom))
    low, high = mean - reach * error, mean + reach * error
    detectable = (reach + float(t.ppf(POWER, freedom))) * error
    return Finding(claim, verdict_of(claim, low, high), mean, low, high, pairs, detectable, by_cell)


def verdict_of(claim: Claim, low: float, high: float) -> Verdict:
    """By the interval alone: all of it on the claimed side, all of it on the other, or neither.

    >>> claim = Claim("a is lower", of="a", measure="ece", is_="lower", against="b")
    >>> verdict_of(claim, -0.02, -0.01), verdict_of(claim, 0.01, 0.02), verdict_of(claim, -0.01, 0.01)
    ('held', 'did not hold', 'cannot be told')
    """
    if claim.is_ == "equal":
        if -claim.within <= low and high <= claim.within:
            return "held"
        return "did not hold" if low > claim.within or high < -claim.within else "cannot be told"
    if claim.is_ == "higher":
        low, high = -high, -low
    return "held" if high < 0 else "did not hold" if low > 0 else "cannot be told"


def standard_error(cells: list[Array]) -> tuple[float, int]:
    """Of the mean over cells of the mean over seeds, and its degrees of freedom: one variance for all cells.

    >>> standard_error([np.array([1.0, 3.0]), np.array([2.0, 4.0])])  # variance 2, two cells of two
    (0.7071067811865476, 2)
    """
    freedom = sum(len(d) - 1 for d in cells)
    variance = sum(float(((d - d.mean()) ** 2).sum()) for d in cells) / freedom
    return float(np.sqrt(variance * sum(1 / len(d) for d in cells))) / len(cells), freedom


def _differences(claim: Claim, plan: Plan, rows: "pl.DataFrame") -> dict[str, Array]:
    """`of` minus `against` (or a number) for every seed, by cell."""
    import polars as pl

    entries, place = plan.rows, [key for key in plan.grid if key in rows.columns]
    rows = rows.filter((pl.col("measure") == claim.measure) & (pl.col("set") == claim.set))
    for key, allowed in claim.where.items():
        rows = rows.filter(pl.col(key).is_in(allowed)) if key in rows.columns else rows
    one = _values(rows, entries[claim.of], place)
    other = _values(rows, entries[claim.against], place) if claim.against else dict.fromkeys(one, claim.than)
    cells: dict[str, list[float]] = {}
    for at, value in one.items():
        if at in other:
            name = ", ".join(str(v) for k, v in zip(place, at, strict=True) if k != "seed")
            cells.setdefault(name, []).append(value - other[at])
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
