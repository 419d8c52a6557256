"""Searches over a table of networks: many seeds, what they find with intervals, and the Pareto front."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.nas import searches, spaces
from calibrant.nas.searches import Landscape, Trial
from calibrant.plotting.draw import draw

if TYPE_CHECKING:
    import polars as pl

Goal = Literal["accuracy", "ece", "hcs"]
COLUMNS: dict[Goal, tuple[str, float]] = {"accuracy": ("accuracy", 1), "ece": ("pre_ECE_15", -1), "hcs": ("hcs", 1)}
RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The best values that one search finds with one budget, over many seeds."""

    search: str
    goal: Goal
    budget: int
    seeds: int
    mean: float  # of the best value of each seed, in the goal's own unit
    low: float
    high: float
    best: Trial  # over all seeds
    constant: int  # seeds whose best network is constant: it does not look at the image
    curve: tuple[float, ...]  # the mean best after 1, 2, ... networks


@dataclass(frozen=True)
class NetworkTable:
    """The networks of one space on one data set: architectures that can be looked up instead of trained.

    A neighbour in the space that the table does not hold is passed over. In a small sample few networks have
    neighbours: then those of the table that differ in the fewest places stand in for them.
    """

    archs: tuple[str, ...]
    values: dict[str, float]  # the higher the better
    landscape: Landscape
    sign: float
    space: str


def search_table(
    table: "pl.DataFrame",
    *,
    by: Sequence[str] = ("random", "evolution", "local"),
    goal: Goal = "hcs",
    budget: int = 50,
    seeds: int = 100,
    seed: int = 0,
    space: str = "topology",
    data: str | None = None,
) -> list[SearchResult]:
    """Run each search from `seeds` seeds on a table; intervals (95 %) are about other seeds."""
    looked_up = look_up(table, goal=goal, space=space, data=data)
    if budget > len(looked_up.archs):
        raise InputError(
            "budget",
            expected=f"at most {len(looked_up.archs)}, the networks of the table",
            got=str(budget),
            fix="give a smaller budget or a larger table",
        )
    if seeds < 2:
        raise InputError("seeds", expected="at least 2", got=str(seeds), fix="use 100")
    return [_summarise(spec, looked_up, goal, budget, range(seed, seed + seeds)) for spec in by]


def look_up(table: "pl.DataFrame", *, goal: Goal, space: str, data: str | None = None) -> NetworkTable:
    """The unique networks with a value, as a landscape."""
    import polars as pl

    if goal not in COLUMNS:
        raise unknown_name("goal", goal, get_args(Goal))
    column, sign = COLUMNS[goal]
    needed = ("space", "data", "arch", "unique", column)
    if missing := [name for name in needed if name not in table.columns]:
        raise InputError(
            f"table for a search for {goal}",
            expected="columns it needs",
            got=f"no {', '.join(missing)}",
            fix="add them",
        )
    own = table.filter((pl.col("space") == space) & pl.col("unique") & pl.col(column).is_finite())
    known = own["data"].unique(maintain_order=True).to_list()
    if not known:
        raise InputError("table", expected=f"networks of the space {space}", got="none", fix="choose another --space")
    if data is not None and data not in known:
        raise unknown_name("data", data, known)
    own = own.filter(pl.col("data") == (data or known[0])).unique("arch", keep="first", maintain_order=True)
    values = dict(zip(own["arch"].to_list(), (sign * own[column]).to_list(), strict=True))
    archs = tuple(values)
    return NetworkTable(archs, values, Landscape(_sampler(archs), _neighbours(archs)), sign, space)


def pareto(accuracy: Sequence[float], ece: Sequence[float]) -> list[int]:
    """The networks that no other beats in both: more accurate and better calibrated, by falling accuracy.

    >>> pareto([0.9, 0.8, 0.7], [0.05, 0.06, 0.01])
    [0, 2]
    """
    order = sorted(range(len(accuracy)), key=lambda i: (-accuracy[i], ece[i]))
    front: list[int] = []
    for i in order:
        if not front or ece[i] < ece[front[-1]]:
            front.append(i)
    return front


