"""Predictions of a network on a part of a data set: logits, labels, features and ids."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibrant import corruptions, datasets
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.predictions import Predictions
from calibrant.corruptions import Corruption
from calibrant.datasets import Part, Splits
from calibrant.models import Network, Shape
from calibrant.train.batches import Batches, Pixels
from calibrant.train.recipe import Recipe
from calibrant.train.run import open_run


def predict(
    network: Network,
    part: Part,
    pixels: Pixels,
    *,
    batch: int = 256,
    features: bool = True,
    precision: AbstractContextManager[Any] | None = None,
    on_batch: Any = None,
) -> Predictions:
    """What the network says of every image, in the order of the part; the network is left as it was."""
    logits, inner = _outputs(network, Batches(part, batch, pixels), precision or nullcontext(), on_batch)
    return Predictions.from_logits(
        logits, part.labels, features=inner if features else None, ids=part.ids, few_rows=True
    )


def _outputs(network: Network, batches: Batches, precision: Any, on_batch: Any) -> tuple[Any, Any]:
    training = network.training
    network.eval()
    kind = next(network.parameters()).dtype
    logits: list[Tensor] = []
    inner: list[Tensor] = []
    try:
        with torch.inference_mode(), precision:
            for x, _, _ in batches.in_order():
                h = network.features(x.to(kind))
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
    batch: int = 256,
    device: str = "auto",
    seed: int = 0,
) -> Predictions:
    """Predictions of a finished run on a part of its own data set, or of another one that fits."""
    run = open_run(folder)
    where = device_of(device)
    if data is None:
        splits = load_splits(run.recipe)
        chosen = {"train": splits.train, "val": splits.val, "test": splits.test, "meta": splits.meta}.get(part)
        if chosen is None:
            raise unknown_name("part", part, [name for name in vars(splits) if getattr(splits, name) is not None])
    else:
        dataset = datasets.make(data, root)
        if part not in dataset.parts:
            raise unknown_name(f"part of {data}", part, dataset.parts)
        chosen = dataset.load(part)
    chosen = fitting(chosen, run.shape, data or run.recipe.data.name)
    if corrupt is not None:
        chosen = corrupted(chosen, corruptions.make(corrupt), seed)
    pixels = run.pixels(where, part if data is None else "train")
    return predict(run.network(where), chosen, pixels, batch=batch)


def load_splits(recipe: Recipe) -> Splits:
    """The parts that the recipe names, with its limits."""
    d = recipe.data
    splits = datasets.split(datasets.make(d.name, d.root), d.split, d.split_seed)
    if not d.limit and not d.test_limit:
        return splits

    def few(part: Part | None, limit: int) -> Part | None:
        if part is None or not limit or limit >= len(part):
            return part
        return part.take(np.sort(np.random.default_rng(d.split_seed).permutation(len(part))[:limit]))

    train, test = few(splits.train, d.limit), few(splits.test, d.test_limit)
    assert train is not None
    assert test is not None
    return Splits(train, test, few(splits.val, d.test_limit), splits.meta)


def device_of(name: str) -> torch.device:
    """The device of a name; `auto` is the fastest one there is."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def corrupted(part: Part, corruption: Corruption, seed: int) -> Part:
    """The part with every image corrupted, in the same way for the same seed."""
    rng = np.random.default_rng(seed)
    pieces = np.array_split(np.arange(len(part)), max(1, len(part) // 1000))
    images = np.concatenate([corruption(part.images[rows], rng) for rows in pieces])
    return Part(images, part.labels, part.classes, part.ids)


def fitting(part: Part, shape: Shape, what: str) -> Part:
    """The part, if a network of this shape can look at it."""
    _, height, width, channels = part.images.shape
    if (height, width, channels) != (shape.size, shape.size, shape.channels):
        raise InputError(
            what,
            expected=f"images of {shape.size} x {shape.size} x {shape.channels}, as in training",
            got=f"{height} x {width} x {channels}",
            fix="use a data set of the same kind, or give it the option size",
        )
    if len(part.classes) != shape.classes:
        fix = "use a data set with the classes of the training"
        raise InputError(what, expected=f"{shape.classes} classes", got=f"{len(part.classes)}", fix=fix)
    return part


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
