"""What a plan would run and how long it would take: counted exactly, timed by the first steps of each network."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.parallel import cores
from calibrant.studying.plan import Plan
from calibrant.studying.store import Store
from calibrant.studying.trainings import cells_of
from calibrant.training.recipe import Recipe

META = 1.45  # a step with a learned regulariser, in plain steps (measured, docs/benchmarks.md)
LOOK = 0.35  # a forward pass without gradients, in training passes
STEPS = 2  # timed, after one that is not


@dataclass(frozen=True)
class Estimate:
    """Units by kind, how many are finished or shared, and the seconds of one core that the rest would take."""

    title: str
    scale: str
    units: dict[str, int]
    asked: int  # units that the cells ask for; more than there are where cells share some
    done: int
    seconds: float | None  # None where data are missing
    missing: tuple[str, ...]  # what to download, in words

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "missing": list(self.missing)}

    def words(self) -> str:
        total = sum(self.units.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.units.items())
        lines = [f"{self.title} (scale {self.scale})", f"{total} units: {kinds}"]
        if self.asked > total:
            lines.append(f"{self.asked - total} more would be the same as one of these and are shared")
        if self.done:
            lines.append(f"{self.done} are done already")
        if self.seconds is not None:
            hours, workers = self.seconds / 3600, cores()
            rest = f"about {hours:.1f} hours of one core, {hours / workers:.1f} on this machine's {workers}"
            lines.append(f"{rest}, by timing the first steps of every network")
        lines += [f"missing: {what}" for what in self.missing]
        return "\n".join(lines)


def estimate(plan: Plan, store: Path | None = None) -> Estimate:
    """Nothing is trained: every network takes three steps on random images."""
    done = Store(store).done() if store is not None and store.exists() else set()
    kinds: Counter[str] = Counter()
    seen: set[str] = set()
    asked, finished, seconds = 0, 0, 0.0
    missing: dict[str, str] = {}
    speeds: dict[Any, float] = {}
    for cell in cells_of(plan):
        asked += len(cell.units)
        for unit in cell.units:
            if unit.key in seen:
                continue
            seen.add(unit.key)
            kinds[unit.kind] += 1
            finished += unit.key in done
            if unit.kind == "train" and unit.key not in done:
                try:
                    seconds += _seconds(cell.recipe, speeds)
                except InputError as error:
                    missing[cell.recipe.data.name] = str(error)
    known = None if missing else seconds
    return Estimate(plan.title, plan.scale, dict(kinds), asked, finished, known, tuple(missing.values()))


def check_data(plan: Plan) -> None:
    """Refuse a plan whose data are not there, before anything runs; the error says what to download."""
    from calibrant.training.images import load_splits

    for recipe in {str(cell.recipe.data): cell.recipe for cell in cells_of(plan)}.values():
        load_splits(recipe)


def _seconds(recipe: Recipe, speeds: dict[Any, float]) -> float:
    """Of one training on one core."""
    images, shape = _size(recipe, speeds)
    kind = (recipe.model, shape, recipe.batch, recipe.precision)
    if kind not in speeds:
        speeds[kind] = _time_step(recipe, shape)
    train, looked = images
    step = speeds[kind] * (META if recipe.meta.learn else 1.0)
    looks = (recipe.epochs if recipe.test_each_epoch else 1) * looked
    return step * (recipe.epochs * train / recipe.batch) + LOOK * speeds[kind] * looks / recipe.batch


def _size(recipe: Recipe, known: dict[Any, Any]) -> tuple[tuple[int, int], Any]:
    """Images to train and to look at, and the shape of the network."""
    from calibrant.models import Shape
    from calibrant.training.images import load_splits

    key = str(recipe.data)
    if key not in known:
        splits = load_splits(recipe)
        shape = Shape(len(splits.train.classes), splits.train.images.shape[3], splits.train.images.shape[1])
        looked = len(splits.test) + (len(splits.val) if splits.val is not None else 0)
        known[key] = (len(splits.train), looked), shape
    found: tuple[tuple[int, int], Any] = known[key]
    return found


def _time_step(recipe: Recipe, shape: Any) -> float:
    """Seconds of one forward and backward pass on one core."""
    import torch

    from calibrant.models import build

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = build(recipe.model, shape)
            x = torch.randn(min(recipe.batch, 32), shape.channels, shape.size, shape.size)
            for step in range(1 + STEPS):
                if step == 1:
                    began = time.process_time()
                network(x).logsumexp(1).mean().backward()
            return (time.process_time() - began) / STEPS * recipe.batch / len(x)
    finally:
        torch.set_num_threads(threads)
