"""A part of Fashion-MNIST that comes with calibrant: nothing to download."""

from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

from calibrant.core.files import damage_error
from calibrant.data import FASHION_MINI
from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._files import no_root, read_npz
from calibrant.datasets.fashion_mnist import CLASSES, MEAN, STD

ARCHIVE = FASHION_MINI  # written by tools/make_fashion_mini.py
SHA256 = "47ce9d9ec5277dd6b360e2b5ced4def5b6116734abb4152dc3d8f390156d4cf7"


@dataclass(frozen=True)
class FashionMini(Dataset):
    """6,000 training and 4,000 test images of Fashion-MNIST, 28 x 28, grey, as many of each of its 10 classes.

    For trying things and for tests: networks trained on so few images are less accurate than published ones.

    >>> train = FashionMini().load("train")
    >>> train.images.shape, train.classes[train.labels[0]], int(train.ids[0])
    ((6000, 28, 28, 1), 'Dress', 31)
    """

    title: ClassVar[str] = "Fashion-MNIST, 10,000 images that come with calibrant"
    reference: ClassVar[str] = "Xiao, Rasul, Vollgraf, arXiv:1708.07747, 2017"
    source: ClassVar[str] = "https://github.com/zalandoresearch/fashion-mnist"
    licence: ClassVar[str] = "MIT"
    mean: ClassVar[tuple[float, ...]] = MEAN  # of the whole set, so that networks can move between the two
    std: ClassVar[tuple[float, ...]] = STD

    def read(self, part: str) -> Part:
        no_root(self, "calibrant")
        if not ARCHIVE.exists() or sha256(ARCHIVE.read_bytes()).hexdigest() != SHA256:
            raise damage_error(ARCHIVE, f"SHA-256 {SHA256}", "another file" if ARCHIVE.exists() else "no file")
        images, labels, ids = read_npz(ARCHIVE, [f"{part}_{array}" for array in ("images", "labels", "ids")])
        return Part(images[..., None], labels.astype("int64"), CLASSES, ids.astype("int64"))
