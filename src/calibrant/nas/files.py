"""The files of NATS-Bench: accuracies of every network in both spaces, and the weights where a file has them.

A file is read as data and never run (datasets/_unpickle.py). One that is damaged is left out, and said at the end.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.files import damage_error
from calibrant.datasets import StoredTensor, read_pickled
from calibrant.nas import spaces
from calibrant.studying.job_kinds import Row

if TYPE_CHECKING:
    import polars as pl

NAME = re.compile(r"(\d+)\.pickle\.pbz2")
DATA = {
    "cifar10": "cifar10",
    "cifar10-valid": "cifar10_half",
    "cifar100": "cifar100",
    "ImageNet16-120": "imagenet16_120",
}
SETS = {"ori-test": "", "x-valid": "valid_", "x-test": "half_test_"}  # the benchmark's words -> the start of a column
FULL = {
    "topology": "NATS-tss-v1_0-3ffb9-full",
    "size": "NATS-sss-v1_0-50262-full",
}


MOST_MILLIONS = 1e6  # of parameters and of multiply-adds: the largest network of the benchmark has far fewer


@dataclass(frozen=True, kw_only=True)
class StoredTraining:
    """One training of one network, as stored in its file."""

    space: str
    config: int  # the index of the benchmark
    arch: str
    data: str  # our name of the data set; cifar10_half is trained on half of CIFAR-10
    seed: int
    epochs: int
    params: int
    flops: float  # millions of multiply-adds
    numbers: Mapping[str, float]  # accuracies (shares) and losses after the last epoch
    weights: Mapping[str, StoredTensor] | None = field(default=None, repr=False)

    def row(self) -> Row:
        return {name: value for name, value in vars(self).items() if name not in ("numbers", "weights")} | dict(
            self.numbers
        )


@dataclass(frozen=True)
class Accuracies:
    """A row for every training in a folder, and why files were left out."""

    table: "pl.DataFrame"
    files: int
    skipped: dict[str, str]  # file name -> what is wrong with it


def network_files(folder: str | Path) -> list[Path]:
    """The files of networks in a folder of the benchmark, in the order of their index."""
    place = Path(folder)
    matches = {file: NAME.fullmatch(file.name) for file in place.glob("*.pickle.pbz2")} if place.is_dir() else {}
    files = sorted((int(match[1]), file) for file, match in matches.items() if match)
    if not files:
        got = "no such folder" if not place.is_dir() else "none of these files in it"
        fix = f"give an unpacked folder of NATS-Bench, for instance {FULL['topology'].replace('full', 'simple')}"
        raise InputError(str(place), expected="000000.pickle.pbz2, 000001.pickle.pbz2, ...", got=got, fix=fix)
    return [file for _, file in files]


def read_network(file: str | Path) -> list[StoredTraining]:
    """Every training in the file of one network."""
    path = Path(file)
    return list(_trainings(path, read_pickled(path)))


def accuracies(folder: str | Path, *, on_file: Callable[[int], None] | None = None) -> Accuracies:
    """Read the accuracies of a folder, without weights; damaged files are skipped and named."""
    import polars as pl

    files, rows, skipped = network_files(folder), list[Row](), dict[str, str]()
    for file in files:
        try:
            trainings = read_network(file)
            rows += [trained.row() | _structure(trained) for trained in trainings]
        except InputError as error:
            skipped[file.name] = str(error)
        if on_file is not None:
            on_file(1)
    return Accuracies(pl.DataFrame(rows, infer_schema_length=None), len(files), skipped)


def find_training(trainings: list[StoredTraining], data: str, *, epochs: int = 0, seed: int = -1) -> StoredTraining:
    """The training on a data set: the longest one unless told otherwise, and its lowest seed."""
    of_data = [training for training in trainings if training.data == data]
    if not of_data:
        raise unknown_name("data in the file", data, {training.data for training in trainings})
    wanted = epochs or max(training.epochs for training in of_data)
    candidates = [training for training in of_data if training.epochs == wanted and seed in (-1, training.seed)]
    if not candidates:
        have = ", ".join(f"{training.epochs} epochs, seed {training.seed}" for training in of_data)
        got = f"{wanted} epochs{'' if seed < 0 else f', seed {seed}'}"
        raise InputError("training", expected=f"one of {have}", got=got, fix="ask for one of these")
    return min(candidates, key=lambda training: training.seed)


def require_weights(trained: StoredTraining, file: str | Path) -> Mapping[str, StoredTensor]:
    """The weights of a training, or an error that names the download that has them."""
    if trained.weights is None:
        raise InputError(
            str(file),
            expected="weights of the network",
            got="a file of the 'simple' kind, which has accuracies only",
            fix=f"download {FULL[trained.space]} (hundreds of GB), the kind with weights; "
            "calibrant nas accuracy reads this one",
        )
    return trained.weights


# -- the layout of a file ------------------------------------------------------------------------------------------


def _trainings(file: Path, content: Mapping[str, Any]) -> Iterator[StoredTraining]:
    try:
        for length in content.values():
            arch, index = str(length["arch_str"]), int(length["arch_index"])
            name = "topology" if arch.startswith("|") else "size"
            if spaces.make(name).index(arch) != index:
                raise damage_error(file, f"the index of {arch}", str(index))
            for (data, seed), stored in length["all_results"].items():
                yield _training(name, index, arch, str(DATA.get(data, data)), int(seed), stored)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise damage_error(file, "a network of NATS-Bench", f"{type(error).__name__}: {error}") from error


def _training(space: str, index: int, arch: str, data: str, seed: int, stored: Mapping[str, Any]) -> StoredTraining:
    last = int(stored["epochs"]) - 1
    if last < 0:
        raise ValueError(f"{stored['epochs']} epochs")
    numbers = {
        "train_accuracy": _share(stored["train_acc1es"][last]),
        "train_loss": _finite(stored["train_losses"][last], "loss"),
    }
    for words in stored["eval_names"]:
        start = SETS[words]
        numbers[f"{start}accuracy"] = _share(stored["eval_acc1es"][f"{words}@{last}"])
        numbers[f"{start}loss"] = _finite(stored["eval_losses"][f"{words}@{last}"], "loss")
    params = round(_finite(stored["params"], "params", most=MOST_MILLIONS) * 1e6)
    flops = _finite(stored["flop"], "flop", most=MOST_MILLIONS)
    return StoredTraining(
        space=space,
        config=index,
        arch=arch,
        data=data,
        seed=seed,
        epochs=last + 1,
        params=params,
        flops=flops,
        numbers=numbers,
        weights=_weights(stored["net_state_dict"]),
    )


def _finite(value: Any, name: str, *, most: float = math.inf) -> float:
    number = float(value)
    if not 0 <= number <= most or math.isinf(number):
        raise ValueError(f"{name} {number}")
    return number


def _share(value: Any) -> float:
    """An accuracy, which is in percent in the files."""
    return _finite(value, "accuracy", most=100) / 100


def _weights(value: Any) -> Mapping[str, StoredTensor] | None:
    tensors = value is None or (
        isinstance(value, Mapping)
        and all(isinstance(name, str) and isinstance(tensor, StoredTensor) for name, tensor in value.items())
    )
    if not tensors:
        raise ValueError("weights that are no tensors")
    weights: Mapping[str, StoredTensor] | None = value
    return weights


def _structure(trained: StoredTraining) -> Row:
    space = spaces.make(trained.space)
    return {"unique": space.index(space.unique(trained.arch)), "constant": space.is_constant(trained.arch)}
