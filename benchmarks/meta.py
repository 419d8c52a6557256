"""A step of meta-regularisation: against a plain step, and against the double backward it replaces."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks._page import Section, Target, show, table
from benchmarks.memory import _forget_peak, _status

NETWORKS, ROUNDS = ("resnet:depth=18", "resnet8"), {"resnet:depth=18": 5, "resnet8": 30}
BATCH, SMOKE_BATCH = 128, 8
ROOT = Path(__file__).parents[1]
WAYS = {"jvp": "forward mode", "double_backward": "double backward", "everything": "backward() of everything"}
WORDS = (
    "Steps at batch 128, of training and of meta images, 32 x 32 x 3, on this machine's CPU; they alternate, and "
    "ratios are of medians. The gamma-Net step looks ahead through the last layer and learns by CE + 0.5 SECE; a "
    "plain step is forward, cross-entropy, backward and SGD. The full look-ahead goes through all weights: by one "
    "forward-mode pass (ours), by double backward for gamma-Net's gradient alone (our reference, the same numbers), "
    "or by calling `backward()` on the objective, which computes gradients of the network too, as scripts do. "
    "Memory is the highest of a fresh process in one step, less what it held before."
)


def run(*, smoke: bool) -> Section:
    import torch

    if not smoke:
        torch.set_num_threads(os.cpu_count() or 1)  # the peers' topics change it
    section = Section("Meta-regularisation", WORDS)
    size = SMOKE_BATCH if smoke else BATCH
    rows = []
    for name in NETWORKS[1:] if smoke else NETWORKS:
        steps = [_step(name, size, how) for how in ("head", "plain")]
        meta, plain = _race(steps, 2 if smoke else ROUNDS[name])
        rows.append([name, show(1000 * meta), show(1000 * plain), f"**{show(meta / plain)}x**"])
        section.targets.append(Target(f"a gamma-Net step of {name}, in plain steps", meta / plain, "most", 1.5))
    section.tables.append(table(["network", "gamma-Net step, ms", "plain step, ms", "ratio"], rows))

    name = NETWORKS[1] if smoke else NETWORKS[0]
    times = dict(zip(WAYS, _race([_step(name, size, how) for how in WAYS], 1 if smoke else 2), strict=True))
    peaks = {how: _in_fresh_process(name, size, how) for how in WAYS}
    what = f"full look-ahead of {name} by forward mode"
    shares = [values["jvp"] / values["double_backward"] for values in (times, peaks)]
    section.targets += [
        Target(f"{what}: time, of double backward", shares[0], "most", 0.7),
        Target(f"{what}: peak memory, of double backward", shares[1], "most", 0.6),
    ]
    lines = [
        ["time of a step, s", *map(show, times.values()), f"**{show(shares[0])}x**"],
        ["peak memory, MB", *(show(peak / 1e6) for peak in peaks.values()), f"**{show(shares[1])}x**"],
    ]
    head = [f"full look-ahead, {name}", *WAYS.values(), "forward mode / double backward"]
    section.tables.append(table(head, lines))
    return section


def _step(name: str, size: int, how: str) -> Callable[[], None]:
    """A step of a fresh network: plain, with the last layer looking ahead, or with all weights doing so."""
    import torch

    from calibrant import losses, models
    from calibrant.training.learned_losses import GammaNet
    from calibrant.training.meta import MetaStep

    torch.manual_seed(0)
    network = models.build(name, models.Shape(10)).train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    x, labels = torch.randn(2, size, 3, 32, 32), torch.randint(10, (2, size))
    ce = losses.make("ce")
    if how == "plain":
        loss = lambda: ce(network(x[0]), labels[0])  # noqa: E731
    elif how == "everything":
        loss = _scripted(network, x, labels)
    else:
        options = {"lookahead": "head"} if how == "head" else {"lookahead": "full", "by": how}
        meta = MetaStep(network, GammaNet(network.head.in_features, 10), objective="ce + 0.5*sece", **options)
        loss = lambda: meta(x[0], labels[0], x[1], labels[1], 0.01).loss  # noqa: E731

    def step() -> None:
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _scripted(network: Any, x: Any, labels: Any) -> Callable[[], Any]:
    """The step as scripts write it: the objective's `backward()`, then the loss with the new regulariser."""
    import torch
    from torch.func import functional_call

    from calibrant import losses
    from calibrant.training.learned_losses import GammaNet

    learned = GammaNet(network.head.in_features, 10)
    adam, objective = torch.optim.Adam(learned.parameters(), lr=1e-3), losses.make("ce + 0.5*sece")

    def loss() -> Any:
        features = network.features(x[0])
        logits, weights = network.head(features), dict(network.named_parameters())
        inner = learned.loss(logits, labels[0], features, {}, "mean")
        slopes = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        ahead = {name: w - 0.01 * slope for (name, w), slope in zip(weights.items(), slopes, strict=True)}
        objective(functional_call(network, ahead, (x[1],)), labels[1]).backward(retain_graph=True)
        adam.step()
        adam.zero_grad()
        network.zero_grad()
        return learned.loss(logits, labels[0], features, {}, "mean")

    return loss


def _race(steps: list[Callable[[], None]], rounds: int) -> list[float]:
    """Medians of steps that take turns, after one of each."""
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds + 1):
        for own, step in zip(times, steps, strict=True):
            start = perf_counter()
            step()
            own.append(perf_counter() - start)
    return [statistics.median(own[1:]) for own in times]


def _in_fresh_process(name: str, size: int, how: str) -> int:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.meta", name, str(size), how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600)
    return int(json.loads(done.stdout))


def _peak_of(name: str, size: int, how: str) -> int:
    """Runs in the fresh process."""
    step = _step(name, size, how)
    before = _forget_peak()
    step()
    return _status("VmHWM") - before


if __name__ == "__main__":
    print(_peak_of(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
