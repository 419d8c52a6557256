"""The optimizer, and the learning rate as a pure function of time."""

import math

import torch
from torch import nn

from calibrant.training.recipe import Recipe


def learning_rate(recipe: Recipe, t: float) -> float:
    """The rate at time t, in epochs; a pure function, so there is no schedule to save."""
    schedule, rate = recipe.schedule, recipe.optimizer.lr
    if t < schedule.warmup:
        return rate * t / schedule.warmup if t else rate / (10 * schedule.warmup)
    if schedule.name == "step":
        return rate * schedule.factor ** sum(t >= milestone for milestone in schedule.milestones)
    if schedule.name == "cosine":
        share = (t - schedule.warmup) / max(recipe.epochs - schedule.warmup, 1)
        return rate * (1 + math.cos(math.pi * share)) / 2
    return rate


def make_optimizer(recipe: Recipe, network: nn.Module) -> torch.optim.Optimizer:
    o = recipe.optimizer
    weights = [w for w in network.parameters() if w.requires_grad]
    if o.name == "sgd":
        return torch.optim.SGD(weights, lr=o.lr, momentum=o.momentum, nesterov=o.nesterov, weight_decay=o.weight_decay)
    kind = torch.optim.Adam if o.name == "adam" else torch.optim.AdamW
    return kind(weights, lr=o.lr, weight_decay=o.weight_decay)
