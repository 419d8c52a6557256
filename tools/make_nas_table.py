"""Make the table of networks that comes with calibrant: 200 topologies and 100 sizes, small, on two data sets.

    python tools/make_nas_table.py FOLDER [WORKERS]

About an hour of one core; if interrupted, the same command continues. WORKERS 0 trains nothing and takes the networks
that are finished on both data sets. CIFAR-10 has to be in its usual folder. The data card is src/calibrant/data/nas.md.
"""

import hashlib
import sys
from itertools import chain
from pathlib import Path

import polars as pl

from calibrant.core.files import write_whole
from calibrant.data import NAS
from calibrant.nas.build_table import run_networks, train_jobs
from calibrant.studying.job import Job
from calibrant.studying.store import Store

DATA = ["fashion_mini:shrink=2", "cifar10:shrink=2"]
TIMES = ("seconds", "train_seconds")  # another time in every run


def every_job() -> list[Job]:
    """Two topologies, then a size, and so on, each on both data sets: what is there is balanced at any time."""
    topologies, sizes = (
        train_jobs("topology", 200, DATA, extremes=True),
        train_jobs("size", 100, DATA, extremes=True),
    )
    groups = [topologies[i : i + 4] + sizes[i // 2 : i // 2 + 2] for i in range(0, len(topologies), 4)]
    return list(chain.from_iterable(groups))


def main(folder: str, workers: str = "2") -> None:
    jobs = every_job()
    if workers != "0":
        run_networks(jobs, folder, on=f"local:{workers}")
    rows = Store(Path(folder) / "jobs").rows("nas_train", [job.key for job in jobs]).drop("job", *TIMES)
    whole = rows.filter(pl.len().over("space", "arch") == len(DATA)).sort("space", "data", "config")
    write_whole(NAS, lambda stream: whole.write_parquet(stream, compression="zstd", compression_level=19))
    print(f"{whole.height} of {len(jobs)} rows, {whole.width} columns, {NAS.stat().st_size:,} bytes")
    print("SHA-256", hashlib.sha256(NAS.read_bytes()).hexdigest())
    print(whole.group_by("space", "data").agg(pl.len(), pl.col("accuracy", "pre_ECE_15").max().name.suffix("_max")))


if __name__ == "__main__":
    main(*sys.argv[1:])
