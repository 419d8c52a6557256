"""Trust in code that a file names: entries of the catalogues run, other code only where its reader says so.

A recipe or a run may come from somebody else. What it names is checked before anything is built from it; what a user
types in a command or in Python is not. `with allow_code():`, or the option --allow-code of a command, permits what the
files read inside it name; threads and processes started there have no part in it. A permission is one small file in
the user's configuration, named by the hash of everything that was allowed: nothing is read and written back, so
processes cannot disturb each other.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.files import write_text

PYTHON_FILE = re.compile(r"[^*=,]*\.py(?!\w)", re.IGNORECASE)  # wherever it stands: as a name, an option, in a sum
CALL = re.compile(r"[A-Za-z_][\w.]*(\?.*)?", re.DOTALL)  # options of a catalogue hold a `=` before any `?`

Specs = Mapping[str, str]  # key of the file -> what it names

_ALLOWED: ContextVar[bool] = ContextVar("calibrant_allow_code", default=False)


@contextmanager
def allow_code(allow: bool = True) -> Iterator[None]:
    """Allow files to name code inside this block: it is run, and remembered as allowed until the file changes.

    >>> with allow_code():
    ...     _ALLOWED.get()
    True
    >>> _ALLOWED.get()
    False
    """
    before = _ALLOWED.set(allow)
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def would_run(spec: str, *, model: bool = False) -> str:
    """Describe the code outside calibrant that making this entry would run; nothing for a name of a catalogue.

    >>> would_run("resnet:depth=50", model=True), would_run("ce + 0.5*mdca")
    ('', '')
    >>> would_run("os:system?command=ls", model=True)
    'import os and call system?command=ls'
    >>> would_run("ce + 0.5*./mine.py")
    'run the Python file ./mine.py'
    """
    if files := python_files(spec):
        return f"run the Python file {' and '.join(files)}"
    name, colon, rest = spec.partition(":")
    if model and colon and name.strip() == "hf":
        return f"get the network {rest.partition('?')[0]} from the Hugging Face hub or a folder"
    return f"import {name} and call {rest}" if model and CALL.fullmatch(rest) else ""


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text inside a value, with the keys that lead to it: some of them may name code.

    >>> list(texts({"data": {"name": "digits"}, "measures": ["ece"], "epochs": 3}))
    [('data.name', 'digits'), ('measures.0', 'ece')]
    """
    if isinstance(value, str):
        yield key, value
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, below in inside:
        yield from texts(below, f"{key}.{name}" if key else str(name))


def check(file: str | Path, content: Any, specs: Specs) -> None:
    """Refuse a file that names code, unless this very content was allowed; inside `allow_code` it is from now on.

    `content` is all that the file says, as JSON would hold it, and `specs` are the entries that it names by key. The
    key `model` names a network, which may also be written as a call.
    """
    if _ALLOWED.get():
        return remember(file, content, specs)
    runs = _runs(specs)
    if runs and not _record(content, specs).exists():
        key = next(iter(runs))
        does = "".join(c if c.isprintable() else "?" for c in " and ".join(dict.fromkeys(runs.values())))
        absent = [name for name in python_files(specs[key]) if name.endswith(".py") and not os.path.isfile(name)]
        here = f"run the command in the folder that has {absent[0]}, which is not {Path.cwd()}; " if absent else ""
        raise InputError(
            f"{file}: {key}",
            expected="a name of the catalogue, as the file may come from somebody else",
            got=f"{specs[key]!r}, which would {does}",
            fix=f"{here}look at it first; if you trust it, say --allow-code (in Python: with cal.allow_code()), which "
            "is remembered until the file changes",
        )


def remember(file: str | Path, content: Any, specs: Specs) -> None:
    """Allow what this content names; a file that names no code needs no permission."""
    if runs := _runs(specs):
        note = json.dumps({"file": os.path.abspath(file), "would": list(runs.values())}, indent=2)
        write_text(_record(content, specs), note)


def folder() -> Path:
    """The folder of permissions; deleting it withdraws all of them."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "calibrant" / "allowed"


def _runs(specs: Specs) -> dict[str, str]:
    runs = {key: would_run(spec, model=key.rpartition(".")[2] == "model") for key, spec in specs.items()}
    return {key: words for key, words in runs.items() if words}


def python_files(spec: str) -> list[str]:
    terms = (term.strip() for part in spec.split(":") for term in re.split(r"\s\+\s", part))
    return [file.strip() for term in terms for file in PYTHON_FILE.findall(term)]


def _record(content: Any, specs: Specs) -> Path:
    """The permission for this content and the Python files it names, as they are now."""
    names = [name for spec in specs.values() for name in (spec.partition(":")[0], *python_files(spec))]
    code = {name: sha256(Path(name).read_bytes()).hexdigest() for name in names if os.path.isfile(name)}
    text = json.dumps([content, code], sort_keys=True, default=str)
    return folder() / f"{sha256(text.encode()).hexdigest()}.json"
