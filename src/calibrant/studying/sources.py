"""Sources of jobs: a digest of all code and files that decide the rows of a job, which are a part of its key."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from calibrant.core.files import write_text, write_whole
from calibrant.core.json import read_json, whole
from calibrant.core.sources import Source, entry_source, job_source, plugin_source
from calibrant.datasets import fingerprint
from calibrant.studying.job_kinds import GROUP, OWN, find_kind, work_of

Digests = dict[str, str]  # "losses focal:gamma=2" -> the digest of what it is made by
FILES = "files"  # in the place of a catalogue: a file or a folder of the user
VERSIONS = {"rescore": 2, "nas_train": 2, "nas_measure": 2}  # in keys of stores from before digests; others had 1
FILE = "sources.json"


class Sources:
    """Digests of sources by name: each is read from the disk when a job first needs it, and kept."""

    def __init__(self, digests: Mapping[str, str] | None = None) -> None:
        self.digests: Digests = dict(digests or {})

    def of(self, kind: str, options: Mapping[str, Any]) -> Digests | int:
        """The digests of all that a job is made by."""
        return {name: self.digest(name) for name in names_of(kind, options)}

    def digest(self, name: str) -> str:
        if name not in self.digests:
            catalogue, _, spec = name.partition(" ")
            self.digests[name] = fingerprint(Path(spec).expanduser()) if catalogue == FILES else source_of(name).digest
        return self.digests[name]

    def differing(self, other: "Sources") -> list[str]:
        """The names of these digests that differ elsewhere."""
        return sorted(name for name, digest in self.digests.items() if other.digest(name) != digest)


class StoredSources(Sources):
    """Digests as a study has stored them: nothing is read, so the study opens where its sources are not."""

    def digest(self, name: str) -> str:
        return self.digests.get(name, "")


class EarlierSources(Sources):
    """The numbers that stood for the sources in keys of stores from before digests."""

    def of(self, kind: str, options: Mapping[str, Any]) -> Digests | int:
        return VERSIONS.get(kind, 1)


def names_of(kind: str, options: Mapping[str, Any]) -> list[str]:
    """The names of all that a job is made by: its own kind, entries of catalogues, files of the user.

    >>> names_of("judge", {"calibrators": ["temperature"], "measures": ["ece"]})
    ['calibrators temperature', 'job judge', 'measures ece']
    """
    entries = getattr(work_of(kind), "entries", None)
    named = entries(options) if entries else ()
    return sorted({f"job {kind}", *(f"{catalogue} {spec}" for catalogue, spec in named)})


def source_of(name: str) -> Source:
    """The code behind a name; nothing for a file of the user."""
    catalogue, _, spec = name.partition(" ")
    if catalogue == FILES:
        return Source()
    if catalogue != "job":
        return entry_source(catalogue, spec)
    module = f"{GROUP}.{spec}" if spec in OWN else find_kind(spec).module
    return job_source(module) if module.startswith("calibrant.") else plugin_source(find_kind(spec))


def changed_code(made_of: Digests) -> list[str]:
    """The names of the code that is no longer what the key of a job says."""
    code = {name: digest for name, digest in made_of.items() if not name.startswith(FILES)}
    return Sources(code).differing(Sources())


def save_sources(folder: Path, digests: Digests, *, keep: bool = False) -> None:
    """Write digests, and copies of all files that do not come with calibrant, into the folder of a study.

    `keep` says that finished jobs have keys of the digests that were there: they stay known, so that they can be
    adopted.
    """
    before = _read(folder)
    earlier = [past for past in (before if keep else before[1:]) if past != digests]
    document = {"sources": digests, "earlier": earlier}
    write_text(folder / FILE, json.dumps(document, indent=2, sort_keys=True))
    files = sorted({file for name in digests for file in source_of(name).of_users if file.is_file()})
    for file, place in zip(files, _places(files), strict=True):
        write_whole(folder / "sources" / place, partial(_copy, file))


def load_sources(folder: Path) -> list[Sources]:
    """The digests of a study's folder, the newest first; `None` stands for the numbers that came before them."""
    return [EarlierSources() if digests is None else StoredSources(digests) for digests in _read(folder)]


def _read(folder: Path) -> list[Digests | None]:
    file, fix = folder / FILE, "run the plan again"
    if not file.exists():
        return [None]
    document = read_json(file, expected="digests of sources", fix=fix)
    with whole(str(file), fix=fix):
        every: list[Digests | None] = [document["sources"], *document["earlier"]]
        for digests in every:
            if digests is not None and not all(isinstance(digest, str) for digest in digests.values()):
                raise ValueError("a digest is no text")
    return every


def _copy(file: Path, stream: IO[bytes]) -> None:
    stream.write(file.read_bytes())


def _places(files: list[Path]) -> Iterator[Path]:
    """Paths of copies: relative to the folder that has all of the files."""
    top = os.path.commonpath([file.parent for file in files]) if files else ""
    yield from (file.relative_to(top) for file in files)


def describe(names: Iterable[str], most: int = 4) -> str:
    """Names for a sentence: the first of them, and how many more there are.

    >>> describe(["losses ./mine.py", "measures ece"])
    'losses ./mine.py and measures ece'
    """
    listed = list(names)
    shown = listed[:most] + ([f"{len(listed) - most} more"] if len(listed) > most else [])
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
