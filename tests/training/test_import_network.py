"""A network of one's own: its file, its torch weights, and a folder that every command takes as a run."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import calibrant as cal
from calibrant.cli import main
from calibrant.core.errors import InputError
from calibrant.core.torch.checkpoint import load_weights

CODE = """
from torch import nn

def tiny(num_classes=10, width=4):
    return nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(4 * width, num_classes))
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A Python file with a network, and its weights as DataParallel and a training script save them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Path("mynet.py").write_text(CODE)
    names: dict = {}
    exec(CODE, names)
    torch.manual_seed(0)
    network = names["tiny"]()
    weights = {f"module.{name}": value for name, value in network.state_dict().items()}
    torch.save({"state_dict": weights, "epoch": 7, "best": 0.5}, "tiny.th")
    return network.eval()


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["calibrant", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


def test_one_command_makes_a_run_that_the_others_take(files, monkeypatch, capsys):
    words = [
        "predict",
        "mynet.py:tiny",
        "--weights",
        "tiny.th",
        "--data",
        "fashion_mini",
        "--mean",
        ".5",
        "--std",
        ".25",
    ]
    assert command(monkeypatch, *words, "--out", "own", "--device", "cpu", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["n"], facts["n_val"], facts["n_test"], facts["halved"]) == (4000, 2000, 2000, True)

    part = cal.datasets.make("fashion_mini").load("test")
    x = (torch.tensor(np.asarray(part.images)).float() / 255 - 0.5) / 0.25
    with torch.no_grad():
        expected = files(x.permute(0, 3, 1, 2)).numpy()
    assert facts["error"] == pytest.approx((expected.argmax(1) != part.labels).mean())
    p = cal.Predictions.load("own/test.npz")
    rows = [list(part.ids).index(one) for one in p.ids[:20]]
    np.testing.assert_allclose(p.logits[:20], expected[rows], atol=1e-4)

    monkeypatch.chdir("config" if Path("config").is_dir() else "own")  # from any folder
    assert command(monkeypatch, "density-ratio", "../own", "--out", "../ratio.npz", "--json") == 0
    assert command(monkeypatch, "trust-score", "../own", "--out", "../trust.npz", "--device", "cpu", "--json") == 0
    assert (
        command(
            monkeypatch,
            "clamp",
            "../own",
            "--override",
            "by=efficient",
            "--out",
            "../clamp",
            "--device",
            "cpu",
            "--json",
        )
        == 0
    )
    assert cal.Predictions.load("../clamp/test.npz").n == 2000


def test_a_network_that_gives_nan_leaves_no_folder(files):
    weights = {name: value * float("nan") for name, value in files.state_dict().items()}
    torch.save(weights, "nan.th")
    with pytest.raises(InputError, match="NaN or infinity"):
        cal.import_network("mynet.py:tiny", "broken", data="fashion_mini", weights="nan.th", device="cpu")
    assert not Path("broken").exists()


def test_a_file_without_its_ending_is_asked_for(files):
    with pytest.raises(InputError, match=r"got 'mynet:tiny'. To fix it: write mynet.py:tiny"):
        cal.import_network("mynet:tiny", "own", data="fashion_mini", device="cpu")
    assert not Path("own").exists()


def test_a_training_is_not_written_over(files):
    Path("run").mkdir()
    Path("run/run.json").write_text('{"recipe": {"epochs": 3}}')
    with pytest.raises(InputError, match="expected a new folder, got one with a training"):
        cal.import_network("mynet.py:tiny", "run", data="fashion_mini", weights="tiny.th")
    assert [file.name for file in Path("run").iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mynet.py:tiny", "--out", "own"], "no --data"),
        (["mynet.py:tiny", "--data", "fashion_mini", "--out", "own.npz"], "expected a folder"),
        (["mynet.py:tny", "--data", "fashion_mini", "--out", "own"], "did you mean 'tiny'"),
        (
            ["mynet.py:tiny?width=5", "--weights", "tiny.th", "--data", "fashion_mini", "--out", "own"],
            "weights that fit",
        ),
        (["mynet.py:tiny", "--data", "fashion_mini", "--out", "own", "--mean", ".1,.2"], "mean and std"),
    ],
)
def test_what_is_wrong_is_named(files, monkeypatch, capsys, words, message):
    assert command(monkeypatch, "predict", *words) == 2
    assert message in capsys.readouterr().err
    assert not Path("own/test.npz").exists()


class Evil:
    """Runs code when it is unpickled as usual."""

    def __reduce__(self):
        return Path.touch, (Path("ran"),)


def test_a_checkpoint_with_code_is_refused(files):
    torch.save({"state_dict": {"a": torch.ones(1)}, "extra": Evil()}, "evil.th")
    with pytest.raises(InputError, match=r"evil.th: expected a torch file with tensors only"):
        load_weights(Path("evil.th"))
    assert not Path("ran").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02}", b"nothing"])
def test_a_damaged_file_of_weights_is_refused(tmp_path, content):
    (tmp_path / "w.th").write_bytes(content)
    with pytest.raises(InputError, match=r"w.th: expected"):
        load_weights(tmp_path / "w.th")


def test_prefixes_go_where_every_name_has_them(tmp_path):
    torch.save({"module.a": torch.ones(1), "module.b": torch.ones(2)}, tmp_path / "all.th")
    torch.save({"module.a": torch.ones(1), "b": torch.ones(2)}, tmp_path / "one.th")
    assert sorted(load_weights(tmp_path / "all.th")) == ["a", "b"]
    assert sorted(load_weights(tmp_path / "one.th")) == ["b", "module.a"]
