"""ImageNet-v2: new test images for ImageNet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.core.files import damage_error
from calibrant.datasets._base import Part
from calibrant.datasets._decode import Fit, Picture
from calibrant.datasets._files import absence_error, place
from calibrant.datasets._folders import check_size, class_folders, listing
from calibrant.datasets._published_dataset import PublishedDataset
from calibrant.datasets.imagenet import MARGIN, MEAN, STD


@dataclass(frozen=True)
class ImageNetV2(PublishedDataset):
    """10,000 test images like ImageNet's, in one of three samplings: folders 0 to 999, one a class.

    A test set only. The folders are sorted as numbers; as text, 10 would come before 2 and nearly all labels be wrong.
    """

    variant: Literal["matched-frequency", "threshold0.7", "top-images"] = "matched-frequency"
    size: int = 224
    fit: Fit = "crop"  # as for imagenet

    title: ClassVar[str] = "ImageNet-v2"
    reference: ClassVar[str] = "Recht, Roelofs, Schmidt, Shankar, ICML 2019"
    source: ClassVar[str] = "https://github.com/modestyachts/ImageNetV2"
    licence: ClassVar[str] = "MIT"
    parts: ClassVar[tuple[str, ...]] = ("test",)
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"test": 10_000}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("imagenet_v2:size", self.size, 1)

    def read(self, part: str) -> Part:
        where, folder = place(self), f"imagenetv2-{self.variant}-format-val"
        found_in = next((f for f in (where / folder, where) if (f / "0").is_dir()), None)
        if found_in is None:
            raise absence_error(self, f"folders 0 to 999 in {folder}")
        names = class_folders(found_in)
        if sorted(names) != sorted(map(str, range(len(names)))):
            raise damage_error(found_in, f"folders 0 to {len(names) - 1}", f"folders {', '.join(names[:5])}, ...")
        classes = sorted(names, key=int)
        files = listing(found_in, classes)
        picture = Picture(self.size, self.size, 3, self.fit, MARGIN)
        return Part(files.as_files(picture), files.labels, tuple(classes))
