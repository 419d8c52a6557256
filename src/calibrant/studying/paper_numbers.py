"""Numbers that a paper prints where a study has rows: single ones, and the differences that claims are about."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from calibrant.studying.claims import agrees
from calibrant.studying.plan import Claim, Layout, Plan
from calibrant.studying.published_tables import Key, PublishedNumber, lookup


@dataclass(frozen=True)
class PrintedDifference:
    """The difference of a claim in the paper's own tables: its mean over cells, and how many agree with the claim."""

    mean: float
    cells: int
    agreeing: int
    contradicts: bool  # the mean is not on the claimed side


def difference_in_paper(claim: Claim, plan: Plan) -> PrintedDifference | None:
    """The difference that the paper prints for a claim; None where it prints no numbers for its entries."""
    cells: dict[tuple[str, str], dict[str, float]] = {}  # data and network -> entry -> printed number
    for layout in _layouts(claim, plan):
        numbers = lookup(layout.published)
        for place in dict.fromkeys(key[:2] for key in numbers):
            if not _is_about(claim, plan, layout, place):
                continue
            for entry in (claim.of, *claim.rivals):
                if number := find_number(plan, layout, numbers, place, entry, claim.measure):
                    cells.setdefault(place, {})[entry] = number.mean
    differences = [each for entries in cells.values() if (each := _difference(claim, entries)) is not None]
    if not differences:
        return None
    mean = fmean(differences)
    agreeing = sum(agrees(claim, difference) for difference in differences)
    return PrintedDifference(mean, len(differences), agreeing, not agrees(claim, mean))


def same_direction(claim: Claim, ours: float, paper: PrintedDifference | None) -> bool:
    """Whether a difference of ours points where the paper's does: its numbers, or its words where it prints none.

    >>> claim = Claim(says="c", of="a", measure="mce", is_="higher", against="b")
    >>> against_its_words = PrintedDifference(-0.02, 3, 1, contradicts=True)
    >>> same_direction(claim, -0.01, against_its_words), same_direction(claim, -0.01, None)
    (True, False)
    """
    return agrees(claim, ours) == (paper is None or not paper.contradicts)


def find_place(
    plan: Plan, layout: Layout, where: Mapping[str, str], printed: Mapping[Key, PublishedNumber]
) -> tuple[str, str] | None:
    """The data set and the network of a paper's table that stand where ours do; none where it has no such part."""
    ours = [plan.names_in_paper(axis, where.get(axis, ""), layout) for axis in ("data", "model")]
    there = {key[:2] for key in printed}
    return next(((data, model) for data, model in product(*ours) if (data, model) in there), None)


def find_number(
    plan: Plan,
    layout: Layout,
    printed: Mapping[Key, PublishedNumber],
    place: tuple[str, str] | None,
    entry: str,
    measure: str,
) -> PublishedNumber | None:
    """The number that a paper prints for an entry of ours."""
    if place is None:
        return None
    names = plan.names_in_paper("entry", entry, layout)
    return next((number for name in names if (number := printed.get((*place, name, measure)))), None)


def _layouts(claim: Claim, plan: Plan) -> Iterator[Layout]:
    """The plan's tables with printed numbers of the claim's set, and the printed tables that the claim names."""
    yield from (layout for layout in plan.table if layout.published and layout.set == claim.set)
    yield from (Layout(title="", published=name) for name in claim.published)


def _is_about(claim: Claim, plan: Plan, layout: Layout, place: tuple[str, str]) -> bool:
    """Whether the claim and this table of the plan are about a part of the printed table."""
    for axis, name in zip(("data", "model"), place, strict=True):
        if layout.names.get(axis) and name not in layout.names[axis].values():
            return False
        printed_there = {
            p for label in claim.where.get(axis, []) for p in plan.names_in_paper(axis, str(label), layout)
        }
        if claim.where.get(axis) and name not in printed_there:
            return False
    return True


def _difference(claim: Claim, numbers: Mapping[str, float]) -> float | None:
    """The printed difference to the rival at the claimed rank; None where a number is not printed."""
    if claim.of not in numbers:
        return None
    if not claim.rivals:
        return numbers[claim.of] - claim.than
    differences = [numbers[claim.of] - numbers[rival] for rival in claim.rivals if rival in numbers]
    if len(differences) < claim.rank:
        return None
    return sorted(differences, reverse=claim.is_ != "higher")[claim.rank - 1]
