"""Which images are for what."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.datasets import Dataset, Part, make, split


@dataclass(frozen=True)
class Numbered(Dataset):
    """Images of one pixel that are their own number, modulo 256."""

    n: int = 50_000
    test: int = 10_000
    k: int = 10

    title: ClassVar[str] = "Numbered"
    parts: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    def read(self, part):
        n = {"train": self.n, "val": 20, "test": self.test}[part]
        rows = np.arange(n)
        classes = tuple(str(c) for c in range(self.k))
        return Part((rows % 256).astype(np.uint8).reshape(-1, 1, 1, 1), rows % self.k, classes)


def sizes(parts):
    return [None if part is None else len(part) for part in (parts.train, parts.val, parts.meta, parts.test)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("8:1:1", [40_000, 5000, 5000, 10_000]),
        ("9:1", [45_000, 5000, None, 10_000]),
        ("45000:5000", [45_000, 5000, None, 10_000]),
        ("first 45000:5000", [45_000, 5000, None, 10_000]),
        ("1:1", [25_000, 25_000, None, 10_000]),
        ("official", [50_000, 20, None, 10_000]),
        ("half test", [50_000, 5000, None, 5000]),
        ("none", [50_000, None, None, 10_000]),
    ],
)
def test_sizes(how, expected):
    assert sizes(split(Numbered(), how, seed=1)) == expected


@pytest.mark.parametrize("how", ["8:1:1", "9:1", "first 45000:5000", "first 8:1:1", "7:2:1"])
@pytest.mark.parametrize("n", [50_000, 1003, 37])
def test_parts_of_the_training_images_are_disjoint_and_cover_them(how, n):
    splits = split(Numbered(n=n), how, seed=3)
    ids = np.concatenate([part.ids for part in (splits.train, splits.val, splits.meta) if part is not None])
    assert np.array_equal(np.sort(ids), np.arange(n))
    for part in (splits.train, splits.val):
        assert np.array_equal(part.labels, part.ids % 10)
        rows = np.array([0, len(part) - 1])
        assert np.array_equal(part.images[rows].reshape(-1), part.ids[rows] % 256)


def test_first_takes_the_validation_images_from_the_end():
    splits = split(Numbered(), "first 45000:5000", seed=0)
    assert np.array_equal(splits.train.ids, np.arange(45_000))
    assert np.array_equal(splits.val.ids, np.arange(45_000, 50_000))


@pytest.mark.parametrize("how", ["8:1:1", "9:1", "half test"])
def test_the_seed_decides(how):
    one, again, other = (split(Numbered(), how, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.val.ids, again.val.ids)
    assert np.array_equal(one.test.ids, again.test.ids)
    assert not np.array_equal(one.val.ids, other.val.ids)


def test_the_order_of_shares_is_train_val_meta():
    assert sizes(split(Numbered(n=1000), "7:2:1", seed=0))[:3] == [700, 200, 100]


@pytest.mark.parametrize(("test", "k"), [(10_000, 10), (101, 3), (9, 4)])
def test_half_of_the_test_images_is_half_of_every_class(test, k):
    splits = split(Numbered(test=test, k=k), "half test", seed=5)
    both = np.concatenate([splits.val.ids, splits.test.ids])
    assert np.array_equal(np.sort(both), np.arange(test))
    counts = [np.bincount(part.labels, minlength=k) for part in (splits.val, splits.test)]
    assert np.abs(counts[0] - counts[1]).max() <= 1
    assert abs(len(splits.val) - len(splits.test)) <= 1


@pytest.mark.parametrize("how", ["", "8:1:1:1", "90%", "first", "8-1-1", "half", "first half test", "8:1:", "-8:1"])
def test_an_unknown_split_lists_the_known_ones(how):
    with pytest.raises(InputError, match='"half test" or "none"'):
        split(Numbered(), how, seed=0)


@pytest.mark.parametrize("how", ["0:0", "1:0", "0:1", "8:0:2", "1000000:1"])
def test_an_empty_part_is_refused(how):
    with pytest.raises(InputError, match="at least one of 100 images in each part"):
        split(Numbered(n=100), how, seed=0)


def test_official_needs_a_validation_part():
    with pytest.raises(InputError, match="a data set with a part val"):
        split(make("fashion_mini"), "official", seed=0)


def test_a_test_set_cannot_be_split():
    with pytest.raises(InputError, match="expected one of test, got 'train'"):
        split(make("cifar10.1"), "9:1", seed=0)