def _summarise(spec: str, table: NetworkTable, goal: Goal, budget: int, seeds: range) -> SearchResult:
    search = searches.CATALOGUE.make(spec)
    runs = [search(table.landscape, table.values.__getitem__, budget=budget, seed=seed) for seed in seeds]
    bests = np.array([_bests(run, budget) for run in runs])  # (seeds, budget)
    last = table.sign * bests[:, -1]
    rng = np.random.default_rng(seeds[0])
    draws = last[rng.integers(len(last), size=(RESAMPLES, len(last)))].mean(axis=1)
    mean = float(last.mean())
    low, high = Estimate(value=mean, noise=Draws.from_resamples(mean, draws)).limits()
    is_constant = spaces.make(table.space).is_constant
    found = [max(run, key=lambda trial: trial.value).arch for run in runs]
    top = max((trial for run in runs for trial in run), key=lambda trial: trial.value)
    best = Trial(top.arch, table.sign * top.value)
    curve = tuple(float(x) for x in table.sign * bests.mean(axis=0))
    return SearchResult(
        search=spec,
        goal=goal,
        budget=budget,
        seeds=len(seeds),
        mean=mean,
        low=low,
        high=high,
        best=best,
        constant=sum(map(is_constant, found)),
        curve=curve,
    )


def _bests(run: list[Trial], budget: int) -> Array:
    """The best value after each network; the last one stays where a space was exhausted before its budget."""
    best = np.maximum.accumulate([trial.value for trial in run])
    return np.pad(best, (0, budget - len(best)), mode="edge")


def _sampler(archs: tuple[str, ...]) -> Callable[[np.random.Generator], str]:
    return lambda rng: archs[int(rng.integers(len(archs)))]


def _neighbours(archs: tuple[str, ...]) -> Callable[[str], Sequence[str]]:
    """Architectures of the table that differ in the fewest places; places are the parts between marks."""
    codes: dict[str, int] = {}
    parts = [arch.replace("+", "").replace("|", ":").strip(":").split(":") for arch in archs]
    places = np.array([[codes.setdefault(part, len(codes)) for part in row if part] for row in parts], dtype=np.int32)
    index, known = {arch: i for i, arch in enumerate(archs)}, dict[str, list[str]]()

    def near(arch: str) -> list[str]:
        if arch not in known:
            apart = (places != places[index[arch]]).sum(axis=1)
            apart[index[arch]] = apart.max() + 1
            known[arch] = [archs[i] for i in np.flatnonzero(apart == apart.min())]
        return known[arch]

    return near


# -- the front ---------------------------------------------------------------------------------------


def front(table: "pl.DataFrame", *, space: str = "topology", data: str | None = None) -> list[dict[str, Any]]:
    """The networks of the Pareto front of accuracy against ECE: arch, accuracy, ece, and whether it is constant."""
    own = _both(table, space, data)
    chosen = pareto(own["accuracy"].to_list(), own["ece"].to_list())
    is_constant = spaces.make(space).is_constant
    return [own.row(i, named=True) | {"constant": is_constant(own["arch"][i])} for i in chosen]


def draw_front(table: "pl.DataFrame", out: str | Path, *, space: str = "topology", data: str | None = None) -> None:
    """Accuracy against ECE, the front in a colour of its own."""
    import polars as pl

    own = _both(table, space, data)
    on_front = set(pareto(own["accuracy"].to_list(), own["ece"].to_list()))
    named = ["Pareto front" if i in on_front else "other networks" for i in range(own.height)]
    rows = own.with_columns(pl.Series("network", named)).sort("network", descending=True)  # the front on top
    draw(f"study_scatter:x=accuracy,y=ece,colour=network,most={max(own.height, 1)}", rows, out)


def _both(table: "pl.DataFrame", space: str, data: str | None) -> "pl.DataFrame":
    import polars as pl

    accuracy = look_up(table, goal="accuracy", space=space, data=data).values
    ece = look_up(table, goal="ece", space=space, data=data).values
    shared = [arch for arch in accuracy if arch in ece]
    return pl.DataFrame(
        {"arch": shared, "accuracy": [accuracy[arch] for arch in shared], "ece": [-ece[arch] for arch in shared]}
    )
