"""`collect`: predictions of any torch network on any loader, or those of a Hugging Face Trainer."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.predictions import Predictions
from calibrant.core.torch.layers import check_finite, layer, record_inputs

if TYPE_CHECKING:
    from calibrant.core.predictions.options import Ignore

LABELS = ("labels", "label", "label_ids", "target", "targets")  # in a batch that is a dict
LOGITS = ("logits", "out", "output")  # in an output that is a dict
ONE_SUM = 4e-3  # of half-precision probabilities
CollectedRows = tuple[
    Tensor, Tensor, Tensor
]  # scores (m, k), labels (m,), and the number of the item each came from (m,)


def collect(
    network: Any,
    loader: Iterable[Any] | None = None,
    *,
    inputs: str | None = None,
    labels: str | None = None,
    clusters: str | None = None,
    features: str | None = None,
    axis: int | None = None,
    ignore: "Ignore" = (),
    classes: Sequence[str] | None = None,
    probs: bool = False,
    logits: bool = False,
    device: Any = None,
    progress: bool = False,
) -> Predictions:
    """Predictions of a network on every batch, in evaluation mode and without gradients; it is left as it was.

    Batches are (inputs, labels) or dicts with labels; outputs are logits, or dicts or objects that have some. One logit
    per row makes binary predictions. `axis` and `ignore` are those of `from_logits`, for pixels and tokens: each row
    then remembers its image or text as its cluster. Without a loader, `network` is the output of a Trainer's `predict`.

    In batches that are dicts, `inputs`, `labels` and `clusters` (a patient, a document) name entries; without `inputs`
    all other entries are passed to the network by name. `features` names the last layer of the network (`fc`,
    `classifier.2`): what goes into it becomes the features of the predictions, which TrustScore and others need.

    `probs=True` says that the network ends in a softmax or sigmoid. Outputs that look like that are refused otherwise,
    because a softmax of probabilities is wrong and looks right; `logits=True` insists that they are logits.

    >>> double = torch.nn.Linear(2, 2, bias=False)
    >>> _ = double.weight.data.copy_(2 * torch.eye(2))
    >>> p = collect(double, [(torch.tensor([[1.0, 0.0]]), torch.tensor([0])), (torch.eye(2), torch.tensor([1, 1]))])
    >>> p.logits.tolist(), p.labels.tolist(), double.training
    ([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 1, 1], True)
    """
    if probs and logits:
        raise InputError("collect", expected="probs=True or logits=True", got="both", fix="leave one out")
    entries = _Entries(inputs, labels, clusters)
    columns = _RowColumns()
    if loader is None:
        parts = [_rows(*_trainer_output(network), axis, ignore, 0)]
    else:
        where = _device(network, device)
        head = None if features is None else layer(network, features, "collect", option="features")
        parts = list(_all_rows(network, _with_progress(loader, progress), axis, ignore, where, entries, head, columns))
    if not parts:
        fix = "give a loader that has some, and that has not been used up"
        raise InputError("loader", expected="at least one batch", got="none", fix=fix)
    scores, truth, items = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
    if not len(truth):
        raise InputError("labels", expected="rows that are not ignored", got="none", fix="check the labels to ignore")
    check_finite(scores, items)
    if axis is not None and features is not None:
        raise InputError("features", expected="one row for each input", got=f"axis={axis}", fix="leave out features")
    several = axis is not None and 1 < len(np.unique(items)) < len(items)
    extras: dict[str, Any] = {"clusters": items if several else None}
    if columns.clusters:
        extras["clusters"] = np.concatenate(columns.clusters)[items]
    if columns.features:
        extras["features"] = np.concatenate(columns.features)[items]
    if not probs and not logits:
        _check_logits(scores)
    if scores.shape[1] == 1:
        return Predictions.binary(scores[:, 0], truth, logits=not probs, **extras)
    make = Predictions.from_probs if probs else Predictions.from_logits
    return make(scores, truth, **extras, classes=classes)


@dataclass(frozen=True)
class _Entries:
    """The keys of the inputs, labels and clusters of a batch that is a dict."""

    inputs: str | None
    labels: str | None
    clusters: str | None


@dataclass
class _RowColumns:
    """Data of rows that are kept of every batch beside scores and labels."""

    clusters: list[Any] = field(default_factory=list)
    features: list[Any] = field(default_factory=list)


def _check_logits(scores: Floats) -> None:
    """Refuse scores that a softmax or sigmoid has already been applied to."""
    if scores.min() < 0 or scores.max() > 1:
        return
    if scores.shape[1] > 1 and np.abs(scores.sum(axis=1, dtype=np.float64) - 1).max() > ONE_SUM:
        return
    got = "numbers from 0 to 1" if scores.shape[1] == 1 else "rows that sum to 1, as after a softmax"
    fix = "say probs=True if the network ends in a softmax or sigmoid; if these are logits, insist with logits=True"
    raise InputError("collect", expected="logits of the network", got=got, fix=fix)


def _all_rows(
    network: Any,
    loader: Iterable[Any],
    axis: int | None,
    ignore: "Ignore",
    device: Any,
    entries: _Entries,
    head: torch.nn.Module | None,
    columns: _RowColumns,
) -> Iterator[CollectedRows]:
    start = 0
    recorder: AbstractContextManager[list[Tensor]] = nullcontext([]) if head is None else record_inputs(head)
    with evaluating(network), torch.no_grad(), recorder as recorded:
        for number, batch in enumerate(loader):
            inputs, labels, clusters = _split(batch, number, entries)
            on_device = _to(inputs, device)
            output = _call(network, on_device) if isinstance(on_device, Mapping) else network(on_device)
            scores = logits_of(output)
            yield _rows(scores, torch.as_tensor(labels), axis, ignore, start)
            start += len(scores)
            if clusters is not None:
                columns.clusters.append(np.asarray(clusters))
            if recorded:
                columns.features.append(recorded[0].flatten(1).float().cpu().numpy())


def _call(network: Any, inputs: Mapping[str, Any]) -> Any:
    """Call the network with inputs by name; a single input of an unknown name is passed by position."""
    names = inspect.signature(getattr(network, "forward", network)).parameters
    any_name = any(p.kind is p.VAR_KEYWORD for p in names.values())
    unknown = [name for name in inputs if name not in names and not any_name]
    if not unknown:
        return network(**inputs)
    if len(inputs) == 1:
        return network(*inputs.values())
    known = ", ".join(names) or "nothing"
    fix = "name the input, for instance inputs='pixel_values', or take the others out of the batch"
    raise InputError("batch", expected=f"what the network takes ({known})", got=f"{', '.join(unknown)} too", fix=fix)


@contextmanager
def evaluating(network: Any) -> Iterator[None]:
    """Evaluation mode inside this block; afterwards every module has its own mode again."""
    modules = list(network.modules()) if hasattr(network, "modules") else []
    modes = [module.training for module in modules]
    try:
        if modules:
            network.eval()
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def logits_of(output: Any) -> Tensor:
    """The logits in what a network returns: itself, under their name, or the first of several."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        logits = next((output[name] for name in LOGITS if name in output), None)
    else:
        logits = getattr(output, "logits", output[0] if isinstance(output, tuple | list) and output else None)
    if not isinstance(logits, Tensor):
        keys = f"a dict with {', '.join(map(str, output))}" if isinstance(output, Mapping) else type(output).__name__
        fix = "wrap the network in a function that returns its logits"
        raise InputError("network", expected="logits, alone or named logits", got=keys, fix=fix)
    return logits


