"""The state of an accumulator on disk: JSON that is read field by field, and sums that must fit together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.schema import parse_json, typed, whole
from calibrant.core.validate import SUM_TOLERANCE
from calibrant.measures import CATALOGUE

VERSION = 1
FIX = "save it again"
MOST_ROWS = 2**53  # beyond this a float64 does not count
SLACK = 1e-6  # of rounding, in sums over n rows


@dataclass(frozen=True, eq=False)
class State:
    """What the file says, with every field of the right kind, but not yet compared with each other."""

    measures: tuple[str, ...]
    n: int
    k: int
    sums: dict[str, Array]

    def to_json(self) -> str:
        sums = {name: part.tolist() for name, part in self.sums.items()}
        state = {"calibrant_accumulator": VERSION, "measures": self.measures, "n": self.n, "k": self.k, "sums": sums}
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "State":
        try:
            state = parse_json(text)
            version = state["calibrant_accumulator"]
        except (ValueError, KeyError, TypeError) as error:
            expected = "JSON written by Accumulator.save"
            raise InputError("accumulator", expected=expected, got="something else", fix=FIX) from error
        if type(version) is not int or version != VERSION:
            got = f"{version!r:.40}"
            raise InputError("accumulator", expected=f"version {VERSION}", got=got, fix="update calibrant")
        with whole("accumulator", fix=FIX):
            names = typed(state, "measures", list)
            if not all(type(one) is str for one in names) or len(set(names)) != len(names):
                raise ValueError(f"measures are {names!r:.60}")
            n, k = typed(state, "n", int), typed(state, "k", int)
            if not (0 <= n <= MOST_ROWS and 0 <= k <= MOST_ROWS and (n > 0) == (k >= 2)):
                raise ValueError(f"{n} rows of {k} classes")
            sums = {name: _numbers(name, part) for name, part in typed(state, "sums", dict).items()}
            return cls(tuple(names), n, k, sums)


def check_named(specs: Sequence[str], own: Sequence[str]) -> None:
    """Refuse measures that would run a file, unless the user has named that file in Python."""
    for spec in specs:
        if spec not in own:
            CATALOGUE.named(spec)


def check_shapes(state: State, shapes: dict[str, tuple[int, ...]]) -> None:
    """The sums that these measures need, and no others."""
    found = {name: part.shape for name, part in state.sums.items()}
    if found != (shapes if state.n else {}):
        raise ValueError(f"sums are not those of {', '.join(state.measures)}"[:150])


def check_bins(name: str, sums: Array, n: int) -> None:
    """Count, score, hits and squared residuals per bin, (4, bins), or of every class, (4, k, bins)."""
    count, score, hits, square = sums
    bins, slack = count.shape[-1], SLACK * n
    low, high = count * np.arange(bins) / bins, count * np.arange(1, bins + 1) / bins
    if not (_are_whole(count) and _are_whole(hits) and (hits <= count).all() and (count.sum(axis=-1) == n).all()):
        raise ValueError(f"counts of {name} do not add up to {n} rows")
    if not ((score >= low - slack) & (score <= high + slack)).all():
        raise ValueError(f"scores of {name} lie outside their bins")
    least = (score - hits) ** 2 / np.maximum(count, 1)
    if not ((square >= least - slack) & (square <= count + slack)).all():
        raise ValueError(f"squares of {name} do not suit their scores")
    if sums.ndim == 3 and not (hits.sum() == n and abs(score.sum() - n) <= (SUM_TOLERANCE + SLACK) * n):
        raise ValueError(f"classes of {name} do not add up to {n} rows")


def check_same(parts: dict[str, Array], n: int) -> None:
    """All of them are sums over the same predictions: they have the same hits and the same confidences."""
    totals = np.array([[sums[2].sum(), sums[1].sum()] for sums in parts.values()])
    if (np.ptp(totals, axis=0) > [0, SLACK * n]).any():
        raise ValueError("sums are of different predictions")


def check_rows(name: str, sums: Array, n: int, bounds: tuple[float, float]) -> None:
    """The sum of a value per row, and of its square."""
    total, square = sums
    slack = SLACK * n * (1 + abs(total / n))
    most = n * max(abs(bounds[0]), abs(bounds[1])) ** 2
    if not n * bounds[0] - slack <= total <= n * bounds[1] + slack:
        raise ValueError(f"{name} would be {total / n:g}")
    if not total**2 / n - slack * (1 + abs(total / n)) <= square <= most + slack:
        raise ValueError(f"squares of {name} do not suit its sum")


def _are_whole(values: Array) -> bool:
    return bool(((values >= 0) & (values == np.floor(values))).all())


def _numbers(name: str, value: Any) -> Array:
    made = np.array(value)
    if made.dtype.kind not in "if" or not np.isfinite(made).all():
        raise ValueError(f"sums of {name:.40} hold something else than numbers")
    return made.astype(np.float64)
