"""Opening a run or a recipe that somebody else made runs no code, whatever it says; a permission is for one content."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from commands import run as run_command

pytest.importorskip("torch")
import calibrant as cal
from calibrant.core.config import code_trust
from calibrant.core.errors import InputError
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Optimizer, Recipe, read_recipe
from calibrant.training.run import open_run

MINE = """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import nn

from calibrant.models import Model, Network


class Net(Network):
    def __init__(self, shape):
        super().__init__()
        self.pool = nn.AvgPool2d(7)
        self.head = nn.Linear(16 * shape.channels, shape.classes)

    def features(self, x):
        return self.pool(x).flatten(1)


@dataclass(frozen=True)
class Mine(Model):
    title: ClassVar[str] = "mine"
    reference: ClassVar[str] = "none"

    def build(self, shape):
        return Net(shape)
"""
RECIPE = Recipe(
    model="resnet_small:depth=8,width=4",
    epochs=1,
    batch=32,
    data=Data(name="fashion_mini", split="5:1", limit=64, test_limit=50),
    optimizer=Optimizer(lr=0.01),
)
# What a hostile file may say, by the key that says it; MARK is a file that must not appear.
ATTACKS = {
    "model, a call": ("model", "os:system?command=touch MARK", "import os and call system?command=touch MARK"),
    "model, another call": ("model", "pathlib:Path.touch?self=MARK", "import pathlib and call Path.touch?self=MARK"),
    "model, a file": ("model", "evil.py", "run the Python file evil.py"),
    "model, the hub": ("model", "hf:somebody/something", "get the network somebody/something"),
    "data, a file": ("data.name", "./evil.py:size=8", "run the Python file ./evil.py"),
    "loss, a file": ("loss", "ce + 0.5*evil.py", "run the Python file evil.py"),
    "loss, inside an option": ("loss", "mixup:base=evil.py", "run the Python file evil.py"),
    "objective, a file": ("meta.objective", "evil.py", "run the Python file evil.py"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(RECIPE, tmp_path_factory.mktemp("runs") / "run").folder


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A working folder with evil.py in it, and a configuration of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "evil.py").write_text('open("MARK", "w").close()\n')
    return tmp_path / "here"


def command(*arguments, code=0):
    done = run_command(*arguments, code=code)
    return done.stdout if code == 0 else done.stderr


def shared(trained, place, **changes):
    """A copy of the run with changes in its run.json, as somebody may have sent it."""
    folder = place / "shared"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(trained, folder)
    facts = json.loads((folder / "run.json").read_text())
    for key, value in changes.items():
        inside = facts["recipe"]
        *tables, last = key.split(".")
        for table in tables:
            inside = inside[table]
        inside[last] = value
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    "words",
    [
        ["predict", "RUN", "--out", "o.npz"],
        ["gamma", "RUN", "--out", "o.parquet"],
        ["clamp", "RUN", "--out", "o"],
        ["confidnet", "RUN", "--out", "o", "--epochs", "1"],
        ["trust-score", "RUN", "--out", "o.npz"],
        ["density-ratio", "RUN", "--part", "train", "--out", "o.npz"],
    ],
    ids=lambda words: words[0],
)
def test_no_command_runs_code_of_a_run(trained, place, attack, words):
    key, spec, says = ATTACKS[attack]
    folder = shared(trained, place, **{key: spec})
    output = command(*(str(folder) if word == "RUN" else word for word in words), code=2)
    assert f"{folder / 'run.json'}: {key}" in output
    assert repr(spec) in output
    assert f"which would {says}" in output
    assert "--allow-code" in output
    assert sorted(file.name for file in place.iterdir()) == ["evil.py", "shared"]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("where", ["file", "base", "preset"])
def test_train_runs_no_code_of_a_recipe(place, attack, where):
    key, spec, says = ATTACKS[attack]
    *table, last = key.split(".")
    line = f"[{table[0]}]\n{last} = {json.dumps(spec)}\n" if table else f"{last} = {json.dumps(spec)}\n"
    (place / "base.toml").write_text(line)
    preset = "scale=small" if where == "preset" else "epochs=1"
    text = {"file": line, "base": 'extends = "base.toml"\n', "preset": f"[scale.small]\n{key} = {json.dumps(spec)}\n"}
    (place / "recipe.toml").write_text(text[where])
    output = command("train", "recipe.toml", "--override", preset, "--out", "run", code=2)
    assert f"recipe.toml: {key}" in output
    assert f"which would {says}" in output
    assert sorted(file.name for file in place.iterdir()) == ["base.toml", "evil.py", "recipe.toml"]


PLAN = """
title = "Shared"
base = BASE
[grid]
data = ["fashion_mini"]
model = ["resnet8", MODEL]
title = ["py"]
[methods.CE]
recipe.loss = "ce"
[methods.title]
recipe.loss = LOSS
[after]
measures = ["ece", MEASURE]
[after.shifts]
fog = SHIFT
[after.rescorers]
clamped = RESCORER
[entries.C]
method = "CE"
rescorer = "clamped"
[alike]
resnet8 = ALIKE
"""
NAMES = {"BASE": "losses", "MODEL": "resnet", "LOSS": "ce", "MEASURE": "nll", "SHIFT": "digits"}
NAMES |= {"RESCORER": "clamping", "ALIKE": "resnet_small"}


@pytest.mark.parametrize(
    ("key", "spec", "where"),
    [
        ("MODEL", "os:system?command=touch MARK", "methods.CE (data fashion_mini, model os:system?command=touch MARK"),
        ("MODEL", "hf:somebody/something", "model"),
        ("LOSS", "ce + evil.py", "methods.title (data fashion_mini, model resnet8, title py).loss"),
        ("MEASURE", "evil.py", "after.measures.1"),
        ("SHIFT", "corrupt evil.py:severity=3", "after.shifts.fog"),
        ("RESCORER", "./evil.py", "after.rescorers.clamped"),
        ("RESCORER", "./evil.{title}", "methods.CE (data fashion_mini, model resnet8, title py).rescorer"),
        ("ALIKE", "os:system?command=touch MARK", "alike.resnet8.model"),
        ("ALIKE", "evil.py", "alike.resnet8.model"),
        ("BASE", "base.toml", "meta.objective"),
    ],
)
def test_no_plan_runs_code(place, key, spec, where):
    (place / "deep.toml").write_text('[meta]\nobjective = "evil.py"\n')
    (place / "base.toml").write_text('extends = "deep.toml"\n')
    text = PLAN
    for name, usual in NAMES.items():
        text = text.replace(name, json.dumps(spec if name == key else usual))
    (place / "plan.toml").write_text(text)
    (place / "study").mkdir()
    (place / "study" / "plan.toml").write_text(text)
    facts = {"version": 1, "title": "Shared", "scale": "paper", "store": "../jobs"}
    (place / "study" / "study.json").write_text(json.dumps(facts))
    before = sorted(str(file) for file in place.rglob("*"))
    commands = [["plan", "plan.toml"], ["run", "plan.toml", "--out", "new"], ["page", "study", "--out", "p.html"]]
    for words in [*commands, ["retry", "study"], ["claims", "study"]]:
        output = command("study", *words, code=2)
        assert where in output
        assert "which would" in output
        assert "--allow-code" in output
    command("study", "status", "study")  # these read what is there, and run nothing
    command("study", "table", "study", code=2)
    assert sorted(str(file) for file in place.rglob("*")) == before
    command("study", "claims", "study", "--allow-code")
    command("study", "claims", "study")
    (place / "study" / "plan.toml").write_text(text.replace('"Shared"', '"Changed"'))
    assert "--allow-code" in command("study", "claims", "study", code=2)


def test_what_is_typed_runs(place):
    (place / "mine.py").write_text(MINE + 'Path("MARK").touch()\n')
    (place / "recipe.toml").write_text('epochs = 1\nbatch = 32\n[data]\nsplit = "5:1"\nlimit = 64\ntest_limit = 50\n')
    command("train", "recipe.toml", "--model", "./mine.py", "--out", "run")
    assert (place / "MARK").exists()
    command("predict", "run", "--out", "p.npz")  # our own training, which names our own file
    assert read_recipe("recipe.toml", ["model=./mine.py"]).model == "./mine.py"
    run = cal.train(Recipe(model="mine.py", epochs=1, batch=32, data=RECIPE.data), place / "python")
    np.testing.assert_array_equal(open_run(place / "python").network().head.bias.shape, 10)
    assert run.recipe.model == "mine.py"


def test_permission_lasts_until_the_file_or_its_code_changes(place):
    (place / "mine.py").write_text(MINE)
    data = 'split = "5:1"\nlimit = 64\ntest_limit = 50\n'
    (place / "recipe.toml").write_text(f'model = "./mine.py"\nepochs = 1\nbatch = 32\n[data]\n{data}')
    assert "--allow-code" in command("train", "recipe.toml", "--out", "run", code=2)
    command("train", "recipe.toml", "--out", "run", "--allow-code")
    command("train", "recipe.toml", "--out", "again")
    facts = json.loads((place / "run" / "run.json").read_text())
    (place / "run" / "run.json").write_text(json.dumps(facts | {"mean": [0.5]}))  # as another machine has written it
    assert "run the Python file ./mine.py" in command("predict", "run", "--out", "p.npz", code=2)
    command("predict", "run", "--out", "p.npz", "--allow-code")
    command("predict", "run", "--out", "p.npz")
    (place / "mine.py").write_text(MINE + "# another one\n")
    assert "--allow-code" in command("predict", "run", "--out", "q.npz", code=2)
    assert not (place / "q.npz").exists()
    with pytest.raises(InputError, match=r"with cal.allow_code\(\)"):
        open_run(place / "run")
    with cal.allow_code():
        assert open_run(place / "run").recipe.model == "./mine.py"
    assert open_run(place / "run").recipe.model == "./mine.py"


def test_a_permission_ends_with_its_block_and_no_thread_has_it(place):
    def refused():
        with pytest.raises(InputError, match="would run the Python file"):
            code_trust.check("run.json", {}, {"model": "./mine.py"})
        return True

    with ThreadPoolExecutor(1) as pool, cal.allow_code():
        assert pool.submit(refused).result()
        with cal.allow_code(False):
            assert refused()
    with pytest.raises(ZeroDivisionError), cal.allow_code():
        raise ZeroDivisionError
    assert refused()
    with cal.allow_code():
        code_trust.check("run.json", {}, {"model": "./mine.py"})


def test_a_typed_network_needs_no_permission_in_clamp(place, monkeypatch):
    (place / "typed_nets.py").write_text(
        "from torch import nn\n\n\n"
        "def made(num_classes):\n"
        "    return nn.Sequential(nn.AvgPool2d(7), nn.Flatten(), nn.Linear(16, num_classes))\n"
    )
    monkeypatch.syspath_prepend(str(place))
    command(
        "clamp", "typed_nets:made", "--data", "fashion_mini", "--part", "train", "--override", "what=T", "--out", "out"
    )
    assert (place / "out" / "clamp.json").exists()


def test_the_hub_runs_no_code_of_a_repository(place):
    """A folder as the hub would give it, with code of its own: it is refused, not asked about on the terminal."""
    pytest.importorskip("transformers")
    from calibrant.models import Shape, build

    folder = place / "network"
    folder.mkdir()
    where = {"AutoConfig": "own.OwnConfig", "AutoModelForImageClassification": "own.Own"}
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": where}))
    (folder / "own.py").write_text(f"open({str(place / 'MARK')!r}, 'w').close()\n")
    with pytest.raises(InputError, match="image classifier"):
        build(f"hf:{folder}", Shape(3))
    assert not (place / "MARK").exists()


def test_fitted_files_name_nothing_that_runs(place):
    """TrustScore files and clamps hold numbers and words: words that look like code are refused or unused."""
    from torch import nn

    from calibrant.rescorers.clamping import NeuralClamping, load_clamped
    from calibrant.rescorers.trust_score import FittedTrustScore

    rng = np.random.default_rng(0)
    cal.rescorers.TrustScore().fit(rng.normal(size=(8, 2)), np.arange(8) % 2).save("ts.npz")
    arrays = dict(np.load("ts.npz"))
    facts = json.loads(str(arrays["facts"]))
    facts["options"]["neighbour"] = "evil.py"
    np.savez("ts.npz", **arrays | {"facts": np.array(json.dumps(facts))})
    with pytest.raises(InputError, match="neighbour"):
        FittedTrustScore.load("ts.npz")
    import torch

    rows = [(torch.tensor([[2.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))]
    NeuralClamping(what="T").fit(nn.Identity(), rows).save("clamp")
    file = place / "clamp" / "clamp.json"
    file.write_text(file.read_text().replace('"random"', '"evil.py"'))
    load_clamped("clamp", nn.Identity())
    assert not (place / "MARK").exists()
