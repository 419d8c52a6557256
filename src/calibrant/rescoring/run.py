"""A run for rescorers: its predictions, its network, its images."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.cached_property import cached_property
from calibrant.core.errors import unknown_name
from calibrant.core.predictions import Predictions
from calibrant.datasets import Part
from calibrant.rescoring.rescored_predictions import Bar, load_held_out, no_bar, predictions_of
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.predict import device_of
from calibrant.training.recipe import Data
from calibrant.training.run import Run, open_run

HELD_OUT = 0.1  # share of the images to learn from that selects the epoch instead


@dataclass(frozen=True)
class RunToRescore:
    """The run in a folder, opened when it is first needed. Implements `calibrant.rescorers.TrainedRun`."""

    folder: Path
    out: Path
    device: str = "auto"
    bar: Bar = no_bar
    train: Path | None = None  # predictions of the training images, where there are any already

    @cached_property
    def run(self) -> Run:
        return open_run(self.folder)

    @cached_property
    def parts(self) -> dict[str, Part]:
        return {name: part for name, part in vars(load_splits(self.run.recipe)).items() if part is not None}

    @property
    def judged(self) -> tuple[str, ...]:
        return tuple(name for name in ("val", "test") if name in self.parts)

    @property
    def input_range(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        mean, std, channels = self.run.mean, self.run.std, self.run.shape.channels
        pairs = [(mean[c % len(mean)], std[c % len(std)]) for c in range(channels)]
        return tuple((0 - m) / s for m, s in pairs), tuple((1 - m) / s for m, s in pairs)

    def predictions(self, part: str) -> Predictions:
        if part == "val":
            return load_held_out(self.folder, None)
        if part == "train" and self.train is not None:
            return Predictions.load(self.train)
        return predictions_of(self.folder, part, device=self.device, bar=self.bar)

    def network(self) -> Any:
        return self.run.network(device_of(self.device))

    def batches(self, part: str, size: int) -> Batches:
        return Batches(part=self._part(part), size=size, pixels=self.run.pixels(device_of(self.device)))

    def learning_batches(
        self, part: str, size: int, seed: int, *, augment: bool = False
    ) -> tuple["ShuffledBatches", Batches, bool]:
        images, pixels = self._part(part), self.run.pixels(device_of(self.device))
        order = np.random.default_rng(seed).permutation(len(images))
        selecting, learned = np.split(order, [max(2, round(HELD_OUT * len(images)))])
        data = self.run.recipe.data if augment else replace(self.run.recipe.data, augment="none")
        shuffled = ShuffledBatches(
            Batches(part=images.take(np.sort(learned)), size=size, pixels=pixels, seed=seed), data
        )
        return shuffled, Batches(part=images.take(np.sort(selecting)), size=256, pixels=pixels), data.augment != "none"

    def _part(self, name: str) -> Part:
        if name not in self.parts:
            raise unknown_name("part of the run", name, self.parts)
        return self.parts[name]


@dataclass
class ShuffledBatches:
    """Training batches in an order of their own in each epoch."""

    batches: Batches
    data: Data
    epoch: int = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        return self.batches.shuffle(self.epoch, self.data)
