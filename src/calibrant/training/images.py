"""Images: a part of a run's own data set, or of another one that fits its network."""

import numpy as np

from calibrant import datasets
from calibrant.core.errors import InputError, unknown_name
from calibrant.datasets import Part, Splits
from calibrant.models import Shape
from calibrant.training.recipe import Recipe
from calibrant.training.run import Run


def part_of_run(run: Run, part: str, *, data: str | None = None, root: str = "") -> Part:
    """A part of the images that the run was trained with, or of another data set with images of the same kind."""
    if data is not None:
        return fitting(part_of_data(data, root, part), run.shape, data)
    parts = {name: part for name, part in vars(load_splits(run.recipe)).items() if part is not None}
    if part not in parts:
        raise unknown_name("part", part, parts)
    return fitting(parts[part], run.shape, run.recipe.data.name)


def part_of_data(data: str, root: str, part: str) -> Part:
    """Load a part that the data set itself has."""
    dataset = datasets.make(data, root)
    if part not in dataset.parts:
        raise unknown_name(f"part of {data}", part, dataset.parts)
    return dataset.load(part)


def held_out_and_test(data: str, root: str, part: str, seed: int) -> tuple[Part, Part]:
    """Images to calibrate on and images to judge by.

    For a data set without a part `val`, `val` is one half of its test part and the other half judges: class by class,
    by the seed. For ImageNet these are 25,000 and 25,000 images of the published validation set.
    """
    if part == "val" and "val" not in datasets.make(data, root).parts:
        return datasets.halves(part_of_data(data, root, "test"), seed)
    return part_of_data(data, root, part), part_of_data(data, root, "test")


def load_splits(recipe: Recipe) -> Splits:
    """The parts that the recipe names, with its limits."""
    d = recipe.data
    splits = datasets.split(datasets.make(d.name, d.root), d.split, d.split_seed)
    if not d.limit and not d.test_limit and not d.val_limit:
        return splits

    def few(part: Part | None, limit: int) -> Part | None:
        if part is None or not limit or limit >= len(part):
            return part
        return part.take(np.sort(np.random.default_rng(d.split_seed).permutation(len(part))[:limit]))

    train, test = few(splits.train, d.limit), few(splits.test, d.test_limit)
    assert train is not None
    assert test is not None
    return Splits(train, test, few(splits.val, d.val_limit or d.test_limit), splits.meta)


def fitting(part: Part, shape: Shape, what: str) -> Part:
    """The part, if its images fit a network of this shape; else an error."""
    _, height, width, channels = part.images.shape
    if (height, width, channels) != (shape.size, shape.size, shape.channels):
        raise InputError(
            what,
            expected=f"images of {shape.size} x {shape.size} x {shape.channels}, as in training",
            got=f"{height} x {width} x {channels}",
            fix="use a data set of the same kind, or give it the option size",
        )
    if len(part.classes) != shape.classes:
        fix = "use a data set with the classes of the training"
        raise InputError(what, expected=f"{shape.classes} classes", got=f"{len(part.classes)}", fix=fix)
    return part
