"""Train one network of a space, small, by its own seed, and measure every column; the weights are not kept."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.unit import Row

VERSION = 1


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """One row; `configuration` in it holds all options, from which the same row can be made again."""
    import torch

    from calibrant import spaces
    from calibrant.studying.nas_columns import columns, load_sets, structure
    from calibrant.training.loop import train
    from calibrant.training.recipe import Recipe

    torch.set_num_threads(1)  # sums in another order have other last digits
    sets = load_sets(options["data"], options["test"], options["spoilt"], options["attacked"], tuple(options["ood"]))
    recipe = {"model": spaces.make(options["space"]).model(options["arch"]), "seed": options["seed"]}
    data = {"name": options["data"], "limit": options["images"], "split": "none"}
    made = train(Recipe.from_dict({**options["recipe"], **recipe, "data": data}), folder, device="cpu")
    row = structure(options["space"], options["arch"], sets.shape)
    row |= {"data": options["data"].partition(":")[0], "seed": options["seed"]}
    row |= columns(made.network(), sets, torch.device("cpu"))
    last = made.log.row(-1, named=True)
    row |= {"train_accuracy": 1 - last["train_error"], "train_loss": last["train_loss"]}
    row |= {"train_seconds": last["seconds"], "configuration": json.dumps(dict(options), sort_keys=True)}
    shutil.rmtree(folder)
    return [row]
