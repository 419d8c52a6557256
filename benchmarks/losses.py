"""What a loss costs: against cross-entropy, and against one block of a network."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks._clock import OURS, Call, Effort, Lap, race
from benchmarks._page import Section, Target, show, table
from calibrant import models
from calibrant.losses import CATALOGUE, make, names

BATCH, CLASSES = 128, 100
LIGHT = ("focal", "flsd", "label_smoothing", "erl", "mdca")  # have a target against cross-entropy
HEAVY = ("mmce", "dece", "sece")  # look at all pairs or bins: have a target against the network
MOST, MOST_OF_BLOCK = 1.5, 0.05
WORDS = (
    f"Forward and backward through the loss alone, {BATCH} samples and {CLASSES} classes in float32, on one thread of "
    "the CPU: at this size two mostly wait for each other. Each loss runs against `ce`, the two in turn, and the best "
    "time of each counts, so that neither finds its code warmer than the other does. Terms are timed alone; *whole* "
    "adds the partner a term has when it is asked for by itself. PyTorch's own `cross_entropy` reduces to the mean in "
    "the same call: what `ce` would cost without a value per row. The block is the last of ResNet-18 (512 channels, "
    "4 x 4), forward and backward at the same batch, on all threads."
)

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def run(*, smoke: bool) -> Section:
    effort = Effort(2, 1.0) if smoke else Effort(3000, 1.0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        laps = {name: _race(loss, effort) for name, loss in _losses().items()}
    finally:
        torch.set_num_threads(threads)
    block = race({OURS: _block(4 if smoke else BATCH)}, Effort(1 if smoke else 5, 20.0))[OURS].best
    section = Section("Losses", WORDS)
    section.targets = [
        Target(f"{name} in times of ce, forward and backward", _times(laps[name]), "most", MOST) for name in LIGHT
    ]
    section.targets += [
        Target(f"{name} in times of the last block of ResNet-18", laps[name]["it"].best / block, "most", MOST_OF_BLOCK)
        for name in HEAVY
    ]
    section.tables = [table(["loss", "microseconds", "in times of ce", "of the block"], _rows(laps, block))]
    return section


def _times(pair: dict[str, Lap]) -> float:
    return pair["it"].best / pair["ce"].best


def _rows(laps: dict[str, dict[str, Lap]], block: float) -> list[list[str]]:
    rows = [
        [name, show(pair["it"].best * 1e6), f"**{show(_times(pair))}x**", f"{100 * pair['it'].best / block:.2f} %"]
        for name, pair in sorted(laps.items(), key=lambda item: _times(item[1]))
    ]
    return [*rows, ["last block of ResNet-18", show(block * 1e6), "", "100 %"]]


def _losses() -> dict[str, Loss]:
    theirs: dict[str, Loss] = {"torch cross_entropy": lambda z, y, _: functional.cross_entropy(z, y)}
    return theirs | {name: CATALOGUE.make(name) for name in names() if name != "ce"} | {"mdca, whole": make("mdca")}


def _race(loss: Loss, effort: Effort) -> dict[str, Lap]:
    random = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(BATCH, CLASSES, generator=random)
    labels = torch.randint(CLASSES, (BATCH,), generator=random)
    return race({"ce": _step(make("ce"), logits, labels), "it": _step(loss, logits, labels)}, effort)


def _step(loss: Loss, logits: Tensor, labels: Tensor) -> Call:
    ids = torch.arange(len(labels))
    if isinstance(loss, torch.nn.Module):
        loss.start(len(labels), 10)

    def step() -> float:
        z = logits.detach().requires_grad_()
        loss(z, labels, ids).backward()
        return 0.0

    return step


def _block(batch: int) -> Call:
    network = models.build("resnet:depth=18", models.Shape(CLASSES))
    block = network.blocks[-1]
    x = torch.randn(batch, 512, 4, 4, requires_grad=True)

    def step() -> float:
        block(x).sum().backward()
        return 0.0

    return step
