"""VGG networks with batch norm, and three heads."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape

CONVS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
WIDTHS = (64, 128, 256, 512, 512)
Head = Literal["linear", "4096", "confidnet"]


@dataclass(frozen=True)
class VGG(Model):
    """Five stages of 3x3 convolutions (with bias) and batch norm, each ended by a max pool; default initialisation.

    "VGG-16" names three networks in the papers on calibration, of 14.7 to 33.6 million numbers: say the head.

    >>> from calibrant.models import Shape, count
    >>> count(VGG().build(Shape(classes=10)))
    14728266

    `head=linear`: 512 to classes. `head=4096`: two hidden layers of 4096 with dropout. `head=confidnet`: one hidden
    layer of 512, and convolutions with reflected borders, ReLU before batch norm and dropout between them. Pools round
    up, so that images of 28 pixels reach the end.
    """

    depth: int = 16
    head: Head = "linear"

    title: ClassVar[str] = "VGG with batch norm"
    reference: ClassVar[str] = "Simonyan, Zisserman, ICLR 2015"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.check_choice("vgg:depth", self.depth, CONVS)

    def build(self, shape: Shape) -> Network:
        check.image("vgg", shape, 17)  # two pixels in the last stage: borders of one pixel have nothing to reflect
        return VGGNetwork(shape, CONVS[self.depth], self.head)


class VGGNetwork(Network):
    def __init__(self, shape: Shape, convs: tuple[int, ...], head: Head) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        inside = shape.channels
        for stage, (number, outside) in enumerate(zip(convs, WIDTHS, strict=True)):
            for i in range(number):
                stages += _layer(inside, outside, head)
                if head == "confidnet" and i < number - 1:
                    stages.append(nn.Dropout(0.4 if stage else 0.3))
                inside = outside
            stages.append(nn.MaxPool2d(2, ceil_mode=True))
        self.convs = nn.Sequential(*stages)
        self.hidden = _hidden_layer(head)
        self.head = nn.Linear(4096 if head == "4096" else 512, shape.classes)

    def features(self, x: Tensor) -> Tensor:
        x = self.convs(x)
        x = self.hidden(x.mean((2, 3)))
        return x


def _layer(inside: int, outside: int, head: Head) -> tuple[nn.Module, ...]:
    if head == "confidnet":
        conv = nn.Conv2d(inside, outside, 3, padding=1, padding_mode="reflect")
        return conv, nn.ReLU(), nn.BatchNorm2d(outside)
    return nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU()


def _hidden_layer(head: Head) -> nn.Module:
    if head == "4096":
        first = (nn.Linear(512, 4096), nn.ReLU(), nn.Dropout(0.5))
        return nn.Sequential(*first, nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(0.5))
    if head == "confidnet":
        return nn.Sequential(nn.Dropout(0.5), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.5))
    return nn.Identity()
