"""Every option of every command that reads predictions changes what comes out, or is refused: none is ignored."""

import io
import os
import re
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest import mock

import numpy as np
import polars as pl
import pytest
from commands import TERMINAL
from typer.main import get_command

import calibrant as cal
from calibrant.cli import app, main

BASE = {  # command -> arguments with which it works; FILE is the file that the options are about
    "decide": "FILE --max-error 0.3",
    "measure": "FILE -m ece -m brier",
    "test": "FILE -m atb",
    "compare": "FILE b.csv -m ece -m brier",
    "check": "FILE --max ece=0.15",
    "decompose": "FILE",
    "fit": "FILE --with isotonic --out out.json",
    "apply": "map.json FILE --out out.npz",
    "adapt": "map.json --unlabelled FILE --fit-on b.csv --out out.json",
    "report": "FILE --out out.json",
    "plot": "reliability FILE --out out.svg",
    "table": "FILE b.csv x/a.csv x/b.csv -m ece",
    "watch": "FILE --tolerance 0.02",
}
INPUT = {  # option -> value, and the file that it is about
    "--score-column": ("other", "a.csv"),
    "--label-column": ("truth", "a.csv"),
    "--confidence-column": ("says", "confidence.csv"),
    "--correct-column": ("right", "confidence.csv"),
    "--positive": ("0", "a.csv"),
    "--classes": ("cat,dog,fox", "classes.csv"),
    "--weight-column": ("weight_of", "a.csv"),
    "--cluster-column": ("cluster_of", "a.csv"),
    "--group-column": ("group_of", "a.csv"),
    "--id-column": ("number", "a.csv"),
    "--missing": ("drop", "missing.csv"),
    "--override": ("logit_score=true", "a.csv"),
}
OWN = {  # command and option -> arguments to add, or arguments without and with it
    ("decide", "--confidence"): "--confidence 0.8",
    ("decide", "--cost"): ("FILE --max-error 0.3", "FILE --cost fn=5,fp=1"),
    ("decide", "--map"): "--map map.json",
    ("decide", "--max-error"): ("FILE --max-error 0.3", "FILE --max-error 0.4"),
    ("decide", "--min-precision"): ("FILE --max-error 0.3", "FILE --min-precision 0.6"),
    ("decide", "--out"): "--out out.json",
    ("decide", "--test"): "--test b.csv",
    ("measure", "--confidence"): "--confidence 0.8",
    ("measure", "--format"): "--format json",
    ("measure", "--measure"): "--measure nll",
    ("measure", "--missing-label"): ("gaps.csv -m ece --stream", "gaps.csv -m ece --stream --missing-label drop"),
    ("measure", "--ood"): "--ood b.csv",
    ("measure", "--resamples"): "--resamples 0",
    ("measure", "--seed"): "--seed 1",
    ("measure", "--set"): "--set benchmark102",
    ("measure", "--state"): "--state out.json",
    ("measure", "--stream"): "--stream",
    ("test", "--measure"): "--measure ece",
    ("test", "--resamples"): "--resamples 50",
    ("test", "--seed"): "--seed 1",
    ("test", "--seen"): ("FILE -m hosmer_lemeshow", "FILE -m hosmer_lemeshow --seen"),
    ("compare", "--confidence"): "--confidence 0.8",
    ("compare", "--measure"): "--measure nll",
    ("compare", "--resamples"): "--resamples 30",
    ("compare", "--seed"): "--seed 1",
    ("compare", "--unpaired"): "--unpaired",
    ("check", "--against"): ("FILE --against b.csv --max-worse ece=0.1", "FILE --against a.csv --max-worse ece=0.1"),
    ("check", "--confidence"): "--confidence 0.8",
    ("check", "--max"): "--max nll=0.9",
    ("check", "--max-worse"): ("FILE --against b.csv --max-worse ece=0.1", "FILE --against b.csv --max-worse ece=0.2"),
    ("check", "--min"): "--min accuracy=0.3",
    ("check", "--resamples"): ("FILE --min average_precision=0.3", "FILE --min average_precision=0.3 --resamples 30"),
    ("check", "--seed"): ("FILE --min average_precision=0.3", "FILE --min average_precision=0.3 --seed 1"),
    ("check", "--strict"): ("FILE --max ece=0.11", "FILE --max ece=0.11 --strict"),
    ("decompose", "--bins"): "--bins 5",
    ("fit", "--by-group"): "--by-group --group-column group_of",
    ("fit", "--cross-fit"): "--cross-fit",
    ("fit", "--keep-argmax"): "--keep-argmax",
    ("fit", "--out"): ("FILE --with isotonic", "FILE --with isotonic --out out.json"),
    ("fit", "--resamples"): ("FILE --with isotonic --test b.csv", "FILE --with isotonic --test b.csv --resamples 30"),
    ("fit", "--seed"): ("FILE --with isotonic --test b.csv", "FILE --with isotonic --test b.csv --seed 1"),
    ("fit", "--test"): "--test b.csv",
    ("fit", "--with"): ("FILE --with isotonic", "FILE --with platt"),
    ("apply", "--out"): ("map.json FILE --out out.npz", "map.json FILE --out out.csv"),
    ("adapt", "--fit-on"): ("map.json --unlabelled a.csv --fit-on b.csv", "map.json --unlabelled a.csv --fit-on a.csv"),
    ("adapt", "--from"): ("map.json --from 0.5 --to 0.2 --out out.json", "map.json --from 0.4 --to 0.2 --out out.json"),
    ("adapt", "--out"): ("map.json --from 0.5 --to 0.2", "map.json --from 0.5 --to 0.2 --out out.json"),
    ("adapt", "--resamples"): "--resamples 30",
    ("adapt", "--seed"): "--seed 1",
    ("adapt", "--to"): ("map.json --from 0.5 --to 0.2 --out out.json", "map.json --from 0.5 --to 0.3 --out out.json"),
    ("adapt", "--unlabelled"): (
        "map.json --unlabelled a.csv --fit-on b.csv",
        "map.json --unlabelled b.csv --fit-on b.csv",
    ),
    ("report", "--cost"): "--cost fn=5,fp=1",
    ("report", "--fit-on"): "--fit-on b.csv",
    ("report", "--names"): "--names here",
    ("report", "--out"): ("FILE --out out.json", "FILE --out out.md"),
    ("report", "--seed"): "--seed 1",
    ("report", "--with"): ("FILE --fit-on b.csv --out out.json", "FILE --fit-on b.csv --out out.json --with platt"),
    ("plot", "--names"): "--names here",
    ("plot", "--out"): ("reliability FILE --out out.svg", "reliability FILE --out out.html"),
    ("plot", "--resamples"): ("before_after a.npz b.npz", "before_after a.npz b.npz --resamples 30"),
    ("plot", "--seed"): ("before_after a.npz b.npz", "before_after a.npz b.npz --seed 1"),
    ("plot", "--theme"): "--theme dark",
    ("table", "--alpha"): "--alpha 0.2",
    ("table", "--by"): "--by file",
    ("table", "--format"): "--format csv",
    ("table", "--measure"): "--measure nll",
    ("table", "--seed"): (
        "FILE x/a.csv --by folder -m ece --format csv",
        "FILE x/a.csv --by folder -m ece --format csv --seed 1",
    ),
    ("watch", "--alpha"): "--alpha 0.2",
    ("watch", "--format"): "--format json",
    ("watch", "--missing-label"): ("gaps.csv --tolerance 0.02", "gaps.csv --tolerance 0.02 --missing-label drop"),
    ("watch", "--mode"): "--mode change",
    ("watch", "--segments"): "--segments",
    ("watch", "--state"): "--state out.json",
    ("watch", "--tolerance"): ("FILE --tolerance 0.02", "FILE --tolerance 0.1"),
}
SPECIAL = {  # arguments that show what an option of reading does, where those above cannot
    ("compare", "--id-column"): "FILE shorter.csv -m ece",
    ("apply", "--confidence-column"): "confidence.json FILE --out out.npz",
    ("apply", "--correct-column"): "confidence.json FILE --out out.npz",
    ("report", "--id-column"): "FILE shorter.csv --out out.json",
    ("plot", "--cluster-column"): "corp FILE --out out.svg",
}


