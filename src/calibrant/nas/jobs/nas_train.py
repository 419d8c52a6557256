"""Train one network of a space, small, by its own seed, and measure every column; the weights are not kept."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.catalogue import name_of
from calibrant.studying.job_kinds import Row


def entries(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the row."""
    from calibrant.nas.columns import entries_of

    yield from entries_of(options["space"], options["data"], options["ood"])
    yield "losses", options["recipe"].get("loss", "ce")


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """One row; `configuration` in it holds all options, from which the same row can be made again."""
    import torch

    from calibrant import datasets
    from calibrant.nas import spaces
    from calibrant.nas.columns import columns, load_sets, load_training, structure
    from calibrant.training.loop import train
    from calibrant.training.recipe import Recipe

    torch.set_num_threads(1)  # sums in another order have other last digits
    sets = load_sets(options["data"], options["test"], options["spoilt"], options["attacked"], tuple(options["ood"]))
    words = dict(options["recipe"])
    data = {**words.pop("data", {}), "name": options["data"], "limit": options["images"], "split": "none"}
    splits = load_training(Recipe.from_dict({"data": data}))
    model = spaces.make(options["space"]).model(options["arch"])
    recipe = Recipe.from_dict({**words, "data": data, "model": model, "seed": options["seed"]})
    trained = train(recipe, folder, splits=splits, like=datasets.make(options["data"]), device="cpu")
    row = structure(options["space"], options["arch"], sets.shape)
    row |= {"data": name_of(options["data"]), "seed": options["seed"]}
    row |= columns(trained.network(), sets, options["attacks"], torch.device("cpu"))
    last = trained.log.row(-1, named=True)
    row |= {"train_accuracy": 1 - last["train_error"], "train_loss": last["train_loss"]}
    row |= {"train_seconds": sum(trained.log["seconds"]), "configuration": json.dumps(dict(options), sort_keys=True)}
    row |= {"made_with": describe_environment()}
    shutil.rmtree(folder)
    return [row]


def describe_environment() -> str:
    """Versions and processor instructions, which decide the last digits besides the configuration."""
    import numpy as np
    import torch

    return f"torch {torch.__version__}, numpy {np.__version__}, {torch.backends.cpu.get_cpu_capability()}"
