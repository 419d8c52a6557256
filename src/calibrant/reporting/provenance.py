"""Provenance of a report: versions, command, seed, and a fingerprint of the data that anyone can check."""

import hashlib
import os
import platform
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np

from calibrant.core.errors import InputError, visible
from calibrant.core.predictions import Predictions
from calibrant.reporting.parts import Provenance, SourceFile

PACKAGES = ("calibrant", "numpy", "scipy", "polars", "altair")
BLOCK = 1 << 20


def provenance(sources: Sequence[SourceFile], command: str | None, seed: int, resamples: int | None) -> Provenance:
    return Provenance(
        date=today(),
        command=command,
        seed=seed,
        resamples="100 to 1,000, by measure and rows" if resamples is None else f"{resamples:,}",
        versions=package_versions(),
        sources=tuple(sources),
    )


def today() -> str:
    """The date, from SOURCE_DATE_EPOCH where it is set, so that pages can be made again byte for byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return datetime.fromtimestamp(int(epoch), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise InputError("SOURCE_DATE_EPOCH", expected="seconds since 1970", got=f"'{epoch}'", fix="unset it") from None


def source_of(p: Predictions, name: str, role: str, file: Path | None = None) -> SourceFile:
    digest = hash_file(file) if file and file.is_file() else _hash_numbers(p)
    return SourceFile(name=visible(name), role=role, n=p.n, k=p.k, kind=p.score_type, sha256=digest)


def command_line(arguments: Sequence[str]) -> str:
    """The command that was typed, without folders of this machine.

    >>> command_line(["report", "/home/me/test.npz", "--title", "my net"])
    "calibrant report test.npz --title 'my net'"
    """
    return visible(shlex.join(["calibrant", *map(_without_folder, arguments)]))


def _without_folder(argument: str) -> str:
    option, equals, text = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{option}{equals}{Path(text).name if Path(text).is_absolute() else text}"


def hash_file(file: Path) -> str:
    total = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            total.update(block)
    return total.hexdigest()


def _hash_numbers(p: Predictions) -> str:
    total = hashlib.sha256(f"{p.score_type} {p.n} {p.k} {p.values.dtype}".encode())
    for array in (p.values, p.labels):
        total.update(np.ascontiguousarray(array).view(np.uint8).data)
    return total.hexdigest()


def package_versions() -> dict[str, str]:
    """The versions that numbers depend on, ours first."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return dict(sorted(versions.items(), key=lambda item: item[0] != "calibrant"))
