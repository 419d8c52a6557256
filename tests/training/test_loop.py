"""The loop: it learns, it is exact, it goes on after being killed, and it says what went wrong."""

import json
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")
import torch
from killed_run import kill
from two_processes import share

from calibrant import Predictions, losses, models
from calibrant.core.errors import InputError
from calibrant.datasets import Part, Splits
from calibrant.training.images import load_splits
from calibrant.training.loop import backward, train
from calibrant.training.optimize import learning_rate, make_optimizer
from calibrant.training.recipe import Data, Optimizer, Recipe, Schedule, change
from calibrant.training.run import open_run

TINY = Recipe(
    model="resnet_small:depth=8,width=4",
    epochs=2,
    batch=16,
    seed=1,
    data=Data(name="fashion_mini", split="8:1:1", limit=64, test_limit=40, pad=2),
    optimizer=Optimizer(lr=0.05),
)


def same(a, b):
    assert np.array_equal(a.logits, b.logits)
    assert np.array_equal(a.features, b.features)
    assert np.array_equal(a.labels, b.labels)


def test_a_run_leaves_everything(tmp_path):
    seen = []
    run = train(replace(TINY, test_each_epoch=True), tmp_path / "run", on_progress=seen.append)
    assert {f.name for f in run.folder.iterdir()} == {
        "run.json", "log.parquet", "last.safetensors", "best.safetensors", "val.npz", "test.npz",
    }  # fmt: skip
    assert (run.val.n, run.test.n, run.test.k) == (40, 40, 10)
    assert run.test.features.shape == (40, 16)
    assert len(set(run.test.ids.tolist())) == 40
    log = pl.read_parquet(run.folder / "log.parquet")
    assert log["epoch"].to_list() == [1, 2]
    for column in ("train_loss", "train_error", "val_ece", "val_nll", "val_auroc_correct", "val_error", "test_ece"):
        assert log[column].is_finite().all(), column
    facts = json.loads((run.folder / "run.json").read_text())
    assert facts["finished"]
    assert facts["selected_epoch"] == 2
    assert [p.step for p in seen if p.row is None] == [1, 2, 3, 4] * 2
    assert [p.row["epoch"] for p in seen if p.row] == [1, 2]


def test_the_loop_is_plain_gradient_descent(tmp_path):
    """Against a bare loop of a dozen lines: the same weights, bit for bit."""
    recipe = change(TINY, **{"data.augment": "none"})
    run = train(recipe, tmp_path / "run")
    from calibrant.training.images import load_splits

    splits = load_splits(recipe)
    torch.manual_seed(recipe.seed)
    network = models.build(recipe.model, run.shape)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    images = torch.from_numpy(splits.train.images[np.arange(64)]).permute(0, 3, 1, 2)
    x = (images.float() - 255 * torch.tensor(run.mean)) / (255 * torch.tensor(run.std))
    for epoch in range(2):
        order = np.random.default_rng([recipe.seed, epoch]).permutation(64)
        for rows in np.split(order, 4):
            loss = torch.nn.functional.cross_entropy(network(x[rows]), torch.from_numpy(splits.train.labels[rows]))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    for name, weight in run.network().state_dict().items():
        torch.testing.assert_close(weight, network.state_dict()[name], rtol=1e-5, atol=1e-6)


def test_same_seed_same_numbers_and_another_seed_others(tmp_path):
    a, b = train(TINY, tmp_path / "a"), train(TINY, tmp_path / "b")
    same(a.test, b.test)
    c = train(replace(TINY, seed=2), tmp_path / "c")
    assert not np.array_equal(a.test.logits, c.test.logits)


