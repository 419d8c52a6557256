"""Accumulators by key, such as day and segment: one for each combination that occurs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from calibrant.core.arrays import rows_of
from calibrant.core.errors import InputError, visible
from calibrant.core.files import write_text
from calibrant.core.json import load_state, parse_state, plain, read_typed, whole
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.notebook import Table, TableResult
from calibrant.core.text.number_format import number
from calibrant.core.text.vocabulary import describe_task
from calibrant.measuring.check import Check
from calibrant.measuring.compare import Comparison
from calibrant.measuring.measure import Measurement
from calibrant.streaming.accumulator import Accumulator, measure_gauges, plot_sums
from calibrant.streaming.cursor import Cursor, merge_cursors, read_cursors
from calibrant.streaming.prometheus import exposition
from calibrant.streaming.state import check_named

if TYPE_CHECKING:
    import altair as alt

VERSION = 2
JOINED = "\x1f"  # between the parts of a key while rows are grouped by it

Key = tuple[str, ...]
Result = TypeVar("Result", bound=Measurement | Check | Comparison)


class ByKey(TableResult, dict[Key, Result]):
    """A result for each key, shown as a table of one line each."""

    def __init__(self, by: Key, results: Mapping[Key, Result]) -> None:
        super().__init__(results)
        self.by = by

    def table(self) -> Table:
        first = next(iter(self.values()), None)
        head = (*self.by, *(() if first is None else first.HEAD))
        return (
            "nothing yet" if first is None else first.measure,
            head,
            [(*key, *result.cells) for key, result in self.items()],
        )


class Accumulators(TableResult):
    """One accumulator for each combination of the names in `by`.

    >>> each = Accumulators(by=("day", "segment"), measures=["accuracy"])
    >>> p = Predictions.from_confidence([0.9, 0.8, 0.7], correct=[1, 0, 1])
    >>> each.update(p, {"day": "monday", "segment": ["a", "b", "a"]})
    >>> {key: one.n for key, one in each.items()}
    {('monday', 'a'): 2, ('monday', 'b'): 1}
    """

    def __init__(self, by: Sequence[str], measures: Sequence[str] | None = None) -> None:
        self.by = (by,) if isinstance(by, str) else tuple(by)
        if not self.by or len(set(self.by)) != len(self.by):
            raise InputError("by", expected="different names", got=f"{self.by}", fix='use for instance ("day",)')
        self.measures = None if measures is None else tuple(measures)
        Accumulator(measures)  # raises for measures that cannot be streamed
        self._each: dict[Key, Accumulator] = {}
        self.files: dict[str, Cursor] = {}  # how far each file has been read

    # -- adding rows ----------------------------------------------------------------------------

    def update(self, p: Predictions | None, keys: Mapping[str, Any] | None = None) -> None:
        """Add a batch of any size. `keys` has a value for the batch, or one for each row, for every name in `by`.

        A name that `keys` leaves out is the group of the rows, where there is one such name only.
        """
        if p is None:
            return
        self._same_task(p.task)
        columns = [self._column(p, name, keys or {}) for name in self.by]
        joined = np.array([JOINED.join(row) for row in zip(*columns, strict=True)])
        for text, rows in rows_of(joined).items():
            key = tuple(text.split(JOINED))
            self._each.setdefault(key, Accumulator(self.measures)).update(p if len(rows) == p.n else p.take(rows))

    def merge(self, other: "Accumulators") -> "Accumulators":
        """New accumulators of the rows of both; neither is changed."""
        if (self.by, self.measures) != (other.by, other.measures):
            expected, got = (f"by {x.by}, measures {x.measures or 'as usual'}" for x in (self, other))
            raise InputError("merge", expected=expected, got=got, fix="build both with the same names and measures")
        self._same_task(other.task)
        both = Accumulators(self.by, self.measures)
        for key in dict.fromkeys((*self._each, *other._each)):
            mine, theirs = self._each.get(key, Accumulator(self.measures)), other._each.get(key)
            both._each[key] = mine.merge(theirs or Accumulator(self.measures))
        both.files = merge_cursors(self.files, other.files)
        return both

    # -- results --------------------------------------------------------------------------------

    def __getitem__(self, key: str | Key) -> Accumulator:
        accumulator = self._each.get((key,) if isinstance(key, str) else tuple(key))
        if accumulator is None:
            known = "; ".join(", ".join(parts) for parts in list(self._each)[:5]) or "none yet"
            raise InputError("accumulators", expected=f"a key that occurred ({known})", got=str(key), fix="pick one")
        return accumulator

    @property
    def task(self) -> Task | None:
        """The task of the predictions; None before the first batch."""
        return next((accumulator.task for accumulator in self._each.values() if accumulator.task), None)

    def __len__(self) -> int:
        return len(self._each)

    def __repr__(self) -> str:
        rows = sum(accumulator.n for accumulator in self._each.values())
        return f"Accumulators(by={self.by}, {len(self)} keys, {rows:,} rows)"

    def table(self) -> Table:
        specs = next((accumulator.specs for accumulator in self._each.values()), ())
        rows = [
            (*key, f"{accumulator.n:,}", *(number(accumulator.value(spec)) for spec in accumulator.specs))
            for key, accumulator in self._each.items()
        ]
        return repr(self), (*self.by, "rows", *specs), rows

    def items(self) -> Iterator[tuple[Key, Accumulator]]:
        return iter(self._each.items())

    def total(self, where: Mapping[str, str] | None = None) -> Accumulator:
        """Merge all accumulators, or those whose key has these parts: total({"segment": "a"})."""
        if unknown := set(where or {}) - set(self.by):
            raise InputError("total", expected=f"names of {self.by}", got=f"'{min(unknown)}'", fix="use one of these")
        merged = Accumulator(self.measures)
        for key, accumulator in self._each.items():
            if all(str(value) == key[self.by.index(name)] for name, value in (where or {}).items()):
                merged = merged.merge(accumulator)
        return merged

    def measure(self, what: str, *, confidence: float = 0.95) -> ByKey[Measurement]:
        return ByKey(
            self.by, {key: accumulator.measure(what, confidence=confidence) for key, accumulator in self._each.items()}
        )

    def check(
        self, what: str, *, limit: float, side: Literal["max", "min"] | None = None, confidence: float = 0.95
    ) -> ByKey[Check]:
        """Check each key at this confidence: of many keys, some limits are violated by chance."""
        options: dict[str, Any] = {"limit": limit, "side": side, "confidence": confidence}
        return ByKey(self.by, {key: accumulator.check(what, **options) for key, accumulator in self._each.items()})

    def compare(self, reference: "Accumulators | Accumulator", what: str) -> ByKey[Comparison]:
        """Compare each key with the same key of the reference (only keys that both have), or with one for all keys."""
        if isinstance(reference, Accumulator):
            return ByKey(
                self.by, {key: reference.compare(accumulator, what) for key, accumulator in self._each.items()}
            )
        known = reference._each
        if not any(key in known for key in self._each):
            names = (
                "; ".join(", ".join(key) for key in list(known_keys)[:3]) or "none"
                for known_keys in (self._each, known)
            )
            expected, got = "at least one key that both have", " against ".join(names)
            raise InputError("compare", expected=expected, got=got, fix="sum both by the same names and values")
        both = {key: known[key].compare(accumulator, what) for key, accumulator in self._each.items() if key in known}
        return ByKey(self.by, both)

    def plot(self, figure: str = "reliability") -> "alt.TopLevelMixin":
        """Draw one figure with all keys."""
        return plot_sums({visible(", ".join(key)): accumulator for key, accumulator in self._each.items()}, figure)

    def to_prometheus(self) -> str:
        """Every measure of every key in the text format of Prometheus."""
        return exposition(measure_gauges(self.by, self._each))

    # -- saving and loading ---------------------------------------------------------------------

    def to_json(self) -> str:
        entries = [
            {"key": list(key), "state": json.loads(accumulator.to_json())} for key, accumulator in self._each.items()
        ]
        state = {
            "calibrant_accumulators": VERSION,
            "by": self.by,
            "measures": self.measures,
            "files": plain(self.files),
            "each": entries,
        }
        return json.dumps(state)

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulators":
        """Read what `to_json` wrote; `own` as for an accumulator."""
        fix = "save it again"
        state = parse_state(text, "accumulators", VERSION, written_by="Accumulators.save", fix=fix)
        with whole("accumulators", fix=fix):
            by, entries = read_typed(state, "by", list), read_typed(state, "each", list)
            measures = None if state["measures"] is None else read_typed(state, "measures", list)
            if not all(type(spec) is str for spec in measures or ()):
                raise ValueError(f"measures are {measures!r:.40}")
            check_named(measures or (), own)
            loaded = [(entry["key"], Accumulator.from_json(json.dumps(entry["state"]), own=own)) for entry in entries]
            if not all(_is_key(key, len(by)) for key in (by, *(key for key, _ in loaded))):
                raise ValueError("keys are not those of the names")
            if any(measures is not None and accumulator.specs != tuple(measures) for _, accumulator in loaded):
                raise ValueError("measures differ")
            accumulators = cls(by, measures)
            accumulators._each = {tuple(key): accumulator for key, accumulator in loaded}
            accumulators.files = read_cursors(read_typed(state, "files", dict))
            if len({accumulator.task for _, accumulator in loaded if accumulator.task}) > 1:
                raise ValueError("predictions of different tasks")
            return accumulators

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path, *, own: Sequence[str] = ()) -> "Accumulators":
        return load_state(path, partial(cls.from_json, own=own), expected="saved accumulators")

    def _same_task(self, task: Task | None) -> None:
        """Refuse another task than that of the other keys: their measures are not comparable."""
        if self.task and task and self.task != task:
            expected, fix = f"{describe_task(self.task)} as before", "use other accumulators for each task"
            raise InputError("accumulators", expected=expected, got=describe_task(task), fix=fix)

    def _column(self, p: Predictions, name: str, keys: Mapping[str, Any]) -> list[str]:
        if name in keys:
            value = keys[name]
            values = [value] * p.n if isinstance(value, str) or not hasattr(value, "__len__") else list(value)
        elif p.groups is not None and sum(name not in keys for name in self.by) == 1:
            values = list(p.groups)
        else:
            fix = f'write update(p, {{"{name}": ...}}), or give the rows groups'
            raise InputError("update", expected=f"a value of {name}", got="none", fix=fix)
        if len(values) != p.n:
            got = f"{len(values)} for {p.n} rows"
            raise InputError(name, expected="one value, or one for each row", got=got, fix="give as many as rows")
        return [str(value).replace(JOINED, " ") for value in values]


def _is_key(key: Any, parts: int) -> bool:
    return isinstance(key, list) and len(key) == parts and all(type(part) is str for part in key)
