"""The row of the log for an epoch, and a warning where a learned regulariser does harm."""

import math
import warnings
from typing import Any

import torch

from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature
from calibrant.datasets import Part, Splits
from calibrant.measures import make as measure
from calibrant.training.learned_losses import LearnedLoss
from calibrant.training.optimize import learning_rate
from calibrant.training.parts import Parts
from calibrant.training.predict import predict
from calibrant.training.run import Run
from calibrant.training.state import TrainingState

WORSE = 0.05  # a smaller rise than this share is what any training shows now and then


class LookAheadWarning(UserWarning):
    """The step that a learned regulariser looks ahead does harm."""


def epoch_row(run: Run, state: TrainingState, parts: Parts, splits: Splits, fabric: Any) -> dict[str, Any]:
    """Measures of an epoch: of training, validation and, where the recipe says so, test images."""
    recipe, learned = run.recipe, None if parts.meta is None else parts.meta.learned

    def look(part: Part) -> Predictions:
        pixels, keep = run.pixels(fabric.device), learned is not None
        return predict(parts.network, part, pixels, features=keep, precision=fabric.autocast())

    rate = learning_rate(recipe, state.epoch + (state.step - 1) / state.step)
    row: dict[str, Any] = {"epoch": state.epoch + 1, "learning_rate": rate, "seconds": state.seconds}
    row |= {"train_loss": float(state.loss) / state.seen, "train_error": float(state.wrong) / state.seen}
    if learned is not None:
        row |= {
            "meta_before": float(state.meta_before) / state.step,
            "meta_after": float(state.meta_after) / state.step,
        }
    if splits.val is not None:
        p = look(splits.val)
        row |= measure_part(p, "val") | {"val_refined_nll": refined_nll(p)} | what_was_learned(learned, p)
    if recipe.test_each_epoch:
        p = look(splits.test)
        row |= measure_part(p, "test") | what_was_learned(learned, p)
    return row


def measure_part(p: Predictions, part: str) -> dict[str, float | None]:
    """Measures of a part for the log."""
    values = {name: measure(name)(p) for name in ("ece", "nll", "auroc_correct")} | {
        "error": 1 - measure("accuracy")(p)
    }
    return {f"{part}_{name}": value if math.isfinite(value) else None for name, value in values.items()}


def refined_nll(p: Predictions) -> float:
    """NLL after the best temperature: what is left when calibration is repaired."""
    return measure("nll")(p.with_temperature(find_temperature(p).T))


def what_was_learned(learned: LearnedLoss | None, p: Predictions) -> dict[str, float]:
    """Columns of the log for a regulariser: mean and spread over the rows, or the number."""
    if learned is None:
        return {}
    with torch.no_grad():
        values = learned.values(torch.tensor(p.features, device=next(learned.parameters()).device))
    row: dict[str, float] = {}
    for name, value in values.items():
        rows = value.dim() > 0
        row |= {f"{name}_mean": float(value.mean()), f"{name}_std": float(value.std(correction=0))} if rows else {}
        row |= {} if rows else {name: float(value)}
    return row


def warn_of_look_ahead(log: list[dict[str, Any]], step: str) -> None:
    """Warn once in a training, after the first epoch whose steps ahead made the meta objective worse on average."""
    worse = [row for row in log if "meta_after" in row and _is_worse(row["meta_before"], row["meta_after"])]
    if worse != log[-1:]:
        return
    row = log[-1]
    todo = "lower optimizer.lr or set optimizer.clip_norm" if step == "taken" else 'set meta.lookahead_step = "taken"'
    warnings.warn(
        f"in epoch {row['epoch']} the step ahead raised the meta objective from {row['meta_before']:.3g} to "
        f"{row['meta_after']:.3g} on average: it is too long, and what is learned can only limit the damage. "
        f"To shorten it, {todo}.",
        LookAheadWarning,
        stacklevel=4,
    )


def _is_worse(before: float, after: float) -> bool:
    return after > before + WORSE * abs(before)