@pytest.mark.parametrize(
    ("changes", "save_every"),
    [
        ({}, 300.0),  # from the last epoch
        ({"loss": "ce + 0.5*crl"}, 0.0),  # from the last step, with a loss that remembers
        ({"loss": "avuc", "optimizer.name": "adam", "optimizer.lr": 1e-3}, 0.0),
        ({"mixup": 0.4, "model": "wide_resnet:depth=10,width=1,dropout=0.3"}, 0.0),  # random numbers everywhere
        ({"loss": "flsc", "optimizer.accumulate": 2, "schedule.name": "cosine"}, 0.0),
        ({"loss": "focal", "meta.learn": "gamma", "meta.lookahead": "full"}, 0.0),  # two optimizers, endless batches
        ({"meta.learn": "l2", "model": "wide_resnet:depth=10,width=1,dropout=0.3"}, 300.0),
    ],
    ids=["epoch", "crl", "avuc-adam", "mixup-dropout", "flsc-accumulate", "gamma", "l2"],
)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_in_the_middle_of_an_epoch_it_ends_with_the_same_bits(tmp_path, changes, save_every):
    recipe = change(TINY, epochs=3, **changes)
    whole = train(recipe, tmp_path / "whole")
    ended = kill(recipe.to_dict(), tmp_path / "killed", at=3, save_every=save_every)
    assert ended == -signal.SIGKILL
    assert not (tmp_path / "killed" / "test.npz").exists()
    with pytest.raises(InputError, match="a finished training"):
        open_run(tmp_path / "killed").network()
    resumed = train(recipe, tmp_path / "killed")
    same(whole.test, resumed.test)
    same(whole.val, resumed.val)
    drop = ["seconds"]
    assert whole.log.drop(drop).equals(resumed.log.drop(drop))


def test_a_finished_run_is_not_trained_again(tmp_path):
    first = train(TINY, tmp_path / "run")
    state = first.last.stat().st_mtime_ns
    train(TINY, tmp_path / "run")
    assert first.last.stat().st_mtime_ns == state
    train(TINY, tmp_path / "run", restart=True)
    assert first.last.stat().st_mtime_ns != state


def test_a_finished_run_of_another_network_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (
        "from torch import nn\ndef n(num_classes):\n    return nn.Sequential(nn.Flatten(), nn.Linear(784, num_classes)"
    )
    (tmp_path / "net.py").write_text(f"{text})\n")
    recipe = replace(TINY, model="./net.py:n", epochs=1)
    first = train(recipe, tmp_path / "run").test
    train(recipe, tmp_path / "run")  # warnings are errors here
    (tmp_path / "net.py").write_text(f"{text}, nn.Identity())\n")
    with pytest.warns(UserWarning, match=r"was trained by another models ./net.py:n: --restart"):
        same(train(recipe, tmp_path / "run").test, first)


def test_no_epochs_are_the_network_as_it_is(tmp_path):
    run = train(replace(TINY, epochs=0), tmp_path / "a", device="cpu")
    assert (run.finished, run.test.n, run.val.n, run.log.height) == (True, 40, 40, 0)
    same(train(replace(TINY, epochs=0), tmp_path / "a", device="cpu").test, run.test)
    with pytest.raises(InputError, match="select: expected last where there are no epochs"):
        replace(TINY, epochs=0, select="best")


def test_validation_rows_have_a_limit_of_their_own():
    limits = Data(name="fashion_mini", split="8:1:1", limit=64, test_limit=40, val_limit=30)
    splits = load_splits(replace(TINY, data=limits))
    assert [len(part) for part in (splits.train, splits.val, splits.test, splits.meta)] == [64, 30, 40, 600]


def test_another_recipe_is_refused(tmp_path):
    train(TINY, tmp_path / "run")
    with pytest.raises(InputError, match=r"batch = 16 then, 8 now.*--restart"):
        train(replace(TINY, batch=8), tmp_path / "run")


