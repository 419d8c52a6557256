"""Make the table of networks that comes with calibrant: 200 topologies and 100 sizes, small, on two data sets.

    python tools/make_nas_table.py FOLDER [WORKERS]

About an hour and a half of one core; interrupted, the same command goes on. CIFAR-10 has to be where `calibrant data`
looks for it. The data card is docs/nas.md.
"""

import sys
from itertools import chain

from calibrant.core.disk import write_whole
from calibrant.data import NAS
from calibrant.studying.nas import run_networks, train_units
from calibrant.studying.unit import Unit

DATA = ["fashion_mini:shrink=2", "cifar10:shrink=2"]


def every_unit() -> list[Unit]:
    """Two topologies, then a size, and so on, each on both data sets: what is there is balanced at any time."""
    topologies, sizes = train_units("topology", 200, DATA), train_units("size", 100, DATA)
    pairs = [topologies[i : i + 4] + sizes[i // 2 : i // 2 + 2] for i in range(0, len(topologies), 4)]
    return list(chain.from_iterable(pairs))


def main(folder: str, workers: str = "2") -> None:
    made = run_networks(every_unit(), folder, on=f"local:{workers}")
    table = made.table.drop("seconds", "train_seconds").sort("space", "data", "config")
    write_whole(NAS, lambda stream: table.write_parquet(stream, compression="zstd", compression_level=19))
    print(f"{table.height} networks, {NAS.stat().st_size / 2**20:.1f} MB; {len(made.failures)} failed.")


if __name__ == "__main__":
    main(*sys.argv[1:])
