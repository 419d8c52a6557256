"""Columns, missing scores and shapes from the command line."""

import json
import re

import numpy as np
import polars as pl
import pytest
from commands import run
from real_data import FOLDER, needs_real_data

from calibrant.core.predictions import Predictions

LLM = FOLDER / "llm"
COMMANDS = ("measure", "report", "fit", "apply", "compare", "check", "plot", "decompose")


@pytest.fixture
def folder(tmp_path):
    """A table of each shape, under names of its own."""
    rng = np.random.default_rng(0)
    s = rng.random(80)
    y = np.where(rng.random(80) < s, "yes", "no")
    site = np.array(["north", "south"])[np.arange(80) % 2]
    stated = [None if i % 8 == 0 else round(float(c), 2) for i, c in enumerate(s)]
    table = pl.DataFrame({"p": s, "z": np.log(s / (1 - s)), "y": y, "site": site, "w": rng.integers(1, 3, 80)})
    table = table.with_columns(stated=pl.Series(stated), right=(pl.col("y") == "yes").cast(pl.Int64))
    table.write_csv(tmp_path / "t.csv")
    table.write_parquet(tmp_path / "t.parquet")
    table.write_ndjson(tmp_path / "t.jsonl")
    return tmp_path


def values(done):
    return [row["value"] for row in json.loads(done.stdout)]


