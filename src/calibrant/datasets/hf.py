"""Any image data set of the Hugging Face hub, or a folder of Parquet files in its layout."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from calibrant.core.errors import InputError
from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._decode import Colour, Fit
from calibrant.datasets._files import absence_error
from calibrant.datasets._folders import check_size
from calibrant.datasets._parquet import Guess, columns_of, files_of, images_of, labels_of

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class HuggingFace(Dataset):
    """Images and labels from Parquet files: root is a folder, a file, or a name on the hub such as `ylecun/mnist`.

    A hub name downloads the files once, into Hugging Face's own cache; give a revision for results that must not change
    with the hub. Images of different sizes need the option size.
    """

    image: str = ""  # columns; found by their types when there is one of a kind
    label: str = ""
    size: int = 0  # pixels a side; 0: the size they have, which must be the same for all
    fit: Fit = "crop"  # crop: shorter side to size, centre of it; squash: the whole image, whatever its shape
    colour: Colour = "auto"  # auto: grey if all training images are
    config: str = ""  # the folder of a variant, where a data set has several
    revision: str = "main"  # of the hub's repository

    title: ClassVar[str] = "Hugging Face images"
    reference: ClassVar[str] = "Lhoest et al., EMNLP demonstrations 2021"
    source: ClassVar[str] = "https://huggingface.co/datasets"
    parts: ClassVar[tuple[str, ...]] = ("train", "val", "test")
    may_miss: ClassVar[tuple[str, ...]] = ("val", "test")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("hf:size", self.size, 0)

    def read(self, part: str) -> Part:
        where = self._place()
        files = files_of(where, part, self.config)
        if not files:
            have = [other for other in self.parts if files_of(where, other, self.config)]
            beside = f" beside {', '.join(have)}" if have else ""
            raise absence_error(self, f"{part}*.parquet{beside}", where)
        train = files_of(where, "train", self.config) or files
        by = columns_of(train[0], self.image, self.label)
        labels = labels_of(files, by)
        k = int(labels_of(train, by).max(initial=0)) + 1
        classes = by.classes or tuple(str(number) for number in range(k))
        guess = Guess(train[0], by, self.size, self.colour, self.fit)
        return Part(images_of("hf", files, by, len(labels), guess), labels, classes)

    def _place(self) -> Path:
        where = Path(self.root).expanduser()
        if self.root and where.exists():
            return where
        if not HUB_NAME.fullmatch(self.root):
            raise InputError(
                "hf:root",
                expected="a folder of Parquet files, or owner/name on the hub",
                got=f"'{self.root}'",
                fix="write hf:root=FOLDER or hf:root=ylecun/mnist",
            )
        return _download(self.root, self.revision)


def _download(name: str, revision: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise InputError(
            f"data set {name}",
            expected="huggingface_hub, which downloads it",
            got="no such package",
            fix='pip install "calibrant[hub]"',
        ) from error
    options: dict[str, Any] = {"repo_type": "dataset", "allow_patterns": ["*.parquet"]}
    try:
        folder = Path(snapshot_download(name, revision=revision, **options))
        if revision == "main" and not any(folder.rglob("*.parquet")):  # the hub converts many sets by itself
            folder = Path(snapshot_download(name, revision="refs/convert/parquet", **options))
        return folder
    except Exception as error:  # the hub, the network and their libraries raise what they like
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"hf:root={name}",
            expected="a folder here or a data set on the hub",
            got=f"no such folder, and no download ({reason})",
            fix="check the name and the network, or give the folder of its Parquet files",
        ) from error
