"""Predictions of a run, on its own images and on others, and the commands."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
from commands import run

from calibrant import Predictions
from calibrant.core.errors import InputError
from calibrant.training.images import part_of_run
from calibrant.training.predict import device_of, predict, predict_run
from calibrant.training.run import open_run


def test_predict_run_equals_saved_parts(small_run):
    trained = open_run(small_run)
    for part in ("test", "val"):
        p, saved = predict_run(small_run, part=part), getattr(trained, part)
        np.testing.assert_array_equal(p.logits, saved.logits)
        np.testing.assert_array_equal(p.ids, saved.ids)
    assert predict_run(small_run, part="train").n == 200
    assert p.features.shape == (150, 16)


def test_logits_are_the_heads_of_the_features(small_run):
    trained = open_run(small_run)
    head = trained.network().head
    logits = trained.test.features @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(logits, trained.test.logits, rtol=1e-4, atol=1e-5)


def test_another_data_set_and_corruptions(small_run):
    whole = predict_run(small_run, data="fashion_mini")
    assert whole.n == 4000
    mild, hard = (predict_run(small_run, corrupt=f"gaussian_noise:severity={s}") for s in (1, 5))
    assert not np.array_equal(mild.logits, hard.logits)
    np.testing.assert_array_equal(hard.logits, predict_run(small_run, corrupt="gaussian_noise:severity=5").logits)


def test_attacked_images(small_run):
    plain = predict_run(small_run)
    none, weak, strong = (predict_run(small_run, attack=f"pgd:eps={eps},steps=5") for eps in ("0", "1/255", "16/255"))
    np.testing.assert_allclose(none.logits, plain.logits, rtol=1e-4, atol=1e-4)
    assert strong.correct.mean() <= weak.correct.mean() <= plain.correct.mean()
    assert strong.correct.mean() < plain.correct.mean()
    np.testing.assert_array_equal(strong.labels, plain.labels)
    other = predict_run(small_run, attack="pgd:eps=16/255,steps=5", batch=7)
    np.testing.assert_allclose(other.logits, strong.logits, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attack": "pdg"}, "did you mean 'pgd'"),
        ({"attack": "pgd:eps=1/0"}, "eps: expected a number, got '1/0'"),
        ({"attack": "pgd:eps=8"}, "eps: expected 0 to 1, got 8.0"),
        ({"attack": "square:queries=0"}, "queries: expected 1 to 1,000,000, got 0"),
        ({"attack": "fgsm:steps=3"}, "expected one of eps, got 'steps'"),
        ({"data": "digits"}, "expected images of 28 x 28 x 1"),
        ({"data": "fashion_mino"}, "did you mean 'fashion_mini'"),
        ({"part": "tests"}, "did you mean 'test'"),
        ({"data": "fashion_mini", "part": "val"}, "expected one of test, train"),
        ({"corrupt": "fogg"}, "did you mean 'fog'"),
    ],
)
def test_bad_input(small_run, options, says):
    with pytest.raises(InputError) as error:
        predict_run(small_run, **options)
    assert says in str(error.value)


def test_devices():
    assert device_of("cpu").type == "cpu"
    assert device_of("auto").type in ("cpu", "cuda", "mps")


def test_train_and_predict_from_the_command_line(tmp_path):
    out = tmp_path / "run"
    small = ("--override", "scale=smoke", "--override", "data.limit=64", "--model", "resnet_small:depth=8,width=4")
    done = run("train", "demo", "--out", out, *small, "--loss", "focal:gamma=2", "--seed", 3, "--override", "mixup=0.2")
    assert "epoch 1/2" in done.stderr
    assert "test error" in done.stdout
    assert max(len(line) for line in done.stderr.splitlines() if line.startswith("epoch")) <= 80
    facts = json.loads((out / "run.json").read_text())
    assert facts["reduced"]
    assert (facts["recipe"]["loss"], facts["recipe"]["mixup"], facts["recipe"]["seed"]) == ("focal:gamma=2", 0.2, 3)
    shifted = tmp_path / "shifted.npz"
    output = run("predict", out, "--corrupt", "fog:severity=5", "--out", shifted, "--json")
    assert json.loads(output.stdout)["n"] == Predictions.load(shifted).n == 200


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "demos", "--out", "x"], "did you mean 'demo'"),
        (["train", "demo", "--out", "x", "--override", "epocs=3"], "did you mean 'epochs'"),
        (["train", "demo", "--out", "x", "--loss", "focul"], "did you mean 'focal'"),
        (["train", "demo", "--out", "x", "--model", "resnet9"], "did you mean 'resnet'"),
        (["train", "demo", "--out", "x", "--data", "cifar1000"], "did you mean 'cifar100'"),
        (["train", "meta/cifar10-resnet18-focal", "--out", "x", "--override", "data.root=nowhere"], "nowhere"),
        (["predict", "nowhere", "--out", "x.npz"], "expected the folder of a run"),
    ],
)
def test_bad_commands(tmp_path, arguments, says):
    assert says in run(*arguments, cwd=tmp_path, code=2).stderr
    assert not list(tmp_path.iterdir())


def test_a_network_that_gives_nan_is_named(small_run):
    trained = open_run(small_run)
    network = trained.network()
    network.head.weight.data.fill_(float("nan"))
    part = part_of_run(trained, "test")
    with pytest.raises(InputError, match=f"network: expected finite logits, got NaN or infinity in {len(part.labels)}"):
        predict(network, part, trained.pixels(device_of("cpu")))
