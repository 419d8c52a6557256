"""Accumulators by key, such as day and segment: one for each combination that occurs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from calibrant.core.arrays import Ints, rows_of
from calibrant.core.config.convert import read_value
from calibrant.core.errors import InputError, visible
from calibrant.core.files import write_text
from calibrant.core.json import load_state, parse_state, plain, whole, write_state
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.number_format import number
from calibrant.core.text.table import Table, TableResult
from calibrant.core.text.vocabulary import describe_task
from calibrant.measuring.check import Check
from calibrant.measuring.compare import Comparison
from calibrant.measuring.measure import Measurement
from calibrant.streaming.accumulator import Accumulator
from calibrant.streaming.cursor import Cursor, merge_cursors
from calibrant.streaming.prometheus import measure_exposition
from calibrant.streaming.state import check_named

if TYPE_CHECKING:
    import altair as alt

VERSION = 3
SPLIT = "a cluster has rows in more than one key"
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


class Accumulators(TableResult, Mapping[Key, Accumulator]):
    """One accumulator for each combination of the names in `by`: a dict that `update` fills group by group.

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
        self.clusters_split = False  # whether a cluster has rows in several keys, so that keys are not independent
        self.files: dict[str, Cursor] = {}  # how far each file has been read

    def __getitem__(self, key: str | Key) -> Accumulator:
        accumulator = self._each.get((key,) if isinstance(key, str) else tuple(key))
        if accumulator is None:
            known = "; ".join(", ".join(parts) for parts in list(self._each)[:5]) or "none yet"
            raise InputError("accumulators", expected=f"a key that occurred ({known})", got=str(key), fix="pick one")
        return accumulator

    def __contains__(self, key: object) -> bool:
        return key in self._each

    def __iter__(self) -> Iterator[Key]:
        return iter(self._each)

    def __len__(self) -> int:
        return len(self._each)

    # -- adding rows ----------------------------------------------------------------------------

    def update(
        self, p: Predictions | None, keys: Mapping[str, Any] | None = None, *, open_clusters: bool = False
    ) -> None:
        """Add a batch of any size. `keys` has a value for the batch, or one for each row, for every name in `by`.

        A name that `keys` leaves out is the group of the rows, where there is one such name only. `open_clusters` as
        for one accumulator.
        """
        if p is None:
            return
        self._check_task(p.task)
        groups = self._group(p, keys or {})
        if p.clusters is not None and len(groups) > 1:
            key_of = np.empty(p.n, dtype=np.int64)
            for number_of_key, rows in enumerate(groups.values()):
                key_of[rows] = number_of_key
            pairs = np.unique(np.stack([p.clusters, key_of]), axis=1)
            self.clusters_split |= pairs.shape[1] > p.clusters.max() + 1
        for key, rows in groups.items():
            part = p if len(rows) == p.n else p.take(rows)
            self._each.setdefault(key, Accumulator(self.measures)).update(part, open_clusters=open_clusters)

    def merge(self, other: "Accumulators") -> "Accumulators":
        """New accumulators of the rows of both; neither is changed."""
        if (self.by, self.measures) != (other.by, other.measures):
            expected, got = (f"by {x.by}, measures {x.measures or 'as usual'}" for x in (self, other))
            raise InputError("merge", expected=expected, got=got, fix="build both with the same names and measures")
        self._check_task(other.task)
        both, none = Accumulators(self.by, self.measures), Accumulator(self.measures)
        for key in dict.fromkeys((*self, *other)):
            both._each[key] = self._each.get(key, none).merge(other._each.get(key, none))
        both.clusters_split = self.clusters_split or other.clusters_split
        both.files = merge_cursors(self.files, other.files)
        return both

    # -- results --------------------------------------------------------------------------------

    @property
    def task(self) -> Task | None:
        """The task of the predictions; None before the first batch."""
        return next((accumulator.task for accumulator in self.values() if accumulator.task), None)

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

    def total(self, where: Mapping[str, str] | None = None) -> Accumulator:
        """Merge all accumulators, or those whose key has these parts: total({"segment": "a"})."""
        if unknown := set(where or {}) - set(self.by):
            raise InputError("total", expected=f"names of {self.by}", got=f"'{min(unknown)}'", fix="use one of these")
        parts = [(self.by.index(name), str(value)) for name, value in (where or {}).items()]
        chosen = [one for key, one in self.items() if all(key[i] == value for i, value in parts)]
        merged = Accumulator(self.measures)
        for one in chosen:
            merged = merged.merge(one)
        if self.clusters_split and len(chosen) > 1:
            merged.open_reason = merged.open_reason or SPLIT
        return merged

    def measure(self, what: str, *, confidence: float = 0.95) -> ByKey[Measurement]:
        return ByKey(self.by, {key: one.measure(what, confidence=confidence) for key, one in self.items()})

    def check(
        self, what: str, *, limit: float, side: Literal["max", "min"] | None = None, confidence: float = 0.95
    ) -> ByKey[Check]:
        """Check each key at this confidence: of many keys, some limits are violated by chance."""
        options: dict[str, Any] = {"limit": limit, "side": side, "confidence": confidence}
        return ByKey(self.by, {key: one.check(what, **options) for key, one in self.items()})

    def compare(self, reference: "Accumulators | Accumulator", what: str) -> ByKey[Comparison]:
        """Compare each key with the same key of the reference (only keys that both have), or with one for all keys."""
        if isinstance(reference, Accumulator):
            return ByKey(self.by, {key: reference.compare(one, what) for key, one in self.items()})
        both = {key: reference[key].compare(one, what) for key, one in self.items() if key in reference}
        if not both:
            names = ("; ".join(", ".join(key) for key in list(keys)[:3]) or "none" for keys in (self, reference))
            expected, got = "at least one key that both have", " against ".join(names)
            raise InputError("compare", expected=expected, got=got, fix="sum both by the same names and values")
        return ByKey(self.by, both)

    def plot(self, figure: str = "reliability") -> "alt.TopLevelMixin":
        """Draw one figure with all keys."""
        from calibrant.streaming.plot import plot_sums

        return plot_sums({visible(", ".join(key)): one.to_predictions() for key, one in self.items()}, figure)

    def to_prometheus(self) -> str:
        """Every measure of every key in the text format of Prometheus."""
        return measure_exposition(self.by, {key: (one.n, one.measure_all()) for key, one in self.items()})

    # -- saving and loading ---------------------------------------------------------------------

    def to_json(self) -> str:
        entries = [{"key": list(key), "state": one.to_state()} for key, one in self.items()]
        names = {"by": self.by, "measures": self.measures, "clusters_split": self.clusters_split}
        return write_state("accumulators", VERSION, plain(names | {"files": self.files}) | {"each": entries})

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulators":
        """Read what `to_json` wrote; `own` as for an accumulator."""
        fix = "save it again"
        state = parse_state(text, "accumulators", VERSION, written_by="Accumulators.save", fix=fix)
        with whole("accumulators", fix=fix):
            measures = read_value(list[str] | None, state["measures"], "measures")
            check_named(measures or (), own)
            each = cls(read_value(list[str], state["by"], "by"), measures)
            for entry in read_value(list[dict[str, Any]], state["each"], "each"):
                key = tuple(read_value(list[str], entry["key"], "key"))
                if len(key) != len(each.by):
                    raise ValueError(f"a key of {len(key)} parts")
                each._each[key] = Accumulator.from_state(entry["state"], own=own)
            each.clusters_split = read_value(bool, state["clusters_split"], "clusters_split")
            each.files = read_value(dict[str, Cursor], state["files"], "files")
            return each

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path, *, own: Sequence[str] = ()) -> "Accumulators":
        return load_state(path, partial(cls.from_json, own=own), expected="saved accumulators")

    def _check_task(self, task: Task | None) -> None:
        """Refuse another task than that of the other keys: their measures are not comparable."""
        if self.task and task and self.task != task:
            expected, fix = f"{describe_task(self.task)} as before", "use other accumulators for each task"
            raise InputError("accumulators", expected=expected, got=describe_task(task), fix=fix)

    def _group(self, p: Predictions, keys: Mapping[str, Any]) -> dict[Key, Ints]:
        """The rows of each key."""
        columns = [self._column(p, name, keys) for name in self.by]
        joined = np.array([JOINED.join(row) for row in zip(*columns, strict=True)])
        return {tuple(text.split(JOINED)): rows for text, rows in rows_of(joined).items()}

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
