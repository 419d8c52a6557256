"""The state of an accumulator on disk: JSON that is read field by field, and checks of its sums."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.convert import read_value
from calibrant.core.json import parse_state, read_typed, whole
from calibrant.core.predictions.row_data import Task
from calibrant.core.predictions.validation import SUM_TOLERANCE
from calibrant.measures import CATALOGUE
from calibrant.streaming.sums import FINE

VERSION = 3
FIX = "save it again"
MOST_ROWS = 2**53  # beyond this a float64 does not count
LARGEST_SUM = 1e100  # whose square is finite; sums of rows are far smaller
SLACK = 1e-6  # of rounding, in sums over n rows


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """The fields of the file, each of the right type; `check_...` compare them with each other."""

    measures: tuple[str, ...]
    n: int  # rows
    k: int
    task: Task | None
    total: float  # sum of the weights: the number of rows, where they have no weights
    square: float  # sum of squared weights
    weighted: bool  # whether rows have weights
    counts: bool  # whether every weight is a whole number
    clustered: bool  # whether rows are in clusters
    files: dict[str, Any]  # how far each file has been read, see `cursor`
    sums: dict[str, Array]

    def to_json(self) -> str:
        sums = {name: _sparse(part) if part.shape == (4, FINE) else part.tolist() for name, part in self.sums.items()}
        named = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "sums"}
        return json.dumps({"calibrant_accumulator": VERSION, **named, "sums": sums}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "State":
        state = parse_state(text, "accumulator", VERSION, written_by="Accumulator.save", fix=FIX)
        with whole("accumulator", fix=FIX):
            return cls._read(state)

    @classmethod
    def _read(cls, state: Any) -> "State":
        names = read_value(list[str], state["measures"], "measures")
        if len(set(names)) != len(names):
            raise ValueError(f"measures are {names!r:.60}")
        n, k = read_typed(state, "n", int), read_typed(state, "k", int)
        task = read_value(Task | None, state["task"], "task")
        if (task is None) != (n == 0):
            raise ValueError(f"task is {task!r:.40}")
        if not (0 <= n <= MOST_ROWS and 0 <= k <= MOST_ROWS and (n > 0) == (k >= 2)):
            raise ValueError(f"{n} rows of {k} classes")
        total, square = (float(_numbers(name, state[name])) for name in ("total", "square"))
        weighted, counts, clustered = (read_typed(state, name, bool) for name in ("weighted", "counts", "clustered"))
        fits = 0 <= total <= MOST_ROWS and square >= 0 and total**2 <= n * square * (1 + SLACK) + SLACK
        if not (fits if weighted else total == square == n and counts) or (n > 0) != (total > 0):
            raise ValueError(f"{n} rows of weight {total:g}")
        sums = {name: _read_sums(name, part) for name, part in read_typed(state, "sums", dict).items()}
        return cls(
            measures=tuple(names),
            n=n,
            k=k,
            task=task,
            total=total,
            square=square,
            weighted=weighted,
            counts=counts,
            clustered=clustered,
            files=read_typed(state, "files", dict),
            sums=sums,
        )


def check_named(specs: Sequence[str], own: Sequence[str]) -> None:
    """Refuse measures that would run a file of Python code, unless the user has named that file."""
    for spec in specs:
        if spec not in own:
            CATALOGUE.make_named(spec)


def check_shapes(state: State, shapes: dict[str, tuple[int, ...]]) -> None:
    """Check that the sums are those that the measures need, and no others."""
    shapes_read = {name: part.shape for name, part in state.sums.items()}
    if shapes_read != (shapes if state.n else {}):
        raise ValueError(f"sums are not those of {', '.join(state.measures)}"[:150])


def check_bins(name: str, sums: Array, state: State) -> None:
    """Check weight, score, outcomes, squared residuals and residuals per bin, (5, bins), or per class, (5, k, bins)."""
    count, score, outcomes, square, cross = sums
    bins, total = count.shape[-1], state.total
    slack = SLACK * max(total, state.square)
    low, high = count * np.arange(bins) / bins, count * np.arange(1, bins + 1) / bins
    counted = _are_whole(count) and _are_whole(outcomes) and (count.sum(axis=-1) == total).all()
    if not (counted or (state.weighted and (np.abs(count.sum(axis=-1) - total) <= slack).all())):
        raise ValueError(f"counts of {name} do not add up to {total:g} rows")
    if not ((outcomes >= 0) & (outcomes <= count + slack)).all():
        raise ValueError(f"counts of {name} are below their outcomes")
    if not ((score >= low - slack) & (score <= high + slack)).all():
        raise ValueError(f"scores of {name} lie outside their bins")
    least, most = np.zeros_like(count), np.full_like(count, state.square)
    if not state.weighted:
        least, most = (score - outcomes) ** 2 / np.maximum(count, 1), count
        if not (np.abs(cross - (score - outcomes)) <= slack).all():
            raise ValueError(f"residuals of {name} do not fit their scores")
    if not ((square >= least - slack) & (square <= most + slack)).all():
        raise ValueError(f"squares of {name} do not fit their scores")
    off = abs(score.sum() - total), abs(outcomes.sum() - total)
    if sums.ndim == 3 and not (off[1] <= (slack if state.weighted else 0) and off[0] <= SUM_TOLERANCE * total + slack):
        raise ValueError(f"classes of {name} do not add up to {total:g} rows")


def check_ranking(name: str, sums: Array, state: State) -> None:
    """Check the weights of outcomes 1 and 0, and their squares, in fine bins, (4, FINE)."""
    slack = SLACK * max(state.total, state.square)
    if sums.min() < 0 or abs(sums[:2].sum() - state.total) > slack or abs(sums[2:].sum() - state.square) > slack:
        raise ValueError(f"counts of {name} do not add up to {state.total:g} rows")
    if not state.weighted and not (_are_whole(sums) and np.array_equal(sums[:2], sums[2:])):
        raise ValueError(f"counts of {name} are not whole")


def check_same(parts: dict[str, Array], state: State) -> None:
    """Check that all are sums over the same predictions: the same outcomes and the same scores."""
    totals = np.array([[sums[2].sum(), sums[1].sum()] for sums in parts.values()])
    slack = SLACK * max(state.total, state.square)
    if len(totals) and (np.ptp(totals, axis=0) > [slack if state.weighted else 0, slack]).any():
        raise ValueError("sums are of different predictions")


def check_rows(name: str, sums: Array, state: State, bounds: tuple[float, float]) -> None:
    """Check the sum of a value per row and, with squared weights, the sums of its square and of itself."""
    total, square, cross = sums
    w, w2 = state.total, state.square
    mean = total / w
    slack = SLACK * max(w, w2) * (1 + abs(mean))
    most = w2 * max(abs(bounds[0]), abs(bounds[1])) ** 2
    if not w * bounds[0] - slack <= total <= w * bounds[1] + slack:
        raise ValueError(f"{name} would be {mean:g}")
    if not cross**2 / w2 - slack * (1 + abs(mean)) <= square <= most + slack:
        raise ValueError(f"squares of {name} do not fit its sum")
    if not state.weighted and abs(cross - total) > slack:
        raise ValueError(f"squares of {name} do not fit its sum")


def check_ratio(name: str, sums: Array, state: State) -> None:
    """Check sums of two values per row, each from 0 to 1, and of their products with squared weights."""
    above, below, square, cross, square_below = sums
    slack = SLACK * max(state.total, state.square)
    if not (-slack <= above <= state.total + slack and slack < below <= state.total + slack):
        raise ValueError(f"sums of {name} do not fit {state.total:g} rows")
    products = 0 <= square <= state.square + slack and 0 <= square_below <= state.square + slack
    if not (products and -slack <= cross <= np.sqrt(square * square_below) + slack):
        raise ValueError(f"squares of {name} do not fit its sums")


def _are_whole(values: Array) -> bool:
    return bool(((values >= 0) & (values == np.floor(values))).all())


def _sparse(fine: Array) -> dict[str, Any]:
    """The bins that are not empty, and their values."""
    filled = np.flatnonzero(fine.any(axis=0))
    return {"bins": filled.tolist(), "values": fine[:, filled].tolist()}


def _read_sums(name: str, part: Any) -> Array:
    if not isinstance(part, dict):
        return _numbers(name, part)
    bins, values = (
        np.array(read_typed(part, "bins", list), dtype=np.int64),
        _numbers(name, read_typed(part, "values", list)),
    )
    if values.shape != (4, len(bins)) or len(np.unique(bins)) != len(bins) or not ((bins >= 0) & (bins < FINE)).all():
        raise ValueError(f"sums of {name} are not those of {FINE} bins")
    fine = np.zeros((4, FINE))
    fine[:, bins] = values
    return fine


def _numbers(name: str, value: Any) -> Array:
    array = np.array(value)
    if array.dtype.kind not in "if" or not (np.abs(array.astype(np.float64)) <= LARGEST_SUM).all():
        raise ValueError(f"sums of {name:.40} are not numbers")
    return array.astype(np.float64)
