"""Test predictions of a trained network with another confidence, by an entry of the rescorers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job import Row

VERSION = 1


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """`rescorer` is the name of one with its options, for instance `clamping:gamma=0`."""
    from calibrant.rescoring.rescore import rescore

    return [{"n": rescore(needs[0], options["rescorer"], folder).n}]
