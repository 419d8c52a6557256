"""ResNet-20, 32, 44, 56 and 110 for CIFAR-10 (He et al. 2016), with the names of layers in published checkpoints.

    calibrant predict cifar_resnet.py:resnet20 --weights resnet20-12fca82f.th --data cifar10 \
        --mean .485,.456,.406 --std .229,.224,.225 --out r20

The weights are those of https://github.com/akamaster/pytorch_resnet_cifar10, whose names of layers are kept here.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Two 3 x 3 convolutions around a shortcut without weights: every second pixel, and new channels are zero."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.new = stride, channels - before

    def forward(self, x: Tensor) -> Tensor:
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        short = x[:, :, :: self.stride, :: self.stride]
        half = self.new // 2
        return torch.relu(inner + F.pad(short, (0, 0, 0, 0, half, self.new - half)))


class CifarResNet(nn.Module):
    """A first convolution, three stages of blocks with 16, 32 and 64 channels, the mean over pixels, a linear layer."""

    def __init__(self, blocks: int, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = _stage(16, 16, blocks, 1)
        self.layer2 = _stage(16, 32, blocks, 2)
        self.layer3 = _stage(32, 64, blocks, 2)
        self.linear = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.bn1(self.conv1(x)))
        inner = self.layer3(self.layer2(self.layer1(inner)))
        logits: Tensor = self.linear(inner.mean((2, 3)))
        return logits


def _stage(before: int, channels: int, blocks: int, stride: int) -> nn.Sequential:
    later = (Block(channels, channels, 1) for _ in range(blocks - 1))
    return nn.Sequential(Block(before, channels, stride), *later)


def resnet20() -> CifarResNet:
    return CifarResNet(3)


def resnet32() -> CifarResNet:
    return CifarResNet(5)


def resnet44() -> CifarResNet:
    return CifarResNet(7)


def resnet56() -> CifarResNet:
    return CifarResNet(9)


def resnet110() -> CifarResNet:
    return CifarResNet(18)


if __name__ == "__main__":  # what a person checks first: the paper says 0.27, 0.46, 0.66, 0.85 and 1.7 million
    for make in (resnet20, resnet32, resnet44, resnet56, resnet110):
        print(f"{make.__name__}: {sum(weight.numel() for weight in make().parameters()):,} weights")
