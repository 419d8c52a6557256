"""Predictions that come with calibrant, and the files that the pages use."""

import json

import numpy as np
import pytest
from commands import run

import calibrant as cal
from calibrant.measuring.example import EXAMPLES, FILES, write_examples


@pytest.mark.parametrize(
    ("name", "task", "n"),
    [("fashion", "multiclass", 4000), ("sneakers", "binary", 4000), ("llm_stated", "confidence", 999)],
)
def test_an_example_has_rows_to_fit_on_and_others_to_measure_on(name, task, n):
    val, test = cal.example(name)
    assert (val.task, test.task, val.n, test.n) == (task, task, n, n)
    assert not np.array_equal(val.confidence, test.confidence)
    cal.fit(val, "temperature").apply(test)


def test_examples_and_files_have_the_same_names():
    assert set(EXAMPLES) == set(FILES)


def test_an_unknown_name_is_refused_with_a_suggestion(tmp_path):
    with pytest.raises(cal.InputError, match="fashion"):
        cal.example("fashon")
    with pytest.raises(cal.InputError, match="fashion"):
        write_examples(tmp_path, "fashon")


def test_the_command_writes_files_that_other_commands_read(tmp_path):
    done = run("example", "--out", tmp_path / "new", "--json")
    files = [row["file"] for row in json.loads(done.stdout)]
    assert sorted(files) == sorted(str(file) for file in (tmp_path / "new").iterdir())
    assert cal.Predictions.load(tmp_path / "new" / "preds.npz").n == 4000
    scores = cal.Predictions.load(tmp_path / "new" / "scores.csv", score="score", label="y", positive="yes")
    assert np.array_equal(scores.labels, cal.example("sneakers").test.labels)


def test_one_example_alone_and_nothing_is_overwritten(tmp_path):
    assert list(write_examples(tmp_path, "llm_stated")) == ["llm_stated.csv"]
    (tmp_path / "llm_stated.csv").write_text("mine")
    done = run("example", "--out", tmp_path, code=2)
    assert "llm_stated.csv" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["llm_stated.csv"]
    assert (tmp_path / "llm_stated.csv").read_text() == "mine"
