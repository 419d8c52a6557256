"""Recipes: every combination is valid, unknown keys are named, presets and changes do what they say."""

import json
import random
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

pytest.importorskip("torch")

from calibrant import datasets, losses, models
from calibrant.core.config.inheritance import ConfigSource
from calibrant.core.config.toml import read_toml
from calibrant.core.errors import InputError
from calibrant.training.recipe import Recipe, change, find_recipe, read_recipe, recipe_names, recipes_folder

NAMES = recipe_names()
BEFORE = json.loads((Path(__file__).parent / "data" / "recipes.json").read_text())  # when each was a file of its own


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_names_things_that_exist(name):
    recipe = read_recipe(find_recipe(name))
    assert recipe.title
    assert recipe.scale == "paper"
    losses.make(recipe.loss, recipe.reduction)
    dataset = datasets.make(recipe.data.name)
    assert set(dataset.parts) >= {"train", "test"}
    models.make(recipe.model)
    smoke = read_recipe(find_recipe(name), ["scale=smoke"])
    assert smoke.epochs <= 2
    assert smoke.reduced
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_there_is_a_recipe_for_every_training_of_the_papers():
    assert set(NAMES) >= set(BEFORE["recipes"])
    assert len(BEFORE["recipes"]) == 105
    assert {file.stem for file in recipes_folder().glob("*.toml")} == {name.partition("/")[0] for name in NAMES}


def corrected(name: str, key: str) -> bool:
    """What is not as it was when each recipe was a file of its own, on purpose."""
    return key == "paper" or any(fnmatchcase(name, pattern) and key == of for pattern, of in CORRECTED)


CORRECTED = [
    ("nats/*", "title"),  # CIFAR-10 instead of cifar10
    ("nats/*-cifar10", "data.name"),  # by NATS-Bench's own constants
    ("meta/*-mmce", "loss"),  # in the form of the code behind the table, as
    ("meta/*-brier", "loss"),  # the mean, not the sum, of Brier
    ("meta/cifar10-*-margin", "loss"),  # margin 6, as published for CIFAR-10
]


@pytest.mark.parametrize("name", BEFORE["recipes"])
def test_recipes_say_what_their_own_files_said(name):
    for scale, changes in BEFORE["recipes"][name].items():
        before = BEFORE["defaults"] | BEFORE["recipes"][name]["paper"] | changes
        recipe = json.loads(json.dumps(read_recipe(name, [f"scale={scale}"]).to_dict()))
        for key, value in before.items():
            table, _, last = key.rpartition(".")
            if not corrected(name, key):
                assert (recipe[table] if table else recipe)[last] == value, (scale, key)


def test_corrections_of_recipes():
    assert read_recipe("meta/cifar10-resnet18-margin").loss == "margin:margin=6"
    assert read_recipe("meta/cifar100-resnet18-margin").loss == "margin"
    assert read_recipe("meta/cifar10-resnet18-margin0").loss == "margin:margin=0"
    assert read_recipe("meta/cifar10-resnet18-mmce").loss == "mmce_weighted:form=code"
    brier = read_recipe("meta/cifar100-resnet18-brier")
    assert (brier.reduction, losses.make(brier.loss, brier.reduction).reduction) == ("sum", "mean")
    nats = datasets.make(read_recipe("nats/size-cifar10").data.name)
    assert [round(value, 3) for value in nats.std] == [0.247, 0.244, 0.262]
    assert datasets.make("cifar10").std == (0.2023, 0.1994, 0.2010)
    own, one = (read_recipe(f"dark-side/cifar10-vgg16-{name}") for name in ("focal", "focal-one-schedule"))
    assert (own.schedule.factor, one.schedule.factor, own.loss) == (0.1, 0.2, one.loss)


def test_papers_are_cited_in_words():
    for name in NAMES:
        paper = read_recipe(name).paper
        assert name == "demo" or len(paper) > 30
        assert not re.search(r"doc\d|\b00\d\b|METHODS", paper)


def test_every_exception_is_one_of_some_recipe():
    for file in recipes_folder().glob("*.toml"):
        for pattern in read_toml(file).at("exceptions").values:
            assert any(fnmatchcase(name, f"{file.stem}/{pattern}") for name in NAMES), (file, pattern)


