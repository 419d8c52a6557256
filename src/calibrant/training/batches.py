"""Batches of a part: gathered by a thread, augmented as tensors, the same for the same seed, epoch and step."""

import math
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from calibrant.core.arrays import Ints
from calibrant.datasets import Bytes, Part, Window
from calibrant.training.recipe import Data

AHEAD = 4  # batches gathered before they are asked for
TRIES = 10  # draws of a window before the centre is taken


@dataclass(frozen=True)
class Pixels:
    """Convert uint8 images to a network's input: float, normalised, channels first."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    device: torch.device
    channels_last: bool = False

    def __call__(self, images: Tensor) -> Tensor:
        """Convert uint8 (B, h, w, c) to float (B, c, h, w)."""
        mean = torch.tensor(self.mean, device=images.device) * 255
        scale = torch.tensor(self.std, device=images.device) * 255
        x = ((images.float() - mean) / scale).permute(0, 3, 1, 2)
        return x.contiguous(memory_format=torch.channels_last if self.channels_last else torch.contiguous_format)

    def normalise(self, x: Tensor) -> Tensor:
        """Normalise float (B, c, h, w) in [0, 1]."""
        mean, std = (
            torch.tensor(values, device=x.device, dtype=x.dtype)[:, None, None] for values in (self.mean, self.std)
        )
        return (x - mean) / std


@dataclass(frozen=True, kw_only=True)
class Batches:
    """The batches of one part. Nothing is remembered: any step of any epoch can be made again."""

    part: Part
    size: int  # of a batch, over all processes
    pixels: Pixels
    seed: int = 0
    rank: int = 0
    processes: int = 1

    def steps(self) -> int:
        """Number of batches in a training epoch; a last one with fewer than two images for a process is left out."""
        whole, rest = divmod(len(self.part), self.size)
        return whole + (rest >= 2 * self.processes)

    def shuffle(self, epoch: int, data: Data, start: int = 0) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Augmented images, labels and row numbers of an epoch, from step `start` on."""
        mine, originals = self._shares(epoch, start), self.part.originals if data.augment == "resized" else None

        def read(i: int) -> Bytes:
            if originals is None:
                return self.part.images[mine[i]]
            return originals.cut(mine[i], random_windows(len(mine[i]), self.generator(epoch, start + i, stream=1)))

        left = data if originals is None else replace(data, augment="flip")
        for step, (rows, images) in enumerate(zip(mine, self._gather(len(mine), read), strict=True), start):
            x = augment(images.to(self.pixels.device), left, self.generator(epoch, step))
            yield self.pixels(x), *self._labels(rows)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return self.in_order()

    def count(self) -> int:
        """The number of images of the part."""
        return len(self.part)

    def pick(self, rows: Ints) -> tuple[Tensor, Tensor]:
        """Images without augmentation and labels, by number."""
        images = torch.from_numpy(np.ascontiguousarray(self.part.images[rows]))
        return self.pixels(images.to(self.pixels.device)), self._labels(rows)[0]

    def in_order(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images without augmentation, labels and row numbers, in the order of the part."""
        batches = np.split(np.arange(len(self.part)), np.arange(self.size, len(self.part), self.size))
        for rows, images in zip(
            batches, self._gather(len(batches), lambda i: self.part.images[batches[i]]), strict=True
        ):
            yield self.pixels(images.to(self.pixels.device)), *self._labels(rows)

    def endless(self, start: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Images without augmentation, from step `start` of endless passes, each in another random order."""
        passes, step = divmod(start, self.steps())
        while True:
            for rows in self._shares(passes, step):
                images = torch.from_numpy(np.ascontiguousarray(self.part.images[rows]))
                yield self.pixels(images.to(self.pixels.device)), *self._labels(rows)
            passes, step = passes + 1, 0

    def generator(self, epoch: int, step: int, stream: int = 0) -> torch.Generator:
        """Random numbers of one step of one process; another stream has others."""
        streams = [stream] if stream else []
        state = np.random.SeedSequence([self.seed, epoch, step, self.rank, *streams]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state[0] >> 1))

    def _shares(self, epoch: int, start: int) -> list[Ints]:
        """Row numbers of this process in every step of a shuffled epoch, from step `start` on."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.part))
        rows = [order[s * self.size : (s + 1) * self.size] for s in range(start, self.steps())]
        return [r[: len(r) // self.processes * self.processes][self.rank :: self.processes] for r in rows]

    def _labels(self, rows: Ints) -> tuple[Tensor, Tensor]:
        labels, device = torch.from_numpy(self.part.labels[rows]), self.pixels.device
        return labels.to(device), torch.from_numpy(rows).to(device)

    def _gather(self, batches: int, read: Callable[[int], Bytes]) -> Iterator[Tensor]:
        """uint8 images of each batch, read by a thread a few batches ahead."""
        ready: queue.Queue[Tensor | BaseException] = queue.Queue(AHEAD)
        stop = threading.Event()

        def gather() -> None:
            try:
                for i in range(batches):
                    batch = torch.from_numpy(np.ascontiguousarray(read(i)))
                    while not stop.is_set():
                        try:
                            ready.put(batch, timeout=0.1)
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
            for _ in range(batches):
                got = ready.get()
                if isinstance(got, BaseException):
                    raise got
                yield got
        finally:
            stop.set()
            thread.join()


def augment(images: Tensor, data: Data, generator: torch.Generator) -> Tensor:
    """Crop and flip uint8 images (B, h, w, c) at random."""
    if data.augment == "crop" and data.pad:
        images = random_crop(images, data.pad, generator)
    elif data.augment == "resized":
        images = random_resized_crop(images, generator)
    return random_flip(images, generator) if data.flip and data.augment != "none" else images


def random_crop(images: Tensor, pad: int, generator: torch.Generator) -> Tensor:
    """Pad with black on every side, then cut a window of the old size at a random place."""
    n, height, width, _ = images.shape
    top, left = torch.randint(2 * pad + 1, (2, n, 1), generator=generator).to(images.device) - pad
    rows = top + torch.arange(height, device=images.device)  # (n, height), of the image; outside of it is black
    cols = left + torch.arange(width, device=images.device)
    index = torch.arange(n, device=images.device)[:, None, None]
    cut = images[index, rows.clamp(0, height - 1)[:, :, None], cols.clamp(0, width - 1)[:, None, :]]
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((cols >= 0) & (cols < width))[:, None, :]
    return torch.where(inside[..., None], cut, 0)


def random_flip(images: Tensor, generator: torch.Generator) -> Tensor:
    """Mirror half of the images, left to right."""
    flip = (torch.rand(len(images), generator=generator) < 0.5).to(images.device)
    return torch.where(flip[:, None, None, None], images.flip(2), images)


def random_resized_crop(images: Tensor, generator: torch.Generator) -> Tensor:
    """Cut a random window out of each image and stretch it to the old size."""
    n, height, width, _ = images.shape
    windows = torch.tensor([window(height, width) for window in random_windows(n, generator)], dtype=torch.float32)
    top, left, tall, wide = windows.T
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = wide / width, tall / height
    theta[:, 0, 2], theta[:, 1, 2] = (2 * left + wide) / width - 1, (2 * top + tall) / height - 1
    floats = images.permute(0, 3, 1, 2).float()
    grid = F.affine_grid(theta.to(images.device), list(floats.shape), align_corners=False)
    cut = F.grid_sample(floats, grid, padding_mode="border", align_corners=False)
    return cut.round().clamp(0, 255).byte().permute(0, 2, 3, 1)


def random_windows(n: int, generator: torch.Generator) -> list[Window]:
    """A window for each of n images: 8 % to 100 % of the area at a ratio of 3:4 to 4:3, drawn until it fits."""
    draws = torch.rand(n, TRIES, 4, generator=generator).tolist()
    return [partial(_window, numbers) for numbers in draws]


def _window(draws: list[list[float]], height: int, width: int) -> tuple[int, int, int, int]:
    """Top, left, height and width: of the first draw that fits, or the largest in the centre, as is usual."""
    for share, shape, down, right in draws:
        area, ratio = height * width * (0.08 + 0.92 * share), (4 / 3) ** (2 * shape - 1)
        tall, wide = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if 0 < tall <= height and 0 < wide <= width:
            return int(down * (height - tall + 1)), int(right * (width - wide + 1)), tall, wide
    tall, wide = min(height, round(width * 4 / 3)), min(width, round(height * 4 / 3))
    return (height - tall) // 2, (width - wide) // 2, tall, wide