def _rows(scores: Tensor, labels: Tensor, axis: int | None, ignore: "Ignore", start: int) -> CollectedRows:
    """One row for each item, pixel or token whose label is not ignored, on the CPU."""
    if scores.ndim == 1:
        scores = scores[:, None]
    items = torch.arange(start, start + len(scores))
    if axis is not None:
        scores = scores.movedim(axis, -1)
        items = items.reshape(-1, *[1] * (scores.ndim - 2)).expand(scores.shape[:-1])
    elif scores.ndim != 2:
        got, fix = f"shape {tuple(scores.shape)}", "say axis=1 for (N, C, H, W), axis=-1 for (N, T, V)"
        raise InputError("logits", expected="axis: which axis holds the classes", got=got, fix=fix)
    if labels.shape == (*scores.shape[:-1], 1):
        labels = labels[..., 0]
    if labels.shape != scores.shape[:-1]:
        expected = f"shape {tuple(scores.shape[:-1])}, that of the logits without the classes"
        raise InputError("labels", expected=expected, got=f"shape {tuple(labels.shape)}", fix="give one label per row")
    flat, truth = scores.reshape(-1, scores.shape[-1]), labels.reshape(-1).cpu()
    keep = ~torch.isin(truth, torch.as_tensor(np.atleast_1d(np.asarray(ignore, dtype=np.int64))).to(truth.dtype))
    wide = flat.detach()[keep.to(flat.device)].cpu()
    return (
        (wide.float() if wide.dtype in (torch.float16, torch.bfloat16) else wide),
        truth[keep],
        items.reshape(-1)[keep],
    )


