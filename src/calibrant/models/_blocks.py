"""Blocks that several networks share. Nothing works in place, so every one can be differentiated forwards."""

from typing import Literal

import torch
from torch import Tensor, nn


def conv(inside: int, outside: int, kernel: int = 3, *, stride: int = 1, bias: bool = False) -> nn.Conv2d:
    """A convolution that keeps the size of the image, or divides it by its stride and rounds up."""
    return nn.Conv2d(inside, outside, kernel, stride=stride, padding=kernel // 2, bias=bias)


def conv_bn(inside: int, outside: int, kernel: int = 3, *, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(conv(inside, outside, kernel, stride=stride), nn.BatchNorm2d(outside))


def basic(inside: int, outside: int, stride: int) -> nn.Sequential:
    """The branch of a basic block: two 3x3 convolutions."""
    return nn.Sequential(conv_bn(inside, outside, stride=stride), nn.ReLU(), conv_bn(outside, outside))


def bottleneck(inside: int, outside: int, stride: int) -> nn.Sequential:
    """The branch of a bottleneck block: a 3x3 convolution in a quarter of the channels, between two 1x1."""
    narrow = outside // 4
    return nn.Sequential(
        *(conv_bn(inside, narrow, 1), nn.ReLU()),
        *(conv_bn(narrow, narrow, stride=stride), nn.ReLU()),
        conv_bn(narrow, outside, 1),
    )


class Residual(nn.Module):
    """A residual block: relu(branch(x) + shortcut(x))."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.branch(x) + self.shortcut(x))


class MLP(nn.Sequential):
    """Two linear layers with a GELU between, on the last axis."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class Patches(nn.Module):
    """An image (B, c, s, s) as a row of patches (B, patches, width)."""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(channels, width, patch, stride=patch)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        return x.flatten(2).transpose(1, 2)


def start_he(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    """Weights of convolutions from He's normal distribution."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")


def start_truncated(network: nn.Module) -> None:
    """Weights from a normal distribution of deviation 0.02, cut at 2; biases zero."""
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
