"""Plans: those that come with calibrant resolve at every scale, and a wrong one is refused with its line."""

import textwrap

import pytest

pytest.importorskip("torch")

from calibrant.core.errors import InputError
from calibrant.studying.expand_plan import cells_of, jobs_of
from calibrant.studying.plan_files import plan_names, read_plan
from calibrant.studying.study import open_plan

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
    def build(text=PLAN, **options):
        (tmp_path / "plan.toml").write_text(textwrap.dedent(text))
        return read_plan(tmp_path / "plan.toml", **options)

    return build


def test_cells_and_jobs(make):
    plan = make()
    cells = list(cells_of(plan))
    assert [(c.method, c.place["seed"]) for c in cells] == [("CE", 1), ("focal", 1), ("CE", 2), ("focal", 2)]
    assert {(c.recipe.loss, c.recipe.model, c.recipe.data.name) for c in cells} == {
        ("ce", "resnet8:width=4", "digits"),
        ("focal:gamma=2", "resnet8:width=4", "digits"),
    }
    assert [u.kind for u in jobs_of(plan)] == ["train", "judge"] * 4


def test_words_about_a_recipe_change_no_jobs(make):
    before = {u.key for u in jobs_of(make())}
    assert {u.key for u in jobs_of(make(PLAN.replace('"Tiny"', '"Another title"')))} == before
    assert not {u.key for u in jobs_of(make(PLAN.replace("seed = [1, 2]", "seed = [3]")))} & before


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


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ('measures = ["ece", "accuracy"]', 'measures = ["ece", "acuracy"]', "line 12.*did you mean 'accuracy'"),
        ("[after]", '[after]\ncalibrators = ["temperature", "vectr"]', "line 12.*did you mean 'vector'"),
        ("[after]", '[after]\nrescorers = { a = "clampin" }', "line 12.*did you mean 'clamping'"),
        ("[after]", '[after]\nshifts = { a = "corrupt fgo" }', "line 12.*did you mean 'fog'"),
        ("[after]", '[after]\nshifts = { a = "svnh" }', "line 12.*did you mean 'svhn'"),
        ('data = ["digits"]', 'data = ["digit"]', "line 5.*did you mean 'digits'"),
        ("resnet8:width=4", "resnet9:width=4", "line 6.*did you mean 'resnet"),
        ("resnet8:width=4", "resnet8:widht=4", "line 6.*width"),
        ("focal:gamma=2", "focl:gamma=2", "line 10.*did you mean 'focal'"),
        ('choice = "ce"', 'choice = "cee"', "line 9.*did you mean 'ce'"),
        ('recipe.loss = "focal:gamma=2"', 'recipe.los = "focal"', "line 10.*did you mean 'loss'"),
        ('of = "focal"', 'of = "focale"', "line 17.*did you mean 'focal'"),
        ('is = "lower"', 'is = "lower"\nwhere = { dta = ["digits"] }', "line 21.*did you mean 'data'"),
        ('is = "lower"', 'is = "lower"\nwhere = { data = ["digit"] }', "line 21.*did you mean 'digits'"),
        ('choice = "ce"', 'choice = "ce", only = { data = ["digit"] }', "line 9.*did you mean 'digits'"),
        (
            "[after]",
            '[after]\nshifts = { a = { set = "svhn", only = { method = ["C"] } } }',
            "line 12.*one of CE, focal",
        ),
        ("[[claim]]", '[names.dta]\ndigits = "Digits"\n[[claim]]', "line 15.*did you mean 'data'"),
        ("[[claim]]", '[names.data]\ndigit = "Digits"\n[[claim]]', "line 16.*did you mean 'digits'"),
        ("[[claim]]", '[[table]]\ntitle = "T"\npublished = "meta-tabel1"\n[[claim]]', "line 17.*'meta-table1'"),
        ("[[claim]]", '[[table]]\ntitle = "T"\nrows = "metod"\n[[claim]]', "line 17.*did you mean 'method'"),
        ("[[claim]]", '[[table]]\ntitle = "T"\nnames = { entry = { C = "x" } }\n[[claim]]', "line 17.*expected one of"),
        ("[[claim]]", '[[figure]]\ntitle = "F"\nover = "bin"\n[[claim]]', "line 17.*did you mean 'bins'"),
        ("[[claim]]", '[[figure]]\ntitle = "F"\nover = "bins"\nmeasure = "ece"\n[[claim]]', "line 18.*after.measures"),
        (
            "[[claim]]",
            '[[figure]]\ntitle = "F"\nover = "seeds"\nentries = ["C"]\n[[claim]]',
            "line 18.*expected one of",
        ),
        ('measure = "ece"', 'measure = "nll"', "line 19.*add it to after.measures"),
        ('measure = "ece"', 'measure = "nnl"', "line 19.*expected one of ece, accuracy"),
        ('measure = "ece"', 'measure = "eec"', "line 19.*did you mean 'ece'"),
    ],
)
def test_wrong_names_quote_their_line_before_anything_runs(tmp_path, change, to, message):
    text = (
        PLAN.replace("[entries]", '[entries]\n"x" = { method = "CE", rescorer = "a" }') if "rescorers" in to else PLAN
    )
    file = tmp_path / "plan.toml"
    file.write_text(text.replace(change, to, 1))
    with pytest.raises(InputError, match=message):
        open_plan(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


CELLS = """
[after]
shifts = { far = { set = "svhn", only = { data = ["digits"], method = ["CE"] } }, near = "corrupt fog:severity=1" }"""


def test_a_shift_may_be_for_some_trainings_only(make):
    plan = make(PLAN.replace("[after]", CELLS))
    results = {cell.method: [u.options["set"] for u in cell.jobs if u.kind == "shift"] for cell in cells_of(plan)}
    assert results == {"CE": ["svhn", "corrupt fog:severity=1"], "focal": ["corrupt fog:severity=1"]}
    assert all(cell.judge.options["shifts"] == ["far", "near"][-len(results[cell.method]) :] for cell in cells_of(plan))


# The plan of the issue that asked for studies, its keys on lines of their own as TOML wants them, and with the method
# CE that its claim is about.
ISSUE = """
title = "Learned gamma against fixed ones"
base = "meta"                                   # a recipe
[grid]
data = ["fashion_mini", "cifar10"]
seed = [1, 2, 3, 4, 5]
[methods.CE]
loss = "ce"
[methods."FLgamma-SECE"]
loss = "focal"
meta = { learn = "gamma", objective = "ce + 0.5*sece" }
[after]
calibrators = ["identity", "temperature"]       # fitted on val, judged on test, shifted and corrupted test sets
measures = ["error", "nll", "ece", "mce", "ece:scheme=mass", "classwise", "auroc_correct"]
[[table]]
title = "Table 1"
rows = "method"
published = "meta-table1"
[[claim]]
says = "a learned gamma with SECE lowers the ECE of cross-entropy"
of = "FLgamma-SECE"
against = "CE"
measure = "ece"
is = "lower"
source = "section 4.2"
"""


def test_keys_of_a_recipe_may_stand_beside_those_of_a_method(tmp_path):
    (tmp_path / "plan.toml").write_text(ISSUE)
    cells = open_plan(tmp_path / "plan.toml", tmp_path / "out").cells
    assert len(cells) == 2 * 5 * 2
    learned = next(cell.recipe for cell in cells if cell.method == "FLgamma-SECE")
    assert (learned.loss, learned.meta.learn, learned.meta.objective) == ("focal", "gamma", "ce + 0.5*sece")
    (tmp_path / "plan.toml").write_text(ISSUE.replace('loss = "ce"', 'chioce = "ce"'))
    with pytest.raises(InputError, match=r"line 8 \(chioce.*did you mean 'choice'"):
        open_plan(tmp_path / "plan.toml", tmp_path / "other")


def test_several_keys_on_a_line_are_refused_with_what_to_do(tmp_path):
    (tmp_path / "plan.toml").write_text(ISSUE.replace('"Table 1"\nrows', '"Table 1"; rows'))
    with pytest.raises(InputError, match=r"line 16 .*each key on a line of its own"):
        read_plan(tmp_path / "plan.toml")


def test_a_value_of_the_grid_may_stand_for_more(make):
    means = '[means.model]\nsmall = { model = "resnet8:width=4", data.pad = 2 }\n[after]'
    plan = make(PLAN.replace('["resnet8:width=4"]', '["small"]').replace("[after]", means))
    cell = cells_of(plan)[0]
    assert (cell.place["model"], cell.recipe.model, cell.recipe.data.pad) == ("small", "resnet8:width=4", 2)
    with pytest.raises(InputError, match=r"line 11.*modell"):
        make(PLAN.replace("[after]", means.replace("means.model", "means.modell")))


def test_a_rescorer_may_take_values_of_the_grid(make):
    rescorer = '[after]\nrescorers = { NC = "clamping:seed={seed}" }'
    entry = '[entries]\nNC = { method = "CE", rescorer = "NC" }'
    plan = make(PLAN.replace("[after]", rescorer).replace("[entries]", entry))
    assert [u.options["rescorer"] for u in jobs_of(plan) if u.kind == "rescore"] == [
        "clamping:seed=1",
        "clamping:seed=2",
    ]


def test_unknown_plans_and_scales(make):
    with pytest.raises(InputError, match="did you mean 'losses'"):
        read_plan("loses")
    with pytest.raises(InputError, match="did you mean 'smoke'"):
        make(scale="smok")


def test_checks_estimate_and_run_share_one_expansion(make, tmp_path, monkeypatch):
    from calibrant.studying import expand_plan
    from calibrant.studying.study import open_plan

    make()
    built = []
    whole = expand_plan.recipe_in
    monkeypatch.setattr(expand_plan, "recipe_in", lambda *args: built.append(args[1:]) or whole(*args))
    study = open_plan(tmp_path / "plan.toml", tmp_path / "out")
    assert len(study.jobs) == 8
    assert len(built) == len(study.cells) == 4


def test_a_misspelt_calibrator_is_refused_where_it_stands(make):
    """The entry that spells it right was blamed."""
    with pytest.raises(InputError, match=r"after\.calibrators\.1.*temprature"):
        make(PLAN.replace("[after]", '[after]\ncalibrators = ["identity", "temprature"]'))


def test_lists_where_names_belong_are_refused(make, tmp_path):
    from calibrant.studying.validate_plan import check_plan

    text = PLAN.replace('grid = { data = ["digits"], seed = [1] }', 'grid = { data = [["digits"]], seed = [1] }')
    plan = make(text)  # at another scale than the one that is wrong
    assert check_plan(plan, tmp_path / "plan.toml") is None
    with pytest.raises(InputError, match="grid"):
        make(text, scale="smoke")


def test_a_scale_of_the_base_recipe_alone_reaches_it(make):
    text = PLAN.partition("[scale.smoke]")[0]
    whole, smoke = make(text), make(text, scale="smoke")
    assert smoke.grid == whole.grid
    assert cells_of(smoke)[0].recipe.epochs < cells_of(whole)[0].recipe.epochs
    with pytest.raises(InputError, match="smoke"):
        make(text, scale="smok")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ('against = "CE (TS)"\namong = ["CE"]', "no `against` beside it"),
        ('among = ["CE"]\nrank = 2', "1 to 1"),
        ('among = ["CEE"]', "CEE"),
    ],
)
def test_ranks_that_nothing_decides_are_refused(make, change, match):
    with pytest.raises(InputError, match=match):
        make(PLAN.replace('against = "CE (TS)"', change))
