"""The columns of one network: the study's 102, its accuracy on corrupted and on attacked images, and its size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from calibrant import corruptions, datasets
from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.datasets import Part, Splits
from calibrant.measuring.measure_sets import study_columns
from calibrant.models import Network, Shape
from calibrant.nas import spaces
from calibrant.studying.job_kinds import Row
from calibrant.training.attacks import accuracy_under, make_attack
from calibrant.training.batches import Pixels
from calibrant.training.images import load_splits
from calibrant.training.predict import corrupt_part, predict
from calibrant.training.recipe import Recipe

CORRUPTIONS = tuple(name for name in corruptions.names() if corruptions.find(name).usual)  # the usual 15
SEVERITY, NOISE = 3, "gaussian_noise:severity=5"  # of the accuracies; of the images told from clean ones
OOD = {"svhn": "svhn", "digits": "digits", "fashion": "fashion_mini"}  # column auc_NAME -> data set
BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Sets:
    """The images a network is tested on: test images, and others that are made from them or come from elsewhere."""

    test: Part
    noisy: Part
    ood: Mapping[str, Part]
    under_corruption: Mapping[str, Part]
    attacked: Part | None
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def shape(self) -> Shape:
        _, size, _, channels = self.test.images.shape
        return Shape(len(self.test.classes), channels, size)


@lru_cache(maxsize=2)  # a worker shows the same sets to many networks
def load_sets(data: str, test: int, few_images: int, attacked: int, ood: tuple[str, ...]) -> Sets:
    """The sets of a data set: so many test images (0 is all), corrupted ones, and attacked ones (0 is none).

    Images from elsewhere are as many as corrupted ones, or all.
    """
    dataset = datasets.make(data)
    part = few(dataset.load("test"), test)
    images, kinds = few(part, few_images), CORRUPTIONS if few_images else ()
    return Sets(
        test=part,
        noisy=corrupt_part(images, corruptions.make(NOISE), 0),
        ood={name: _fit_images(few(datasets.make(OOD[name]).load("test"), few_images), part) for name in ood},
        under_corruption={
            name: corrupt_part(images, corruptions.make(f"{name}:severity={SEVERITY}"), 0) for name in kinds
        },
        attacked=few(part, attacked) if attacked else None,
        mean=dataset.mean,
        std=dataset.std,
    )


@lru_cache(maxsize=2)
def load_training(recipe: Recipe) -> Splits:
    """The training images; the predictions on test images that a training leaves are not used, so few will do."""
    whole = load_splits(recipe)
    return Splits(whole.train, few(whole.test, 2 * BATCH))


def columns(network: Network, sets: Sets, attacks: Sequence[str], device: torch.device) -> Row:
    """Compute every column of a trained network; `auc_cifar10c` is the study's name for its test images under noise."""
    pixels = Pixels(sets.mean, sets.std, device, channels_last=True)  # half the time, with so few channels
    network = network.to(device, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]

    def look(part: Part) -> Predictions:
        return predict(network, part, pixels, batch=BATCH, features=False)

    others = {"cifar10c": sets.noisy, **sets.ood}
    row: Row = dict(study_columns(look(sets.test), ood={name: look(part) for name, part in others.items()}))
    row |= {name: float(look(part).correct.mean()) for name, part in sets.under_corruption.items()}
    return row | _under_attack(network, sets.attacked, attacks, pixels)


def structure(space: str, arch: str, shape: Shape) -> Row:
    """The columns of a network that need no training."""
    s = spaces.make(space)
    sizes = {"classes": shape.classes, "channels": shape.channels}
    return {
        "space": name_of(space),
        "config": s.index(arch),
        "arch": arch,
        "unique": s.index(s.unique(arch)),
        "constant": s.is_constant(arch),
        "params": s.params(arch, **sizes),
        "flops": s.flops(arch, **sizes, size=shape.size),
    }


def ood_for(data: str) -> tuple[str, ...]:
    """The out-of-distribution sets that are here and are not the data themselves."""
    name = name_of(data)
    columns = []
    for column, spec in OOD.items():
        if spec.partition("_")[0] == name.partition("_")[0]:
            continue
        try:
            datasets.make(spec).load("test")
            columns.append(column)
        except InputError:  # not on this machine: the table has no such column
            continue
    return tuple(columns)


def entries_of(space: str, data: str, ood: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the columns, and a folder of the user."""
    model = spaces.make(space).model("0")
    yield from (("nas/spaces", name_of(space)), ("models", name_of(model)), ("measuring", "measure_sets"))
    yield from (("corruptions", kind) for kind in (*CORRUPTIONS, name_of(NOISE)))
    yield from (("datasets", datasets.plain_spec(spec)) for spec in (data, *(OOD[column] for column in ood)))
    if root := datasets.user_root(data):
        yield "files", root


def few(part: Part, count: int) -> Part:
    """A number of images by a fixed seed, or all."""
    if not count or count >= len(part):
        return part
    return part.take(np.sort(np.random.default_rng(0).permutation(len(part))[:count]))


def _under_attack(network: Network, part: Part | None, attacks: Sequence[str], pixels: Pixels) -> Row:
    if part is None:
        return {}
    images = torch.from_numpy(np.ascontiguousarray(part.images[np.arange(len(part))])).to(pixels.device)
    x, labels = images.float().permute(0, 3, 1, 2) / 255, torch.from_numpy(part.labels).to(pixels.device)

    def logits_of(moved: Tensor) -> Tensor:
        logits: Tensor = network(pixels.normalise(moved))
        return logits

    row: Row = {}
    for spec in attacks:
        attack = make_attack(spec)
        (accuracy,) = accuracy_under(attack, logits_of, x, labels, [attack.eps]).values()
        row[f"{spec.partition(':')[0]}_{attack.eps * 255:g}"] = accuracy
    return row


def _fit_images(part: Part, like: Part) -> Part:
    """Convert images to the size and channels of others; labels mean nothing there and are all the first class."""
    from PIL import Image

    _, size, _, channels = like.images.shape
    images = part.images[np.arange(len(part))]
    grey = images.shape[3] == 1
    pictures = [Image.fromarray(pixels[..., 0] if grey else pixels) for pixels in images]
    changed = [picture.convert("RGB" if channels == 3 else "L").resize((size, size)) for picture in pictures]
    whole = np.stack([np.asarray(picture, dtype=np.uint8) for picture in changed]).reshape(-1, size, size, channels)
    return Part(whole, np.zeros(len(whole), dtype=np.int64), like.classes)
