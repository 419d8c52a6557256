"""`calibrant board`: the table in 80 columns, every format, and bad input without a traceback."""

import json

import polars as pl
import pytest
from board_tables import answers, messy
from commands import run


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "answers.parquet"
    messy().write_parquet(path)
    return path


OPTIONS = ("--model-column", "model", "--confidence-column", "stated", "--group-column", "category")


def test_the_table_fits_80_columns(file):
    out = run("board", file, *OPTIONS).stdout
    assert max(map(len, out.splitlines())) <= 80
    assert "silent: not ranked, no confidence in any of 600 answers." in out
    assert "\nDoes thinking before the answer change it?\n" in out
    assert "\n- stated: 1 of 3,600 answers have a confidence above 1" in out
    assert "\x1b" not in out


def test_a_page_is_written_and_its_headline_printed(file, tmp_path):
    out = run("board", file, *OPTIONS, "--out", tmp_path / "b.html", "--override", "title=Small & <b>").stdout
    assert "is calibrated best" in out
    page = (tmp_path / "b.html").read_text()
    assert "<title>Small &amp; &lt;b&gt;</title>" in page
    assert str(file.parent) not in page


def test_formats_and_json(file, tmp_path):
    assert run("board", file, *OPTIONS, "--format", "csv").stdout.startswith("confidence,repair,model,")
    assert run("board", file, *OPTIONS, "--format", "markdown").stdout.startswith("# Which models know what they know?")
    document = json.loads(run("board", file, *OPTIONS, "--json", "--override", "bins=10").stdout)
    assert document["settings"]["bins"] == 10
    assert {m["name"] for m in document["boards"][0]["models"]} >= {"silent", "tiny-4B"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model-column", "modle"), "did you mean 'model'"),
        (("--confidence-column", "nothing"), "expected one of"),
        (("--id-column", "category", "--confidence-column", "stated"), "one row for each model and question"),
        (("--confidence-column", "stated", "--missing", "error"), "a confidence from 0 to 1 in every row"),
        (("--confidence-column", "stated", "--format", "pdf"), "expected one of csv, html, json, markdown, text"),
        (("--confidence-column", "stated", "--json", "--format", "markdown"), "one format"),
        (("--confidence-column", "stated", "--with", "nothing"), "nothing"),
        (("--confidence-column", "stated", "--override", "level=2"), "confidence"),
        (("--confidence-column", "stated", "--override", "colour=red"), "colour"),
        (("--confidence-column", "stated", "--out", "board.png"), "ends in .html"),
    ],
)
def test_bad_input_ends_with_2_and_writes_nothing(file, tmp_path, arguments, words):
    done = run("board", file, *arguments, code=2, cwd=tmp_path)
    assert words in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_one_model_is_sent_to_the_report(tmp_path):
    answers(60).filter(pl.col("model") == "tiny-1B").write_csv(tmp_path / "one.csv")
    assert "use calibrant report" in run("board", tmp_path / "one.csv", "--confidence-column", "stated", code=2).stderr
