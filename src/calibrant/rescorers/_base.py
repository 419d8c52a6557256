"""What a rescorer promises, and what several share: features asked for, rows seen before, arrays with facts on disk."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats
from calibrant.core.catalogue import check_options
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.fingerprint import Fingerprint
from calibrant.core.npz import read_npz
from calibrant.core.predictions import Predictions
from calibrant.core.schema import parse_json
from calibrant.core.wording import whole_percent

REFIT = "fit and save it again"


@dataclass(frozen=True)
class Rescorer:
    """A way to another confidence: options only. `fit` learns it and returns something with `predict` and `save`.

    What `fit` takes differs, as the methods do: a network and batches of its inputs, or predictions with features. It
    leaves the network as it was, and it must see rows that the network was not trained on, or say why not.
    """

    title: ClassVar[str]
    reference: ClassVar[str]
    looks_at: ClassVar[str]  # inputs, features, or both

    def __post_init__(self) -> None:
        check_options(self)


def features_of(p: Predictions, method: str) -> Floats:
    """The features of the rows, which not every file of predictions has."""
    if p.features is None:
        raise InputError(
            method,
            expected="predictions with features, the input of the last layer",
            got="predictions without",
            fix="predict with features, as calibrant predict does, or give features=... to Predictions.from_logits",
        )
    return p.features


def matrix(features: npt.ArrayLike, what: str, width: int | None = None) -> Array:
    """Features as finite float64 (n, d), of the width that others had."""
    made = np.asarray(features, dtype=np.float64)
    if made.ndim != 2 or 0 in made.shape:
        raise InputError(what, expected="features (n, d)", got=f"shape {made.shape}", fix="give a row per sample")
    if width is not None and made.shape[1] != width:
        fix = "use features of the same layer of the same network"
        raise InputError(what, expected=f"{width} features a row", got=str(made.shape[1]), fix=fix)
    if not np.isfinite(made).all():
        raise InputError(what, expected="finite features", got="NaN or infinity", fix="look at the network's outputs")
    return made


def replaced(p: Predictions, q: Array, fitted_on: Fingerprint | None) -> Predictions:
    """The same predictions with confidence q; says so when they are rows that the method was fitted on."""
    seen = fitted_on.seen(p) if fitted_on else 0.0
    if seen:
        warnings.warn(
            f"about {whole_percent(seen)} of these rows are among those this confidence was fitted on: numbers on them "
            "flatter it",
            LeakWarning,
            stacklevel=3,
        )
    made = p.with_confidence(q)
    return Predictions(made.values, made.labels, made.kind, replace(made.extras, seen=max(seen, p.extras.seen)))


def save_arrays(path: str | Path, kind: str, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """One npz: arrays, and the facts as JSON text. Nothing in it can run code."""
    text = json.dumps({"calibrant": kind, "version": 1, **facts})
    whole: dict[str, Any] = {**arrays, "facts": np.array(text)}
    write_whole(path, lambda stream: np.savez_compressed(stream, **whole))


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """What `save_arrays` wrote, or a clear error."""

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
        said = facts if isinstance(facts, dict) else {}
        raise wrong(f"{said.get('calibrant')}, version {said.get('version')}")
    return arrays, facts


def check_arrays(arrays: Mapping[str, npt.NDArray[Any]], shapes: Mapping[str, tuple[int | None, ...]]) -> None:
    """These arrays and no others, of finite numbers, in these shapes; None is any length but 0. Else a ValueError."""
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
