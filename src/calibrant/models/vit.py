"""Vision transformer with a class token."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._blocks import MLP, Patches, start_truncated

MOST = {"patch": 256, "width": 8192, "depth": 100, "heads": 128, "mlp": 32768}  # ViT-22B: 14, 6144, 48, 48, 24576


@dataclass(frozen=True)
class ViT(Model):
    """ViT-S/16 by default, made for images of 224; initial weights truncated normal (0.02), biases zero.

    Trained from nothing on little data it stays behind a ResNet. For images of 32 take `vit:patch=4` and less width.

    >>> from calibrant.models import Shape, count
    >>> count(ViT(patch=4, width=96, depth=4, heads=3, mlp=192).build(Shape(classes=10)))
    311338
    """

    patch: int = 16
    width: int = 384
    depth: int = 12
    heads: int = 6
    mlp: int = 1536

    title: ClassVar[str] = "Vision transformer"
    reference: ClassVar[str] = "Dosovitskiy et al., ICLR 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in MOST.items():
            check.up_to(f"vit:{name}", getattr(self, name), most)
        if self.width % self.heads:
            expected, got = f"a divisor of the width {self.width}", str(self.heads)
            raise InputError("vit:heads", expected=expected, got=got, fix="give a width that the heads can share")

    def build(self, shape: Shape) -> Network:
        return Transformer(shape, check.patches("vit", shape, self.patch), self)


class Transformer(Network):
    def __init__(self, shape: Shape, patches: int, options: ViT) -> None:
        super().__init__()
        width = options.width
        self.patches = Patches(shape.channels, width, options.patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, patches + 1, width))
        blocks = (TransformerBlock(width, options.heads, options.mlp) for _ in range(options.depth))
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(width, eps=1e-6))
        self.head = nn.Linear(width, shape.classes)
        start_truncated(self)
        nn.init.trunc_normal_(self.token, std=0.02)
        nn.init.trunc_normal_(self.position, std=0.02)

    def features(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.position
        x = self.blocks(x)
        return x[:, 0]


class TransformerBlock(nn.Module):
    def __init__(self, width: int, heads: int, mlp: int) -> None:
        super().__init__()
        self.look = nn.Sequential(nn.LayerNorm(width, eps=1e-6), Attention(width, heads))
        self.think = nn.Sequential(nn.LayerNorm(width, eps=1e-6), MLP(width, mlp))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.look(x)
        x = x + self.think(x)
        return x


class Attention(nn.Module):
    """Written out: torch's fused attention has no forward-mode derivative."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask = nn.Linear(width, 3 * width)  # queries, keys and values
        self.answer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            self.ask(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        )  # each (B, heads, t, d)
        scale = query.shape[-1] ** -0.5  # on the queries: their products with the keys may overflow in half precision
        weights = ((query * scale) @ key.transpose(-2, -1)).softmax(dim=-1)
        mixed: Tensor = self.answer((weights @ value).transpose(1, 2).flatten(2))
        return mixed
