"""Cost of a plan: jobs counted exactly, timed by the first steps of each network."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant import datasets, rescorers
from calibrant.core.errors import InputError
from calibrant.core.parallel import cores
from calibrant.core.text.number_format import duration, wrap
from calibrant.datasets import PublishedDataset, Splits, split_sizes
from calibrant.models import Shape, build
from calibrant.studying.claims import count_decidable
from calibrant.studying.expand_plan import cells_of
from calibrant.studying.job import Job
from calibrant.studying.plan import Plan
from calibrant.studying.store import Store
from calibrant.training.images import fitting, load_splits, part_of_data
from calibrant.training.recipe import Recipe

META = 1.45  # a step with a learned regulariser, in plain steps (measured, docs/benchmarks.md)
LOOK = 0.35  # a forward pass without gradients, in training passes
STEPS = 2  # timed, after one that is not
PIXELS = 16 * 32 * 32  # in such a step: few images where they are large


@dataclass(frozen=True, kw_only=True)
class PlanCost:
    """Jobs by kind, how many are finished or shared, and the seconds of one core that the rest would take."""

    title: str
    scale: str
    jobs: dict[str, int]
    asked: int  # jobs that the cells ask for; more than there are where cells share some
    done: int
    seconds: float | None  # None where not even the sizes of the data or the network are known
    missing: tuple[str, ...]  # what to download, in words
    unsure: int = 0  # claims that one seed cannot decide

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "missing": list(self.missing)}

    def words(self) -> str:
        total = sum(self.jobs.values())
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.jobs.items())
        lines = [f"{self.title} (scale {self.scale})", f"{total:,} jobs: {kinds}"]
        if self.asked > total:
            lines.append(f"{self.asked - total:,} more would be the same as one of these and are shared")
        if self.done:
            lines.append(f"{self.done:,} are done already")
        if self.seconds is not None:
            workers = cores()
            rest = f"about {duration(self.seconds)} of one core, {duration(self.seconds / workers)} on this machine's"
            lines.append(f"{rest} {workers}, by timing the first steps of every network")
        if self.unsure:
            lines.append(f"{self.unsure} claims rest on one seed: without an interval, they are inconclusive")
        lines += [f"missing: {what}" for what in self.missing]
        return "\n".join(wrap(line) for line in lines)


def plan_cost(plan: Plan, store: Path | None = None) -> PlanCost:
    """Estimate the cost of a plan without training: every network takes three steps on random images."""
    done = Store(store).done() if store is not None and store.exists() else set()
    kinds: Counter[str] = Counter()
    seen: set[str] = set()
    asked, finished, seconds = 0, 0, 0.0
    clock = _Clock(plan.alike)
    for cell in cells_of(plan):
        asked += len(cell.jobs)
        for job in cell.jobs:
            if job.key in seen:
                continue
            seen.add(job.key)
            kinds[job.kind] += 1
            finished += job.key in done
            if job.key not in done:
                seconds += clock.seconds(job, cell.recipe)
    known = None if clock.unknown else seconds
    missing = tuple(clock.missing.values())
    unsure = count_decidable(plan) if len(plan.grid.get("seed", [0])) < 2 else 0
    return PlanCost(
        title=plan.title,
        scale=plan.scale,
        jobs=dict(kinds),
        asked=asked,
        done=finished,
        seconds=known,
        missing=missing,
        unsure=unsure,
    )


def check_data(plan: Plan, done: set[str]) -> None:
    """Refuse a plan whose data are not there or do not fit, before anything runs; the error says what to download."""
    recipes: dict[str, Recipe] = {}
    shifts: dict[str, set[str]] = {}  # other sets that networks of these data are shown
    for cell in cells_of(plan):
        open_jobs = [job for job in cell.jobs if job.key not in done]
        if any(job.kind != "judge" for job in open_jobs):
            recipes[str(cell.recipe.data)] = cell.recipe
        sets = {job.options["set"] for job in open_jobs if job.kind == "shift"}
        shifts.setdefault(str(cell.recipe.data), set()).update(s for s in sets if not s.startswith("corrupt "))
    for key, recipe in recipes.items():
        shape = _shape(load_splits(recipe))
        for name in sorted(shifts[key]):
            try:
                fitting(part_of_data(name, "", "test"), shape, name)
            except InputError as error:
                raise InputError.inside(f"shifts of networks for {recipe.data.name}", error) from None


@dataclass(frozen=True)
class _DataSize:
    train: int
    val: int
    test: int
    shape: Shape


class _Clock:
    """Seconds of one core for jobs, by a few steps of each network."""

    def __init__(self, alike: Mapping[str, str]) -> None:
        self.alike, self.missing, self.unknown = alike, dict[str, str](), False
        self._sizes: dict[str, _DataSize | None] = {}
        self._steps: dict[Any, float] = {}
        self._looked = set[str]()

    def seconds(self, job: Job, recipe: Recipe) -> float:
        if job.kind == "shift":
            self._look_for(job.options["set"])
        if job.kind in ("judge", "halve") or (size := self._size(recipe)) is None:
            return 0.0
        step = self._step(recipe, size.shape) / recipe.batch  # of one image
        match job.kind:
            case "train":
                looks = size.test + size.val + recipe.epochs * (size.val + size.test * recipe.test_each_epoch)
                return step * (recipe.epochs * size.train * (META if recipe.meta.learn else 1.0) + LOOK * looks)
            case "rescore":
                passes = getattr(rescorers.make(job.options["rescorer"]), "most_passes", 1)
                return step * (passes * size.val + LOOK * size.test)
            case "predict":
                return step * LOOK * {"train": size.train, "val": size.val}.get(job.options["part"], size.test)
            case _:
                return step * LOOK * size.test

    def _size(self, recipe: Recipe) -> _DataSize | None:
        key = str(recipe.data)
        if key not in self._sizes:
            try:
                self._sizes[key] = _load_size(recipe)
            except InputError as error:
                self.missing[error.what] = str(error)
                self._sizes[key] = _published_size(recipe)
        size = self._sizes[key]
        self.unknown |= size is None
        return size

    def _look_for(self, name: str) -> None:
        if name.startswith("corrupt ") or name in self._looked:
            return
        self._looked.add(name)
        try:
            part_of_data(name, "", "test")
        except InputError as error:
            self.missing[error.what] = str(error)

    def _step(self, recipe: Recipe, shape: Shape) -> float:
        """Seconds of one forward and backward pass of a batch."""
        model = self.alike.get(recipe.model, recipe.model)
        key = (model, shape, recipe.batch)
        if key not in self._steps:
            self._steps[key] = _time_step(model, recipe.batch, shape)
        return self._steps[key]


def _load_size(recipe: Recipe) -> _DataSize:
    splits = load_splits(recipe)
    return _DataSize(len(splits.train), 0 if splits.val is None else len(splits.val), len(splits.test), _shape(splits))


def _shape(splits: Splits) -> Shape:
    return Shape(len(splits.train.classes), splits.train.images.shape[3], splits.train.images.shape[1])


def _published_size(recipe: Recipe) -> _DataSize | None:
    """The sizes that are published about the data; None where there are none."""
    data, d = datasets.make(recipe.data.name), recipe.data
    if not isinstance(data, PublishedDataset) or not data.pictures[0]:
        return None
    pixels, channels, classes = data.pictures
    train, val, test = split_sizes(data.sizes, d.split)
    shape = Shape(classes, channels, getattr(data, "size", pixels) // data.shrink)
    return _DataSize(_few(train, d.limit), _few(val, d.val_limit or d.test_limit), _few(test, d.test_limit), shape)


def _few(n: int, limit: int) -> int:
    return min(n, limit or n)


def _time_step(model: str, batch: int, shape: Shape) -> float:
    """Seconds of one forward and backward pass on one core."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = build(model, shape)
            images = max(2, min(batch, PIXELS // shape.size**2))
            x = torch.randn(images, shape.channels, shape.size, shape.size)
            for step in range(1 + STEPS):
                if step == 1:
                    began = time.process_time()
                network(x).logsumexp(1).mean().backward()
            return (time.process_time() - began) / STEPS * batch / len(x)
    finally:
        torch.set_num_threads(threads)