def test_a_diverging_loss_stops_and_keeps_the_last_good_state(tmp_path):
    recipe = change(TINY, epochs=30, loss="lp_norm:alpha=100,p=1", **{"optimizer.lr": 1e30, "schedule.warmup": 0})
    with pytest.raises(InputError, match=r"loss: expected a finite number, got (nan|inf) in epoch 1, step \d"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run" / "last.safetensors").exists()


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    from calibrant.core.torch import checkpoint

    real, calls = checkpoint.write_whole, []

    def full(path, write):
        calls.append(path)
        if len([c for c in calls if c.name == "last.safetensors"]) == 2 and path.name == "last.safetensors":
            raise OSError(28, "No space left on device", str(path))
        real(path, write)

    monkeypatch.setattr(checkpoint, "write_whole", full)
    with pytest.raises(OSError, match="No space"):
        train(TINY, tmp_path / "run")
    monkeypatch.undo()
    whole = train(TINY, tmp_path / "whole")
    same(whole.test, train(TINY, tmp_path / "run").test)


def test_best_and_refinement_select_their_epoch(tmp_path):
    for select, column in (("best", "val_error"), ("refinement", "val_refined_nll")):
        run = train(replace(TINY, epochs=4, select=select), tmp_path / select)
        lowest = int(np.argmin(run.log[column].to_numpy()))
        facts = json.loads((run.folder / "run.json").read_text())
        assert facts["selected_epoch"] == lowest + 1
        assert run.weights.name == "best.safetensors"


def test_patience_stops_early(tmp_path):
    recipe = change(TINY, epochs=50, select="refinement", patience=2, **{"optimizer.lr": 1e-30})
    run = train(recipe, tmp_path / "run")
    assert len(run.log) < 50
    run.network()  # stopped early is finished


def test_learning_rates():
    r = Recipe(epochs=10, optimizer=Optimizer(lr=1.0), schedule=Schedule("step", (4, 8), 0.1))
    assert [learning_rate(r, t) for t in (0, 3.99, 4, 8)] == pytest.approx([1, 1, 0.1, 0.01])
    cosine = replace(r, schedule=Schedule("cosine"))
    assert [learning_rate(cosine, t) for t in (0, 5, 10)] == pytest.approx([1, 0.5, 0])
    warm = replace(r, schedule=Schedule("constant", warmup=2))
    assert [learning_rate(warm, t) for t in (1, 2, 9)] == pytest.approx([0.5, 1, 1])
    assert 0 < learning_rate(warm, 0) < 0.1


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_optimizers(name):
    network = torch.nn.Linear(2, 2)
    optimizer = make_optimizer(Recipe(optimizer=Optimizer(name=name, lr=0.3)), network)
    assert type(optimizer).__name__.lower() == name
    assert optimizer.param_groups[0]["lr"] == 0.3


def test_accumulated_gradients_are_those_of_the_whole_batch():
    from lightning_fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=1)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))
    module, _ = fabric.setup(network, torch.optim.SGD(network.parameters(), lr=0.1))
    x, y, ids = torch.randn(7, 1, 2, 2), torch.tensor([0, 1, 2, 0, 1, 2, 0]), torch.arange(7)
    results = []
    for reduction in ("mean", "sum"):
        for passes in (1, 3):
            network.zero_grad()
            recipe = Recipe(reduction=reduction, optimizer=Optimizer(accumulate=passes))
            value, logits = backward(fabric, module, losses.make("ce", reduction), x, y, ids, recipe)
            assert logits.shape == (7, 3)
            results.append((float(value), network[1].weight.grad.clone()))
    for one, three in (results[:2], results[2:]):
        assert one[0] == pytest.approx(three[0], rel=1e-6)
        torch.testing.assert_close(one[1], three[1])


def test_a_folder_may_have_any_name(tmp_path):
    """Brackets were a pattern to the reader of the log, after all the training."""
    run = train(replace(TINY, epochs=1), tmp_path / "exp[1] *")
    assert run.log.height == 1


