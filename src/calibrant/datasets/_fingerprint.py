"""Fingerprints of a user's own files: names, sizes and contents."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.files import write_text
from calibrant.core.json import read_json
from calibrant.datasets._image_cache import cache_folder
from calibrant.datasets._make import CATALOGUE
from calibrant.datasets._published_dataset import PublishedDataset

Known = dict[str, list[int | str]]  # file -> its size, its time in nanoseconds, and the hash of its content


def user_root(spec: str) -> str:
    """The root of a data set whose files its user has collected; "" where they have a published size.

    >>> user_root("folder:root=images"), user_root("cifar10:root=images")
    ('images', '')
    """
    name, _, options = spec.partition(":")
    roots = [value for key, _, value in (part.partition("=") for part in options.split(",")) if key.strip() == "root"]
    if not roots or (not name.endswith(".py") and issubclass(CATALOGUE.find(name), PublishedDataset)):
        return ""
    return roots[0].strip()


def fingerprint(place: Path) -> str:
    """A hash of a file, or of the names, sizes and contents of all files in a folder; "" where there is nothing.

    A content that was read before is known by its size and time, from a file in the cache; hidden files do not count.
    """
    place = place.absolute()
    if not place.exists():
        return ""
    cache = cache_folder() / "contents" / f"{sha256(os.fsencode(place)).hexdigest()[:32]}.json"
    known, seen = _read(cache), Known()
    for name, file in _files(place):
        facts = file.stat()
        size_and_time = [facts.st_size, facts.st_mtime_ns]
        before = known.get(name)
        if before is None or before[:2] != size_and_time:
            with file.open("rb") as stream:
                before = [*size_and_time, file_digest(stream, "sha256").hexdigest()]
        seen[name] = before
    if seen != known:
        with suppress(InputError):  # the cache saves time, no more
            write_text(cache, json.dumps(seen))
    text = json.dumps([[name, size, content] for name, (size, _, content) in sorted(seen.items())])
    return sha256(text.encode()).hexdigest()[:16]


def _files(place: Path) -> Iterator[tuple[str, Path]]:
    """The files, with names relative to the folder that are the same on every system."""
    if place.is_file():
        yield "", place
    for folder, folders, names in os.walk(place, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file():
                yield file.relative_to(place).as_posix(), file


def _read(cache: Path) -> Known:
    try:
        known: Known = read_json(cache, expected="a cache", fix="delete it")
        return {name: facts for name, facts in known.items() if len(facts) == 3}
    except (OSError, ValueError, AttributeError, TypeError):  # it is made anew
        return {}
