"""CIFAR-100: 32 x 32 colour images of a hundred kinds of things."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.datasets._base import Part
from calibrant.datasets._cifar import CifarFiles, read_cifar
from calibrant.datasets._published_dataset import PublishedDataset

WORDS = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CLASSES = tuple(WORDS.split())
LAYOUT = CifarFiles(
    batches={"train": ("train",), "test": ("test",)},
    folders=("cifar-100-binary", "cifar-100-python"),
    label_bytes=2,  # the superclass, then the class
    key="fine_labels",
    column="fine_label",
    classes=CLASSES,
)
NATS_MEAN = (129.3 / 255, 124.1 / 255, 112.4 / 255)
NATS_STD = (68.2 / 255, 65.4 / 255, 70.4 / 255)


@dataclass(frozen=True)
class CIFAR100(PublishedDataset):
    """50,000 training and 10,000 test images, 32 x 32, RGB, 100 classes (not the 20 superclasses).

    Normalised by its own mean and spread in every part; published code often mixes in CIFAR-10's or ImageNet's.
    """

    normalise: Literal["usual", "nats"] = "usual"  # nats: by the constants of NATS-Bench, for its networks

    title: ClassVar[str] = "CIFAR-100"
    reference: ClassVar[str] = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"
    source: ClassVar[str] = "https://www.cs.toronto.edu/~kriz/cifar.html"
    licence: ClassVar[str] = "not stated"
    mean: ClassVar[tuple[float, ...]] = (0.5071, 0.4865, 0.4409)
    std: ClassVar[tuple[float, ...]] = (0.2673, 0.2564, 0.2762)
    sizes: ClassVar[Mapping[str, int]] = {"train": 50_000, "test": 10_000}
    pictures: ClassVar[tuple[int, int, int]] = (32, 3, 100)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalise == "nats":
            object.__setattr__(self, "mean", NATS_MEAN)
            object.__setattr__(self, "std", NATS_STD)

    def read(self, part: str) -> Part:
        return read_cifar(self, part, LAYOUT)