def _split(batch: Any, number: int, entries: _Entries) -> tuple[Any, Any, Any]:
    """Inputs, labels and, where they are asked for, clusters of a batch."""
    names = [name for name in (entries.inputs, entries.labels, entries.clusters) if name is not None]
    if isinstance(batch, Mapping):
        if missing := [name for name in names if name not in batch]:
            raise unknown_name(f"entry of batch {number}", missing[0], map(str, batch))
        name = entries.labels or next((name for name in LABELS if name in batch), None)
        if name is not None:
            rest = {key: value for key, value in batch.items() if key not in (name, entries.clusters)}
            inputs = rest if entries.inputs is None else batch[entries.inputs]
            return inputs, batch[name], None if entries.clusters is None else batch[entries.clusters]
    elif names:
        got, fix = type(batch).__name__, f"leave out {names[0]!r}, or give batches that are dicts"
        raise InputError(f"batch {number}", expected="a dict, whose entries have names", got=got, fix=fix)
    elif isinstance(batch, tuple | list) and len(batch) > 1:
        return batch[0], batch[1], None
    got = f"a dict with {', '.join(map(str, batch))}" if isinstance(batch, Mapping) else type(batch).__name__
    raise InputError(
        f"batch {number}", expected="(inputs, labels), or a dict with labels", got=got, fix="add the labels"
    )


def _to(inputs: Any, device: Any) -> Any:
    if isinstance(inputs, Mapping):
        return {name: _to(value, device) for name, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        return type(inputs)(_to(value, device) for value in inputs)
    return inputs.to(device) if hasattr(inputs, "to") else inputs


def _device(network: Any, device: Any) -> Any:
    """The device given, else the one of the network."""
    parameters = network.parameters() if hasattr(network, "parameters") else iter(())
    return torch.device(device) if device is not None else next(parameters, torch.zeros(())).device


def _trainer_output(output: Any) -> tuple[Tensor, Tensor]:
    """Logits and labels of the named tuple (predictions, label_ids, metrics) of a Trainer."""
    scores, labels = getattr(output, "predictions", None), getattr(output, "label_ids", None)
    if isinstance(scores, tuple | list) and scores:
        scores = scores[0]
    if scores is None or labels is None:
        got = type(output).__name__ + (" without label_ids" if scores is not None else "")
        fix = "give cal.collect(network, loader), or the output of Trainer.predict on labelled rows"
        raise InputError("collect", expected="a loader, or predictions and label_ids", got=got, fix=fix)
    return torch.as_tensor(scores), torch.as_tensor(labels)


def _with_progress(loader: Iterable[Any], progress: bool) -> Iterable[Any]:
    if not progress:
        return loader
    from rich.progress import track

    return track(loader, description="collecting", transient=True)
