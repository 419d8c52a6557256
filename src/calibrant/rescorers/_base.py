"""The base class of rescorers, what they may take from a run, and helpers that several share."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats
from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.files import write_whole
from calibrant.core.io.npz import read_npz
from calibrant.core.json import parse_json
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import whole_percent

REFIT = "fit and save it again"


class TrainedRun(Protocol):
    """Interface of a run for rescorers. Parts are train, val and test."""

    @property
    def out(self) -> Path:
        """The folder for predictions and for files of the rescorer's own."""

    @property
    def judged(self) -> tuple[str, ...]:
        """The parts whose predictions are rescored: test, and val where the run has one."""

    @property
    def input_range(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Black and white after normalisation, one number a channel."""

    def predictions(self, part: str) -> Predictions:
        """Logits, labels and features of a part."""

    def network(self) -> Any:
        """The trained torch module, in evaluation mode."""

    def batches(self, part: str, size: int) -> Any:
        """Batches (inputs, labels, row numbers) of a part, in its order."""

    def learning_batches(self, part: str, size: int, seed: int, *, augment: bool = False) -> tuple[Any, Any, bool]:
        """Shuffled batches to learn from, held-out ones (a tenth) to select by, and whether images are augmented."""


@dataclass(frozen=True)
class Rescorer:
    """A method that gives predictions another confidence: options only.

    `fit` learns it and returns something with `predict`. It leaves the network as it was, and it must see rows that the
    network was not trained on, or say why not. `rescore` applies the method to a run. As it is here, it fits on the
    predictions of the parts `fitted_on` and predicts those of the part test; a method that needs the network or its
    inputs defines its own.
    """

    title: ClassVar[str]
    reference: ClassVar[str]
    fitted_on: ClassVar[tuple[str, ...]] = ("val",)  # parts of a run that it learns from

    def __post_init__(self) -> None:
        check_options(self)

    def fit(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{type(self).__name__} does not say how it is fitted: define fit")

    def rescore(self, run: TrainedRun) -> Predictions:
        """Test predictions of a run with the new confidence."""
        fitted = self.fit(*(run.predictions(part) for part in self.fitted_on))
        predictions: Predictions = fitted.predict(run.predictions("test"))
        return predictions


def features_of(p: Predictions, method: str) -> Floats:
    """The features of the rows, or an error: not every file of predictions has them."""
    if p.features is None:
        raise InputError(
            method,
            expected="predictions with features, the input of the last layer",
            got="predictions without",
            fix="predict with features, as calibrant predict does, or give features=... to Predictions.from_logits",
        )
    return p.features


def matrix(features: npt.ArrayLike, what: str, width: int | None = None) -> Array:
    """Check features: finite, (n, d), of the width that others had; as float64."""
    values = np.asarray(features, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(what, expected="features (n, d)", got=f"shape {values.shape}", fix="give a row per sample")
    if width is not None and values.shape[1] != width:
        fix = "use features of the same layer of the same network"
        raise InputError(what, expected=f"{width} features a row", got=str(values.shape[1]), fix=fix)
    if not np.isfinite(values).all():
        raise InputError(what, expected="finite features", got="NaN or infinity", fix="look at the network's outputs")
    return values


def replace_confidence(p: Predictions, q: Array, fitted_on: Fingerprint | None) -> Predictions:
    """Predictions with confidence q; warns when they are rows that the method was fitted on."""
    seen = fitted_on.share_seen(p) if fitted_on else 0.0
    if seen:
        warnings.warn(
            f"about {whole_percent(seen)} of these rows are among those this confidence was fitted on: numbers on them "
            "are optimistic",
            LeakWarning,
            stacklevel=3,
        )
    rescored = p.with_confidence(q)
    return rescored.with_values(
        rescored.values, rescored.score_type, replace(rescored.row_data, seen=max(seen, p.row_data.seen))
    )


def save_arrays(path: str | Path, kind: str, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """Write one npz: arrays, and the facts as JSON text. Nothing in it can run code."""
    text = json.dumps({"calibrant": kind, "version": 1, **facts})
    whole: dict[str, Any] = {**arrays, "facts": np.array(text)}
    write_whole(path, lambda stream: np.savez_compressed(stream, **whole))


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Read what `save_arrays` wrote; a clear error for anything else."""

    def wrong(got: str) -> InputError:
        return InputError(str(path), expected=f"a fitted {kind} in an .npz file", got=got, fix=REFIT)

    if not Path(path).is_file():
        raise wrong("no such file")
    arrays, _ = read_npz(Path(path))
    try:
        facts = parse_json(str(arrays.pop("facts")))
    except (ValueError, KeyError) as error:
        raise wrong("something else") from error
    if not isinstance(facts, dict) or facts.get("calibrant") != kind or facts.get("version") != 1:
        known = facts if isinstance(facts, dict) else {}
        raise wrong(f"{known.get('calibrant')}, version {known.get('version')}")
    return arrays, facts


def check_arrays(arrays: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int | None, ...]]) -> None:
    """Raise a ValueError unless these arrays and no others are there, finite, in these shapes; None is any length."""
    if set(arrays) != set(shapes):
        raise ValueError(f"it holds {', '.join(sorted(arrays)) or 'nothing'}"[:150])
    for name, shape in shapes.items():
        array = arrays[name]
        if array.dtype.kind not in "fi" or not np.isfinite(array).all():
            raise ValueError(f"{name} holds something else than finite numbers")
        if array.size == 0 or len(array.shape) != len(shape):
            raise ValueError(f"{name} has the shape {array.shape}")
        if any(want is not None and want != have for want, have in zip(shape, array.shape, strict=True)):
            raise ValueError(f"{name} has the shape {array.shape}")
