"""Rows that ConfidNet learns from: features of a classifier, and its probability of the true class."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.core.torch.layers import layer, record_inputs
from calibrant.core.torch.loader import Loader, pairs


class ClassifierOutputs(NamedTuple):
    """Features, logits and labels of some images, with the targets and weights that ConfidNet learns from."""

    features: Tensor  # (n, d)
    targets: Tensor  # (n,) probability of the true class
    weights: Tensor  # (n,)
    logits: Tensor  # (n, k)
    labels: Tensor  # (n,)


def collect_outputs(
    network: nn.Module, last: str, loader: Loader, error_weight: float, purpose: str
) -> ClassifierOutputs:
    """Run the network over a loader once; an error says what the images are for (`purpose`) where there are none."""
    parts = []
    with torch.no_grad():
        for x, labels in pairs(loader, network):
            logits, features = look(network, last, x)
            parts.append((features, *aims(logits, labels, error_weight), logits, labels))
    if not parts:
        raise InputError("ConfidNet", expected=purpose, got="an empty loader", fix="give it images and labels")
    rows = ClassifierOutputs(*(torch.cat(column) for column in zip(*parts, strict=True)))
    if not rows.features.isfinite().all():
        fix = "look at the network's outputs"
        raise InputError("ConfidNet", expected="finite features", got="NaN or infinity", fix=fix)
    return rows


def aims(logits: Tensor, labels: Tensor, error_weight: float) -> tuple[Tensor, Tensor]:
    """Targets and weights of rows: the probability of the true class, and the weight of each row."""
    if int(labels.min()) < 0 or int(labels.max()) >= logits.shape[1]:
        got = f"{int(labels.min())} to {int(labels.max())}"
        raise InputError("labels", expected=f"0 to {logits.shape[1] - 1}", got=got, fix="count classes from 0")
    targets = logits.softmax(1).gather(1, labels[:, None]).squeeze(1)
    wrong = logits.argmax(1) != labels
    return targets, torch.where(wrong, error_weight, 1.0).to(targets)


def look(network: nn.Module, last: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """Run the network: its logits, and the features that went into the last layer."""
    with record_inputs(layer(network, last, "ConfidNet")) as recorded:
        logits: Tensor = network(x)
    if not recorded or recorded[0].ndim != 2 or logits.ndim != 2:
        got = f"shape {tuple(recorded[0].shape)}" if recorded else "nothing"
        fix = "name the layer that makes the logits, for instance head='fc'"
        raise InputError(f"layer {last}", expected="features (batch, d) going in", got=got, fix=fix)
    return logits, recorded[0]
