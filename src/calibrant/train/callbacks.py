"""For users who stay with their own trainer: calibration in its log every epoch, a temperature at the end."""

from pathlib import Path
from typing import Any

import numpy as np

from calibrant.calibrators import Map, fit
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import make

MEASURES = ("ece", "nll", "brier", "auroc")


def lightning_callback(
    *, measures: tuple[str, ...] = MEASURES, fit_with: str | None = "temperature", out: str | Path | None = None
) -> Any:
    """A callback for Lightning's `Trainer(callbacks=[...])`.

    `validation_step` must return a dict with `logits` and `labels`. The log gets val_ece and so on after every
    validation. At the end of the fit `callback.map` is the fitted map, saved to `out` if given.
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        try:
            from pytorch_lightning import Callback
        except ImportError:
            raise InputError(
                "lightning_callback", expected="Lightning", got="no such package", fix="pip install lightning"
            ) from None

    collector = Collector(measures, fit_with, out)

    class CalibrationCallback(Callback):  # type: ignore[misc]
        """Measures of every validation, and a map at the end."""

        map: Map | None = None

        def on_validation_epoch_start(self, *_: Any) -> None:
            collector.clear()

        def on_validation_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:
            if not isinstance(outputs, dict) or not {"logits", "labels"} <= outputs.keys():
                fix = 'return {"logits": logits, "labels": labels} there'
                raise InputError("validation_step", expected="a dict with logits and labels", got="none", fix=fix)
            collector.add(outputs["logits"], outputs["labels"])

        def on_validation_epoch_end(self, trainer: Any, module: Any) -> None:
            if not trainer.sanity_checking:
                module.log_dict({f"val_{name}": value for name, value in collector.measured().items()})

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self.map = collector.fitted()

    return CalibrationCallback()


class HuggingFaceMetrics:
    """For Hugging Face's `Trainer(compute_metrics=..., callbacks=[metrics.callback()])`.

    Called with the predictions of every evaluation it returns the measures; at the end of the training `map` is the
    map fitted on the last evaluation, saved to `out` if given.
    """

    def __init__(
        self,
        *,
        measures: tuple[str, ...] = MEASURES,
        fit_with: str | None = "temperature",
        out: str | Path | None = None,
    ) -> None:
        self._collector = Collector(measures, fit_with, out)
        self.map: Map | None = None

    def __call__(self, evaluated: Any) -> dict[str, float]:
        logits, labels = evaluated.predictions, evaluated.label_ids
        self._collector.clear()
        self._collector.add(logits[0] if isinstance(logits, tuple) else logits, labels)
        return self._collector.measured()

    def callback(self) -> Any:
        from transformers import TrainerCallback

        metrics = self

        class FitAtTheEnd(TrainerCallback):
            """Fits the map when the training ends."""

            def on_train_end(self, *_: Any, **__: Any) -> None:
                metrics.map = metrics._collector.fitted()

        return FitAtTheEnd()


class Collector:
    """Logits and labels of one validation, batch by batch."""

    def __init__(self, measures: tuple[str, ...], fit_with: str | None, out: str | Path | None) -> None:
        self.measures = {name: make(name) for name in measures}
        self.fit_with, self.out = fit_with, out
        self.clear()

    def clear(self) -> None:
        self.logits: list[Any] = []
        self.labels: list[Any] = []

    def add(self, logits: Any, labels: Any) -> None:
        self.logits.append(_plain(logits))
        self.labels.append(_plain(labels))

    def predictions(self) -> Predictions:
        if not self.logits:
            fix = "validate at least once"
            raise InputError("calibration callback", expected="validation batches", got="none", fix=fix)
        logits, labels = np.concatenate(self.logits), np.concatenate(self.labels)
        return Predictions.from_logits(logits, labels, few_rows=True)

    def measured(self) -> dict[str, float]:
        p = self.predictions()
        return {name: measure(p) for name, measure in self.measures.items()}

    def fitted(self) -> Map | None:
        if self.fit_with is None:
            return None
        made = fit(self.predictions(), self.fit_with)
        if self.out is not None:
            made.save(self.out)
        return made


def _plain(values: Any) -> Any:
    """A numpy array, from a tensor of any device and precision."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    return (values.detach().float() if values.is_floating_point() else values.detach()).cpu().numpy()
