"""Try clamps of a trained network by hand and by fits: a temperature, a perturbation and its strength, at once."""

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature
from calibrant.core.torch.layers import freeze
from calibrant.datasets import Part
from calibrant.measures import make
from calibrant.repairing.choose import fit_candidate
from calibrant.rescorers.clamping import NeuralClamping
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.run import open_run

OnShare = Callable[[float], None]  # told how much of a fit is done, from 0 to 1

CLAMPINGS: dict[str, NeuralClamping] = {
    "clamping_ce": NeuralClamping(gamma=0.0),
    "clamping_focal": NeuralClamping(gamma=1.0),
    "clamping_gamma": NeuralClamping(gamma_pool="paper"),
}
TITLES: dict[str, str] = {
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "clamping_ce": "Neural Clamping, cross-entropy",
    "clamping_focal": "Neural Clamping, focal loss",
    "clamping_gamma": "Neural Clamping, gamma by calibration ECE",
}
MOST_IMAGES = 1000  # to calibrate on
MOST_JUDGED = 600  # images to judge by: a change of the strength is seen at once
BATCH = 500
SHOWN = 8  # pictures
MOST_LOOKS = 64  # strengths whose logits are kept
SEED = 0


class InterruptedFitError(Exception):
    """The fit was cancelled; nothing has changed."""


