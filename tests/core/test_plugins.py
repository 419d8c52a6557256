"""Installed packages add entries to catalogues, by entry points."""

import subprocess
import sys

import pytest

MEASURE = '''
from dataclasses import dataclass
from typing import ClassVar
from calibrant.measures import RowMeasure

@dataclass(frozen=True)
class Surprise(RowMeasure):
    """How often a sure prediction was wrong."""
    above: float = 0.9
    title: ClassVar[str] = "Surprise"
    reference: ClassVar[str] = "-"
    def rows(self, p):
        return ((p.score > self.above) & ~p.outcome).astype(float)
'''
LOSS = '''
from dataclasses import dataclass
from typing import ClassVar
from calibrant.losses import Loss

@dataclass(eq=False, repr=False, kw_only=True)
class Plain(Loss):
    """The mean logit."""
    title: ClassVar[str] = "Plain"
    reference: ClassVar[str] = "-"
    def forward(self, logits, labels):
        return logits.mean()
'''
CALIBRATOR = '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from calibrant.calibrators import Calibrator, Linear

@dataclass(frozen=True)
class Halved(Calibrator):
    """Half of every logit."""
    title: ClassVar[str] = "Halved"
    reference: ClassVar[str] = "-"
    keeps_argmax: ClassVar[bool] = True
    def fit(self, p):
        return self.build_map(p, Linear(np.array(0.5), np.array(0.0)))
'''


@pytest.fixture
def site(tmp_path):
    """A folder in which a package with three entries is installed."""
    package = tmp_path / "surprising"
    package.mkdir()
    for name, text in {"__init__": "", "measure": MEASURE, "loss": LOSS, "calibrator": CALIBRATOR}.items():
        (package / f"{name}.py").write_text(text)
    info = tmp_path / "surprising-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: surprising\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[calibrant.measures]\nsurprise = surprising.measure\nece = surprising.measure:Surprise\n"
        "broken = surprising.nowhere\n[calibrant.losses]\nplain = surprising.loss:Plain\n"
        "[calibrant.calibrators]\nhalved = surprising.calibrator:Halved\n"
    )
    return tmp_path


def run(site, code):
    start = f"import sys; sys.path.insert(0, {str(site)!r})\nimport calibrant as cal\n"
    ended = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n")[:-1]


def test_a_plugged_entry_is_found_by_its_name(site):
    output = run(
        site,
        "p = cal.Predictions.from_confidence([0.95, 0.99, 0.5], [0, 1, 1])\n"
        "print(round(cal.measure(p, 'surprise:above=0.8', resamples=0).value, 4))\n"
        "print('surprise' in cal.measures.names(), cal.measures.make('ece').title)\n"
        "from calibrant.core.catalogue import spec_of\n"
        "print(spec_of(cal.measures.make('surprise:above=0.5')))\n"
        "q = cal.Predictions.from_logits([[2.0, 0.0], [0.0, 4.0]], [0, 0])\n"
        "print(cal.fit(q, 'halved')(q).logits.tolist())\n"
        "try:\n    cal.measures.make('broken')\nexcept cal.InputError as error:\n    print(error)\n",
    )
    assert output[:4] == ["0.3333", "True Expected calibration error", "surprise:above=0.5", "[[1.0, 0.0], [0.0, 2.0]]"]
    assert output[4].startswith("measure broken: expected surprising.nowhere to load, got ModuleNotFoundError")


def test_a_loss_needs_no_more_than_logits_and_labels(site):
    pytest.importorskip("torch")
    output = run(
        site,
        "import torch\nfrom calibrant import losses\n"
        "z, y = torch.ones(2, 3), torch.zeros(2, dtype=torch.long)\n"
        "print(losses.make('plain')(z, y).item(), losses.make('plain')(z, y, torch.arange(2)).item())\n"
        "print(round(losses.make('ce + 0.5*plain')(z, y).item(), 4))\n",
    )
    assert output == ["1.0 1.0", "1.5986"]


def test_a_broken_package_is_named_and_the_others_are_listed(site):
    output = run(
        site,
        "from typer.testing import CliRunner\nfrom calibrant.cli import app\n"
        "ended = CliRunner().invoke(app, ['list', 'measures'])\n"
        "print(ended.exit_code, 'surprise' in ended.stdout, 'ece' in ended.stdout)\n"
        "print(ended.stderr.split(chr(10))[0])\n",
    )
    assert output[0] == "0 True True"
    assert output[1].startswith("warning: left out: measure broken: expected surprising.nowhere to load")