def written(tmp_path, text, name="r.toml"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_changes_and_presets(tmp_path):
    file = written(
        tmp_path, "epochs = 100\n[schedule]\nmilestones = [50, 75]\n[scale.small]\nepochs = 20\ndata.limit = 7\n"
    )
    assert read_recipe(file).schedule.milestones == (50, 75)
    small = read_recipe(file, ["scale=small", "data.root=/data/x, y", "optimizer.nesterov=true"])
    assert (small.epochs, small.schedule.milestones, small.data.limit, small.scale) == (20, (10, 15), 7, "small")
    assert (small.data.root, small.optimizer.nesterov) == ("/data/x, y", True)
    kept = read_recipe(file, ["epochs=10", "schedule.milestones=3 4"])
    assert (kept.epochs, kept.schedule.milestones) == (10, (3, 4))


def test_a_recipe_starts_from_another(tmp_path):
    written(tmp_path, "epochs = 9\n[optimizer]\nlr = 0.5\nmomentum = 0.1\n[scale.smoke]\nepochs = 1\n", "base.toml")
    recipe = read_recipe(written(tmp_path, 'extends = "base.toml"\n[optimizer]\nlr = 0.25\n'), ["scale=smoke"])
    assert (recipe.epochs, recipe.optimizer.lr, recipe.optimizer.momentum) == (1, 0.25, 0.1)


@pytest.mark.parametrize(
    ("text", "changes", "says"),
    [
        ("epoch = 3", [], "did you mean 'epochs'?"),
        ("[optimizer]\nlearning = 3", [], "optimizer.lr"),
        ("epochs = 'many'", [], "epochs: expected a whole number, got 'many'"),
        ("epochs = 2.5", [], "epochs: expected a whole number, got 2.5"),
        ("epochs = true", [], "epochs: expected a whole number, got True"),
        ("epochs = -1", [], "epochs: expected 0 to 1,000,000, got -1"),
        ("epochs = inf", [], "epochs: expected a whole number, got inf"),
        ("seed = -1", [], "seed: expected 0 to 9,223,372,036,854,775,807, got -1"),
        ("mixup = -0.1", [], "mixup: expected 0 to 1,000, got -0.1"),
        ("batch = 1", [], "batch: expected 2 to 65,536, got 1"),
        ("batch = 1000000", [], "batch: expected 2 to 65,536, got 1000000"),
        ("[optimizer]\nlr = 0", [], "r.toml, line 2 (lr = 0): optimizer.lr: expected more than 0, got 0"),
        ("optimizer.lr = nan", [], "optimizer.lr: expected a finite number, got nan"),
        ("optimizer.momentum = -0.9", [], "optimizer.momentum: expected 0 or more and less than 1, got -0.9"),
        ("optimizer.momentum = 1", [], "optimizer.momentum: expected 0 or more and less than 1, got 1.0"),
        ("optimizer = { nesterov = true, momentum = 0 }", [], "momentum: expected more than 0 where nesterov is true"),
        ("optimizer.weight_decay = -1", [], "optimizer.weight_decay: expected 0 or more, got -1.0"),
        ("schedule.milestones = [1, -2]", [], "schedule.milestones.1: expected 0 to 1,000,000, got -2"),
        ("data.pad = -1", [], "data.pad: expected 0 to 512, got -1"),
        ("meta.tau = 0", [], "meta.tau: expected more than 0, got 0.0"),
        ("extends = 'r.toml'", [], "extends: expected a file that does not build on this one"),
        ("scale = 3", [], "scale: expected a table, got 3"),
        ("", ["scale.x=3"], "expected one of paper"),
        ("extends = 'meta'", [], "expected a choice of data (cifar10, cifar100, tiny-imagenet) and model"),
        ("data = 'cifar10'", [], "data: expected a table"),
        ("reduction = 'some'", [], "expected one of mean, sum"),
        ("epochs = ", [], "expected TOML"),
        ("", ["epochs"], "expected key=value"),
        ("", ["epocks=3"], "did you mean 'epochs'?"),
        ("", ["epochs=x"], "epochs: expected a whole number, got 'x'"),
        ("", ["scale=big"], "expected one of paper"),
        ("epochs = 2", ["epochs.x=3"], "--override epochs.x=3: epochs: expected a whole number, got a table"),
        ("patience = 3", [], "expected select best or refinement"),
        ("extends = 'nothing.toml'", [], "no such file"),
    ],
)
def test_bad_recipes(tmp_path, text, changes, says):
    with pytest.raises(InputError) as error:
        read_recipe(written(tmp_path, text), changes)
    assert says in str(error.value)


def test_an_unknown_recipe_is_named():
    with pytest.raises(InputError, match="did you mean 'demo'"):
        find_recipe("recipes/demos.toml")
    assert find_recipe("demo").file.samefile(find_recipe("recipes/demo.toml").file)
    with pytest.raises(InputError, match="did you mean 'dark-side/cifar10-vgg16-ls'"):
        find_recipe("darkside/cifar10-vgg16-ls")
    with pytest.raises(InputError, match="meta: expected a choice of data"):
        read_recipe("meta")
    with pytest.raises(InputError, match="did you mean 'cifar10-resnet18-ce'"):
        read_recipe("meta/cifar10-resnet-ce")


def test_a_recipe_of_ones_own_starts_from_one_of_ours(tmp_path):
    file = written(tmp_path, 'extends = "meta/cifar100-resnet18-focal"\nbatch = 64\n')
    recipe = read_recipe(file, ["scale=small"])
    assert (recipe.batch, recipe.loss, recipe.data.name, recipe.epochs) == (64, "focal:gamma=1", "cifar100", 15)


HOSTILE = (
    *(
        "-1",
        "0",
        "1e308",
        "-1e308",
        "inf",
        "-inf",
        "nan",
        "true",
        '""',
        "'abc'",
        "[]",
        "[[]]",
        "{}",
        "{ a = 1 }",
        "[1, 'a']",
    ),
    *(
        "1979-05-27",
        "9" * 30,
        "9" * 5000,
        '"\\u0000"',
        '"\\u202e"',
        "[" * 300,
        "1.5",
        "'../../etc'",
        "'r.toml'",
        "\xff",
    ),
)


def mutated(text: str, rng: random.Random) -> bytes:
    """A recipe with a few things wrong."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        i = rng.randrange(len(lines))
        kind = rng.randrange(6)
        if kind == 0:
            lines[i] = f"{lines[i].partition('=')[0] or 'epochs '}= {rng.choice(HOSTILE)}"
        elif kind == 1:
            lines.insert(i, rng.choice(lines))
        elif kind == 2:
            del lines[i : i + rng.randrange(1, 4)]
            lines = lines or [""]
        elif kind == 3:
            at = rng.randrange(len(lines[i]) + 1)
            lines[i] = lines[i][:at] + chr(rng.choice((0, 9, 34, 39, 46, 61, 91, 93, 123, 0x1F4A9))) + lines[i][at:]
        elif kind == 4:
            key = rng.choice(
                ("extends", "scale", "choices", "exceptions", "data", "meta", "seed", "epochs", "schedule")
            )
            lines.insert(0, f"{key} = {rng.choice(HOSTILE)}")
        else:
            lines.insert(i, f"[{rng.choice(('choices', 'scale.small', 'data', 'a.b.c', '[data]', 'choices.data.x'))}]")
    content = bytearray("\n".join(lines).encode())
    if rng.random() < 0.1:
        content[rng.randrange(len(content))] = 0xFF
    return bytes(content)


def test_whatever_a_file_holds_it_is_a_recipe_or_refused(tmp_path):
    rng, fates = random.Random(0), {"read": 0, "refused": 0}
    texts = [(file.stem, file.read_text()) for file in sorted(recipes_folder().glob("*.toml"))]
    for _ in range(300):
        stem, text = rng.choice(texts)
        choice = rng.choice([name.partition("/")[2] for name in NAMES if name.partition("/")[0] == stem])
        (tmp_path / "r.toml").write_bytes(mutated(text, rng))
        scale = rng.choice(("paper", "smoke"))
        try:
            recipe = read_recipe(ConfigSource(tmp_path / "r.toml", choice), [f"scale={scale}"])
            assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
            fates["read"] += 1
        except InputError:
            fates["refused"] += 1
    assert min(fates.values()) > 50  # both happen: the mutations are neither harmless nor all fatal


def test_change_from_python():
    recipe = change(Recipe(), loss="focal", **{"data.name": "digits"})
    assert (recipe.loss, recipe.data.name, recipe.batch) == ("focal", "digits", 128)
