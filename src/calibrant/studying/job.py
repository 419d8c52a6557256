"""A job of a study: one piece of work, known by a hash of everything that decides its result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, cast

from calibrant.core.cached_property import cached_property
from calibrant.core.errors import InputError

GROUP = "calibrant.studying.jobs"  # of entry points; calibrant.nas adds its own jobs by them
OWN = {file.stem for file in (Path(__file__).parent / "jobs").glob("*.py")}

Row = dict[str, Any]  # numbers and words: what JSON and a table can hold


class JobKind(Protocol):
    """Interface of a file in `studying/jobs/`; its name is the kind of the job."""

    VERSION: int  # goes up when the same options would give other numbers: finished jobs are then computed again

    def run(self, options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
        """Do the work: read what needed jobs left in their folders, leave files in `folder`, return rows."""


@dataclass(frozen=True)
class Job:
    """Work of one kind with all its options, and the jobs whose files it reads.

    >>> a, b = Job("halve", {"seed": 1}), Job("halve", {"seed": 1.0})
    >>> a.key == b.key, len(a.key), Job("halve", {"seed": 2}).key == a.key
    (False, 20, False)
    """

    kind: str
    options: Mapping[str, Any]
    needs: tuple["Job", ...] = field(default=(), repr=False)

    @cached_property
    def key(self) -> str:
        """A hash, the same in every study and on every machine: what is shared is computed once."""
        facts = [self.kind, work_of(self.kind).VERSION, self.options, [job.key for job in self.needs]]
        text = json.dumps(facts, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job: its rows, or the traceback of its error."""

    key: str
    kind: str
    rows: list[Row] = field(default_factory=list)
    failed: str = ""
    seconds: float = 0.0

    @property
    def why(self) -> str:
        """The last line of the traceback.

        >>> Outcome("a", "train", failed="Traceback ...\\nValueError: no").why, Outcome("a", "train", failed=" ").why
        ('ValueError: no', '')
        """
        return (self.failed.strip().splitlines() or [""])[-1]


@cache  # a look through all installed packages takes milliseconds, and every key of a job needs its version
def work_of(kind: str) -> JobKind:
    """The module of a kind: a file in `studying/jobs/`, or an entry point of an installed package."""
    if kind in OWN:
        return cast("JobKind", import_module(f"{GROUP}.{kind}"))
    for entry in entry_points(group=GROUP, name=kind):
        return cast("JobKind", entry.load())
    fix = "install the package that has it; for calibrant from its sources: pip install -e ."
    raise InputError("job", expected=f"an entry point of {GROUP}", got=f"none called {kind}", fix=fix)
