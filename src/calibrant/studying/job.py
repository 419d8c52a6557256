"""A job of a study: one piece of work, known by a hash of everything that decides its result."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.core.cached_property import cached_property
from calibrant.studying.job_kinds import Row
from calibrant.studying.sources import Digests, Sources


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
    sources: Sources = field(default_factory=Sources, repr=False, compare=False)

    @cached_property
    def made_of(self) -> Digests | int:
        """The digests of the code and files that decide the rows."""
        return self.sources.of(self.kind, self.options)

    @property
    def digests(self) -> Digests:
        """The digests by name; none where a number stands for them."""
        return self.made_of if isinstance(self.made_of, dict) else {}

    @cached_property
    def key(self) -> str:
        """A hash, the same in every study and on every machine: what is shared is computed once."""
        facts = [self.kind, self.made_of, self.options, [job.key for job in self.needs]]
        text = json.dumps(facts, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def then(self, kind: str, *others: "Job", **options: Any) -> "Job":
        """A job that reads the files of this one, and of others."""
        return Job(kind, options, (self, *others), self.sources)


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
