"""Options mean the same in every command, and `--help` names every key of `--override`."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from commands import run
from typer.main import get_command

import calibrant
from calibrant.cli import app
from calibrant.cli._inputs import ReadSettings
from calibrant.rescorers import ClampOptions

FORMATS = {"text", "markdown", "latex", "csv", "parquet", "html", "json", "prometheus"}
DEMO = Path(calibrant.__file__).parent / "data" / "demo_test.npz"


def leaves(command, name=""):
    """Every command that can be typed, by its words."""
    if not hasattr(command, "commands"):
        return {name: {option.name: option for option in command.params}}
    return {
        words: options
        for part, inner in command.commands.items()
        for words, options in leaves(inner, f"{name} {part}").items()
    }


COMMANDS = {name.strip(): options for name, options in leaves(get_command(app)).items()}


def by_flag(flag):
    return [
        (command, option)
        for command, options in COMMANDS.items()
        for option in options.values()
        if flag in getattr(option, "opts", [])
    ]


def test_out_is_short_o_everywhere():
    options = by_flag("--out")
    assert len(options) > 15
    assert [command for command, option in options if "-o" not in option.opts] == []


def test_formats_have_the_same_names_and_json_is_one_of_them():
    options = by_flag("--format")
    assert len(options) == 5
    for command, option in options:
        names = set(re.findall(r"\w+", option.help.partition("(")[0])) - {"or"}
        assert names <= FORMATS, command
        assert {"text", "json"} <= names, command
        assert "--json" in {flag for other in COMMANDS[command].values() for flag in getattr(other, "opts", [])}


def test_options_with_one_meaning_each():
    gone = ("--set", "--groups", "--latex", "--csv", "--markdown", "--batch-rows", "--save-every", "--allow-few-rows")
    left = [(command, flag) for flag in gone for command, _ in by_flag(flag)]
    assert left == [("measure", "--set")]  # the set of measures


@pytest.mark.parametrize("command", [c for c, option in by_flag("--override") if c != "train"])
def test_help_names_every_key(command):
    """Of `train` these are the keys of a recipe, which docs/train.md describes."""
    (option,) = (option for c, option in by_flag("--override") if c == command)
    keys = set(re.findall(r"\w+", option.help.partition("(repeat): ")[2]))
    if command == "clamp":
        assert {field.name for field in fields(ClampOptions)} - {"gamma", "seed"} <= keys
        assert "by (lbfgs, sgd, efficient)" in option.help
        assert not keys & {"gamma", "seed"}  # options of their own
    elif command == "board":
        assert keys == {"title", "bins", "max_error", "level"}
    else:
        assert {field.name for field in fields(ReadSettings)} <= keys


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (("report", DEMO, "--override", "titel=x"), "title"),
        (("measure", DEMO, "--override", "batch_row=5"), "batch_rows"),
        (("compare", DEMO, DEMO, "--override", "allow_few_row=true"), "allow_few_rows"),
        (("clamp", "nowhere", "--override", "lambda_rul=cv"), "lambda_rule"),
    ],
)
def test_an_unknown_key_ends_with_the_nearest_one(typed, key):
    if typed[0] == "clamp":
        pytest.importorskip("torch")
    assert f"did you mean '{key}'?" in run(*typed, code=2).stderr


@pytest.mark.parametrize("value", ["batch_rows=0", "save_every=0"])
def test_a_value_out_of_bounds_is_refused(value):
    assert "at least 1" in run("measure", DEMO, "--override", value, code=2).stderr
