"""Splits of images into training, validation, meta-learning and testing, by name and seed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.datasets._base import Dataset, Part

NUMBERS = re.compile(r"(first )?(\d+(?::\d+){1,2})")


@dataclass(frozen=True)
class Splits:
    """The parts a training uses. `val` and `meta` may be empty (None)."""

    train: Part
    test: Part
    val: Part | None = None
    meta: Part | None = None


def split(dataset: Dataset, how: str, seed: int) -> Splits:
    """Splits by name.

    - `8:1:1`: the training part, shuffled by the seed; a tenth each for validation and meta-learning, the first two.
    - `9:1` or `45000:5000`: train and validation, shuffled by the seed, in this proportion.
    - `first 45000:5000`: the same without shuffling: validation comes last.
    - `official`: the data set's own validation part.
    - `half test`: validation is half of the test part, class by class, by the seed.
    - `none`: no validation.
    """
    train, test = dataset.load("train"), dataset.load("test")
    numbers = NUMBERS.fullmatch(how)
    if how == "none":
        return Splits(train, test)
    if how == "official":
        if "val" not in dataset.parts:
            raise InputError(
                "split", expected="a data set with a part val", got=type(dataset).__name__, fix='use "9:1", say'
            )
        return Splits(train, test, dataset.load("val"))
    if how == "half test":
        val, rest = halves(test, seed)
        return Splits(train, rest, val)
    if not numbers:
        raise InputError(
            "split",
            expected='"8:1:1", "9:1", "45000:5000", "first 45000:5000", "official", "half test" or "none"',
            got=f'"{how}"',
            fix="write one of these",
        )
    shares = [int(share) for share in numbers[2].split(":")]
    n = len(train)
    ends = _ends(shares, n)
    if np.diff([0, *ends, n]).min() < 1:
        raise InputError("split", expected=f"at least one of {n} images in each part", got=f'"{how}"', fix="change it")
    order = np.arange(n)[::-1] if numbers[1] else np.random.default_rng(seed).permutation(n)
    rows = [np.sort(rows) for rows in np.split(order, ends)]
    meta = train.take(rows[1]) if len(shares) == 3 else None
    return Splits(train.take(rows[-1]), test, train.take(rows[0]), meta)


def split_sizes(sizes: Mapping[str, int], how: str) -> tuple[int, int, int]:
    """The number of images of a split in train, val and test, by the sizes of the parts alone.

    >>> split_sizes({"train": 50_000, "test": 10_000}, "8:1:1"), split_sizes({"train": 9, "test": 10}, "half test")
    ((40000, 5000, 10000), (9, 5, 5))
    """
    train, test = sizes["train"], sizes["test"]
    if numbers := NUMBERS.fullmatch(how):
        ends = _ends([int(share) for share in numbers[2].split(":")], train)
        return train - int(ends[-1]), int(ends[0]), test
    if how == "half test":
        return train, (test + 1) // 2, test // 2
    return train, sizes.get("val", 0) if how == "official" else 0, test


def _ends(shares: list[int], n: int) -> Ints:
    """The ends of val and, of three shares, meta."""
    return np.round(np.cumsum(shares[1:]) / max(sum(shares), 1) * n).astype(int)


def halves(part: Part, seed: int) -> tuple[Part, Part]:
    """Two halves with as many images of every class, one at most more or less; drawn by the seed.

    >>> from calibrant.datasets.fashion_mini import FashionMini
    >>> one, other = halves(FashionMini().load("test"), 0)
    >>> len(one), len(other), len(set(one.ids) & set(other.ids))
    (2000, 2000, 0)
    """
    first, other = half_rows(part.labels, seed)
    return part.take(first), part.take(other)


def half_rows(labels: Ints, seed: int) -> tuple[Ints, Ints]:
    """The rows of two halves with as many of every class, one at most more or less.

    >>> [rows.tolist() for rows in half_rows(np.array([0, 0, 1, 1, 1]), 0)]
    [[0, 2, 3], [1, 4]]
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    return np.sort(by_class[::2]), np.sort(by_class[1::2])
