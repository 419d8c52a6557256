"""Predictions of a run, on its own images and on others, and the commands."""

import json
import subprocess
import sys

import numpy as np
import pytest

from calibrant import Predictions
from calibrant.cli import main
from calibrant.core.errors import InputError
from calibrant.train import open_run, train
from calibrant.train.predict import device_of, predict_run
from calibrant.train.recipe import Data, Optimizer, Recipe

RECIPE = Recipe(
    model="resnet_small:depth=8,width=4",
    epochs=1,
    batch=32,
    data=Data(name="fashion_mini", split="5:1", limit=64, test_limit=50),
    optimizer=Optimizer(lr=0.01),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return train(RECIPE, tmp_path_factory.mktemp("runs") / "run").folder


def test_own_parts(folder):
    run = open_run(folder)
    for part in ("test", "val"):
        p, saved = predict_run(folder, part=part), getattr(run, part)
        np.testing.assert_array_equal(p.logits, saved.logits)
        np.testing.assert_array_equal(p.ids, saved.ids)
    assert predict_run(folder, part="train").n == 64
    assert p.features.shape == (50, 16)


def test_logits_are_the_heads_of_the_features(folder):
    run = open_run(folder)
    head = run.network().head
    made = run.test.features @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(made, run.test.logits, rtol=1e-4, atol=1e-5)


def test_another_data_set_and_corruptions(folder):
    whole = predict_run(folder, data="fashion_mini")
    assert whole.n == 4000
    mild, hard = (predict_run(folder, corrupt=f"gaussian_noise:severity={s}") for s in (1, 5))
    assert not np.array_equal(mild.logits, hard.logits)
    np.testing.assert_array_equal(hard.logits, predict_run(folder, corrupt="gaussian_noise:severity=5").logits)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"data": "digits"}, "expected images of 28 x 28 x 1"),
        ({"data": "fashion_mino"}, "did you mean 'fashion_mini'"),
        ({"part": "tests"}, "did you mean 'test'"),
        ({"data": "fashion_mini", "part": "val"}, "expected one of test, train"),
        ({"corrupt": "fogg"}, "did you mean 'fog'"),
    ],
)
def test_bad_input(folder, options, says):
    with pytest.raises(InputError) as error:
        predict_run(folder, **options)
    assert says in str(error.value)


def test_devices():
    assert device_of("cpu").type == "cpu"
    assert device_of("auto").type in ("cpu", "cuda", "mps")


def command(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_train_and_predict_from_the_command_line(tmp_path):
    out = tmp_path / "run"
    small = [
        "--set",
        "scale=smoke",
        "--set",
        "data.limit=64",
        "--loss",
        "focal:gamma=2",
        "--seed",
        "3",
        "--mixup",
        "0.2",
    ]
    done = command("train", "demo", "--out", str(out), *small, "--model", "resnet_small:depth=8,width=4")
    assert "epoch 1/2" in done.stderr
    assert "test error" in done.stdout
    assert max(len(line) for line in done.stderr.splitlines() if line.startswith("epoch")) <= 80
    facts = json.loads((out / "run.json").read_text())
    assert facts["reduced"]
    assert (facts["recipe"]["loss"], facts["recipe"]["mixup"], facts["recipe"]["seed"]) == ("focal:gamma=2", 0.2, 3)
    shifted = tmp_path / "shifted.npz"
    told = command("predict", str(out), "--corrupt", "fog:severity=5", "--out", str(shifted), "--json")
    assert json.loads(told.stdout)["n"] == Predictions.load(shifted).n == 500


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "demos", "--out", "x"], "did you mean 'demo'"),
        (["train", "demo", "--out", "x", "--set", "epocs=3"], "did you mean 'epochs'"),
        (["train", "demo", "--out", "x", "--loss", "focul"], "did you mean 'focal'"),
        (["train", "demo", "--out", "x", "--model", "resnet9"], "did you mean 'resnet'"),
        (["train", "demo", "--out", "x", "--data", "cifar1000"], "did you mean 'cifar100'"),
        (["train", "meta/cifar10-resnet18-focal", "--out", "x", "--set", "data.root=nowhere"], "nowhere"),
        (["predict", "nowhere", "--out", "x.npz"], "expected the folder of a training"),
    ],
)
def test_bad_commands(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["calibrant", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
