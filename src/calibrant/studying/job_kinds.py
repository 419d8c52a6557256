"""Kinds of jobs: files in `studying/jobs/`, and entry points of installed packages."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast

from calibrant.core.errors import InputError

GROUP = "calibrant.studying.jobs"  # of entry points; calibrant.nas adds its own jobs by them
OWN = {file.stem for file in (Path(__file__).parent / "jobs").glob("*.py")}

Row = dict[str, Any]  # numbers and words: what JSON and a table can hold


class JobKind(Protocol):
    """Interface of a file in `studying/jobs/`; its name is the kind of the job.

    A kind that makes entries of catalogues says so by `entries(options)`, pairs such as ("losses", "focal"): their code
    decides the rows as its own does.
    """

    __name__: str

    def run(self, options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
        """Do the work: read what needed jobs left in their folders, leave files in `folder`, return rows."""


@cache  # a look through all installed packages takes milliseconds, and every key of a job needs its kind
def work_of(kind: str) -> JobKind:
    """The module of a kind."""
    return cast("JobKind", import_module(f"{GROUP}.{kind}") if kind in OWN else find_kind(kind).load())


def find_kind(kind: str) -> EntryPoint:
    """The entry point of a kind that is not our own."""
    for entry in entry_points(group=GROUP, name=kind):
        return entry
    fix = "install the package that has it; for calibrant from its sources: pip install -e ."
    raise InputError("job", expected=f"an entry point of {GROUP}", got=f"none called {kind}", fix=fix)
