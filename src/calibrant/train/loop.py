"""The training loop: read it from top to bottom."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant import datasets, losses, models
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.temperature import find_temperature
from calibrant.datasets import Dataset, Part, Splits
from calibrant.losses.mixup import Mixup, Pairs
from calibrant.measures import make as measure
from calibrant.models import _checkpoint as checkpoint
from calibrant.train.batches import Batches
from calibrant.train.learned import Learned
from calibrant.train.meta import make_meta_step
from calibrant.train.optimize import learning_rate, make_optimizer
from calibrant.train.predict import load_splits, predict
from calibrant.train.recipe import Recipe
from calibrant.train.run import Run
from calibrant.train.state import Parts, State, resume, save

SAVE_EVERY = 300.0  # seconds between states saved within an epoch
LOOK_EVERY = 20  # steps between looks at the loss on a GPU, where looking means waiting


@dataclass(frozen=True)
class Progress:
    """What a bar on the screen needs: after every step, and with `row` after every epoch."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    row: dict[str, Any] | None = None


def train(
    recipe: Recipe,
    out: str | Path,
    *,
    splits: Splits | None = None,
    device: str = "auto",
    processes: int = 1,
    restart: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Train as the recipe says, into the folder `out`; a folder with a state in it goes on from there."""
    import polars as pl
    from lightning_fabric import Fabric

    fabric = Fabric(
        accelerator=device,
        devices=processes,
        strategy="ddp" if processes > 1 else "auto",
        precision=recipe.precision,
    )
    fabric.launch()
    chief = fabric.is_global_zero
    report = on_progress if chief and on_progress else lambda _: None

    # Data, network, loss, optimizer: each from its line in the recipe.
    like = Dataset if splits else datasets.make(recipe.data.name)  # whose normalisation
    splits = splits or load_splits(recipe)
    shape = models.Shape(len(splits.train.classes), splits.train.images.shape[3], splits.train.images.shape[1])
    torch.manual_seed(recipe.seed)
    network = models.build(recipe.model, shape)
    if recipe.weights:
        weights = checkpoint.load(Path(recipe.weights))[0]
        checkpoint.put(network, checkpoint.under("network", weights) or weights, recipe.weights)
    if recipe.channels_last:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    loss = losses.make(recipe.loss, recipe.reduction)
    loss = Mixup(alpha=recipe.mixup, base=loss, reduction=recipe.reduction) if recipe.mixup else loss
    loss.start(len(splits.train), recipe.epochs)
    loss = loss.to(fabric.device)
    wrapped, optimizer = fabric.setup(network, make_optimizer(recipe, network))
    meta = make_meta_step(recipe, network, wrapped, fabric) if recipe.meta.learn else None

    # The folder: a fresh one, or the state that is in it.
    run = Run(Path(out), recipe, shape, splits.train.classes, like.mean, like.std)
    parts = Parts(network, optimizer, loss, fabric.strategy.precision, meta)
    state = resume(run, parts) if run.last.exists() and not restart else State()
    if chief and (state.epoch, state.step) == (0, 0):
        run.begin()
    fabric.barrier()

    pixels = run.pixels(fabric.device)
    batches = Batches(splits.train, recipe.batch, pixels, recipe.seed, fabric.global_rank, fabric.world_size)
    steps = batches.steps()
    if steps == 0:
        least = f"at least {2 * fabric.world_size} training images"
        raise InputError("data", expected=least, got=f"{len(splits.train)}", fix="use more images or fewer processes")
    held_out = iter(()) if meta is None else _held_out(recipe, splits, batches, state.epoch * steps + state.step)
    look = 1 if fabric.device.type == "cpu" else LOOK_EVERY
    saved = time.monotonic()

    while state.epoch < recipe.epochs and not state.stopped:
        began = time.monotonic()
        if state.step == 0:
            loss.start_epoch(state.epoch)
        wrapped.train()
        for step, (x, labels, ids) in enumerate(batches.shuffled(state.epoch, recipe.data, state.step), state.step):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(recipe, state.epoch + step / steps)
            # Every step starts from its own random numbers, so that any step can be made again.
            random = batches.generator(state.epoch, step)
            torch.manual_seed(random.initial_seed())
            targets: Tensor | Pairs = labels
            if isinstance(loss, Mixup):
                x, targets = loss.mix(x, labels, random)

            if meta is None:
                value, logits = backward(fabric, wrapped, loss, x, targets, ids, recipe)
            else:  # the regulariser moves first, then the network by the loss that it makes
                stepped = meta(x, labels, *next(held_out)[:2], optimizer.param_groups[0]["lr"])
                fabric.backward(stepped.loss)
                value, logits = stepped.loss.detach(), stepped.logits.detach()
            looking = (step + 1) % look == 0 or step + 1 == steps
            if looking and not math.isfinite(value):
                raise _diverged(float(value), state.epoch, step, run)
            if recipe.optimizer.clip_norm:
                fabric.clip_gradients(wrapped, optimizer, max_norm=recipe.optimizer.clip_norm)
            optimizer.step()
            optimizer.zero_grad()

            state.step, state.seen = step + 1, state.seen + len(labels)
            state.loss += value * (len(labels) if recipe.reduction == "mean" else 1)
            state.wrong += (logits.argmax(1) != labels).sum()
            if looking:
                report(Progress(state.epoch, recipe.epochs, step + 1, steps, float(value)))
            if chief and time.monotonic() - saved > SAVE_EVERY and step + 1 < steps:
                save(run, state, parts)
                saved = time.monotonic()

        state.seconds += time.monotonic() - began
        if chief:
            state.end_epoch(_epoch_row(run, state, parts, splits, fabric), recipe.patience)
            save(run, state, parts)
            run.write_table("log", pl.DataFrame(state.log, infer_schema_length=None))
            saved = time.monotonic()
            report(Progress(state.epoch - 1, recipe.epochs, steps, steps, state.log[-1]["train_loss"], state.log[-1]))
        state = fabric.broadcast(state)

    if chief and not (run.folder / "test.npz").exists():
        selected = state.epoch if recipe.select == "last" else state.best_epoch + 1
        _write_predictions(run, splits, fabric)
        run.write(finished=True, selected_epoch=selected)
    fabric.barrier()
    return run


def backward(
    fabric: Any, network: nn.Module, loss: losses.Loss, x: Tensor, labels: Tensor | Pairs, ids: Tensor, recipe: Recipe
) -> tuple[Tensor, Tensor]:
    """Gradients of one batch, in as many passes as the recipe says; the loss, and the logits."""
    passes = recipe.optimizer.accumulate
    if passes == 1:
        logits = network(x)
        value: Tensor = loss(logits, labels, ids)
        fabric.backward(value)
        return value.detach(), logits.detach()
    total, all_logits = torch.zeros((), device=x.device), list[Tensor]()
    pieces = list(torch.arange(len(x), device=x.device).chunk(passes))
    for rows in pieces:
        with fabric.no_backward_sync(network, enabled=rows is not pieces[-1]):
            logits = network(x[rows])
            mine = labels[rows] if isinstance(labels, Tensor) else labels.rows(rows)
            value = loss(logits, mine, ids[rows]) * (len(rows) / len(x) if recipe.reduction == "mean" else 1)
            fabric.backward(value)
        total, all_logits = total + value.detach(), [*all_logits, logits.detach()]
    return total, torch.cat(all_logits)


def measured(p: Predictions, part: str) -> dict[str, float | None]:
    """What the log says of a part."""
    values = {name: measure(name)(p) for name in ("ece", "nll", "auroc")} | {"error": 1 - measure("accuracy")(p)}
    return {f"{part}_{name}": value if math.isfinite(value) else None for name, value in values.items()}


def refined_nll(p: Predictions) -> float:
    """NLL after the best temperature: what is left when calibration is repaired."""
    return measure("nll")(p.tempered(find_temperature(p).T))


def _held_out(recipe: Recipe, splits: Splits, batches: Batches, start: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of the part that the regulariser learns from, without augmentation."""
    if splits.meta is None or len(splits.meta) < 2 * batches.processes:
        got = "none" if splits.meta is None else f"{len(splits.meta)}"
        fix = 'use three parts: data.split = "8:1:1"'
        raise InputError("data.split", expected="images for the part meta, to learn from", got=got, fix=fix)
    size = min(recipe.meta.batch or recipe.batch, len(splits.meta))
    return replace(batches, part=splits.meta, size=size).endless(start, reshuffle=recipe.meta.reshuffle)


def _epoch_row(run: Run, state: State, parts: Parts, splits: Splits, fabric: Any) -> dict[str, Any]:
    """The row of the log, and the weights of the best epoch kept."""
    recipe, learned = run.recipe, None if parts.meta is None else parts.meta.learned

    def look(name: str, part: Part) -> Predictions:
        pixels, keep = run.pixels(fabric.device, name), learned is not None
        return predict(parts.network, part, pixels, features=keep, precision=fabric.autocast())

    rate = learning_rate(recipe, state.epoch + (state.step - 1) / state.step)
    row: dict[str, Any] = {"epoch": state.epoch + 1, "learning_rate": rate, "seconds": state.seconds}
    row |= {"train_loss": float(state.loss) / state.seen, "train_error": float(state.wrong) / state.seen}
    if splits.val is not None:
        p = look("val", splits.val)
        row |= measured(p, "val") | {"val_refined_nll": refined_nll(p)} | what_was_learned(learned, p)
        score = row["val_refined_nll" if recipe.select == "refinement" else "val_error"]
        if score < state.best:
            state.best, state.best_epoch = score, state.epoch
            tensors = checkpoint.named("network", parts.network.state_dict())
            tensors |= {} if learned is None else checkpoint.named("learned", learned.state_dict())
            checkpoint.save(run.best, tensors, {"epoch": state.epoch + 1})
    if recipe.test_each_epoch:
        p = look("test", splits.test)
        row |= measured(p, "test") | what_was_learned(learned, p)
    return row


def what_was_learned(learned: Learned | None, p: Predictions) -> dict[str, float]:
    """What the log says of a regulariser: mean and spread over the rows, or the number."""
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


def _write_predictions(run: Run, splits: Splits, fabric: Any) -> None:
    network = run.network(fabric.device)
    if run.recipe.channels_last:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for name, part in (("val", splits.val), ("test", splits.test)):
        if part is not None:
            p = predict(network, part, run.pixels(fabric.device, name), precision=fabric.autocast())
            if name == "test" and run.recipe.meta.learn == "gamma":
                run.write_table("gamma", run.gammas(p))
            p.save(run.folder / f"{name}.npz")


def _diverged(value: float, epoch: int, step: int, run: Run) -> InputError:
    kept = f"the last good state is in {run.last}" if run.last.exists() else "no epoch was finished"
    return InputError(
        "loss",
        expected="a finite number",
        got=f"{value} in epoch {epoch + 1}, step {step + 1} ({kept})",
        fix="lower optimizer.lr, set optimizer.clip_norm, or use another seed, and go on with a new --out",
    )
