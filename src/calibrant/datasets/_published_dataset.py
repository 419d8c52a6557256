"""Data sets of a published size."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError
from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._files import place


@dataclass(frozen=True)
class PublishedDataset(Dataset):
    """A data set whose parts have published sizes: half a download is refused."""

    complete: bool = True  # refuse a part whose size is not the published one

    sizes: ClassVar[Mapping[str, int]] = {}
    pictures: ClassVar[tuple[int, int, int]] = (0, 0, 0)  # pixels a side, channels, classes; for what can be trained on

    def published_size(self, part: str) -> int:
        return self.sizes[part]

    def load(self, part: str) -> Part:
        loaded = super().load(part)
        if self.complete and len(loaded) != (size := self.published_size(part)):
            name = name_of(self)
            raise InputError(
                f"data set {name}, part {part}, in {place(self)}",
                expected=f"{size:,} images",
                got=f"{len(loaded):,}",
                fix=f"get all of its files from {self.source}, or use what is there: {name}:complete=false",
            )
        return loaded
