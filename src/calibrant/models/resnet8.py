"""The network of the demo: it learns clothes from 28 x 28 grey pixels on a laptop."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.models._base import Model, Network, Shape
from calibrant.models.resnet_small import ResNetSmall


@dataclass(frozen=True)
class ResNet8(Model):
    """The smallest residual network worth the name: one block per stage, shortcuts projected.

    For tries and tests: its calibration says little about that of the large networks of the papers.

    >>> from calibrant.models import Shape, count
    >>> count(ResNet8().build(Shape(classes=10, channels=1, size=28)))
    77754
    """

    width: int = 16

    title: ClassVar[str] = "ResNet-8"
    reference: ClassVar[str] = "He, Zhang, Ren, Sun, CVPR 2016, section 4.2 with m = 1"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._recipe()

    def build(self, shape: Shape) -> Network:
        return self._recipe().build(shape)

    def _recipe(self) -> ResNetSmall:
        return ResNetSmall(depth=8, width=self.width, shortcut="conv")
