"""Searches by training: what a search asks for is trained as a job of a study, and every finished network is kept."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.files import write_whole
from calibrant.nas import searches
from calibrant.nas.build_table import TABLE, scale_space, train_job
from calibrant.nas.search import COLUMNS, Goal
from calibrant.nas.searches import Landscape, Search, Trial
from calibrant.nas.spaces import Space
from calibrant.studying.engine import Executor, run_jobs
from calibrant.studying.executors import executor_for
from calibrant.studying.job import Job, Outcome
from calibrant.studying.sources import Sources
from calibrant.studying.store import Store

if TYPE_CHECKING:
    import polars as pl

KIND = "nas_train"


@dataclass(frozen=True)
class SearchWalk:
    """The trials of one search by one seed, in order; a network whose training failed is worth nothing."""

    search: str
    seed: int
    trials: tuple[Trial, ...]  # in the goal's own unit

    def best(self, goal: Goal) -> Trial:
        sign = COLUMNS[goal][1]
        return max(self.trials, key=lambda trial: sign * trial.value)


@dataclass(frozen=True)
class LiveSearchResult:
    """The outcome of searches by training."""

    walks: list[SearchWalk]
    table: "pl.DataFrame"
    file: Path
    trained: int  # in this call; the others were there
    failed: int


class _UntrainedError(Exception):
    """A search needs a network that is not trained yet."""


class _SharedExecutor:
    """An executor that is kept between rounds: its workers have loaded everything."""

    def __init__(self, inner: Executor) -> None:
        self.inner, self.slots = inner, inner.slots

    def start(self, job: Job) -> None:
        self.inner.start(job)

    def wait(self) -> list[Outcome]:
        return self.inner.wait()

    def close(self) -> None:
        """Do nothing: the inner executor is closed after the last search."""


def search_live(
    out: str | Path,
    *,
    by: Sequence[str] = ("random", "evolution", "local"),
    goal: Goal = "hcs",
    budget: int = 50,
    seeds: int = 1,
    seed: int = 0,
    space: str = "topology",
    data: str = "fashion_mini:shrink=2",
    scale: str = "small",
    on: str = "local",
    limit: float = 0.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> LiveSearchResult:
    """Run each search from `seeds` seeds, side by side; a network that two of them ask for is trained once.

    Searches draw nothing but by their seed, so each round runs all of them again from the start on what is known, and
    trains the networks they stop at. After an interruption, the same call continues.
    """
    if goal not in COLUMNS:
        raise unknown_name("goal", goal, COLUMNS)
    if on.startswith("shard"):
        raise InputError("on", expected="local, local:2 or ray", got=on, fix="a search cannot be cut into shards")
    family = scale_space(space, scale)
    if not 1 <= budget <= len(family.uniques()):
        raise InputError("budget", expected=f"1 to {len(family.uniques())}", got=str(budget), fix="ask for fewer")
    walks = [(spec, number, searches.make(spec)) for spec in by for number in range(seed, seed + seeds)]
    store = Store(Path(out) / "jobs")
    executor, _, driver = executor_for(on, [], store, limit)
    known, trained = _NetworkValues(store, family, data, scale, seed, goal), 0
    try:
        while True:
            states = [_walk(search, family, known, budget, number) for _, number, search in walks]
            untrained = dict.fromkeys(missing for _, missing in states if missing)
            if on_progress is not None:
                on_progress(sum(len(trials) for trials, _ in states), budget * len(walks))
            if not untrained:
                break
            jobs = [known.job(arch) for arch in untrained]
            ended = run_jobs(jobs, store, _SharedExecutor(executor), driver=driver, retry=True)
            known.look(jobs)
            trained += ended.done
    finally:
        executor.close()
    table = store.rows(KIND, known.values).drop("job")
    write_whole(Path(out) / TABLE, table.write_parquet)
    sign = COLUMNS[goal][1]
    ended_walks = [
        SearchWalk(spec, number, tuple(Trial(trial.arch, sign * trial.value) for trial in trials))
        for (spec, number, _), (trials, _) in zip(walks, states, strict=True)
    ]
    return LiveSearchResult(ended_walks, table, Path(out) / TABLE, trained, known.failed)


class _NetworkValues:
    """The value of every trained network, by the key of its job."""

    def __init__(self, store: Store, space: Space, data: str, scale: str, seed: int, goal: Goal) -> None:
        from calibrant.nas.columns import ood_for

        self.store, self.space, self.data, self.scale, self.seed = store, space, data, scale, seed
        self.column, self.sign = COLUMNS[goal]
        self.ood, self.jobs, self.failed, self.sources = ood_for(data), dict[str, Job](), 0, Sources()
        rows = store.rows(KIND)
        self.results = dict(zip(rows["job"], rows[self.column], strict=True)) if rows.height else {}
        self.values: dict[str, float] = {}  # of those that were asked for

    def job(self, arch: str) -> Job:
        if arch not in self.jobs:
            self.jobs[arch] = train_job(
                self.space, arch, self.data, self.scale, seed=self.seed, ood=self.ood, sources=self.sources
            )
        return self.jobs[arch]

    def value(self, arch: str) -> float | None:
        """The value of a network, higher is better; None where it is not trained yet."""
        key = self.job(arch).key
        if key not in self.results:
            return None
        self.values[key] = self.sign * self.results[key]
        return self.values[key]

    def look(self, jobs: list[Job]) -> None:
        """Read the outcomes of jobs that ran; a failed network is worth nothing and is not asked for again."""
        rows = self.store.rows(KIND, [job.key for job in jobs])
        results = dict(zip(rows["job"], rows[self.column], strict=True)) if rows.height else {}
        self.results |= {job.key: results.get(job.key, -self.sign * math.inf) for job in jobs}
        self.failed += len(jobs) - len(results)


def _walk(
    search: Search, space: Space, known: _NetworkValues, budget: int, seed: int
) -> tuple[list[Trial], str | None]:
    """Run a search on the trained networks, up to the first one that is not trained."""
    values: dict[str, float] = {}

    def look_up(arch: str) -> float:
        if (value := known.value(arch)) is None:
            raise _UntrainedError(arch)
        values[arch] = value
        return value

    try:
        return search(_landscape(space), look_up, budget=budget, seed=seed), None
    except _UntrainedError as stop:
        return [Trial(*trial) for trial in values.items()], str(stop)


def _landscape(space: Space) -> Landscape:
    """The different networks of a space; a neighbour differs in one place from the first cell of a class."""
    every = space.uniques()

    def near(arch: str) -> list[str]:
        return [other for other in dict.fromkeys(map(space.unique, space.neighbours(arch))) if other != arch]

    return Landscape(lambda rng: every[int(rng.integers(len(every)))], near)
