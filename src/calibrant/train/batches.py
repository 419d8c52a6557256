"""Batches of a part: gathered by a thread, augmented as tensors, the same for the same seed, epoch and step."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from calibrant.core.arrays import Ints
from calibrant.datasets import Part
from calibrant.train.recipe import Data

AHEAD = 4  # batches gathered before they are asked for


@dataclass(frozen=True)
class Pixels:
    """How uint8 images become what a network takes: float, normalised, channels first."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    device: torch.device
    channels_last: bool = False

    def __call__(self, images: Tensor) -> Tensor:
        """uint8 (B, h, w, c) to float (B, c, h, w)."""
        mean = torch.tensor(self.mean, device=images.device) * 255
        scale = torch.tensor(self.std, device=images.device) * 255
        x = ((images.float() - mean) / scale).permute(0, 3, 1, 2)
        return x.contiguous(memory_format=torch.channels_last if self.channels_last else torch.contiguous_format)


@dataclass(frozen=True)
class Batches:
    """The batches of one part. Nothing is remembered: any step of any epoch can be made again."""

    part: Part
    size: int  # of a batch, over all processes
    pixels: Pixels
    seed: int = 0
    rank: int = 0
    processes: int = 1

    def steps(self) -> int:
        """Batches in a training epoch; a last one with fewer than two images for a process is left out."""
        whole, rest = divmod(len(self.part), self.size)
        return whole + (rest >= 2 * self.processes)

    def shuffled(self, epoch: int, data: Data, start: int = 0) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Augmented images, labels and row numbers of an epoch, from step `start` on."""
        mine = self._shares(epoch, start)
        for step, (taken, images) in enumerate(zip(mine, self._gathered(mine), strict=True), start):
            x = augmented(images.to(self.pixels.device), data, self.generator(epoch, step))
            yield self.pixels(x), *self._labels(taken)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return self.in_order()

    def in_order(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images as they are, labels and row numbers, in the order of the part."""
        rows = np.split(np.arange(len(self.part)), np.arange(self.size, len(self.part), self.size))
        for taken, images in zip(rows, self._gathered(rows), strict=True):
            yield self.pixels(images.to(self.pixels.device)), *self._labels(taken)

    def endless(self, start: int, *, reshuffle: bool = True) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images as they are, from step `start` of an endless row of passes, each in another random order."""
        passes, step = divmod(start, self.steps())
        while True:
            for taken in self._shares(passes if reshuffle else 0, step):
                images = torch.from_numpy(np.ascontiguousarray(self.part.images[taken]))
                yield self.pixels(images.to(self.pixels.device)), *self._labels(taken)
            passes, step = passes + 1, 0

    def generator(self, epoch: int, step: int) -> torch.Generator:
        """Random numbers of one step of one process."""
        state = np.random.SeedSequence([self.seed, epoch, step, self.rank]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state[0] >> 1))

    def _shares(self, epoch: int, start: int) -> list[Ints]:
        """Row numbers of this process in every step of a shuffled epoch, from step `start` on."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.part))
        rows = [order[s * self.size : (s + 1) * self.size] for s in range(start, self.steps())]
        return [r[: len(r) // self.processes * self.processes][self.rank :: self.processes] for r in rows]

    def _labels(self, rows: Ints) -> tuple[Tensor, Tensor]:
        labels, device = torch.from_numpy(self.part.labels[rows]), self.pixels.device
        return labels.to(device), torch.from_numpy(rows).to(device)

    def _gathered(self, rows: list[Ints]) -> Iterator[Tensor]:
        """uint8 images of each list of rows, read by a thread a few batches ahead."""
        ready: queue.Queue[Tensor | BaseException] = queue.Queue(AHEAD)
        stop = threading.Event()

        def gather() -> None:
            try:
                for taken in rows:
                    made = torch.from_numpy(np.ascontiguousarray(self.part.images[taken]))
                    while not stop.is_set():
                        try:
                            ready.put(made, timeout=0.1)
                            break
                        except queue.Full:
                            continue
                    if stop.is_set():
                        return
            except BaseException as error:
                ready.put(error)

        thread = threading.Thread(target=gather, daemon=True)
        thread.start()
        try:
            for _ in rows:
                got = ready.get()
                if isinstance(got, BaseException):
                    raise got
                yield got
        finally:
            stop.set()
            thread.join()


def augmented(images: Tensor, data: Data, generator: torch.Generator) -> Tensor:
    """uint8 images (B, h, w, c), cropped and flipped at random."""
    if data.augment == "crop" and data.pad:
        images = random_crop(images, data.pad, generator)
    elif data.augment == "resized":
        images = random_resized_crop(images, generator)
    return random_flip(images, generator) if data.flip and data.augment != "none" else images


def random_crop(images: Tensor, pad: int, generator: torch.Generator) -> Tensor:
    """Pad with black on every side, then cut a window of the old size at a random place."""
    n, height, width, _ = images.shape
    padded = F.pad(images, (0, 0, pad, pad, pad, pad))
    top, left = torch.randint(2 * pad + 1, (2, n, 1), generator=generator).to(images.device)
    rows = top + torch.arange(height, device=images.device)  # (n, height)
    cols = left + torch.arange(width, device=images.device)
    index = torch.arange(n, device=images.device)[:, None, None]
    return padded[index, rows[:, :, None], cols[:, None, :]]


def random_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror half of the images, left to right."""
    flip = (torch.rand(len(images), generator=generator) < 0.5).to(images.device)
    return torch.where(flip[:, None, None, None], images.flip(2), images)


def random_resized_crop(images: Tensor, generator: torch.Generator) -> Tensor:
    """Cut 8 % to 100 % of the area at a ratio of 3:4 to 4:3, and stretch it to the old size."""
    n = len(images)
    area = 0.08 + 0.92 * torch.rand(n, generator=generator)
    ratio = torch.exp((2 * torch.rand(n, generator=generator) - 1) * np.log(4 / 3))
    half_w, half_h = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    x, y = (2 * torch.rand(2, n, generator=generator) - 1) * (1 - torch.stack([half_w, half_h]))
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1], theta[:, 0, 2], theta[:, 1, 2] = half_w, half_h, x, y
    floats = images.permute(0, 3, 1, 2).float()
    grid = F.affine_grid(theta.to(images.device), list(floats.shape), align_corners=False)
    cut = F.grid_sample(floats, grid, padding_mode="border", align_corners=False)
    return cut.round().clamp(0, 255).byte().permute(0, 2, 3, 1)
