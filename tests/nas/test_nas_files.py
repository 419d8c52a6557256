"""NATS-Bench's files: the numbers of the real ones, weights of written ones, and what is said of bad ones."""

import bz2
import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from real_data import FOLDER, needs_real_data

pytest.importorskip("torch")

import torch

from calibrant.core.errors import InputError
from calibrant.datasets._unpickle import StoredTensor
from calibrant.models import Shape, build
from calibrant.nas import spaces
from calibrant.nas.files import (
    accuracies,
    find_training,
    network_files,
    read_network,
    require_weights,
)
from calibrant.nas.stored_tensors import tensor_of

REAL = FOLDER / "nats"


def result(epochs=2, seed=777, weights=None):
    sets = ("x-valid", "ori-test")
    return {
        "name": "cifar10",
        "train_acc1es": {0: 20.0, 1: 30.0},
        "train_acc5es": None,
        "train_losses": {0: 2.0, 1: 1.5},
        "arch_config": {"channel": 16, "num_cells": 5, "class_num": 10},
        "params": np.float64(0.129306),
        "flop": 15.64737,
        "seed": f"{seed:04d}",
        "epochs": epochs,
        "latency": [np.float64(0.01)],
        "eval_names": list(sets),
        "eval_acc1es": {f"{name}@{epoch}": 10.0 * epoch + 40 for name in sets for epoch in (0, 1)},
        "eval_losses": {f"{name}@{epoch}": 1.25 for name in sets for epoch in (0, 1)},
        "net_state_dict": weights,
    }


def write(file, index=0, weights=None, **more):
    arch = spaces.make("topology").find(str(index))
    results = {("cifar10", seed): result(seed=seed, weights=weights) | more for seed in (777, 111)}
    length = {"arch_index": index, "arch_str": arch, "all_results": results, "dataset_seed": {}, "clear_net_done": True}
    file.write_bytes(bz2.compress(pickle.dumps(OrderedDict([("02", length)]), 4)))
    return file


@needs_real_data("nats")
@pytest.mark.parametrize(
    ("folder", "data", "epochs", "seeds", "params", "flops"),
    [
        ("tss", "cifar10", 200, {777: 0.9179, 888: 0.9176, 999: 0.9120}, 802_426, 113.95137),
        ("sss", "cifar10", 90, {777: 0.8577}, 49_202, 6.84065),
    ],
)
def test_the_real_files_say_what_is_published(folder, data, epochs, seeds, params, flops):
    table = accuracies(REAL / folder)
    assert table.files == 2
    assert table.skipped == {}
    rows = table.table.filter((pl.col("config") == 11) & (pl.col("data") == data) & (pl.col("epochs") == epochs))
    assert dict(rows.select("seed", "accuracy").rows()) == pytest.approx(seeds, abs=1e-9)
    assert rows.select("params", "flops").row(0) == (params, flops)
    space = spaces.make(table.table["space"][0])
    for arch, name, params, flops in table.table.select("arch", "data", "params", "flops").unique().rows():
        classes, size = {"cifar100": (100, 32), "imagenet16_120": (120, 16)}.get(name, (10, 32))
        assert space.params(arch, classes=classes) == params
        assert space.flops(arch, classes=classes, size=size) == pytest.approx(flops, abs=1e-9)


@needs_real_data("nats")
def test_simple_files_have_no_weights_and_the_message_says_which_download_has():
    for folder, full in (("tss", "NATS-tss-v1_0-3ffb9-full"), ("sss", "NATS-sss-v1_0-50262-full")):
        file = REAL / folder / "000011.pickle.pbz2"
        trained = find_training(read_network(file), "cifar10")
        with pytest.raises(InputError, match=full):
            require_weights(trained, file)


def test_weights_of_a_full_file_come_back_and_fit_the_network(tmp_path):
    space = spaces.make("topology:width=2,cells=1")
    torch.manual_seed(0)
    network = build(space.model("0"), Shape(10))
    file = write(tmp_path / "000000.pickle.pbz2", weights=network.state_dict())
    stored = require_weights(find_training(read_network(file), "cifar10"), file)
    results = {name: tensor_of(one, name) for name, one in stored.items()}
    assert list(results) == list(network.state_dict())
    for name, tensor in network.state_dict().items():
        assert torch.equal(results[name], tensor)
        assert results[name].dtype == tensor.dtype
    torch.manual_seed(1)
    other = build(space.model("0"), Shape(10))
    other.load_state_dict(results)
    x = torch.randn(2, 3, 8, 8)
    assert torch.equal(other.eval()(x), network.eval()(x))


