"""Checks that every export of a map shares: what can be exported, and the test before anything is written."""

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves, Step
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.logit_range import mask_options
from calibrant.core.predictions.row_data import RowData

TOLERANCE = 1e-5  # largest difference of a probability between a map and its export
NEAR_A_KNOT = 1e-9  # scores this close to a jump of a stair may fall on either side of it
ONNX_INSTALL = '"calibrant[onnx]"'
EXTREME = 50.0  # the largest logit of the self-test


@dataclass(frozen=True)
class ExportedFile:
    """A file that was written after its numbers were compared with the map's."""

    path: Path
    format: str
    largest_difference: float  # of a probability
    rows: int  # compared


def check_exportable(m: Map) -> None:
    """Refuse maps per group and damaged maps, before anything is built."""
    if m.groups is not None:
        names = ", ".join(sorted(m.groups)[:5])
        raise InputError(
            "export",
            expected="one map",
            got=f"one per group ({names})",
            fix="export m.groups[name], one file per group",
        )
    try:
        probs = _compute_probs(m, to_input(m, trial_logits(m, 8)))
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        raise InputError(
            "export", expected="a whole map", got=f"one that fails ({error})", fix="fit it again"
        ) from error
    if probs.shape[1] != (1 if m.one_score else m.k) or not np.isfinite(probs).all():
        raise InputError("export", expected="a map that gives probabilities", got="other numbers", fix="fit it again")


def to_input(m: Map, logits: Floats) -> Predictions:
    """Convert logits of an export's input to predictions: (n, k), or one per row; -inf where no option is."""
    labels, row_data = np.zeros(len(logits), dtype=np.int64), RowData(task=m.task)
    if m.one_score:
        z = np.asarray(logits, dtype=np.float64).reshape(-1)
        return Predictions._from_valid(np.stack([np.zeros(len(z)), z], axis=1), labels, "logits", row_data)
    if m.task == "choice":
        row_data = replace(row_data, option_mask=np.isfinite(logits))
        logits = mask_options(logits, np.isfinite(logits))
    return Predictions._from_valid(logits.copy(), labels, "logits", row_data)


def trial_logits(m: Map, n: int = 240, seed: int = 0) -> Floats:
    """Rows of the self-test: usual ones, extreme ones and ties; float32, so that every format can hold them."""
    rng = np.random.default_rng(seed)
    part, k = max(2, n // 4), 1 if m.one_score else m.k
    certain = np.full((min(k, part), k), -EXTREME)
    certain[np.arange(len(certain)), np.arange(len(certain))] = EXTREME
    rows = [
        3 * rng.normal(size=(part, k)),
        np.clip(15 * rng.normal(size=(part, k)), -EXTREME, EXTREME),
        rng.uniform(-EXTREME, EXTREME, size=(part, k)),
        rng.integers(-2, 3, size=(part, k)),  # many ties
        certain,
        np.zeros((1, k)),
        np.full((1, k), EXTREME),
    ]
    logits = np.concatenate(rows).astype(np.float32)
    if m.task == "choice":  # two options at least, of which one is the largest
        logits[rng.random(logits.shape) < 0.3] = -np.inf
        logits[:, :2] = np.where(np.isfinite(logits[:, :2]), logits[:, :2], np.float32(0.5))
    return logits[:, 0] if m.one_score else logits


def compare_outputs(m: Map, p: Predictions, probs: npt.ArrayLike, format_name: str) -> tuple[float, int]:
    """Largest difference between a map and its export, and on how many rows; an error when it is too large.

    `probs` are (n, k), or the one probability of each row, (n, 1). Rows within 1e-9 of a jump are left out: there the
    last bit of a score decides, and no two processors agree on it.
    """
    expected, got = _compute_probs(m, p), np.asarray(probs, dtype=np.float64)
    steady = np.ones(p.n, dtype=bool)
    for by in (-NEAR_A_KNOT, NEAR_A_KNOT):
        moved = replace(m, steps=tuple(_move(step, by) for step in m.steps))
        steady &= np.abs(_compute_probs(moved, p) - expected).max(axis=1) < TOLERANCE / 10
    largest = float(np.abs(got - expected)[steady].max(initial=0.0)) if got.shape == expected.shape else np.inf
    if not (largest < TOLERANCE and steady.any()):  # so that a NaN fails too
        raise InputError(
            f"export to {format_name}",
            expected=f"the map's probabilities within {TOLERANCE:g}",
            got=f"a difference of {largest:.2g} on {steady.sum()} rows",
            fix="nothing was written; please report this map as a bug",
        )
    return largest, int(steady.sum())


def require_module(module: str, install: str) -> Any:
    """A module of an extra, or the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise InputError(
            "export", expected=f"the package {name}", got="it is not installed", fix=f"pip install {install}"
        ) from error


def _move(step: Step, by: float) -> Step:
    return replace(step, x=[x + by for x in step.x]) if isinstance(step, Curves) else step


def _compute_probs(m: Map, p: Predictions) -> Array:
    q = m.apply(p)
    return q.probs[:, 1:] if m.one_score else q.probs
