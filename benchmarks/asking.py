"""A table of all networks of the benchmark study: a query, and the seven questions with their page."""

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl

from benchmarks._page import Section, Target, show, table
from calibrant.nas import questions, spaces
from calibrant.nas.answers import read_networks, save_page
from calibrant.nas.query import query
from calibrant.nas.spaces import Space

DATA = ("cifar10", "cifar100", "ImageNet16-120")
COLUMNS = 150
WORDS = (
    "A made-up table of the 117,702 pairs of a different network and a data set, with 150 columns, in a Parquet file. "
    "The query filters and sorts. `ask all` reads the file, answers the seven questions with their intervals and "
    "writes the page with its pictures."
)
SQL = "select arch, accuracy, pre_ECE_15 from nas where accuracy > 0.8 order by pre_ECE_15 limit 10"


def run(*, smoke: bool) -> Section:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "nas.parquet"
        result = pl.concat([_networks(name, data, 60 if smoke else 0) for data in DATA for name in spaces.names()])
        result.write_parquet(file)
        start = perf_counter()
        networks = read_networks([file])
        spent = {"reading": perf_counter() - start}
        start = perf_counter()
        query(networks, SQL)
        asked = perf_counter() - start
        answers = []
        for name in questions.names():
            start = perf_counter()
            answers.append(questions.make(name)(networks))
            spent[f"`{name}`"] = perf_counter() - start
        start = perf_counter()
        save_page(answers, networks, Path(place) / "answers.html")
        spent["the page"] = perf_counter() - start
    size = f"{result.height:,} rows of {result.width} columns"
    targets = [
        Target(f"a query on {size}", asked, "most", 1.0, unit=" s"),
        Target(f"`ask all` on {size}", sum(spent.values()), "most", 60.0, unit=" s"),
    ]
    rows = [[name, show(seconds)] for name, seconds in {"the query": asked, **spent}.items()]
    return Section("A table of all networks", WORDS, targets, [table(["part", "seconds"], rows)])


def _networks(name: str, data: str, at_most: int) -> pl.DataFrame:
    """Made-up columns for the different networks of a space: ECE falls with accuracy, the others follow it."""
    space: Space = spaces.make(name)
    archs = list(space.uniques())[: at_most or None]
    rng, n = np.random.default_rng([len(name), len(data)]), len(archs)
    accuracy = rng.uniform(0.5, 0.95, n)
    columns: dict[str, object] = {"space": [name] * n, "data": [data] * n, "arch": archs}
    columns |= {"unique": np.full(n, True), "constant": np.full(n, False), "accuracy": accuracy}
    needed = {column for one in questions.names() for column in questions.make(one).needs} - set(columns)
    extra = [f"other_{i}" for i in range(COLUMNS - len(columns) - len(needed))]
    columns |= {one: 0.25 - 0.2 * accuracy + rng.normal(0, 0.01, n) for one in [*sorted(needed), *extra]}
    return pl.DataFrame(columns)