MEASURED = ["-m", "ece", "-m", "brier", "-m", "gap", "--resamples", 0, "--json"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_two_classes_by_their_columns(folder, suffix):
    options = ["--score-column", "p", "--label-column", "y", "--positive", "yes"]
    expected = values(run("measure", folder / f"t.{suffix}", *options, *MEASURED))
    t = pl.read_parquet(folder / "t.parquet")
    assert expected[2] == pytest.approx(t["p"].mean() - t["right"].mean())
    options = ["--score-column", "z", "--override", "logit_score=true", "--label-column", "right"]
    assert values(run("measure", folder / f"t.{suffix}", *options, *MEASURED)) == pytest.approx(expected)
    streamed = run(
        "measure", folder / f"t.{suffix}", *options, "--stream", "--override", "batch_rows=30", "-m", "gap", "--json"
    )
    assert values(streamed) == pytest.approx(expected[2:])


def test_weights_clusters_and_ids(folder):
    options = ["--score-column", "p", "--label-column", "right", "--weight-column", "w"]
    t = pl.read_parquet(folder / "t.parquet")
    gap = np.average(t["p"] - t["right"], weights=t["w"])
    assert values(run("measure", folder / "t.csv", *options, *MEASURED))[2] == pytest.approx(gap)
    run("measure", folder / "t.csv", *options, "--cluster-column", "site", *MEASURED)


def test_missing_confidences_are_said(folder):
    options = [folder / "t.jsonl", "--confidence-column", "stated", "--correct-column", "right"]
    refused = run("measure", *options, code=2)
    assert "a confidence in every row, got none in 10 of 80 rows (12.5 %)" in refused.stderr
    output = run("measure", *options, "--missing", "drop", "-m", "gap", "--resamples", 0)
    assert "10 of 80 rows (12.5 %) have no confidence and were left out." in " ".join(output.stdout.split())
    wrong = json.loads(run("measure", *options, "--missing", "count_as_wrong", *MEASURED).stdout)
    assert wrong[0]["n"] == 80
    assert wrong[0]["missing"] == {"rows": 10, "of": 80, "share": 0.125, "policy": "count_as_wrong"}
    streamed = run(
        "measure", *options, "--missing", "drop", "--stream", "--override", "batch_rows=7", "-m", "gap", "--json"
    )
    assert json.loads(streamed.stdout)[0]["missing"]["rows"] == 10
    assert json.loads(streamed.stdout)[0]["n"] == 70


def test_every_command_reads_the_same_columns(folder):
    options = ["--confidence-column", "stated", "--correct-column", "right", "--missing", "drop"]
    file = folder / "t.csv"
    fast = ["--resamples", 5]
    run("compare", file, file, *options, "-m", "ece", *fast)
    run("check", file, *options, "--max", "ece=0.9", *fast)
    run("plot", "reliability", file, *options)
    run("fit", file, *options, "--with", "platt", "--out", folder / "map.json", *fast)
    run("apply", folder / "map.json", file, *options, "--out", folder / "q.jsonl")
    assert Predictions.load(folder / "q.jsonl").task == "confidence"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_options(command):
    help_text = run(command, "--help").stdout
    for option in ("--score-column", "--confidence-column", "--missing", "--classes", "--override"):
        assert option in help_text


def test_text_labels(tmp_path):
    pl.DataFrame(
        {"kind": ["dog", "cat", "dog", "cat"], "prob_0": [0.2, 0.8, 0.4, 0.4], "prob_1": [0.8, 0.2, 0.6, 0.6]}
    ).write_csv(tmp_path / "t.csv")
    options = ["--label-column", "kind", "-m", "accuracy", "--resamples", 0, "--json"]
    assert values(run("measure", tmp_path / "t.csv", *options, "--classes", "cat,dog")) == [0.75]
    assert "--classes" in run("measure", tmp_path / "t.csv", *options, code=2).stderr


REFUSED = {
    "no such column": (["--score-column", "pp"], "score column: expected one of"),
    "a similar column": (["--confidence-column", "statde"], "did you mean 'stated'"),
    "both tasks": (["--score-column", "p", "--confidence-column", "stated"], "predictions of one task"),
    "margins as probabilities": (["--score-column", "z", "--label-column", "right"], "probabilities from 0 to 1"),
    "text as scores": (["--score-column", "site", "--label-column", "right"], "expected numbers"),
    "a positive label nobody has": (
        ["--score-column", "p", "--label-column", "y", "--positive", "maybe"],
        "no row has",
    ),
    "no positive label": (["--score-column", "p", "--label-column", "y"], "say which is positive"),
    "many labels": (["--score-column", "p", "--label-column", "stated"], "empty cells|two different labels"),
    "more than two labels": (["--score-column", "p", "--label-column", "p"], "two different labels, got 80"),
    "negative weights": (["--score-column", "p", "--label-column", "right", "--weight-column", "z"], "0 or more"),
    "text as weights": (["--score-column", "p", "--label-column", "right", "--weight-column", "site"], "numbers"),
    "no such cluster": (["--score-column", "p", "--label-column", "right", "--cluster-column", "sit"], "did you mean"),
    "another way": (["--confidence-column", "stated", "--missing", "skip"], "one of count_as_wrong, drop, error"),
    "nothing said": ([], "a score or a confidence"),
}


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("what", REFUSED)
def test_refusals_are_one_sentence(folder, what, suffix):
    options, says = REFUSED[what]
    done = run("measure", folder / f"t.{suffix}", *options, code=2)
    assert len(done.stderr.splitlines()) == 1
    assert re.search(says, done.stderr), done.stderr


# -- real answers of language models ----------------------------------------------------------------


@needs_real_data("llm")
@pytest.mark.parametrize(
    ("model", "column", "expected"),
    [
        ("gpt-4.1", "stated", (0.7892, 0.176836, 0.749032)),
        ("qwen3-8b", "stated", (0.5864, 0.319836, 0.712288)),
        ("gpt-4.1", "perplexity", (0.7879, 0.078455, 0.678905)),
    ],
)
def test_numbers_of_two_language_models(model, column, expected):
    done = run(
        *("measure", LLM / f"{model}-mmlu-pro.csv", "--confidence-column", column, "--correct-column", "correct"),
        *("--group-column", "category", "--missing", "drop"),
        *("-m", "accuracy", "-m", "ece", "-m", "auroc_correct", "--resamples", 0, "--json"),
    )
    accuracy, ece, auroc = values(done)
    assert accuracy == pytest.approx(expected[0], abs=5e-5)
    assert (ece, auroc) == pytest.approx(expected[1:], abs=6e-7)


@pytest.fixture
def logs(tmp_path):
    """A folder with an Inspect log in JSON, whose samples have log-probabilities of tokens."""
    rng = np.random.default_rng(0)
    samples = [
        {
            "id": i,
            "scores": {"match": {"value": "C" if rng.random() < p else "I"}},
            "output": {"choices": [{"logprobs": {"content": [{"token": "x", "logprob": float(np.log(p))}]}}]},
        }
        for i, p in enumerate(rng.uniform(0.3, 1.0, 60))
    ]
    folder = tmp_path / "logs"
    folder.mkdir()
    log = {"version": 2, "status": "success", "eval": {"task": "demo"}, "samples": samples}
    (folder / "demo.json").write_text(json.dumps(log, indent=2))
    return folder


def test_a_json_log_of_inspect_is_no_state_of_sums(logs):
    assert "ece" in run("measure", "demo.json", "-m", "ece", cwd=logs).stdout
    assert "holds" in run("check", "demo.json", "--max", "ece=0.9", cwd=logs).stdout


def test_a_folder_of_logs_has_a_report(logs):
    assert (
        "Written to" in run("report", "logs", "--out", "r.html", "--override", "resamples=50", cwd=logs.parent).stdout
    )


def test_how_a_file_was_read_is_said_once_below_the_table(logs):
    text = " ".join(run("measure", "demo.json", "-m", "ece", "-m", "nll", "-m", "brier", cwd=logs).stdout.split())
    assert text.lower().count("from the log-probabilities of tokens") == 1


def test_other_json_is_not_called_a_state(tmp_path):
    (tmp_path / "results.json").write_text('{"results": {}}')
    error = run("measure", "results.json", "-m", "ece", cwd=tmp_path, code=2).stderr
    assert "expected JSON written by Accumulator.save" in error


def test_compare_names_the_file_without_ids(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"confidence": rng.random(60), "correct": rng.integers(0, 2, 60), "id": range(60)})
    frame.write_csv(tmp_path / "a.csv")
    frame.drop("id").write_csv(tmp_path / "b.csv")
    assert "since b has no ids" in run("compare", "a.csv", "b.csv", "-m", "brier", cwd=tmp_path).stdout
