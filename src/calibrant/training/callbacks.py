"""For users who stay with their own trainer: calibration in its log every epoch, a temperature at the end."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.map import Map, load_map
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.repairing.fit import fit

MEASURES = ("accuracy", "ece", "nll", "brier", "auroc_correct")
CHECKPOINT_MAP = "calibration_map.json"  # in the folder of a checkpoint


def lightning_callback(
    *, measures: tuple[str, ...] = MEASURES, fit_with: str | None = "temperature", out: str | Path | None = None
) -> Any:
    """A callback for Lightning's `Trainer(callbacks=[...])`.

    `validation_step` must return a dict with `logits` and `labels`. The log gets val_ece and so on after every
    validation. At the end of the fit `callback.map` is the map of the last validation, saved to `out` if given. Where
    a ModelCheckpoint with a monitor keeps other weights, `callback.best_map` and `callback.best_measured` belong to
    those, and the map is saved beside them: `epoch=3.ckpt` has `epoch=3.map.json`.
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

    collector = Collector(measures, fit_with)

    class CalibrationCallback(Callback):  # type: ignore[misc]
        """Measures of every validation, and a map at the end."""

        map: Map | None = None
        best_map: Map | None = None
        best_measured: dict[str, float] | None = None
        validated = -1  # the step of the last validation
        best: tuple[str, Any] = ("", None)  # where the best weights are, and their score

        def on_validation_epoch_start(self, *_: Any) -> None:
            collector.clear()

        def on_validation_batch_end(self, trainer: Any, module: Any, outputs: Any, *_: Any) -> None:
            if not isinstance(outputs, dict) or not {"logits", "labels"} <= outputs.keys():
                fix = 'return {"logits": logits, "labels": labels} there'
                raise InputError("validation_step", expected="a dict with logits and labels", got="none", fix=fix)
            collector.add(outputs["logits"], outputs["labels"])

        def on_validation_epoch_end(self, trainer: Any, module: Any) -> None:
            if not trainer.sanity_checking:
                self.validated = trainer.global_step
                module.log_dict({f"val_{name}": value for name, value in collector.measured().items()})

        def on_save_checkpoint(self, trainer: Any, *_: Any) -> None:
            kept = trainer.checkpoint_callback
            best = (
                ("", None) if getattr(kept, "monitor", None) is None else (kept.best_model_path, kept.best_model_score)
            )
            if best != self.best:  # these weights are the best now
                self.best, seen = best, self.validated == trainer.global_step
                self.best_map = collector.fitted() if seen else None
                self.best_measured = collector.measured() if seen else None

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self.map = collector.fitted()
            if trainer.is_global_zero:
                _save(self.map, out)
                _save(self.best_map, f"{self.best[0].removesuffix('.ckpt')}.map.json")

    return CalibrationCallback()


class HuggingFaceMetrics:
    """For Hugging Face's `Trainer(compute_metrics=..., callbacks=[metrics.callback()])`.

    Called with the predictions of every evaluation it returns the measures. At the end of the training `map` is a map
    for the weights that the Trainer keeps, saved to `out` if given: of the best evaluation with
    `load_best_model_at_end`, else of the last. `step` and `measured` say which evaluation that was, and what it
    gave. The folder of every checkpoint gets the map of its own weights, `calibration_map.json`.
    """

    def __init__(
        self,
        *,
        measures: tuple[str, ...] = MEASURES,
        fit_with: str | None = "temperature",
        out: str | Path | None = None,
    ) -> None:
        self._collector, self._out = Collector(measures, fit_with), out
        self._evaluated = -1  # the step of the last evaluation
        self.map: Map | None = None
        self.step = -1
        self.measured: dict[str, float] = {}

    def __call__(self, evaluated: Any) -> dict[str, float]:
        logits, labels = evaluated.predictions, evaluated.label_ids
        self._collector.clear()
        self._collector.add(logits[0] if isinstance(logits, tuple) else logits, labels)
        return self._collector.measured()

    def callback(self) -> Any:
        from transformers import TrainerCallback

        metrics = self

        class KeepTheMap(TrainerCallback):  # type: ignore[misc]
            """A map with every checkpoint; at the end that of the weights kept."""

            def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                metrics._evaluated = state.global_step

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                if metrics._evaluated == state.global_step and state.is_world_process_zero and folder.is_dir():
                    _save(metrics._collector.fitted(), folder / CHECKPOINT_MAP)

            def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                metrics._keep(state, state.best_model_checkpoint if args.load_best_model_at_end else None)

        return KeepTheMap()

    def _keep(self, state: Any, best: str | None) -> None:
        """The map of the evaluation whose weights the Trainer has now: those in the folder `best`, or the last ones."""
        collector = self._collector
        self.step = self._evaluated if best is None else int(best.rpartition("-")[2])
        if best is None or collector.fit_with is None:
            self.map = collector.fitted()
        elif (file := Path(best) / CHECKPOINT_MAP).exists():
            self.map = load_map(file)
        else:
            words = f"{best} has the best weights and no {CHECKPOINT_MAP}: evaluate them, and fit a map on that"
            warnings.warn(words, stacklevel=2)
        names = {f"eval_{name}": name for name in collector.measures}
        logged = [row for row in state.log_history if row["step"] == self.step and names.keys() <= row.keys()]
        self.measured = {name: logged[-1][key] for key, name in names.items()} if logged else {}
        if state.is_world_process_zero:
            _save(self.map, self._out)


class Collector:
    """Logits and labels of one validation, batch by batch."""

    def __init__(self, measures: tuple[str, ...], fit_with: str | None) -> None:
        self.measures = {name: make(name) for name in measures}
        self.fit_with = fit_with
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
        return None if self.fit_with is None else fit(self.predictions(), self.fit_with)


def _save(made: Map | None, file: str | Path | None) -> None:
    if made is not None and file is not None:
        made.save(file)


def _plain(values: Any) -> Any:
    """A numpy array, from a tensor of any device and precision."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    return (values.detach().float() if values.is_floating_point() else values.detach()).cpu().numpy()
