"""Plans: those that come with calibrant resolve at every scale, and a wrong one is refused with its line."""

import textwrap

import pytest

pytest.importorskip("torch")

from calibrant.core.errors import InputError
from calibrant.studying.plan import plan_names, read_plan
from calibrant.studying.trainings import cells_of, units_of

PLAN = """
title = "Tiny"
base = "losses"
[grid]
data = ["digits"]
model = ["resnet8:width=4"]
seed = [1, 2]
[methods]
CE = { choice = "ce" }
focal = { choice = "focal", recipe.loss = "focal:gamma=2" }
[after]
measures = ["ece", "accuracy"]
[entries]
"CE (TS)" = { method = "CE", calibrator = "temperature" }
[[claim]]
says = "focal is lower"
of = "focal"
against = "CE (TS)"
measure = "ece"
is = "lower"
[scale.smoke]
grid = { data = ["digits"], seed = [1] }
"""


@pytest.fixture
def make(tmp_path):
    def made(text=PLAN, **options):
        (tmp_path / "plan.toml").write_text(textwrap.dedent(text))
        return read_plan(tmp_path / "plan.toml", **options)

    return made


def test_cells_and_units(make):
    plan = make()
    cells = list(cells_of(plan))
    assert [(c.method, c.place["seed"]) for c in cells] == [("CE", 1), ("focal", 1), ("CE", 2), ("focal", 2)]
    assert {(c.recipe.loss, c.recipe.model, c.recipe.data.name) for c in cells} == {
        ("ce", "resnet8:width=4", "digits"),
        ("focal:gamma=2", "resnet8:width=4", "digits"),
    }
    assert [u.kind for u in units_of(plan)] == ["train", "judge"] * 4


def test_words_about_a_recipe_change_no_unit(make):
    before = {u.key for u in units_of(make())}
    assert {u.key for u in units_of(make(PLAN.replace('"Tiny"', '"Another title"')))} == before
    assert not {u.key for u in units_of(make(PLAN.replace("seed = [1, 2]", "seed = [3]")))} & before


def test_a_preset_replaces_the_grid(make):
    assert len(list(cells_of(make(scale="smoke")))) == 2


@pytest.mark.parametrize("name", plan_names())
@pytest.mark.parametrize("scale", ["paper", "small", "smoke"])
def test_the_papers_resolve(name, scale):
    plan = read_plan(name, scale=scale)
    assert plan.claim
    assert len(list(cells_of(plan))) >= 2
    assert all(layout.title for layout in plan.table)


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ('of = "focal"', 'of = "focale"', "did you mean 'focal'"),
        ('measure = "ece"', 'measure = "ecee"', "did you mean 'ece'"),
        ('against = "CE (TS)"', 'against = "CE (ST)"', "CE \\(TS\\)"),
        ('method = "CE", calibrator', 'method = "CEE", calibrator', "did you mean 'CE'"),
        ("seed = [1, 2]", "seed = []", "grid.seed: expected at least one value"),
        ('choice = "ce"', 'choice = "cee"', "did you mean 'ce'"),
        ('base = "losses"', 'base = "loses"', "did you mean 'losses'"),
        ("[after]", "[aftr]", "did you mean 'after'"),
        ('is = "lower"', 'is = "smaller"', "line 20"),
        ('title = "Tiny"', "title = 3", "line 2"),
        ('recipe.loss = "focal:gamma=2"', "recipe.epochs = -1", "epochs"),
    ],
)
def test_wrong_plans(make, change, to, message):
    with pytest.raises(InputError, match=message):
        list(cells_of(make(PLAN.replace(change, to, 1))))


def test_unknown_plans_and_scales(make):
    with pytest.raises(InputError, match="did you mean 'losses'"):
        read_plan("loses")
    with pytest.raises(InputError, match="did you mean 'smoke'"):
        make(scale="smok")