def test_a_tensor_that_is_code_is_never_run(tmp_path):
    class Bad:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "run",))

    content = pickle.dumps(Bad(), 2)
    with pytest.raises(InputError, match="expected a tensor of numbers"):
        tensor_of(StoredTensor(content, 0, (1,), (1,)), "weights")
    assert not (tmp_path / "run").exists()


def test_the_last_epoch_counts_and_the_lowest_seed_of_the_longest_training(tmp_path):
    trainings = read_network(write(tmp_path / "000000.pickle.pbz2"))
    one = find_training(trainings, "cifar10")
    assert (one.seed, one.epochs, one.params, one.config) == (111, 2, 129_306, 0)
    assert one.numbers == pytest.approx(
        {
            "accuracy": 0.5,
            "loss": 1.25,
            "valid_accuracy": 0.5,
            "valid_loss": 1.25,
            "train_accuracy": 0.3,
            "train_loss": 1.5,
        }
    )
    assert find_training(trainings, "cifar10", seed=777).seed == 777
    with pytest.raises(InputError, match="2 epochs, seed 777, 2 epochs, seed 111, got 2 epochs, seed 5"):
        find_training(trainings, "cifar10", seed=5)
    with pytest.raises(InputError, match="expected one of cifar10, got 'cifar100'"):
        find_training(trainings, "cifar100")


def test_damaged_files_are_skipped_and_named(tmp_path):
    write(tmp_path / "000000.pickle.pbz2")
    write(tmp_path / "5.pickle.pbz2", index=5)  # older files have no zeros
    (tmp_path / "000001.pickle.pbz2").write_bytes(write(tmp_path / "x", index=1).read_bytes()[:200])
    write(tmp_path / "000002.pickle.pbz2", index=2, epochs=7)  # numbers of that epoch are missing
    (tmp_path / "000003.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps({"a": print})))
    (tmp_path / "meta.pickle.pbz2").write_bytes(b"not a network")
    seen = []
    table = accuracies(tmp_path, on_file=seen.append)
    assert sorted(set(table.table["config"])) == [0, 5]
    assert (table.files, len(seen)) == (5, 5)
    assert sorted(table.skipped) == ["000001.pickle.pbz2", "000002.pickle.pbz2", "000003.pickle.pbz2"]
    assert "code is never run" in table.skipped["000003.pickle.pbz2"]


def test_the_index_and_the_architecture_must_agree(tmp_path):
    file = write(tmp_path / "000000.pickle.pbz2")
    content = pickle.loads(bz2.decompress(file.read_bytes()))
    content["02"]["arch_index"] = 1
    file.write_bytes(bz2.compress(pickle.dumps(content)))
    with pytest.raises(InputError, match="expected the index of"):
        read_network(file)


@pytest.mark.parametrize(
    "wrong",
    [
        {"params": float("inf")},
        {"params": float("nan")},
        {"params": 1e300},
        {"flop": -1.0},
        {"flop": "x"},
        {"epochs": 0},
        {"epochs": float("inf")},
        {"eval_acc1es": {"x-valid@1": 1e306, "ori-test@1": 50.0}},
        {"eval_acc1es": {"x-valid@1": -1.0, "ori-test@1": 50.0}},
        {"eval_losses": {"x-valid@1": float("inf"), "ori-test@1": 1.0}},
        {"train_acc1es": {1: 100.5}},
        {"train_losses": {1: float("nan")}},
        {"net_state_dict": 5},
        {"net_state_dict": {"a": 5}},
    ],
)
def test_numbers_that_no_training_gives_are_refused(tmp_path, wrong):
    file = write(tmp_path / "000000.pickle.pbz2", **wrong)
    with pytest.raises(InputError, match="expected a network of NATS-Bench"):
        read_network(file)
    assert list(accuracies(tmp_path).skipped) == [file.name]


def test_folders_without_networks(tmp_path):
    with pytest.raises(InputError, match="none of these files"):
        network_files(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        network_files(tmp_path / "no")
