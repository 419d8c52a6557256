"""ImageNet-1K: photographs of a thousand kinds of things."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.datasets._base import Part
from calibrant.datasets._decode import Fit, Picture
from calibrant.datasets._files import absence_error, place
from calibrant.datasets._folders import check_size, class_folders, listing
from calibrant.datasets._published_dataset import PublishedDataset

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MARGIN = 8 / 7  # 256 for 224


@dataclass(frozen=True)
class ImageNet(PublishedDataset):
    """1,281,167 training and 50,000 test images, RGB, 1,000 classes: train/<wnid>/*.JPEG and val/<wnid>/*.JPEG.

    `test` is the published validation part. Images are decoded when they are asked for: to the same pixels for testing,
    while a training with `augment = "resized"` cuts random windows out of the whole image.
    """

    size: int = 224
    normalise: Literal["usual", "half"] = "usual"  # half: to -1..1, as some networks want their pixels
    fit: Fit = "crop"  # crop: shorter side to 8/7 of size, centre of it; squash: the whole image, whatever its shape

    title: ClassVar[str] = "ImageNet-1K"
    reference: ClassVar[str] = "Russakovsky et al., IJCV 115, 2015"
    source: ClassVar[str] = "https://image-net.org/download.php"
    licence: ClassVar[str] = "non-commercial research only"
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"train": 1_281_167, "test": 50_000}
    pictures: ClassVar[tuple[int, int, int]] = (224, 3, 1000)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("imagenet:size", self.size, 1)
        if self.normalise == "half":
            object.__setattr__(self, "mean", (0.5, 0.5, 0.5))
            object.__setattr__(self, "std", (0.5, 0.5, 0.5))

    def read(self, part: str) -> Part:
        where = place(self)
        name = {"train": "train", "test": "val"}[part]
        named_by = next((where / f for f in ("train", "val") if (where / f).is_dir()), None)
        if named_by is None or not (where / name).is_dir():
            raise absence_error(self, f"{name}/<wnid>/*.JPEG")
        classes = class_folders(named_by)
        files = listing(where / name, classes)
        picture = Picture(self.size, self.size, 3, self.fit, MARGIN)
        return Part(files.as_files(picture), files.labels, tuple(classes))