def test_the_log_knows_a_loss_that_is_a_mean_where_others_are_summed(tmp_path):
    still = {"epochs": 1, "optimizer.lr": 1e-30, "loss": "brier:reduction=mean"}
    logged = [
        train(change(TINY, reduction=reduction, **still), tmp_path / reduction).log["train_loss"][0]
        for reduction in ("mean", "sum")
    ]
    assert logged[0] == pytest.approx(logged[1], rel=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "bf16-mixed"},
        {"precision": "64-true"},
        {"channels_last": True},
        {"reduction": "sum", "optimizer.clip_norm": 2.0},
        {"data.augment": "resized"},
        {"data.split": "none", "data.test_limit": 20},
        {"mixup": 1.0, "optimizer.accumulate": 2},
        {"model": "torch.nn:Flatten"},
    ],
    ids=str,
)
def test_options_run(tmp_path, changes):
    if changes.get("model"):
        with pytest.raises(InputError):
            train(change(TINY, **changes), tmp_path / "run")
        return
    run = train(change(TINY, epochs=1, **changes), tmp_path / "run")
    assert np.isfinite(run.test.logits).all()


def test_weights_of_another_run_are_a_start(tmp_path):
    first = train(TINY, tmp_path / "first")
    recipe = replace(TINY, weights=str(first.last), epochs=1, optimizer=Optimizer(lr=1e-30, weight_decay=0.0))
    second = train(recipe, tmp_path / "second")
    a, b = first.network().state_dict(), second.network().state_dict()
    assert all(torch.equal(a[name], b[name]) for name in a if "running" not in name and "num_batches" not in name)
    with pytest.raises(InputError, match="expected weights that fit"):
        train(replace(TINY, model="resnet_small:depth=14,width=4", weights=str(first.last)), tmp_path / "third")


def test_own_splits_from_python(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    images = (rng.integers(0, 40, (60, 8, 8, 1)) + 80 * labels[:, None, None, None]).astype(np.uint8)
    part = Part(images, labels, ("a", "b", "c"))
    recipe = change(TINY, epochs=15, **{"data.augment": "none"})
    run = train(recipe, tmp_path / "run", splits=Splits(part, part))
    assert run.test.correct.mean() > 0.9  # three grey levels are easy: it learns
    assert run.classes == ("a", "b", "c")


def test_a_truncated_state_is_refused(tmp_path):
    run = train(TINY, tmp_path / "run")
    run.last.write_bytes(run.last.read_bytes()[:1000])
    with pytest.raises(InputError, match="expected a safetensors file"):
        train(TINY, tmp_path / "run")


def test_not_a_run(tmp_path):
    with pytest.raises(InputError, match=r"no run.json"):
        open_run(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json"):
        open_run(tmp_path)


def test_two_processes_share_the_work(tmp_path):
    """As a cluster starts them; gloo on the CPU."""
    assert share(TINY.to_dict(), tmp_path / "run") == [0, 0]
    run = open_run(tmp_path / "run")
    assert len(run.log) == 2
    assert run.test.n == 40


@pytest.mark.slow
def test_two_processes_share_a_regulariser_that_is_learned(tmp_path):
    """Through the command line, as a user would start it."""
    small = ("scale=smoke", "data.limit=64", "data.test_limit=50", "batch=16")
    more = ("loss=focal", "meta.learn=gamma", "data.split=8:1:1")
    command = [
        sys.executable, "-m", "calibrant", "train", "demo", "--out", str(tmp_path / "run"), "--processes", "2",
        "--device", "cpu", "--json",
        *(word for change in (*small, *more) for word in ("--override", change)),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    facts = json.loads(done.stdout)
    assert len(facts["log"]) == 2
    assert Predictions.load(tmp_path / "run" / "test.npz").n == 50


def test_too_few_images(tmp_path):
    part = Part(np.zeros((1, 8, 8, 1), dtype=np.uint8), np.zeros(1, dtype=np.int64), ("a", "b"))
    with pytest.raises(InputError, match="at least 2 training images"):
        train(TINY, tmp_path / "run", splits=Splits(part, part))
