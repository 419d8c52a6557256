"""Test predictions of a trained network with another confidence, by an entry of the rescorers."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job_kinds import Row


def entries(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the rows."""
    yield "rescorers", options["rescorer"]


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Rescore by `rescorer`, a name with its options, for instance `clamping:gamma=0`.

    The second of the needed folders, if there is one, has the predictions of the training images.
    """
    from calibrant.rescoring.rescore import rescore

    began = time.process_time()
    train = needs[1] / "train.npz" if len(needs) > 1 else None
    p = rescore(needs[0], options["rescorer"], folder, train=train)
    return [{"n": p.n, "cpu_seconds": time.process_time() - began}]
