"""Callbacks for Lightning and Hugging Face: calibration in the log of every epoch, a fitted map at the end."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map, load_map
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.repairing.fit import fit

MEASURES = ("accuracy", "ece", "nll", "brier", "auroc_correct")
CHECKPOINT_MAP = "calibration_map.json"  # in the folder of a checkpoint
IGNORED = -100  # the label of tokens that are not judged, in torch and transformers


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
                module.log_dict({f"val_{name}": value for name, value in collector.measure().items()})

        def on_save_checkpoint(self, trainer: Any, *_: Any) -> None:
            checkpoint = trainer.checkpoint_callback
            best = (
                ("", None)
                if getattr(checkpoint, "monitor", None) is None
                else (checkpoint.best_model_path, checkpoint.best_model_score)
            )
            if best != self.best:  # these weights are the best now
                self.best, measured = best, self.validated == trainer.global_step
                self.best_map = collector.fit_map() if measured else None
                self.best_measured = collector.measure() if measured else None

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self.map = collector.fit_map()
            if trainer.is_global_zero:
                _save(self.map, out)
                _save(self.best_map, f"{self.best[0].removesuffix('.ckpt')}.map.json")

    return CalibrationCallback()


class HuggingFaceMetrics:
    """For Hugging Face's `Trainer(compute_metrics=metrics, callbacks=[metrics.callback()])`.

    Called with the predictions of every evaluation it returns the measures. At the end of the training `map` is a map
    for the weights that the Trainer keeps, saved to `out` if given: of the best evaluation with
    `load_best_model_at_end`, else of the last. `step` and `measured` say which evaluation that was, and what it
    gave. The folder of every checkpoint gets the map of its own weights, `calibration_map.json`.

    Of several evaluation sets the map is fitted on the one that `metric_for_best_model` names, or on `fit_on`. Logits
    (n, tokens, classes) are one row for each token whose label is not -100; one logit a row is a binary prediction.
    """

    def __init__(
        self,
        *,
        measures: tuple[str, ...] = MEASURES,
        fit_with: str | None = "temperature",
        fit_on: str | None = None,
        out: str | Path | None = None,
    ) -> None:
        self._collector, self._fit_on, self._out = Collector(measures, fit_with), fit_on, out
        self._has_callback = False
        self._evaluation: Predictions | None = None  # the last one, of whatever set
        self._held_out: Predictions | None = None  # the last one of the set to fit on
        self._evaluated = -1  # its step
        self._other_sets: dict[str, int] = {}  # not to fit on: name, and step of the first evaluation
        self._prefix = ""  # of its keys in the log: eval, or eval_NAME where there are several sets
        self.map: Map | None = None
        self.step = -1
        self.measured: dict[str, float] = {}

    def __call__(self, evaluated: Any) -> dict[str, float]:
        if not self._has_callback and self._collector.fit_with is not None:
            warnings.warn(
                "no map will be fitted: give the Trainer callbacks=[metrics.callback()], or say fit_with=None",
                stacklevel=2,
            )
            self._has_callback = True  # said once
        logits, labels = evaluated.predictions, evaluated.label_ids
        self._collector.clear()
        self._collector.add(logits[0] if isinstance(logits, tuple) else logits, labels)
        self._evaluation = self._collector.predictions()
        return self._collector.measure()

    def callback(self) -> Any:
        from transformers import TrainerCallback

        metrics = self
        metrics._has_callback = True

        class KeepTheMap(TrainerCallback):  # type: ignore[misc]
            """Fits a map with every checkpoint, and keeps the one of the final weights."""

            def on_evaluate(self, args: Any, state: Any, control: Any, **values: Any) -> None:
                metrics._take_evaluation(values.get("metrics") or {}, args, state.global_step)

            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
                if metrics._evaluated == state.global_step and state.is_world_process_zero and folder.is_dir():
                    _save(metrics._fit_map(), folder / CHECKPOINT_MAP)

            def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                metrics._keep(args, state, state.best_model_checkpoint if args.load_best_model_at_end else None)

        return KeepTheMap()

    def _take_evaluation(self, logged: dict[str, float], args: Any, step: int) -> None:
        """Keep the predictions of an evaluation if its set is the one to fit on."""
        prefix = self._prefix_of(logged)
        if prefix is None:
            return
        if not self._is_to_fit_on(prefix, logged, args):
            first = self._other_sets.setdefault(prefix.removeprefix("eval_"), step)
            if first < step and self._held_out is None and self._collector.fit_with is not None:
                words = f"no map can be fitted so far: {self._no_evaluation()}"
                warnings.warn(words, stacklevel=2)  # another callback may evaluate it later: no error yet
            return
        if self._prefix and prefix != self._prefix:
            names = " and ".join(repr(name.removeprefix("eval_")) for name in (self._prefix, prefix))
            raise InputError(
                "HuggingFaceMetrics",
                expected="one evaluation set to fit the map on",
                got=f"{names}, and nothing that says which",
                fix="give HuggingFaceMetrics(fit_on=NAME), or name its measure in metric_for_best_model",
            )
        self._prefix, self._held_out, self._evaluated = prefix, self._evaluation, step

    def _prefix_of(self, logged: dict[str, float]) -> str | None:
        """The prefix of the measures in the log of an evaluation: eval, eval_NAME; None for other rows."""
        first = next(iter(self._collector.measures))
        prefixes = (key.removesuffix(f"_{first}") for key in logged if key.endswith(f"_{first}"))
        whole = [prefix for prefix in prefixes if all(f"{prefix}_{m}" in logged for m in self._collector.measures)]
        return min(whole, key=len, default=None)

    def _is_to_fit_on(self, prefix: str, logged: dict[str, float], args: Any) -> bool:
        if self._fit_on is not None:
            return prefix == f"eval_{self._fit_on}"
        if prefix == "eval":
            return True
        best = args.metric_for_best_model
        return prefix.startswith("eval_") and (best is None or f"eval_{best.removeprefix('eval_')}" in logged)

    def _fit_map(self) -> Map | None:
        if self._collector.fit_with is None:
            return None
        if self._held_out is None:
            raise self._no_evaluation()
        return fit(self._held_out, self._collector.fit_with)

    def _no_evaluation(self) -> InputError:
        which = "" if self._fit_on is None else f" of the set '{self._fit_on}'"
        got = " and ".join(repr(name) for name in self._other_sets) or "none"
        fix = "give the Trainer an eval_dataset and an eval_strategy" + (which and ", and check fit_on")
        return InputError("HuggingFaceMetrics", expected=f"an evaluation{which}", got=got, fix=fix)

    def _keep(self, args: Any, state: Any, best: str | None) -> None:
        """Keep the map of the evaluation whose weights the Trainer has now: those in the folder `best`, or the last."""
        self.step = self._evaluated if best is None else int(best.rpartition("-")[2])
        if best is None or self._collector.fit_with is None:
            self.map = self._fit_map()
        elif (file := Path(best) / CHECKPOINT_MAP).exists():
            self.map = load_map(file)
        else:
            words = f"{best} has the best weights and no {CHECKPOINT_MAP}: evaluate them, and fit a map on that"
            warnings.warn(words, stacklevel=2)
        for row in state.log_history:
            prefix = self._prefix_of(row) if row["step"] == self.step else None
            if prefix is not None and self._is_to_fit_on(prefix, row, args):
                self.measured = {name: row[f"{prefix}_{name}"] for name in self._collector.measures}
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
        self.texts: list[Any] = []  # of tokens: the number of their text
        self.count = 0

    def add(self, logits: npt.ArrayLike, labels: npt.ArrayLike) -> None:
        """Logits (n, classes), (n,) or (n, 1) of binary predictions, or (n, tokens, classes), and their labels."""
        scores, classes = _plain(logits), _plain(labels)
        if scores.ndim == 3:
            keep = classes != IGNORED
            texts = np.broadcast_to(self.count + np.arange(len(scores))[:, None], keep.shape)
            self.count += len(scores)
            scores, classes = scores[keep], classes[keep]
            self.texts.append(texts[keep])
        self.logits.append(scores.reshape(len(scores), -1))
        self.labels.append(classes.reshape(-1))

    def predictions(self) -> Predictions:
        if not self.logits:
            fix = "validate at least once"
            raise InputError("calibration callback", expected="validation batches", got="none", fix=fix)
        logits, labels = np.concatenate(self.logits), np.concatenate(self.labels)
        clusters = np.concatenate(self.texts) if self.texts else None
        if logits.shape[1] == 1:
            return Predictions.binary(logits[:, 0], labels, logits=True, clusters=clusters)
        return Predictions.from_logits(logits, labels, clusters=clusters)

    def measure(self) -> dict[str, float]:
        p = self.predictions()
        return {name: measure(p) for name, measure in self.measures.items()}

    def fit_map(self) -> Map | None:
        return None if self.fit_with is None else fit(self.predictions(), self.fit_with)


def _save(fitted_map: Map | None, file: str | Path | None) -> None:
    if fitted_map is not None and file is not None:
        fitted_map.save(file)


def _plain(values: Any) -> Any:
    """Convert a tensor of any device and precision to a numpy array."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    return (values.detach().float() if values.is_floating_point() else values.detach()).cpu().numpy()
