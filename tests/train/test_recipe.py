"""Recipes: every file is valid, unknown keys are named, presets and changes do what they say."""

import json

import pytest

from calibrant import datasets, losses, models
from calibrant.core.errors import InputError
from calibrant.train.recipe import Recipe, change, find_recipe, read_recipe, recipe_names

NAMES = recipe_names()


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
    of = {name.partition("/")[0] for name in NAMES}
    assert {"demo", "darkside", "meta", "clamping", "losses", "nats"} <= of
    assert len([n for n in NAMES if n.startswith("darkside/cifar") and "confidnet" not in n]) == 2 * 3 * 5
    assert len([n for n in NAMES if n.startswith("darkside/imagenet")]) == 5
    assert len([n for n in NAMES if n.startswith("losses/")]) == 12
    assert len([n for n in NAMES if n.startswith("nats/")]) == 6


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
        ("epochs = 0", [], "epochs: expected at least 1, got 0"),
        ("data = 'cifar10'", [], "data: expected a table"),
        ("reduction = 'some'", [], "expected one of mean, sum"),
        ("epochs = ", [], "expected TOML"),
        ("", ["epochs"], "expected key=value"),
        ("", ["epocks=3"], "did you mean 'epochs'?"),
        ("", ["epochs=x"], "epochs: expected a whole number, got 'x'"),
        ("", ["scale=big"], "expected one of paper"),
        ("epochs = 2", ["epochs.x=3"], "epochs is not a table"),
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
    assert find_recipe("demo").samefile(find_recipe("recipes/demo.toml"))


def test_change_from_python():
    recipe = change(Recipe(), loss="focal", **{"data.name": "digits"})
    assert (recipe.loss, recipe.data.name, recipe.batch) == ("focal", "digits", 128)
