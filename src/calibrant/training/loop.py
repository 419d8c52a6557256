"""The training loop: read it from top to bottom."""

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant import datasets, losses, models
from calibrant.core.errors import InputError
from calibrant.core.lock import lock_folder
from calibrant.datasets import Dataset, Splits
from calibrant.losses.mixup import MixedLabels, Mixup
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.log import epoch_row, warn_of_look_ahead
from calibrant.training.optimize import learning_rate
from calibrant.training.parts import make_parts
from calibrant.training.predict import predict
from calibrant.training.recipe import Recipe
from calibrant.training.run import Run
from calibrant.training.state import TrainingState, resume, save, save_best

SAVE_EVERY = 300.0  # seconds between states saved within an epoch
LOOK_EVERY = 20  # steps between looks at the loss on a GPU, where looking means waiting


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """Progress for a bar on the screen: after every step, and with `row` after every epoch."""

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
    like: Dataset | None = None,
    device: str = "auto",
    processes: int = 1,
    restart: bool = False,
    on_progress: Callable[[TrainingProgress], None] | None = None,
) -> Run:
    """Train as the recipe says, into the folder `out`; a folder with an interrupted run continues.

    `splits` are images that are loaded already; `like` is the data set by whose constants they are normalised.
    """
    helping = os.environ.get("LOCAL_RANK", "0") != "0"  # one of several processes: the first of them holds the folder
    with nullcontext() if helping else lock_folder(out):
        return _train(recipe, Path(out), splits, like, device, processes, restart, on_progress)


def _train(
    recipe: Recipe,
    out: Path,
    splits: Splits | None,
    like: Dataset | None,
    device: str,
    processes: int,
    restart: bool,
    on_progress: Callable[[TrainingProgress], None] | None,
) -> Run:
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

    # What is trained: each part from its line in the recipe.
    constants = like or (Dataset if splits else datasets.make(recipe.data.name))
    splits = splits or load_splits(recipe)
    shape = models.Shape(len(splits.train.classes), splits.train.images.shape[3], splits.train.images.shape[1])
    parts = make_parts(recipe, shape, len(splits.train), fabric)
    wrapped, optimizer, loss, meta = parts.wrapped, parts.optimizer, parts.loss, parts.meta

    # The folder: a fresh one, or the state that is in it.
    mean, std = recipe.data.mean or constants.mean, recipe.data.std or constants.std
    run = Run(folder=out, recipe=recipe, shape=shape, classes=splits.train.classes, mean=mean, std=std)
    begun = run.last.exists() and not restart
    if chief and begun and (changed := run.changed_sources()):
        words = f"{out} was trained by another {', '.join(changed)}: --restart trains again with what is there now"
        warnings.warn(words, stacklevel=3)
    state = resume(run, parts) if begun else TrainingState()
    if chief and (state.epoch, state.step) == (0, 0):
        run.begin()
    fabric.barrier()

    pixels = run.pixels(fabric.device)
    batches = Batches(
        part=splits.train,
        size=recipe.batch,
        pixels=pixels,
        seed=recipe.seed,
        rank=fabric.global_rank,
        processes=fabric.world_size,
    )
    steps = batches.steps()
    if steps == 0:
        least = f"at least {2 * fabric.world_size} training images"
        raise InputError("data", expected=least, got=f"{len(splits.train)}", fix="use more images or fewer processes")
    held_out = (
        iter(()) if meta is None else _held_out_batches(recipe, splits, batches, state.epoch * steps + state.step)
    )
    look = 1 if fabric.device.type == "cpu" else LOOK_EVERY
    saved = time.monotonic()

    while state.epoch < recipe.epochs and not state.stopped:
        began = time.monotonic()
        if state.step == 0:
            loss.start_epoch(state.epoch)
        wrapped.train()
        for step, (x, labels, ids) in enumerate(batches.shuffle(state.epoch, recipe.data, state.step), state.step):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(recipe, state.epoch + step / steps)
            # Every step starts from its own random numbers, so that any step can be made again.
            random = batches.generator(state.epoch, step)
            torch.manual_seed(random.initial_seed())
            targets: Tensor | MixedLabels = labels
            if isinstance(loss, Mixup):
                x, targets = loss.mix(x, labels, random)

            if meta is None:
                value, logits = backward(fabric, wrapped, loss, x, targets, ids, recipe)
            else:  # the regulariser moves first, then the network by the loss that it makes
                stepped = meta(x, labels, *next(held_out)[:2], optimizer.param_groups[0]["lr"])
                fabric.backward(stepped.loss)
                value, logits = stepped.loss.detach(), stepped.logits.detach()
                state.meta_before += stepped.objective_before
                state.meta_after += stepped.objective
            looking = (step + 1) % look == 0 or step + 1 == steps
            if looking and not math.isfinite(value):
                raise _divergence_error(float(value), state.epoch, step, run)
            if recipe.optimizer.clip_norm:
                fabric.clip_gradients(wrapped, optimizer, max_norm=recipe.optimizer.clip_norm)
            optimizer.step()
            optimizer.zero_grad()

            state.step, state.seen = step + 1, state.seen + len(labels)
            state.loss += value * (len(labels) if loss.reduction == "mean" else 1)
            state.wrong += (logits.argmax(1) != labels).sum()
            if looking:
                report(
                    TrainingProgress(
                        epoch=state.epoch, epochs=recipe.epochs, step=step + 1, steps=steps, loss=float(value)
                    )
                )
            if chief and time.monotonic() - saved > SAVE_EVERY and step + 1 < steps:
                save(run, state, parts)
                saved = time.monotonic()

        state.seconds += time.monotonic() - began
        if chief:
            row = epoch_row(run, state, parts, splits, fabric)
            if splits.val is not None:  # keep the weights of the best epoch so far
                score = row["val_refined_nll" if recipe.select == "refinement" else "val_error"]
                if score < state.best:
                    state.best, state.best_epoch = score, state.epoch
                    save_best(run, state, parts)
            state.end_epoch(row, recipe.patience)
            save(run, state, parts)
            run.write_log(state.log)
            warn_of_look_ahead(state.log, recipe.meta.lookahead_step)
            saved = time.monotonic()
            report(
                TrainingProgress(
                    epoch=state.epoch - 1,
                    epochs=recipe.epochs,
                    step=steps,
                    steps=steps,
                    loss=state.log[-1]["train_loss"],
                    row=state.log[-1],
                )
            )
        state = fabric.broadcast(state)

    if chief and not recipe.epochs:
        save(run, state, parts)
    if chief and not run.finished:  # again from the start where it was ended in between
        run.write_log(state.log)
        _write_predictions(run, splits, fabric)
        run.write(finished=True, selected_epoch=state.epoch if recipe.select == "last" else state.best_epoch + 1)
    fabric.barrier()
    return run


