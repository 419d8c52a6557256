"""`calibrant clamp`: a run in, a clamp and predictions out, whole or not at all."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import run as run_command

pytest.importorskip("torch")
import torch

from calibrant import Predictions
from calibrant.rescorers.clamping import NeuralClamping, load_clamped
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.run import open_run

NETWORK = """
from torch import nn


def made(num_classes):
    return nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(49, num_classes))
"""


@pytest.fixture
def run(small_run):
    return open_run(small_run)


def command(*arguments, code=0):
    done = run_command("clamp", *arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def test_a_run(run, tmp_path):
    out = tmp_path / "clamp"
    output = command(run.folder, "--override", "passes=6", "--out", out)
    assert max(map(len, output.splitlines())) <= 80 + len(str(out))
    assert [line.split("  ")[0] for line in output.splitlines()[:5]] == [
        "test",
        "before",
        "temperature",
        "temperature, same loss",
        "clamped",
    ]
    assert all(len(line) <= 80 for line in output.splitlines()[:-1])
    assert sorted(file.name for file in out.iterdir()) == ["clamp.json", "clamp.safetensors", "test.npz", "val.npz"]
    test = Predictions.load(out / "test.npz")
    np.testing.assert_array_equal(test.ids, run.test.ids)
    np.testing.assert_array_equal(test.labels, run.test.labels)
    clamped = load_clamped(out, run.network())
    low, high = clamped.report.options["low"], clamped.report.options["high"]
    assert (low, high) == ([-run.mean[0] / run.std[0]], [(1 - run.mean[0]) / run.std[0]])
    assert clamped.report.objective <= clamped.report.objective_temperature


def test_json_is_the_fit_of_python(run, tmp_path):
    facts = json.loads(
        command(run.folder, "--gamma", 0, "--override", "passes=6", "--seed", 3, "--out", tmp_path, "--json")
    )
    page = (
        (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("\n## clamp\n")[2].partition("\n## ")[0]
    )
    keys, inner = (set(re.findall(r"`(\w+)`(?=[^|]*\| [a-z])", half)) for half in page.split("The keys of `report`"))
    assert set(facts) == keys
    assert set(facts["report"]) == inner
    assert list(facts["measures"]) == ["before", "temperature", "clamped"]
    assert facts["measures"]["before"]["accuracy"] == pytest.approx(run.test.correct.mean())
    batches = Batches(part=load_splits(run.recipe).val, size=512, pixels=run.pixels(torch.device("cpu")))
    clamped = NeuralClamping(gamma=0.0, passes=6, seed=3).fit(run.network(), batches)
    torch.testing.assert_close(load_clamped(tmp_path, run.network()).delta, clamped.delta)
    assert facts["report"]["T"] == pytest.approx(clamped.report.T)


@pytest.mark.parametrize(
    ("keys", "most_passes"),
    [
        (["what=T", "gamma_pool=paper"], 5),
        (["by=efficient"], 5),
        (["lambda_rule=cv", "folds=2", "passes=4"], 100),
        (["init=data", "keep_inside=true", "passes=5"], 5),
        (["by=sgd", "epochs=1", "rate=0.1", "momentum=0.5", "what=delta", "batch=32"], 5),
    ],
)
def test_overrides(run, tmp_path, keys, most_passes):
    options = [word for key in keys for word in ("--override", key)]
    report = json.loads(command(run.folder, *options, "--out", tmp_path, "--json"))["report"]
    assert report["passes"] <= most_passes


def test_a_network_of_another_package(run, tmp_path, monkeypatch):
    from safetensors.torch import save_file

    (tmp_path / "clamp_mine.py").write_text(NETWORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    weights = {"2.weight": torch.randn(10, 49, generator=torch.Generator().manual_seed(0)), "2.bias": torch.zeros(10)}
    save_file(weights, tmp_path / "w.safetensors")
    asked = ["clamp_mine:made", "--data", "fashion_mini", "--part", "train", "--weights", tmp_path / "w.safetensors"]
    onnx = tmp_path / "net.onnx"
    facts = json.loads(command(*asked, "--override", "what=T", "--onnx", onnx, "--out", tmp_path / "out", "--json"))
    assert facts["onnx"] == str(onnx)
    assert facts["report"]["T"] > 2  # such weights are far too sure
    assert onnx.stat().st_size > 0
    assert Predictions.load(tmp_path / "out" / "test.npz").n == 4000
    assert "no --data" in command("clamp_mine:made", "--out", tmp_path / "x", code=2)
    assert "--part test" in command(*asked[:3], "--part", "test", "--out", tmp_path / "x", code=2)


def test_imagenet_as_in_the_paper(tmp_path, monkeypatch):
    """The published validation set in two halves, class by class: one calibrates, the other judges."""
    from PIL import Image

    from calibrant.training.images import held_out_and_test

    rng = np.random.default_rng(0)
    for name in ("n01440764", "n01443537", "n01484850"):
        (tmp_path / "imagenet" / "val" / name).mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "imagenet" / "val" / name / f"{number}.JPEG")
    data, root = "imagenet:complete=false,size=8", str(tmp_path / "imagenet")
    val, test = held_out_and_test(data, root, "val", 0)
    assert np.bincount(val.labels).tolist() == np.bincount(test.labels).tolist() == [3, 3, 3]
    assert sorted([*val.ids, *test.ids]) == list(range(18))
    np.testing.assert_array_equal(held_out_and_test(data, root, "val", 0)[0].ids, val.ids)
    assert held_out_and_test(data, root, "val", 1)[0].ids.tolist() != val.ids.tolist()
    (tmp_path / "imagenet_net.py").write_text(
        "import torch\nfrom torch import nn\n\n\ndef made(num_classes):\n    torch.manual_seed(0)\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(192, num_classes))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = ["imagenet_net:made", "--data", data, "--root", root, "--part", "val", "--override", "passes=5"]
    command(*asked, "--out", tmp_path / "one")
    for name, part in (("val", val), ("test", test)):
        np.testing.assert_array_equal(Predictions.load(tmp_path / "one" / f"{name}.npz").ids, part.ids)
    other = json.loads(command(*asked, "--mean", "0.5", "--std", "0.5,0.5,0.5", "--out", tmp_path / "two", "--json"))
    assert other["report"]["options"]["low"] == [-1.0, -1.0, -1.0]
    assert "--mean: expected numbers, got 'half'" in command(*asked, "--mean", "half", "--out", tmp_path / "x", code=2)
    assert "one a channel" in command(*asked, "--std", "1,2", "--out", tmp_path / "x", code=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--gamma", "-1"], "gamma: expected 0 or more, got -1"),
        (["--override", "init=datta"], "did you mean 'data'"),
        (["--override", "by=adam"], "expected one of efficient, lbfgs, sgd"),
        (["--part", "test"], "expected a part of the run to calibrate on, not test"),
        (["--part", "vall"], "the run has val, test"),
        (["--data", "fashion_mini"], "expected one of test, train"),
        (["--override", "passes=1"], "at least 4"),
    ],
)
def test_bad_commands(run, tmp_path, options, says):
    assert says in command(run.folder, *options, "--out", tmp_path / "out", code=2)
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_val_part(run, tmp_path, monkeypatch):
    folder = tmp_path / "whole"
    folder.mkdir()
    facts = json.loads((run.folder / "run.json").read_text())
    facts["recipe"]["data"]["split"] = "none"
    (folder / "run.json").write_text(json.dumps(facts))
    for name in ("last.safetensors", "best.safetensors"):
        if (run.folder / name).exists():
            (folder / name).symlink_to(run.folder / name)
    assert open_run(folder).recipe.data.split == "none"
    assert "--data NAME --part PART" in command(folder, "--out", tmp_path / "out", code=2)
    assert "expected the folder of a run" in command(tmp_path, "--out", tmp_path / "out", code=2)
    assert not (tmp_path / "out").exists()
    few = load_splits(run.recipe).val
    monkeypatch.setattr("calibrant.rescoring.clamping.part_of_data", lambda *_: few)
    command(folder, "--data", "fashion_mini", "--part", "train", "--override", "what=T", "--out", tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").glob("*.npz")) == ["test.npz"]


def test_ctrl_c_leaves_nothing(run, tmp_path, monkeypatch):
    def stop(self, network, loader, *, held_out, on_pass):
        on_pass(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(NeuralClamping, "fit", stop)
    assert "nothing was written" in command(run.folder, "--out", tmp_path / "out", code=130)
    assert not (tmp_path / "out").exists()
