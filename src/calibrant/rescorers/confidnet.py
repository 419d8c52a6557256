"""ConfidNet: a second network learns, from features, the probability that the first one gives to the true class."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.arrays import Array
from calibrant.core.config.convert import from_json
from calibrant.core.errors import InputError
from calibrant.core.files import check_place, write_text
from calibrant.core.json import read_typed, whole
from calibrant.core.predictions import Predictions
from calibrant.core.torch import checkpoint
from calibrant.core.torch.layers import freeze
from calibrant.core.torch.loader import Loader, pairs
from calibrant.rescorers._base import Rescorer, TrainedRun
from calibrant.rescorers._confidnet_rows import look

OnEpoch = Callable[[dict[str, Any]], None]
STATE = "state.safetensors"  # in the folder of a fit: what it continues from
WEIGHTS, FACTS = "confidnet.safetensors", "confidnet.json"


class ConfidenceHead(nn.Module):
    """Features (B, d) to one number each, before the sigmoid: a few layers of one width with ReLU.

    >>> from calibrant.models import count
    >>> count(ConfidenceHead(512))
    686801
    """

    def __init__(self, features: int, width: int = 400, depth: int = 4) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inside in [features, *[width] * (depth - 1)]:
            layers += [nn.Linear(inside, width), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.layers(features)
        return logits.squeeze(1)


@dataclass(frozen=True)
class ConfidNet(Rescorer):
    """Squared distance of sigmoid(head(features)) to the true class's probability, by Adam; the classifier is frozen.

    On images that the classifier has learned by heart this probability is near 1 everywhere, and the head learns
    little. Stage 1 trains the head, with the classifier's dropout layers on; stage 2 continues with a clone of the
    classifier, dropout off. What counts is the epoch with the best AUPR-error on other images, or with the lowest loss
    where these hold fewer than 30 errors. A stage ends after `patience` epochs without an improvement (0: never).
    """

    stages: int = 1  # 1 or 2
    epochs: int = 500
    clone_epochs: int = 50
    patience: int = 50
    lr: float = 1e-4
    clone_lr: float = 1e-6
    batch: int = 128  # of stage 1; stage 2 takes the batches that it is given
    error_weight: float = 1.0  # of rows that the classifier gets wrong
    width: int = 400
    depth: int = 4
    head: str = "head"  # the classifier's last layer: what goes into it are the features
    seed: int = 0

    title: ClassVar[str] = "ConfidNet"
    reference: ClassVar[str] = "Corbière, Thome, Bar-Hen, Cord, Pérez, NeurIPS 2019"
    fitted_on: ClassVar[tuple[str, ...]] = ("train",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stages not in (1, 2):
            raise InputError("stages", expected="1 or 2", got=str(self.stages), fix="use 1, which is fast")
        for name in ("epochs", "clone_epochs", "batch", "width", "depth"):
            if getattr(self, name) < 1:
                raise InputError(name, expected="at least 1", got=str(getattr(self, name)), fix="give a larger number")
        for name in ("lr", "clone_lr", "error_weight"):
            if getattr(self, name) <= 0:
                raise InputError(name, expected="above 0", got=str(getattr(self, name)), fix="give a larger number")

    def fit(
        self,
        network: nn.Module,
        train_loader: Loader,
        val_loader: Loader,
        *,
        augmented: bool = False,
        state: str | Path | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> "FittedConfidNet":
        """Learn from batches of images and labels; others select the epoch. The classifier is left as it was.

        `augmented` says that the loader gives other images each time: then features are computed anew in each epoch, as
        they are when dropout is on. A loader with `set_epoch` is told the epoch. `state` is a file that an interrupted
        fit continues from, with the same result; it may continue for more epochs, or with stage 2.
        """
        from calibrant.rescorers._confidnet_fit import Fitting

        with freeze(network):
            return Fitting(self, network, train_loader, val_loader, augmented, state, on_epoch).run()

    def rescore(self, run: TrainedRun) -> Predictions:
        return self.fit_run(run)[1]["test"]

    def fit_run(
        self, run: TrainedRun, *, learn: str = "train", augment: bool = False, on_epoch: OnEpoch | None = None
    ) -> tuple["FittedConfidNet", dict[str, Predictions]]:
        """Learn from the images of the part `learn`; the fit and the predictions of all parts are written to run.out.

        The run's own predictions are read and compared with its images, and the places of the files to be written are
        looked at, before the fit, which may take hours.
        """
        for name in (STATE, WEIGHTS, FACTS, *(f"{part}.npz" for part in run.judged)):
            check_place(run.out / name)
        before = {part: run.predictions(part) for part in run.judged}
        images = {part: run.batches(part, 256) for part in run.judged}
        for part, p in before.items():
            if len(images[part].part) != p.n:
                expected, fix = f"predictions of the {len(images[part].part):,} images", "predict again"
                raise InputError(f"{part}.npz of the run", expected=expected, got=f"{p.n:,} rows", fix=fix)
        learned, selecting, augmented = run.learning_batches(learn, self.batch, self.seed, augment=augment)
        state = run.out / STATE
        fitted = self.fit(run.network(), learned, selecting, augmented=augmented, state=state, on_epoch=on_epoch)
        after = {}
        for part, p in before.items():
            rescored = p.with_confidence(fitted.confidence(images[part]))
            row_data = replace(rescored.row_data, seen=1.0 if part == learn else rescored.row_data.seen)
            after[part] = rescored.with_values(rescored.values, rescored.score_type, row_data)
        fitted.save(run.out)
        for part, p in after.items():
            p.save(run.out / f"{part}.npz")
        return fitted, after


class FittedConfidNet(nn.Module):
    """Images in, one confidence each out. The predicted classes are those of the classifier, which is not changed.

    `facts` say how it was fitted: options, what selected the epoch, and a row per epoch in `log`.
    """

    def __init__(
        self, network: nn.Module, head: ConfidenceHead, clone: nn.Module | None, facts: dict[str, Any]
    ) -> None:
        super().__init__()
        self.network, self.head, self.clone, self.facts = network, head, clone, facts
        self.last: str = facts["options"]["head"]

    def forward(self, x: Tensor) -> Tensor:
        """Confidences (B,)."""
        return self._look(x).confidence

    def confidence(self, loader: Loader) -> Array:
        """Confidences (n,) of the images of a loader, in its order."""
        return np.concatenate([output.confidence.cpu().double().numpy() for output, _ in self._all(loader)])

    def predict(self, loader: Loader) -> Predictions:
        """The classifier's predictions, with its logits' other classes rescaled around the new confidence."""
        parts = [
            (output.logits.cpu(), output.features.cpu(), labels.cpu(), output.confidence.cpu().double())
            for output, labels in self._all(loader)
        ]
        logits, features, labels, q = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
        return Predictions.from_logits(logits, labels, features=features, allow_few_rows=True).with_confidence(q)

    def save(self, folder: str | Path) -> None:
        """confidnet.safetensors and confidnet.json; the classifier itself is not among them."""
        folder = Path(folder)
        tensors = checkpoint.name_tensors("head", self.head.state_dict())
        tensors |= {} if self.clone is None else checkpoint.name_tensors("clone", self.clone.state_dict())
        facts = {"calibrant_confidnet": 1, **self.facts}
        checkpoint.save(folder / WEIGHTS, tensors, facts)
        write_text(folder / FACTS, json.dumps(facts, indent=2))

    @classmethod
    def load(cls, folder: str | Path, network: nn.Module) -> "FittedConfidNet":
        """Read what `save` wrote, around the classifier that it was fitted to."""
        file = Path(folder) / WEIGHTS
        tensors, facts = checkpoint.load(file)
        if not isinstance(facts, dict) or facts.pop("calibrant_confidnet", None) != 1:
            raise InputError(str(file), expected="a ConfidNet, version 1", got="another", fix="update calibrant")
        if facts.get("network") != fingerprint(network):
            fix = "load the weights it was fitted to, or fit again"
            raise InputError(str(file), expected="the classifier of the fit", got="other weights", fix=fix)
        like = next(network.parameters())
        with whole(str(file), fix="fit and save it again"):
            if bad := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
                raise ValueError(f"{bad[0]:.40} is not finite")
            options = from_json(ConfidNet, facts["options"])
            facts["options"] = asdict(options)
            if options.depth > len(tensors):
                raise ValueError(f"depth is {options.depth}")
            with torch.device("meta"):  # sizes first: what a file only claims takes no memory
                head = ConfidenceHead(read_typed(facts, "features", int), options.width, options.depth)
            head.load_state_dict(checkpoint.under("head", tensors), assign=True)
            clone = copy.deepcopy(network) if any(name.startswith("clone.") for name in tensors) else None
            if clone is not None:
                clone.load_state_dict(checkpoint.under("clone", tensors))
                clone.eval().requires_grad_(False)
        return cls(network, head.to(like.device, like.dtype).requires_grad_(False), clone, facts)

    def _all(self, loader: Loader) -> "Iterator[tuple[BatchOutput, Tensor]]":
        with torch.no_grad():
            for x, labels in pairs(loader, self.network):
                output = self._look(x)
                if not output.confidence.isfinite().all():
                    got, fix = "others", "fit again: the weights are damaged, or too large for these features"
                    raise InputError("ConfidNet", expected="confidences that are numbers", got=got, fix=fix)
                yield output, labels

    def _look(self, x: Tensor) -> "BatchOutput":
        with freeze(self.network):
            logits, features = look(self.network, self.last, x)
            inner = features if self.clone is None else look(self.clone, self.last, x)[1]
            return BatchOutput(logits, features, self.head(inner).sigmoid())


class BatchOutput(NamedTuple):
    """Logits, features and confidences of a batch."""

    logits: Tensor  # (B, k)
    features: Tensor  # (B, d) of the classifier
    confidence: Tensor  # (B,)


def fingerprint(network: nn.Module) -> str:
    """A hash of all weights and statistics."""
    import hashlib

    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