def backward(
    fabric: Any,
    network: nn.Module,
    loss: losses.Loss,
    x: Tensor,
    labels: Tensor | MixedLabels,
    ids: Tensor,
    recipe: Recipe,
) -> tuple[Tensor, Tensor]:
    """Compute gradients of one batch, in as many passes as the recipe says; return the loss and the logits."""
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
            value = loss(logits, mine, ids[rows]) * (len(rows) / len(x) if loss.reduction == "mean" else 1)
            fabric.backward(value)
        total, all_logits = total + value.detach(), [*all_logits, logits.detach()]
    return total, torch.cat(all_logits)


def _held_out_batches(
    recipe: Recipe, splits: Splits, batches: Batches, start: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Batches of the part that the regulariser learns from, without augmentation."""
    if splits.meta is None or len(splits.meta) < 2 * batches.processes:
        got = "none" if splits.meta is None else f"{len(splits.meta)}"
        fix = 'use three parts: data.split = "8:1:1"'
        raise InputError("data.split", expected="images for the part meta, to learn from", got=got, fix=fix)
    size = min(recipe.meta.batch or recipe.batch, len(splits.meta))
    return replace(batches, part=splits.meta, size=size).endless(start)


def _write_predictions(run: Run, splits: Splits, fabric: Any) -> None:
    network = run.network(fabric.device)
    if run.recipe.channels_last:
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for name, part in (("val", splits.val), ("test", splits.test)):
        if part is not None:
            p = predict(network, part, run.pixels(fabric.device), precision=fabric.autocast())
            if name == "test" and run.recipe.meta.learn == "gamma":
                run.write_table("gamma", run.gammas(p))
            p.save(run.folder / f"{name}.npz")


def _divergence_error(value: float, epoch: int, step: int, run: Run) -> InputError:
    note = f"the last good state is in {run.last}" if run.last.exists() else "no epoch was finished"
    return InputError(
        "loss",
        expected="a finite number",
        got=f"{value} in epoch {epoch + 1}, step {step + 1} ({note})",
        fix="lower optimizer.lr, set optimizer.clip_norm, or use another seed, with a new --out",
    )