def options_of(command):
    flags = {flag for option in get_command(app).commands[command].params for flag in getattr(option, "opts", [])}
    return {flag for flag in flags if flag.startswith("--")} - {"--help", "--json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng, n = tmp_path_factory.mktemp("options"), np.random.default_rng(0), 240
    score = rng.random(n)
    rows = pl.DataFrame(
        {
            "score": score,
            "label": (rng.random(n) < score).astype(int),
            "other": rng.random(n),
            "truth": rng.integers(0, 2, n),
            "weight_of": rng.uniform(0.1, 3, n),
            "cluster_of": np.arange(n) // 6,
            "group_of": [f"g{i % 3}" for i in range(n)],
            "number": rng.permutation(n),
        }
    )
    rows.write_csv(folder / "a.csv")
    rows.with_columns(pl.col("score") ** 0.5).write_csv(folder / "b.csv")
    rows[:-1].write_csv(folder / "shorter.csv")
    (folder / "x").mkdir()
    for name in ("a", "b"):
        pl.read_csv(folder / f"{name}.csv").with_columns(pl.col("score") ** 0.65).write_csv(
            folder / "x" / f"{name}.csv"
        )
        cal.Predictions.load(folder / f"{name}.csv").save(folder / f"{name}.npz")
    rows.with_columns(pl.when(pl.int_range(n) % 50 > 0).then("label").alias("label")).write_csv(folder / "gaps.csv")
    gaps = pl.when(pl.int_range(n) % 50 == 0).then(None).otherwise("score").alias("score")
    rows.with_columns(gaps).write_csv(folder / "missing.csv")
    pl.DataFrame(
        {
            "confidence": 0.5 + score / 2,
            "says": 0.5 + rng.random(n) / 2,
            "correct": (rng.random(n) < 0.7).astype(int),
            "right": rng.integers(0, 2, n),
        }
    ).write_csv(folder / "confidence.csv")
    probs = rng.dirichlet([1, 1, 1], n).round(6)
    probs[:, 2] = 1 - probs[:, 0] - probs[:, 1]
    labels = np.array(["cat", "dog", "fox"])[rng.integers(0, 3, n)]
    pl.DataFrame({f"prob_{i}": probs[:, i] for i in range(3)} | {"label": labels}).write_csv(folder / "classes.csv")
    outcome(folder, "fit a.csv --with platt --out map.json")
    outcome(folder, "fit confidence.csv --with platt --out confidence.json")
    assert (folder / "map.json").exists()
    assert (folder / "confidence.json").exists()
    return folder


def outcome(folder, words):
    """Exit code, output and written files of a command, without what names the command itself."""
    for file in folder.glob("out*"):
        file.unlink()
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(),
        mock.patch.object(sys, "argv", ["calibrant", *words.split()]),
        mock.patch.dict(os.environ, TERMINAL),
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        warnings.simplefilter("default")
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    told = re.compile(rb'"(command|date|sha256|source)": [^\n]*')
    return code, out.getvalue(), err.getvalue(), {f.name: told.sub(b"", f.read_bytes()) for f in folder.glob("out*")}


@pytest.mark.parametrize("command", BASE)
def test_every_option_is_tried(command):
    """The options of the next two tests are all that the command has."""
    tried = {flag for name, flag in OWN if name == command} | set(INPUT)
    assert tried == options_of(command)


@pytest.mark.parametrize(("command", "option"), [(c, o) for c in BASE for o in INPUT])
def test_an_option_of_reading_changes_the_outcome_or_is_refused(command, option, folder):
    value, file = INPUT[option]
    words = f"{command} {SPECIAL.get((command, option), BASE[command])}".replace("FILE", file)
    assert outcome(folder, f"{words} {option} {value}") != outcome(folder, words)


@pytest.mark.parametrize(("command", "option"), OWN)
def test_an_option_of_the_command_changes_the_outcome_or_is_refused(command, option, folder):
    own = OWN[command, option]
    without, words = own if isinstance(own, tuple) else (BASE[command], f"{BASE[command]} {own}")
    assert option in words
    first, second = (outcome(folder, f"{command} {one}".replace("FILE", "a.csv")) for one in (without, words))
    assert first != second


@pytest.mark.parametrize("words", ["check a.csv --max ece=0.3 --seed 1 --seed 2", "study table x -m nll -m ece"])
def test_an_option_that_takes_one_value_refuses_two(words, folder):
    code, _, error, _ = outcome(folder, words)
    assert (code, "expected one value, got two" in error) == (2, True)


def test_options_that_may_be_given_more_than_once_still_may(folder):
    assert outcome(folder, "measure a.csv -m nll -m ece --resamples 0 --json --json")[0] == 0
