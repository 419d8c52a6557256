"""ConfidNet of a run: learned from its training or validation images, written beside its own predictions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.errors import unknown_name
from calibrant.core.predictions import Predictions
from calibrant.datasets import Part, Splits
from calibrant.rescorers.confidnet import ConfidNet, FittedConfidNet, OnEpoch
from calibrant.rescoring.rescored import Rescored
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.predict import device_of
from calibrant.training.recipe import Data
from calibrant.training.run import Run, open_run

HELD_OUT = 0.1  # share of the images to learn from that selects the epoch instead
STATE = "state.safetensors"


def rescore_by_confidnet(
    folder: Path,
    options: ConfidNet,
    out: Path,
    *,
    learn: str = "train",
    augment: bool = False,
    restart: bool = False,
    device: str = "auto",
    allow_code: bool = False,
    on_epoch: OnEpoch | None = None,
) -> Rescored[FittedConfidNet]:
    """Learn a confidence for the run in `folder` and write it, with its predictions, to `out`.

    An interrupted fit leaves its state in `out`; the next call continues from it, unless `restart` says otherwise.
    """
    run, where = open_run(folder, allow_code=allow_code), device_of(device)
    splits, state = load_splits(run.recipe), out / STATE
    part = {"train": splits.train, "val": splits.val}.get(learn)
    if part is None:
        raise unknown_name("--learn", learn, ["train", *(["val"] if splits.val else [])])
    if restart:
        state.unlink(missing_ok=True)
    learned, selecting, data = _loaders(run, part, options, augment, where)
    fitted = options.fit(
        run.network(where), learned, selecting, augmented=data.augment != "none", state=state, on_epoch=on_epoch
    )
    fitted.save(out)
    return _written(run, splits, fitted, learn, where, out)


@dataclass
class Shuffled:
    """Training batches in an order of their own in each epoch."""

    batches: Batches
    data: Data
    epoch: int = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        return self.batches.shuffled(self.epoch, self.data)


def _loaders(run: Run, part: Part, options: ConfidNet, augment: bool, where: Any) -> tuple[Shuffled, Batches, Data]:
    """Images to learn from, others that select the epoch, and what is done to the former."""
    order, pixels = np.random.default_rng(options.seed).permutation(len(part)), run.pixels(where)
    selecting, learned = np.split(order, [max(2, round(HELD_OUT * len(part)))])
    data = run.recipe.data if augment else replace(run.recipe.data, augment="none")
    batches = Batches(part.take(np.sort(learned)), options.batch, pixels, options.seed)
    return Shuffled(batches, data), Batches(part.take(np.sort(selecting)), 256, pixels), data


def _written(
    run: Run, splits: Splits, fitted: FittedConfidNet, learn: str, where: Any, out: Path
) -> Rescored[FittedConfidNet]:
    """The run's own predictions with the new confidences; returns those of the test part."""
    parts = {"test": splits.test} | ({"val": splits.val} if splits.val is not None else {})
    made = {}
    for name, part in parts.items():
        before: Predictions = getattr(run, name)
        after = before.with_confidence(fitted.confidence(Batches(part, 256, run.pixels(where, name))))
        extras = replace(after.extras, seen=1.0 if name == learn else after.extras.seen)
        made[name] = Rescored(before, Predictions(after.values, after.labels, after.kind, extras), fitted)
        made[name].after.save(out / f"{name}.npz")
    return made["test"]
