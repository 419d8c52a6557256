"""Predictions of a part of a run, before and after rescoring."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import make

MEASURES = ("auroc_correct", "aupr_error", "aupr_success", "ece", "nll")

T = TypeVar("T")
Bar = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]  # what, how many -> moved by a number


@contextmanager
def no_bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress callback that shows nothing."""
    yield lambda done: None


@dataclass(frozen=True)
class RescoredPredictions(Generic[T]):
    """Predictions with the network's own confidence and with another one, and the model that gave it."""

    before: Predictions
    after: Predictions
    model: T  # what the fit of the method returned

    def measures(self) -> list[dict[str, Any]]:
        """Rows `measure`, `before`, `after`."""
        return [
            {"measure": name, "before": make(name)(self.before), "after": make(name)(self.after)} for name in MEASURES
        ]


def predictions_of(source: Path, part: str, *, device: str = "auto", bar: Bar = no_bar) -> Predictions:
    """Load the predictions of a file, or of a part of a run, from the file in its folder where there is one."""
    if not source.is_dir():
        return Predictions.load(source)
    file = source / f"{part}.npz"
    if file.exists():
        return Predictions.load(file)
    from calibrant.training.predict import predict_run

    with bar(f"{part} images", None) as step:
        return predict_run(source, part=part, device=device, on_batch=step)


def load_held_out(source: Path, fit: Path | None) -> Predictions:
    """Predictions to fit on: those of a file, or of the run's validation part."""
    file = fit or source / "val.npz"
    if fit is None and not file.exists():
        fix = "give --fit FILE, or train with a part for validation (data.split)"
        raise InputError(str(source), expected="held-out predictions", got="no val.npz", fix=fix)
    return Predictions.load(file)
