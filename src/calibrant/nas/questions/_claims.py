"""Numbers from estimates, and verdicts on claims from numbers."""

from dataclasses import replace

import numpy as np

from calibrant.core.statistics.estimate import Estimate
from calibrant.nas.questions._answer import Claim, Kind, Number, format_value

BOUNDS: dict[Kind, tuple[float, float]] = {"tau": (-1, 1), "share": (0, 1), "factor": (0, np.inf)}


def number(
    name: str, where: str, networks: int, e: Estimate, *, kind: Kind = "tau", published: float | None = None
) -> Number:
    """An estimate as a number of an answer."""
    low, high = replace(e, bounds=BOUNDS[kind]).limits()
    return Number(
        name=name,
        where=where,
        networks=networks,
        value=_finite(e.value),
        low=_finite(low),
        high=_finite(high),
        kind=kind,
        published=published,
    )


def check_claim(
    says: str, numbers: list[Number], *, below: float = np.inf, above: float = -np.inf, main: bool = True
) -> Claim:
    """Check a claim that numbers lie between two bounds: agrees if all intervals do, differs if one lies outside."""
    decided = [n for n in numbers if n.low is not None and n.high is not None]
    outside = [n for n in decided if (n.low or 0.0) > below or (n.high or 0.0) < above]
    inside = [n for n in decided if (n.high or 0.0) < below and (n.low or 0.0) > above]
    if outside:
        return Claim(says, "differs", _list_names(outside), main)
    if decided and len(inside) == len(numbers):
        return Claim(says, "agrees", _list_names(inside), main)
    unsure = [n for n in numbers if n not in inside]
    because = _list_names(unsure) if unsure else "no networks that could tell"
    return Claim(says, "inconclusive", because, main)


def _list_names(numbers: list[Number], most: int = 3) -> str:
    parts = [f"{n.name} {format_value(n)} on {n.where}" for n in numbers[:most]]
    return "; ".join(parts) + (f"; and {len(numbers) - most} more" if len(numbers) > most else "")


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
