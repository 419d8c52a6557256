"""Measure every column of a network whose weights are in a full file of NATS-Bench."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.core.catalogue import name_of
from calibrant.studying.job_kinds import Row


def entries(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The entries of catalogues that decide the row."""
    from calibrant.nas.columns import entries_of

    return entries_of(options["space"], options["data"], options["ood"])


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """One row: checkpoint, logits, columns."""
    from calibrant.core.torch import checkpoint
    from calibrant.models import build
    from calibrant.nas import spaces
    from calibrant.nas.columns import columns, load_sets, structure
    from calibrant.nas.files import find_training, read_network, require_weights
    from calibrant.nas.stored_tensors import tensor_of
    from calibrant.training.predict import device_of

    file, data = Path(options["file"]), str(options["data"])
    name = name_of(data)
    trained = find_training(read_network(file), name, epochs=options["epochs"], seed=options["seed"])
    weights = {key: tensor_of(tensor, f"{file}, {key}") for key, tensor in require_weights(trained, file).items()}
    sets = load_sets(data, options["test"], options["spoilt"], options["attacked"], tuple(options["ood"]))
    space = spaces.make(options["space"])
    network = build(space.model(trained.arch), sets.shape)
    checkpoint.put(network, weights, str(file))
    row = structure(options["space"], trained.arch, sets.shape)
    row |= {"data": name, "seed": trained.seed, "epochs": trained.epochs}
    row |= columns(network, sets, options["attacks"], device_of("auto"))
    row |= {"published_accuracy": trained.numbers.get("accuracy")}
    return [row]
