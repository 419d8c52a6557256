"""A data set and a corruption."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.corruptions import Corruption
from calibrant.datasets import Dataset, Part


@dataclass(frozen=True)
class Dots(Dataset):
    """Bright and dark images of 8 x 8 pixels, one in ten of them labelled wrong."""

    title: ClassVar[str] = "Dots"
    reference: ClassVar[str] = "-"

    def read(self, part: str) -> Part:
        rng = np.random.default_rng(0 if part == "train" else 1)
        labels = rng.permutation(np.arange(120 if part == "train" else 60) % 2)
        images = (rng.integers(0, 100, (len(labels), 8, 8, 1)) + 100 * labels[:, None, None, None]).astype(np.uint8)
        return Part(images, np.where(rng.random(len(labels)) < 0.1, 1 - labels, labels), ("dark", "bright"))


@dataclass(frozen=True)
class Dark(Corruption):
    """Images at half their brightness."""

    title: ClassVar[str] = "Darkness"
    usual: ClassVar[bool] = False

    def change(self, x: Any, rng: np.random.Generator) -> Any:
        return x / 2
