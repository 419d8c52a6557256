"""Names are text: whatever a file, a model, a class or a group is called, figures, pages and messages show it."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

from calibrant.cli import app
from calibrant.core.errors import InputError, visible
from calibrant.core.predictions import Predictions
from calibrant.core.text.table import markdown_table as table
from calibrant.plotting.draw import draw
from calibrant.reporting import pictures
from calibrant.reporting.build import build
from calibrant.reporting.markdown import markdown
from calibrant.reporting.page import page
from calibrant.reporting.tables import show
from calibrant.reporting.terminal import render

RNG = np.random.default_rng(0)
N = 120
P = Predictions.from_logits(
    RNG.normal(size=(N, 3)) * 2, RNG.integers(0, 3, N), groups=np.array(["a\x00b", "[/g]", "<i>"] * (N // 3))
)
HOSTILE = [
    "nul\x00in", "bell\x07", "esc\x1b[2Jape", "two\nlines", "[/a]", "[red]x", ":smile:", 'x role="',
    "x id=\"y\" fill='",
    "a\\|b", "<b>&amp;", "\u202eevil", "\ud800half", "\uffff", "😀", "-->", "]]>", "{{x}}", "$title", "x\x85y",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_figures_show_any_name(tmp_path, name):
    """A control character used to end the whole process."""
    file = tmp_path / "f.svg"
    draw("reliability", {name: P, "other": P}, file)
    text = " ".join(ET.parse(file).getroot().itertext())
    assert visible(name) in text


def test_reports_show_any_name(capsys):
    """All of them as classes and groups, four as models, one as the title."""
    k = len(HOSTILE)
    groups = np.array([name for name in HOSTILE if "\ud800" not in name])[np.arange(N) % (k - 1)]
    p = Predictions.from_logits(RNG.normal(size=(N, k)), RNG.integers(0, k, N), groups=groups)
    models = {'x role="\x00': p, "[/a]\n\x1b": p.with_temperature(2.0)}
    report = build(models, class_names=HOSTILE, calibrators=["identity"], resamples=40, title="\ud800\x07<b>")
    whole = page(report)
    whole.encode()
    assert not set(whole) & set("\x00\x07\x1b\x85\u202e")
    markdown(report).encode()
    show(render(report))
    assert not set(capsys.readouterr().out) & set("\x00\x07\x1b\x85\u202e")
    for figure in report.figures:
        ET.fromstring(pictures.draw([figure])[0][1].result())


@pytest.mark.parametrize("name", [name for name in HOSTILE if "\x00" not in name and "\ud800" not in name])
def test_commands_print_any_name(tmp_path, name):
    """Rich markup in a name used to be an error after the file had been written."""
    file, other, val = tmp_path / f"{name}.npz", tmp_path / "other.npz", tmp_path / "val.npz"
    P.take(np.arange(60)).save(file)
    P.take(np.arange(60)).with_temperature(2.0).save(other)
    P.take(np.arange(60, N)).save(val)
    run = CliRunner().invoke
    for command in (
        ["compare", str(file), str(other), "-m", "accuracy", "--resamples", "20"],
        ["plot", "reliability", str(file), str(other)],
        ["plot", "reliability", str(file), "--out", str(tmp_path / f"{name}.svg")],
        ["fit", str(val), "--with", "temperature", "--out", str(tmp_path / f"{name}.json"), "--resamples", "5"],
        ["apply", str(tmp_path / f"{name}.json"), str(file), "--out", str(tmp_path / f"{name}.csv")],
    ):
        done = run(app, command)
        assert done.exit_code == 0, (command, done.exception)
        assert not any(c in done.stdout for c in "\x1b\x07\x85")


def test_messages_show_control_characters_as_escapes(tmp_path):
    with pytest.raises(InputError) as error:
        Predictions.load(tmp_path / "no\x1b[2J\nfile.npz")
    assert r"no\x1b[2J\nfile.npz" in str(error.value)
    assert len(str(InputError("x" * 10**6, expected="y", got="z", fix="w"))) < 2000


def test_a_backslash_does_not_undo_the_escape_of_a_table():
    assert table(["a"], [["x\\|y"]]).splitlines()[-1] == "| x\\\\\\|y |"


def test_a_name_that_is_no_utf8_is_printed(tmp_path):
    file = tmp_path / os.fsdecode(b"caf\xe9.npz")
    P.save(file)
    code = [sys.executable, "-m", "calibrant", "measure", str(file), "-m", "accuracy", "--resamples", "9"]
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([*code[:-5], "--bad.npz"], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    code = [*code[:4], os.fsdecode(bytes(tmp_path) + b"/\xff\x1b.npz")]
    done = subprocess.run(code, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert r"\udcff\x1b.npz: expected a file of predictions" in done.stderr


INTERRUPTED = """
import os, signal, sys
class Trap:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Trap())
sys.argv = ["calibrant", "list"]
from calibrant.__main__ import main
main()
"""


def test_an_interrupt_while_importing_ends_quietly():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


def test_an_interrupt_in_a_command_ends_quietly(tmp_path, monkeypatch):
    from calibrant import cli

    P.save(tmp_path / "p.npz")
    monkeypatch.setattr(sys, "argv", ["calibrant", "measure", str(tmp_path / "p.npz")])

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.core.predictions.load.load_predictions", interrupted)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