@dataclass(frozen=True, kw_only=True)
class ClampSubject:
    """A network, images to calibrate it on and others to test it on. Shared and never changed."""

    network: nn.Module
    calibration: Batches
    judged: Batches
    classes: tuple[str, ...]
    name: str

    @property
    def input_range(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Least and largest inputs, per channel."""
        pixels, channels = self.judged.pixels, self.judged.part.images.shape[-1]
        pairs = [(pixels.mean[c % len(pixels.mean)], pixels.std[c % len(pixels.std)]) for c in range(channels)]
        return tuple((0 - m) / s for m, s in pairs), tuple((1 - m) / s for m, s in pairs)


@dataclass(frozen=True, kw_only=True)
class ClampTry:
    """One combination of temperature and perturbation, with its measures on the test images."""

    title: str
    T: float | None  # None where the map is not a temperature
    delta_norm: float
    strength: float
    values: dict[str, float]  # measure -> value


@dataclass(frozen=True)
class Pictures:
    """Images as bytes (h, w, c), with and without the perturbation, and the perturbation itself."""

    plain: list[npt.NDArray[np.uint8]]
    perturbed: list[npt.NDArray[np.uint8]]
    delta: npt.NDArray[np.uint8]  # grey where nothing changes
    largest: float  # change of a pixel, of 255, at full strength


@lru_cache(maxsize=4)
def open_subject(folder: Path) -> ClampSubject:
    """The network of a run, with some of its validation and of its test images."""
    run = open_run(folder)
    splits, pixels = load_splits(run.recipe), run.pixels(torch.device("cpu"))
    if splits.val is None:
        fix = "train with a split that has one, for instance split = '5:1'"
        raise InputError(str(folder), expected="a run with a validation part", got="one without", fix=fix)
    calibration = Batches(part=_few(splits.val, MOST_IMAGES), size=BATCH, pixels=pixels)
    judged = Batches(part=_few(splits.test, MOST_JUDGED), size=BATCH, pixels=pixels)
    return ClampSubject(
        network=run.network("cpu"),
        calibration=calibration,
        judged=judged,
        classes=run.classes,
        name=run.recipe.title or run.recipe.model,
    )


def _few(part: Part, most: int) -> Part:
    if len(part) <= most:
        return part
    return part.take(np.sort(np.random.default_rng(SEED).permutation(len(part))[:most]))


@dataclass
class ClampTrials:
    """The trials of one session: a fitted perturbation, a map behind the network, and all tries so far."""

    subject: ClampSubject
    tries: list[ClampTry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.network = copy.deepcopy(self.subject.network)  # a fit freezes it: nobody else may look meanwhile
        self.lock = threading.RLock()
        self.inputs, self.labels = self._read()
        self.delta = torch.zeros_like(self.inputs[0])
        self._looks: dict[float, npt.NDArray[np.float64]] = {}

    def _read(self) -> tuple[Tensor, Tensor]:
        rows = [(x, y) for x, y, _ in self.subject.judged.in_order()]
        like = next(self.network.parameters())
        return torch.cat([x for x, _ in rows]).to(like.dtype), torch.cat([y for _, y in rows])

    @property
    def delta_norm(self) -> float:
        return float(self.delta.double().norm())

    def predict(self, T: float = 1.0, strength: float = 1.0) -> Predictions:
        """Predict the test images with some of the perturbation, at a temperature."""
        if not 0.001 <= T <= 1000 or not 0 <= strength <= 10:
            got, fix = f"T = {T:g}, strength {strength:g}", "move the sliders back"
            raise InputError("clamp", expected="T from 0.001 to 1000, strength from 0 to 10", got=got, fix=fix)
        logits = self._logits(strength if self.delta.any() else 0.0) / T
        return Predictions.from_logits(logits, self.labels.numpy(), classes=self.subject.classes)

    def _logits(self, strength: float) -> npt.NDArray[np.float64]:
        key = round(strength, 4)
        with self.lock:
            if key not in self._looks:
                if len(self._looks) >= MOST_LOOKS:
                    self._looks.pop(next(iter(self._looks)))
                with freeze(self.network), torch.no_grad():
                    parts = [self.network(x + key * self.delta) for x in torch.split(self.inputs, BATCH)]
                self._looks[key] = torch.cat(parts).double().numpy()
            return self._looks[key]

    def pictures(self, strength: float = 1.0) -> Pictures:
        """The first images, with and without the perturbation, clipped to what a pixel can be."""
        plain = self.inputs[:SHOWN]
        changed = self._pixels(plain + strength * self.delta)
        change = (self._to_pixels(self.delta[None]) - self._to_pixels(torch.zeros_like(self.delta)[None]))[0]
        largest = float(np.abs(change).max())
        scaled = 127.5 + 127.5 * (change / largest if largest else change)
        return Pictures(list(self._pixels(plain)), list(changed), scaled.round().astype(np.uint8), largest)

    def _to_pixels(self, x: Tensor) -> npt.NDArray[np.float64]:
        """Inputs as pixels from 0 to 255, (rows, h, w, c)."""
        pixels = self.subject.judged.pixels
        mean, std = (torch.tensor(of, dtype=torch.float64) for of in (pixels.mean, pixels.std))
        values: npt.NDArray[np.float64] = (255 * (x.double().permute(0, 2, 3, 1) * std + mean)).numpy()
        return values

    def _pixels(self, x: Tensor) -> npt.NDArray[np.uint8]:
        return self._to_pixels(x).round().clip(0, 255).astype(np.uint8)

    def fit(
        self, method: str, *, on_share: OnShare | None = None, stop: threading.Event | None = None
    ) -> tuple[float | None, Predictions]:
        """Fit on the calibration images, keep the try; the temperature (None for a vector) and the test predictions."""
        if method not in TITLES:
            raise unknown_name("method", method, TITLES)
        if method in CLAMPINGS:
            return self._clamp(method, on_share or (lambda share: None), stop or threading.Event())
        calibration, test = self._calibration(), self.predict(strength=0.0)
        if method == "temperature":
            T = find_temperature(calibration).T
            p = test.with_temperature(T)
            self.keep(TITLES[method], p, T=T, strength=0.0)
            return T, p
        p = fit_candidate(calibration, "vector")(test)
        self.keep(TITLES[method], p, T=None, strength=0.0)
        return None, p

    def _calibration(self) -> Predictions:
        with self.lock, freeze(self.network), torch.no_grad():
            rows = [(self.network(x).double(), y) for x, y, _ in self.subject.calibration.in_order()]
        logits, labels = (torch.cat(column).numpy() for column in zip(*rows, strict=True))
        return Predictions.from_logits(logits, labels)

    def _clamp(self, method: str, on_share: OnShare, stop: threading.Event) -> tuple[float, Predictions]:
        low, high = self.subject.input_range
        options = replace(CLAMPINGS[method], low=low, high=high, batch=BATCH)

        def on_pass(count: int) -> None:
            if stop.is_set():
                raise InterruptedFitError
            on_share(min(count / options.most_passes, 1.0))

        with self.lock:
            clamped = options.fit(self.network, self.subject.calibration, on_pass=on_pass)
            assert clamped.report is not None
            self.delta, self._looks = clamped.delta, {}
            T = float(clamped.T)
            p = self.predict(T, 1.0)
            self.keep(f"{TITLES[method]} ({clamped.report.gamma:g})" if method == "clamping_gamma" else TITLES[method],
                      p, T=T, strength=1.0)  # fmt: skip
        return T, p

    def keep(self, title: str, p: Predictions, *, T: float | None, strength: float) -> None:
        """Add a row to the tries."""
        values = {name: make(name)(p) for name in ("accuracy", "ece", "nll", "brier")}
        norm = strength * self.delta_norm
        self.tries.append(ClampTry(title=title, T=T, delta_norm=norm, strength=strength, values=values))
