"""The findings about language models: against the numbers that the authors of the answers published."""

import importlib.util
import re
import sys
from pathlib import Path

import polars as pl
import pytest
from real_data import FOLDER, needs_real_data

import calibrant as cal

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("llm_board", ROOT / "tools" / "llm_board.py")
tool = importlib.util.module_from_spec(spec)
sys.modules["llm_board"] = tool  # dataclasses look it up
spec.loader.exec_module(tool)

NEAR_TIES = {("gemma-3-4b-it", "math"), ("Phi-4-mini-instruct", "engineering"), ("Qwen3-0.6B-FP8", "math")}


@needs_real_data("llm/models.parquet")
def test_numbers_are_those_that_the_authors_published():
    answers = pl.read_parquet(FOLDER / "llm" / "models.parquet", glob=False)
    numbers = list(tool.compare_with_published(answers, pl.read_csv(FOLDER / "llm" / "published-by-category.csv")))
    assert len(numbers) == 6930
    assert all(n.n == n.published_n for n in numbers)
    assert max(n.off for n in numbers if n.measure == "accuracy") <= 1e-9
    assert max(n.off for n in numbers if n.measure == "ece") <= 1e-6
    beyond = [n for n in numbers if n.measure == "auroc" and n.off > 1e-9]
    assert {(n.model, n.category) for n in beyond} == NEAR_TIES
    for n in beyond:
        assert n.confidence == "words"
        assert n.ties[0] <= n.published <= n.ties[1]  # values that are equal but for the last bit


@needs_real_data("llm/models.parquet")
def test_numbers_of_the_data_s_own_page():
    """The README beside the data has these, with 15 equal-width right-closed bins."""
    board = cal.board(FOLDER / "llm" / "models.parquet", confidence=["stated", "perplexity"], group="category")
    stated, perplexity = ({m.name: m for m in one.models} for one in board.boards)
    for model, says, accuracy, ece, auroc in (
        (stated["gpt-4.1"], 0.9660, 0.7892, 0.176836, 0.749032),
        (stated["Qwen3-8B"], 0.9060, 0.5864, 0.319836, 0.712288),
        (perplexity["gpt-4.1"], 0.8654, 0.7879, 0.078455, 0.678905),
    ):
        scores = model.scores["before"]
        assert (model.says, scores["accuracy"].value) == pytest.approx((says, accuracy), abs=5e-5)
        assert (scores["ece"].value, scores["auroc_correct"].value) == pytest.approx((ece, auroc), abs=5e-7)
    assert stated["phi-4"].reason == "no confidence in any of 12,032 answers"
    assert sum(m.counts.above for m in stated.values()) == 20


def test_the_page_and_the_board_tell_the_same():
    page, board = (ROOT / "docs" / "llm.md").read_text(), (ROOT / "docs" / "llm-board.html").read_text()
    assert len(board) < 3_000_000
    assert "llm-board.html" in page
    best = re.search(r"^\| ECE \| (\S+) .*?(\d+\.\d) % \((\d+\.\d) to (\d+\.\d)\)", page, re.M)
    row = board[board.index(f'<tr><th scope="row">{best[1]}') :]
    assert f"{best[2]}\N{NO-BREAK SPACE}%" in row[:400]
    assert f"{best[3]} to {best[4]}" in row[:400]
    for part in tool.PARTS:
        assert f"<!-- {part}: written by tools/llm_board.py -->" in page
    assert tool.SEEN in page


def test_parts_are_written_between_their_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- findings: written by tools/llm_board.py -->\nold\n<!-- end of findings -->\nb\n")
    tool.write_parts(page, {"findings": "new"})
    assert page.read_text() == (
        "a\n<!-- findings: written by tools/llm_board.py -->\n\nnew\n\n<!-- end of findings -->\nb\n"
    )
