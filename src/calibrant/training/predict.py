"""Predictions of a network on a part of a data set: logits, labels, features and ids."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibrant import corruptions
from calibrant.core.predictions import Predictions
from calibrant.core.torch.layers import check_finite
from calibrant.corruptions import Corruption
from calibrant.datasets import Part
from calibrant.models import Network
from calibrant.training.attacks import Attack, make_attack
from calibrant.training.batches import Batches, Pixels
from calibrant.training.images import part_of_run
from calibrant.training.run import open_run

Change = Callable[[Tensor, Tensor, Tensor], Tensor]  # of images with their labels and row numbers


def predict(
    network: Network,
    part: Part,
    pixels: Pixels,
    *,
    batch: int = 256,
    features: bool = True,
    precision: AbstractContextManager[Any] | None = None,
    on_batch: Any = None,
    attack: Attack | None = None,
    seed: int = 0,
) -> Predictions:
    """Predict every image, attacked if asked, in the order of the part; the network is left as it was."""
    change, inputs = None, pixels
    if attack is not None:
        change = _attack(network, pixels, attack, seed)
        inputs = replace(pixels, mean=(0.0,), std=(1.0,))  # attacks look at images before normalisation
    logits, inner = _outputs(
        network, Batches(part=part, size=batch, pixels=inputs), precision or nullcontext(), on_batch, change
    )
    check_finite(logits, np.arange(len(logits)))
    return Predictions.from_logits(logits, part.labels, features=inner if features else None, ids=part.ids)


def _attack(network: Network, pixels: Pixels, attack: Attack, seed: int) -> Change:
    def change(x: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
        attacked = attack(lambda moved: _wide(network(pixels.normalise(moved))), x, labels, rows, seed)
        return pixels.normalise(attacked)

    return change


def _outputs(
    network: Network, batches: Batches, precision: Any, on_batch: Any, change: Change | None
) -> tuple[Any, Any]:
    training = network.training
    network.eval()
    kind = next(network.parameters()).dtype
    logits: list[Tensor] = []
    inner: list[Tensor] = []
    try:
        with torch.inference_mode() if change is None else torch.no_grad(), precision:  # an attack needs gradients
            for x, labels, rows in batches.in_order():
                x = x.to(kind)
                h = network.features(x if change is None else change(x, labels, rows))
                logits.append(_wide(network.head(h)).cpu())
                inner.append(_wide(h).cpu())
                if on_batch is not None:
                    on_batch(len(x))
    finally:
        network.train(training)
    return torch.cat(logits).numpy(), torch.cat(inner).numpy()


def predict_run(
    folder: str | Path,
    *,
    data: str | None = None,
    root: str = "",
    part: str = "test",
    corrupt: str | None = None,
    attack: str | None = None,
    batch: int = 256,
    device: str = "auto",
    seed: int = 0,
    on_batch: Any = None,
) -> Predictions:
    """Predictions of a finished run on a part of its own data set, or of another one that fits.

    Images may be corrupted (`fog:severity=3`) and then attacked (`pgd:eps=1/255`), both by the seed.
    """
    by = None if attack is None else make_attack(attack)
    run = open_run(folder)
    where = device_of(device)
    chosen = part_of_run(run, part, data=data, root=root)
    if corrupt is not None:
        chosen = corrupt_part(chosen, corruptions.make(corrupt), seed)
    pixels = run.pixels(where)
    return predict(run.network(where), chosen, pixels, batch=batch, attack=by, seed=seed, on_batch=on_batch)


def device_of(name: str) -> torch.device:
    """The device of a name; `auto` is the fastest one there is."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def corrupt_part(part: Part, corruption: Corruption, seed: int) -> Part:
    """The part with every image corrupted, in the same way for the same seed."""
    rng = np.random.default_rng(seed)
    pieces = np.array_split(np.arange(len(part)), max(1, len(part) // 1000))
    images = np.concatenate([corruption(part.images[rows], rng) for rows in pieces])
    return Part(images, part.labels, part.classes, part.ids)


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
