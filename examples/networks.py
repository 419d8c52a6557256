"""Networks that the other examples look at: trained once, kept under runs/networks, found again afterwards.

    python examples/networks.py [--cifar10 FOLDER]

Three networks on `fashion_mini` by the recipe of the demo, which overfits on purpose; with a folder that holds CIFAR-10
(any form that the data set `cifar10` reads), one on 10,000 of its images as well.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from calibrant.training.loop import train
from calibrant.training.recipe import change, find_recipe, read_recipe
from calibrant.training.run import Run

SEEDS = 3
OUT = Path("runs/networks")
CIFAR10 = {
    "data.name": "cifar10",
    "data.split": "45000:5000",
    "data.limit": 10000,
    "data.augment": "crop",
    "data.pad": 0,
    "epochs": 25,
    "batch": 128,
    "schedule.warmup": 1,
    "optimizer.weight_decay": 5e-4,
}


def fashion(seed: int, out: Path = OUT) -> Run:
    """A network on 5,000 images of clothes, far too sure of itself; 1,000 others are its `val` part."""
    return train(change(read_recipe(find_recipe("demo")), seed=seed), out / f"fashion-{seed}", device="cpu")


def cifar10(root: str, out: Path = OUT) -> Run:
    """The same network on 10,000 images of CIFAR-10, with 5,000 others as its `val` part."""
    recipe = change(read_recipe(find_recipe("demo")), **CIFAR10, **{"data.root": root})
    return train(recipe, out / "cifar10", device="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cifar10", default="", help="a folder with CIFAR-10")
    options = parser.parse_args()
    runs = [fashion(seed) for seed in range(SEEDS)] + ([cifar10(options.cifar10)] if options.cifar10 else [])
    for run in runs:
        print(f"{run.folder}: accuracy {run.test.correct.mean():.1%}")


if __name__ == "__main__":
    main()
