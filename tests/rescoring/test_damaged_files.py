"""Runs, clamps and fitted rescorers on disk, damaged in seeded ways: a clear error, or something that works."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch import nn

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.rescorers.clamping import load_clamped
from calibrant.rescorers.density_ratio import FittedDensityRatio
from calibrant.rescorers.trust_score import FittedTrustScore
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Optimizer, Recipe
from calibrant.training.run import open_run

CASES = 300
ODD = (None, True, -1, 0, 3.5, 1e308, "", "evil.py", "\x1b[2J", [], [1], {}, {"a": 1}, [[]], "9" * 400, 10**400)


def damaged(content, rng):
    """Bytes cut, changed or added; in JSON often a value changed for an odd one, or a key lost."""
    if rng.random() < 0.6 and content.startswith(b"{"):
        return json.dumps(_odd(json.loads(content), rng)).encode()
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(content)))
        match rng.integers(0, 4):
            case 0:
                content = content[: max(at, 1)]
            case 1:
                content[at : at + 1] = bytes(rng.integers(0, 256, 3, dtype=np.uint8))
            case 2:
                del content[at : at + int(rng.integers(1, 20))]
                content = content or bytearray(b"x")
            case _:
                content[at] = int(rng.integers(0, 256))
    return bytes(content)


def _odd(values, rng):
    """One value somewhere inside is another, or gone."""
    keys = list(values) if isinstance(values, dict) else list(range(len(values)))
    if not keys:
        return values
    key = keys[int(rng.integers(0, len(keys)))]
    if isinstance(values[key], dict | list) and values[key] and rng.random() < 0.7:
        values[key] = _odd(values[key], rng)
    elif rng.random() < 0.3:
        del values[key]
    else:
        values[key] = ODD[int(rng.integers(0, len(ODD)))]
    return values


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Whole files: name -> (files, what opens and uses them)."""
    folder = tmp_path_factory.mktemp("saved")
    rng = np.random.default_rng(0)
    recipe = Recipe(
        model="resnet_small:depth=8,width=4",
        epochs=1,
        batch=32,
        data=Data(name="fashion_mini", split="5:1", limit=64, test_limit=50),
        optimizer=Optimizer(lr=0.01),
    )
    train(recipe, folder / "run", device="cpu")
    features, labels = rng.normal(size=(60, 3)), np.arange(60) % 3
    p = cal.Predictions.from_logits(rng.normal(size=(60, 3)), labels, features=features)
    cal.rescorers.TrustScore().fit(features, labels).save(folder / "trust.npz")
    cal.rescorers.DensityRatio().fit(p).save(folder / "ratio.npz")
    rows = [(torch.from_numpy(features).float(), torch.from_numpy(labels))]
    network = nn.Linear(3, 3)
    cal.rescorers.NeuralClamping(gamma_pool=(0.0, 1.0), lambda_rule="cv", passes=4, folds=2).fit(network, rows).save(
        folder / "c"
    )
    return folder, {
        "run": (["run.json", "last.safetensors"], lambda at: _finite(open_run(at).network().head.weight)),
        "c": (["clamp.json", "clamp.safetensors"], lambda at: _finite(load_clamped(at, network)(rows[0][0]))),
        "trust.npz": ([""], lambda at: _finite(FittedTrustScore.load(at).score(features, labels))),
        "ratio.npz": ([""], lambda at: _finite(FittedDensityRatio.load(at).predict(p.take(np.arange(9))).confidence)),
    }


def _finite(values):
    assert np.isfinite(np.asarray(values.detach() if isinstance(values, torch.Tensor) else values)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["run", "c", "trust.npz", "ratio.npz"])
def test_damage_is_told_or_harmless(saved, tmp_path, name):
    folder, kinds = saved
    files, use = kinds[name]
    use(folder / name)
    rng, messages = np.random.default_rng(7), []
    for _ in range(CASES):
        at = tmp_path / name
        shutil.copytree(folder / name, at, dirs_exist_ok=True) if (folder / name).is_dir() else shutil.copy(
            folder / name, at
        )
        file = at / files[int(rng.integers(0, len(files)))] if files != [""] else at
        file.write_bytes(damaged(file.read_bytes(), rng))
        try:
            use(at)
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > CASES / 3
    assert [words for words in messages if not words.isprintable()] == []
