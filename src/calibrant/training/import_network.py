"""Make a run folder of a network that was trained elsewhere."""

import os
import shutil
from pathlib import Path

from calibrant import datasets
from calibrant.core.errors import InputError
from calibrant.core.json import read_json
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Recipe
from calibrant.training.run import Run


def import_network(
    model: str,
    out: str | Path,
    *,
    data: str,
    weights: str | Path | None = None,
    root: str = "",
    mean: tuple[float, ...] = (),
    std: tuple[float, ...] = (),
    split_seed: int = 0,
    batch: int = 256,
    device: str = "auto",
) -> Run:
    """The network `model` with these weights as a run in the folder `out`, with its predictions val.npz and test.npz.

    `model` is anything that `calibrant.models` builds: `mynet.py:resnet20`, `package.module:callable`, `hf:NAME`.
    `weights` is a safetensors or torch file, `mean` and `std` normalise pixels from 0 to 1. Where the data set has no
    validation part, val is one half of its test part, class by class and by `split_seed`, and test is the other.
    Everything that takes a run takes the folder: clamp, confidnet, trust-score, density-ratio, predict.
    """
    folder = Path(out)
    _check_folder(folder)
    name, colon, rest = model.partition(":")
    if name.endswith(".py"):  # the run is found from every folder
        model = f"{os.path.abspath(name)}{colon}{rest}"
    split = "official" if "val" in datasets.make(data, root).parts else "half test"
    recipe = Recipe(
        title=f"imported: {os.path.basename(name)}{colon}{rest}",
        model=model,
        weights="" if weights is None else os.path.abspath(weights),
        epochs=0,
        batch=batch,
        data=Data(name=data, root=root, split=split, split_seed=split_seed, augment="none", mean=mean, std=std),
    )
    is_new = not folder.exists()
    try:
        return train(recipe, folder, device=device, restart=True)
    except InputError:
        if is_new and folder.exists():  # nothing half-written: only this call has put files there
            shutil.rmtree(folder)
        raise


def _check_folder(folder: Path) -> None:
    """Refuse to write over a training; an imported network may be imported again."""
    file = folder / "run.json"
    if not file.exists():
        return
    values = read_json(file, expected="a run.json", fix="choose another folder")
    recipe = values.get("recipe") if isinstance(values, dict) else None
    if not isinstance(recipe, dict) or recipe.get("epochs") != 0:
        raise InputError(str(folder), expected="a new folder", got="one with a training", fix="choose another --out")
