"""What a file of predictions says about itself, in one line of JSON: rows that had no score, notes on the scores."""

import json
from typing import Any

import numpy as np

from calibrant.core.extras import Extras
from calibrant.core.missing import HOWS, Missing, check_how

MOST_NOTES, LONGEST = 8, 400  # of notes, and of the characters of one: a file may come from anybody
KNOWN = (("how", HOWS[1:]), ("what", ("score", "confidence", "logit of the confidence")))

About = tuple[Missing | None, tuple[str, ...]]


def written(extras: Extras) -> str | None:
    """None where there is nothing to say."""
    if extras.missing is None and not extras.notes:
        return None
    gone = extras.missing
    missing = None if gone is None else {"rows": gone.rows, "of": gone.of, "how": gone.how, "what": gone.what}
    return json.dumps({"missing": missing, "notes": list(extras.notes)})


def read(given: Any) -> About:
    """Of an array that may hold such a line; anything else in a column of this name is left alone."""
    cells = np.atleast_1d(np.asarray(() if given is None else given))
    if cells.size != 1 or cells.dtype.kind != "U":
        return None, ()
    try:
        found = json.loads(str(cells.flat[0]))
    except (ValueError, RecursionError):
        return None, ()
    if not isinstance(found, dict):
        return None, ()
    notes = found.get("notes")
    kept = [n for n in notes if isinstance(n, str) and len(n) <= LONGEST] if isinstance(notes, list) else []
    return _missing(found.get("missing")), tuple(kept[:MOST_NOTES])


def _missing(found: Any) -> Missing | None:
    if not isinstance(found, dict):
        return None
    rows, of = found.get("rows"), found.get("of")
    how, what = (next((one for one in known if one == found.get(name)), None) for name, known in KNOWN)
    if type(rows) is not int or type(of) is not int or not 0 < rows <= of or how is None or what is None:
        return None
    return Missing(rows, of, check_how(how), what)
