"""Files that build on others, and names of combinations."""

import pytest

from calibrant.core.config.inheritance import ConfigSource, ask_for_choices, combinations, find, load
from calibrant.core.errors import InputError

TEXT = """\
title = "{loss} on {data}"
epochs = 5
[choices.data]
small = { title = "Small", data.name = "s" }
big-one = { data.name = "b", epochs = 50 }
[choices.loss]
ce = { title = "CE" }
focal = { title = "Focal", loss = "focal", with.data = ["small"] }
[exceptions."big-*"]
data.limit = 7
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base.toml").write_text(TEXT)
    return tmp_path


def values(folder, name):
    return dict(load(find(name, [folder]), [folder]).values)


def test_every_combination_has_a_name(folder):
    assert combinations(load(ConfigSource(folder / "base.toml"), [])) == {
        "small-ce": {"data": "small", "loss": "ce"},
        "small-focal": {"data": "small", "loss": "focal"},
        "big-one-ce": {"data": "big-one", "loss": "ce"},
    }
    assert values(folder, "base/small-focal") == {
        "title": "Focal on Small",
        "epochs": 5,
        "data": {"name": "s"},
        "loss": "focal",
    }
    assert values(folder, "base/big-one-ce") == {
        "title": "CE on big-one",
        "epochs": 50,
        "data": {"name": "b", "limit": 7},
    }


def test_names_of_files_and_choices(folder):
    for name in ("base", "base.toml", str(folder / "base.toml")):
        assert find(name, [folder / "elsewhere", folder]).file.samefile(folder / "base.toml")
    assert find("base/x", [folder]) == find("base/x.toml", [folder]) == ConfigSource(folder / "base.toml", "x")
    assert find("other/x", [folder]) is find("", [folder]) is find("a\0b", [folder]) is None


def test_a_file_builds_on_a_choice_or_keeps_the_choices(folder):
    (folder / "mine.toml").write_text('extends = "base/small-ce"\ndata.limit = 3\n')
    assert values(folder, "mine") == {"title": "CE on Small", "epochs": 5, "data": {"name": "s", "limit": 3}}
    (folder / "more.toml").write_text('extends = "base.toml"\n[choices.loss]\nbrier = { loss = "brier" }\n')
    assert values(folder, "more/small-brier")["loss"] == "brier"
    (folder / "inside").mkdir()
    (folder / "inside" / "deep.toml").write_text('extends = "../mine.toml"\n')
    assert values(folder, "inside/deep") == values(folder, "mine")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('extends = "bad.toml"', "got bad.toml -> bad.toml"),
        ('extends = "ring.toml"', "got bad.toml -> ring.toml -> bad.toml"),
        ('\nextends = "none.toml"', 'bad.toml, line 2 (extends = "none.toml"): extends: expected a file or a recipe'),
        ("extends = 3", "got 3: no such file"),
        ("choices = 3", "choices: expected a table, got 3"),
        ("[choices]\ndata = 3", "line 2 (data = 3): data: expected a table, got 3"),
        ("[choices.data]\na = 3", "line 2 (a = 3): data.a: expected a table, got 3"),
        ("[choices.data]\na.with.loss = ['x']", "with: expected one of data, got 'loss'"),
        ("[choices.data]\na.with = 3", "with: expected a table, got 3"),
        ("[choices.data]\na.with.data = ['b']", "with: expected one of a, got 'b'"),
        ("[choices.data]\nb = {}\nc = {}", "choices: expected a choice of data (b, c), got 'a'"),
        ("exceptions = 3\n[choices.data.a]", "exceptions: expected a table"),
        ("[exceptions]\n'*' = 3\n[choices.data.a]", "*: expected a table, got 3"),
    ],
)
def test_bad_layers(folder, text, says):
    (folder / "bad.toml").write_text(text)
    (folder / "ring.toml").write_text('extends = "bad"')
    with pytest.raises(InputError) as error:
        load(ConfigSource(folder / "bad.toml", "a"), [folder])
    assert says in str(error.value)


def test_too_many_combinations_are_refused(folder):
    axes = "\n".join(f"[choices.axis{i}]\n" + "\n".join(f"k{j} = {{}}" for j in range(10)) for i in range(5))
    (folder / "many.toml").write_text(axes)
    with pytest.raises(InputError, match="at most 10,000 combinations, got 10 x 10 x 10 x 10 x 10"):
        load(find("many/x", [folder]), [folder])


def test_choices_that_were_not_made_are_listed(folder):
    error = ask_for_choices(load(find("base", [folder]), [folder]), "base")
    assert str(error) == (
        "base: expected a choice of data (small, big-one) and loss (ce, focal), got none. "
        "To fix it: write base/small-ce, say."
    )
