"""Neural Clamping of a run or of another network: fitted on held-out images, judged on test images."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant import datasets, models
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature
from calibrant.core.torch import checkpoint
from calibrant.datasets import Part
from calibrant.measures import make
from calibrant.rescorers.clamping import ClampedNetwork, NeuralClamping, OnPass
from calibrant.training.batches import Batches, Pixels
from calibrant.training.images import fitting, held_out_and_test, load_splits, part_of_data
from calibrant.training.predict import device_of
from calibrant.training.run import open_run

if TYPE_CHECKING:
    import torch

MEASURES = {
    "accuracy": "accuracy",
    "entropy": "entropy",
    "ECE": "ece",
    "ECE mass": "ece:scheme=mass",
    "class-wise": "classwise",
}


@dataclass(frozen=True, kw_only=True)
class Images:
    """Options of the images: which ones, and how they become inputs."""

    data: str | None = None  # a data set; None: the run's own
    root: str = ""
    part: str = "val"  # to calibrate on
    split_seed: int = 0  # where `val` is half of a test part
    mean: tuple[float, ...] = ()  # of a network that is not a run; () for that of the data set
    std: tuple[float, ...] = ()
    batch: int = 512


@dataclass(frozen=True)
class ClampedRun:
    """A clamped network, its measures on the test images and its predictions."""

    clamped: ClampedNetwork
    measures: dict[str, dict[str, float]]  # before, temperature, clamped -> measure -> value
    predictions: dict[str, Predictions]  # by part

    def save(self, out: Path) -> None:
        self.clamped.save(out)
        for name, p in self.predictions.items():
            p.save(out / f"{name}.npz")


def clamp(
    subject: str,
    options: NeuralClamping,
    images: Images,
    *,
    weights: Path | None = None,
    device: str = "auto",
    on_pass: OnPass | None = None,
) -> ClampedRun:
    """Clamp the run in a folder, or a network that is typed as `package.module:callable` or `hf:NAME`.

    The feasible range of inputs in the options is replaced by that of the images.
    """
    where = device_of(device)
    is_run = Path(subject).is_dir() or ":" not in subject
    opened = _run(subject, images, where) if is_run else _other(subject, images, weights, where)
    low, high = (tuple((x - m) / s for m, s in zip(*opened.scale, strict=True)) for x in (0, 1))
    clamped = replace(options, low=low, high=high).fit(
        opened.network, opened.calibration, held_out=opened.judged["test"], on_pass=on_pass
    )
    return _judge(clamped, opened)


@dataclass(frozen=True)
class _Subject:
    """A network, the images it is calibrated on and those it is judged on."""

    network: "torch.nn.Module"
    scale: tuple[tuple[float, ...], tuple[float, ...]]  # mean and standard deviation of pixels, per channel
    calibration: Batches
    judged: dict[str, Batches]  # part -> its batches


def _run(folder: str, images: Images, device: "torch.device") -> _Subject:
    run = open_run(folder)
    splits, pixels = load_splits(run.recipe), run.pixels(device)
    parts = {name: p for name in ("val", "test") if (p := getattr(splits, name)) is not None}
    if images.data is not None:
        chosen = fitting(part_of_data(images.data, images.root, images.part), run.shape, images.data)
    elif images.part in parts and images.part != "test":
        chosen = parts[images.part]
    else:
        fix = "calibrate on other images: --data NAME --part PART"
        have = f"'{images.part}'; the run has {', '.join(parts)}"
        raise InputError("--part", expected="a part of the run to calibrate on, not test", got=have, fix=fix)
    judged = {name: Batches(part=p, size=images.batch, pixels=pixels) for name, p in parts.items()}
    return _Subject(
        run.network(device), (pixels.mean, pixels.std), Batches(part=chosen, size=images.batch, pixels=pixels), judged
    )


def _other(spec: str, images: Images, weights: Path | None, device: "torch.device") -> _Subject:
    """The subject of a network of another package and a data set."""
    if images.data is None or images.part == "test":
        got = "no --data" if images.data is None else "--part test"
        fix = "say --data NAME --part PART; it is judged on the part test"
        raise InputError(spec, expected="images to calibrate on", got=got, fix=fix)
    chosen, test = held_out_and_test(images.data, images.root, images.part, images.split_seed)
    _, size, _, channels = chosen.images.shape
    network = models.build(spec, models.Shape(len(chosen.classes), channels, size))
    if weights is not None:
        checkpoint.put(network, checkpoint.load_weights(weights), str(weights))
    like = datasets.make(images.data, images.root)
    mean, std = (_spread(*pair, channels) for pair in ((images.mean, like.mean), (images.std, like.std)))
    pixels = Pixels(mean, std, device)
    judged = {
        "val": Batches(part=chosen, size=images.batch, pixels=pixels),
        "test": Batches(part=test, size=images.batch, pixels=pixels),
    }
    return _Subject(network.to(device).eval(), (pixels.mean, pixels.std), judged["val"], judged)


def _spread(chosen: tuple[float, ...], usual: tuple[float, ...], channels: int) -> tuple[float, ...]:
    """One number per channel: those given, or those of the data set."""
    numbers = chosen or usual
    if len(numbers) not in (1, channels):
        expected, got = f"one number or {channels}, one a channel", str(len(numbers))
        raise InputError("--mean and --std", expected=expected, got=got, fix="give one a channel")
    return numbers * channels if len(numbers) == 1 else numbers


def _judge(clamped: ClampedNetwork, subject: _Subject) -> ClampedRun:
    """Measures on the test part: uncalibrated, with temperatures alone, and clamped."""
    assert clamped.report is not None
    plain = ClampedNetwork(subject.network, 0 * clamped.delta, 1.0)
    before = plain.predict(subject.judged["test"])
    predictions = {name: _with_ids(clamped.predict(batches), batches.part) for name, batches in subject.judged.items()}
    variants = {
        "before": before,
        "temperature": before.with_temperature(find_temperature(plain.predict(subject.calibration)).T),
    }
    if clamped.report.gamma:
        variants["temperature, same loss"] = before.with_temperature(clamped.report.T_alone)
    variants["clamped"] = predictions["test"]
    measures = {name: make(spec) for name, spec in MEASURES.items()}
    return ClampedRun(
        clamped, {name: {m: of(p) for m, of in measures.items()} for name, p in variants.items()}, predictions
    )


def _with_ids(p: Predictions, part: Part) -> Predictions:
    return Predictions.from_logits(p.logits, p.labels, ids=part.ids)
