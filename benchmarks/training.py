"""A step of training: our loop against a bare one, and how long the images take."""

import statistics
import tempfile
from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch

from benchmarks._page import Section, Target, show, table
from calibrant import models
from calibrant.datasets import Part, Splits
from calibrant.training.batches import Batches, Pixels
from calibrant.training.loop import TrainingProgress, train
from calibrant.training.recipe import Data, Optimizer, Recipe

NETWORKS, STEPS, SMOKE_STEPS, BATCH = ("resnet:depth=18", "resnet8"), {"resnet:depth=18": 8, "resnet8": 60}, 2, 128
WORDS = (
    "Steps with cross-entropy at batch 128 on images of 32 x 32 x 3, on this machine's CPU. Ours is the whole of "
    "`calibrant train`: gathering, cropping, flipping, the step, the log and the screen. The bare loop has the images "
    "normalised in memory and does forward, backward and SGD, no more. Steps alternate, in one process; the ratio is "
    "of the medians. A batch of images is timed alone, too: it must be ready long before the step before it ends."
)


def run(*, smoke: bool) -> Section:
    section = Section("Training", WORDS)
    rows = []
    for name in NETWORKS[1:] if smoke else NETWORKS:
        ours, bare, images = _race(name, SMOKE_STEPS if smoke else STEPS[name])
        section.targets += [
            Target(f"a step of {name} at batch {BATCH}, in steps of a bare loop", ours / bare, "most", 1.05),
            Target(f"making a batch of images, in steps of {name}", images / bare, "most", 0.25),
        ]
        rows.append([name, *(show(1000 * value) for value in (ours, bare, images)), f"**{show(ours / bare)}x**"])
    head = ["network", "our step, ms", "a bare step, ms", "a batch of images, ms", "our step / a bare one"]
    section.tables = [table(head, rows)]
    return section


def _race(name: str, steps: int) -> tuple[float, float, float]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (steps * BATCH, 32, 32, 3)).astype(np.uint8)
    part = Part(images, rng.integers(0, 10, steps * BATCH), tuple("0123456789"))
    recipe = Recipe(model=name, epochs=1, batch=BATCH, optimizer=Optimizer(lr=0.01))
    pixels = Pixels((0.5,), (0.25,), torch.device("cpu"))
    bare_step = _bare(name, pixels(torch.from_numpy(images[:BATCH])), torch.from_numpy(part.labels[:BATCH]))
    bare_step()
    ours, bare = list[float](), list[float]()
    began = 0.0

    def between(now: TrainingProgress) -> None:
        nonlocal began
        if now.row is None:
            ours.append(perf_counter() - began)
            start = perf_counter()
            bare_step()
            bare.append(perf_counter() - start)
            began = perf_counter()

    few = part.take(np.arange(BATCH))
    with tempfile.TemporaryDirectory() as folder:
        train(recipe, folder, splits=Splits(part, few), device="cpu", on_progress=between)
    return statistics.median(ours[1:]), statistics.median(bare[1:]), _images(part, recipe.data, pixels)


def _bare(name: str, x: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    network = models.build(name, models.Shape(10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)

    def step() -> None:
        torch.nn.functional.cross_entropy(network(x), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _images(part: Part, data: Data, pixels: Pixels) -> float:
    batches = Batches(part=part, size=BATCH, pixels=pixels)
    start = perf_counter()
    result = sum(1 for _ in batches.shuffle(0, data))
    return (perf_counter() - start) / result
