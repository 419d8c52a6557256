"""Parts of a training: each from its line in the recipe."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from calibrant import losses
from calibrant.core.torch import checkpoint
from calibrant.core.torch.onednn import keep_in_bounds
from calibrant.losses import Loss
from calibrant.losses.mixup import Mixup
from calibrant.models import Network, Shape, build
from calibrant.training.learned_losses import make_learned
from calibrant.training.meta import MetaStep
from calibrant.training.optimize import make_optimizer
from calibrant.training.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a training that its state on disk must hold to continue."""

    network: Network
    wrapped: nn.Module  # the same network, as the devices call it
    optimizer: torch.optim.Optimizer
    loss: Loss
    scaler: Any
    meta: MetaStep | None = None


def make_parts(recipe: Recipe, shape: Shape, images: int, fabric: Any) -> Parts:
    """Build the parts of a training on so many images, before its first step."""
    torch.manual_seed(recipe.seed)
    network = build(recipe.model, shape)
    if recipe.weights:
        checkpoint.put(network, checkpoint.load_weights(Path(recipe.weights)), recipe.weights)
    if recipe.channels_last:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    keep_in_bounds(network)
    loss = losses.make(recipe.loss, recipe.reduction)
    loss = Mixup(alpha=recipe.mixup, base=loss, reduction=recipe.reduction) if recipe.mixup else loss
    loss.start(images, recipe.epochs)
    loss = loss.to(fabric.device)
    wrapped, optimizer = fabric.setup(network, make_optimizer(recipe, network))
    meta = _meta_step(recipe, network, wrapped, fabric) if recipe.meta.learn else None
    return Parts(
        network=network, wrapped=wrapped, optimizer=optimizer, loss=loss, scaler=fabric.strategy.precision, meta=meta
    )


def _meta_step(recipe: Recipe, network: nn.Module, wrapped: nn.Module, fabric: Any) -> MetaStep:
    """The meta step of a recipe with a table [meta]."""
    m, several = recipe.meta, fabric.world_size > 1
    learned = make_learned(recipe, network).to(fabric.device)
    return MetaStep(
        network,
        learned.double() if recipe.precision == "64-true" else learned,
        objective=m.objective,
        lookahead=m.lookahead,
        lookahead_step=m.lookahead_step,
        clip_norm=recipe.optimizer.clip_norm,
        by=m.by,
        lr=m.lr,
        reduction=recipe.reduction,
        forward=wrapped if several else None,
        autocast=fabric.autocast,
        average=fabric.all_reduce if several else None,
    )
