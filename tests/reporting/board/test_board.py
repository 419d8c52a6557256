"""The board as values: who is ranked and why, what a repair changes, answers to questions, and every format."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest
from board_tables import MODELS, answers, messy

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.reporting.board.board import check_board_out


@pytest.fixture(scope="module")
def board():
    return cal.board(messy(), confidence=["stated", "tokens"], group="category", title="Tiny models")


def test_a_model_that_answers_nothing_is_listed_and_not_ranked(board):
    silent = next(m for m in board.boards[0].models if m.name == "silent")
    assert silent.reason == "no confidence in any of 600 answers"
    assert silent.scores["before"]["ece"].group == 0
    assert "silent" not in [m.name for m in board.boards[0].ordered("ece")]
    assert board.boards[0].rankings["before"]["ece"].ranked == len(MODELS)


def test_what_is_strange_is_counted_in_sentences(board):
    notes = " ".join(board.notes)
    assert "stated: 660 of 3,600 answers have no confidence (silent 600 and tiny-1B 60)." in notes
    assert "stated: 1 of 3,600 answers have a confidence above 1 (tiny-1B 1)." in notes
    assert "not ranked, because no answer has a confidence: silent." in notes
    assert "different values" in notes


def test_scores_are_those_of_the_library_before_and_after(board):
    table = messy().filter(pl.col("stated").is_between(0, 1))
    for m in board.boards[0].ordered("ece"):
        own = table.filter(pl.col("model") == m.name)
        p = cal.Predictions.from_confidence(own["stated"].to_numpy(), own["correct"].to_numpy())
        for name in ("ece", "auroc_correct", "accuracy"):
            assert m.scores["before"][name].value == pytest.approx(cal.measures.make(name)(p), abs=1e-12)
        assert m.says == pytest.approx(p.confidence.mean())
        assert sum(b.rows for b in m.bins["before"]) == p.n
        assert sum(b.rows * abs(b.says - b.right) for b in m.bins["before"]) / p.n == pytest.approx(
            m.scores["before"]["ece"].value
        )
        assert 0.3 * p.n < sum(b.rows for b in m.bins["after"]) < 0.7 * p.n


def test_a_repair_lowers_the_error_of_an_overconfident_model(board):
    worst = board.boards[0].ordered("ece")[-1]
    assert worst.name == "tiny-1B"
    assert worst.change.high < 0
    assert worst.scores["after"]["ece"].value < 0.5 * worst.scores["before"]["ece"].value


def test_groups_average_over_models(board):
    table = messy().filter(pl.col("stated").is_between(0, 1))
    for one in board.boards[0].groups:
        inside = table.filter(pl.col("category") == one.group)
        right = [part["correct"].mean() for _, part in inside.group_by("model")]
        gaps = [part["stated"].mean() - part["correct"].mean() for _, part in inside.group_by("model")]
        assert one.questions == 200
        assert one.means["accuracy"].value == pytest.approx(np.mean(right))
        assert one.means["gap"].value == pytest.approx(np.mean(gaps))


def test_questions_are_answered_by_pairs(board):
    asked = {a.question: a for a in board.answers}
    think = {e.measure: e for e in asked["Does thinking before the answer change it?"].effects}
    assert think["ece"].verdict == "lower"
    assert think["accuracy"].verdict == "higher"
    assert think["accuracy"].pairs == 2
    both = messy().filter(pl.col("stated").is_between(0, 1)).pivot("model", index="question", values="correct")
    mean = np.mean([(both[f"tiny-{s}-think"] - both[f"tiny-{s}"]).mean() for s in ("1B", "4B")])
    assert think["accuracy"].contrast.value == pytest.approx(mean)
    fp8 = {e.measure: e for e in asked["Do FP8 weights change it?"].effects}
    assert fp8["accuracy"].verdict == "inconclusive"
    size = {e.measure: e for e in asked["Does size change it?"].effects}
    slopes = [(both[f"tiny-4B{m}"] - both[f"tiny-1B{m}"]).mean() / 2 for m in ("", "-think")]
    assert size["accuracy"].contrast.value == pytest.approx(np.mean(slopes))
    assert "Is tokens a better confidence than stated?" in asked
    raw = [e.contrast.p_value for a in board.answers for e in a.effects]
    corrected = [e.p_corrected for a in board.answers for e in a.effects]
    assert all(c >= r for r, c in zip(raw, corrected, strict=True))
    assert min(corrected) == pytest.approx(min(1, len(raw) * min(raw)))


def test_the_same_seed_gives_the_same_board(board):
    again = cal.board(messy(), confidence=["stated", "tokens"], group="category", title="Tiny models")
    assert again.to_dict() == board.to_dict()


def test_order_of_rows_does_not_matter_for_values(board):
    table = messy().sample(fraction=1.0, shuffle=True, seed=4)
    other = cal.board(table, confidence="stated", group="category")
    for m in other.boards[0].ordered("ece"):
        same = next(one for one in board.boards[0].models if one.name == m.name)
        assert m.scores["before"]["ece"].value == pytest.approx(same.scores["before"]["ece"].value)


def test_json_holds_every_number(board):
    document = json.loads(board.text("json"))
    assert document["boards"][0]["models"][0]["scores"]["before"]["ece"]["value"] > 0
    assert document["settings"] == {"calibrator": "isotonic", "bins": 15, "max_error": 0.05, "level": 0.95, "seed": 0}


def test_a_board_becomes_a_data_frame_with_the_columns_of_its_csv(board):
    frame = board.to_polars()
    lines = list(csv.DictReader(io.StringIO(board.text("csv"))))
    assert frame.columns == list(lines[0])
    assert frame.height == len(lines)
    for row, line in zip(frame.to_dicts(), lines, strict=True):
        assert {name: "" if cell is None else str(cell) for name, cell in row.items()} == line


def test_csv_has_one_line_for_each_confidence_state_and_model(board):
    rows = list(csv.DictReader(io.StringIO(board.text("csv"))))
    assert len(rows) == 2 * 2 * 6
    one = next(r for r in rows if (r["confidence"], r["repair"], r["model"]) == ("stated", "before", "tiny-4B"))
    m = next(m for m in board.boards[0].models if m.name == "tiny-4B")
    assert float(one["ece"]) == m.scores["before"]["ece"].value
    assert int(one["ece_first"]) == m.scores["before"]["ece"].first
    silent = next(r for r in rows if (r["confidence"], r["model"]) == ("stated", "silent"))
    assert (silent["ece"], silent["ece_group"]) == ("", "")


def test_markdown_says_what_the_page_says(board):
    text = board.text("markdown")
    assert text.startswith("# Tiny models\n")
    assert "silent: not ranked, no confidence in any of 600 answers." in text
    assert "| Does thinking before the answer change it? | ECE | " in text
    assert "From category to category: mean ECE " in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(tables) > 30


def test_without_groups_and_pairs_the_board_is_smaller():
    table = answers(60, models={"a": (0.5, 0.2), "b": (0.6, 0.1)}).drop("category")
    board = cal.board(table, confidence="stated")
    assert board.answers == ()
    assert [one.across for one in board.transfers] == ["models"]
    for form in ("html", "markdown", "csv", "json"):
        assert "stated" in board.text(form)


def test_a_model_with_few_answers_is_not_ranked():
    table = answers(60).filter((pl.col("model") != "tiny-1B") | (pl.col("question") < 6))
    few = next(m for m in cal.board(table, confidence="stated").boards[0].models if m.name == "tiny-1B")
    assert few.reason == "too few rows for an interval: 6, at least 10 are needed"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bins": 0}, "bins"),
        ({"level": 1.0}, "confidence"),
        ({"max_error": 0.0}, "max_error"),
        ({"calibrator": "isotonc"}, "did you mean 'isotonic'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(options, words):
    with pytest.raises(InputError, match=words):
        cal.board("nowhere.parquet", **options)


@pytest.mark.parametrize("name", ["board.png", "board", "."])
def test_a_file_name_says_the_format(name):
    with pytest.raises(InputError, match="html"):
        check_board_out(name)
