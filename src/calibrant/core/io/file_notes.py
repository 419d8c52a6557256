"""Notes that a file of predictions holds about itself, as one line of JSON: rows without a score, and free text."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.io.missing import POLICIES, MissingCount, check_policy

MOST_NOTES, LONGEST = 8, 400  # number of notes, and characters of one: a file may come from anybody
WHATS = ("score", "confidence", "logit of the confidence")


def write_notes(missing: MissingCount | None, notes: tuple[str, ...]) -> str | None:
    """The line of JSON; None where there is nothing to write."""
    if missing is None and not notes:
        return None
    counts = None if missing is None else asdict(missing)
    return json.dumps({"missing": counts, "notes": list(notes)})


def read_notes(array: npt.ArrayLike | None) -> tuple[MissingCount | None, tuple[str, ...]]:
    """The notes in an array that may hold such a line; any other content of a column of this name is ignored."""
    cells = np.atleast_1d(np.asarray(() if array is None else array))
    if cells.size != 1 or cells.dtype.kind != "U":
        return None, ()
    try:
        content = json.loads(str(cells.flat[0]))
    except (ValueError, RecursionError):
        return None, ()
    if not isinstance(content, dict):
        return None, ()
    notes = content.get("notes")
    valid = [n for n in notes if isinstance(n, str) and len(n) <= LONGEST] if isinstance(notes, list) else []
    return _missing(content.get("missing")), tuple(valid[:MOST_NOTES])


def _missing(content: Any) -> MissingCount | None:
    if not isinstance(content, dict):
        return None
    rows, of, policy, what = (content.get(name) for name in ("rows", "of", "policy", "what"))
    if type(rows) is not int or type(of) is not int or not 0 < rows <= of:
        return None
    if policy not in POLICIES[1:] or what not in WHATS:
        return None
    return MissingCount(rows, of, check_policy(policy), what)
