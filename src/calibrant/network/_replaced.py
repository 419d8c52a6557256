"""What the methods that replace a confidence share: features asked for, rows seen before, arrays with facts on disk."""

import json
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.calibrators._fingerprint import Fingerprint
from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.files import write_whole
from calibrant.core.predictions import Predictions


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
    """The same answers with confidence q; says so when they are rows that the method was fitted on."""
    seen = fitted_on.seen(p) if fitted_on else 0.0
    if seen:
        warnings.warn(
            f"about {seen:.0%} of the rows this confidence was fitted on are among these: numbers on them flatter it",
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
        return InputError(str(path), expected=f"a fitted {kind} in an .npz file", got=got, fix="fit and save it again")

    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(str(arrays.pop("facts")))
    except FileNotFoundError:
        raise wrong("no such file") from None
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, AttributeError) as error:
        raise wrong(f"something else ({str(error).splitlines()[0]})") from None
    if facts.get("calibrant") != kind or facts.get("version") != 1:
        raise wrong(f"{facts.get('calibrant')}, version {facts.get('version')}")
    return arrays, facts
