"""Answers of several models as arrays: what is counted, what is refused, and how rows find each other."""

import numpy as np
import polars as pl
import pytest
from board_tables import answers, messy

from calibrant.core.errors import InputError
from calibrant.measuring.answer_table import read_answers

STATED = {"confidence": ["stated"]}


def test_cells_are_where_the_model_and_the_question_say():
    table = answers(30)
    read = read_answers(table.sample(fraction=1.0, shuffle=True, seed=1), **STATED, group="category")
    assert sorted(read.models) == sorted(table["model"].unique())
    order = table.sample(fraction=1.0, shuffle=True, seed=1)["question"].unique(maintain_order=True).to_list()
    for row in table.iter_rows(named=True):
        i, q = read.models.index(row["model"]), order.index(row["question"])
        assert read.confidence["stated"][i, q] == row["stated"]
        assert read.correct[i, q] == row["correct"]
        assert read.groups[read.group_of[q]] == row["category"]


def test_the_mess_of_real_files_is_counted():
    read = read_answers(messy(), **STATED)
    one = read.counts["stated"][read.models.index("tiny-1B")]
    assert (one.rows, one.missing, one.above, one.below, one.used) == (600, 60, 1, 0, 539)
    silent = read.counts["stated"][read.models.index("silent")]
    assert (silent.used, silent.missing, silent.distinct) == (0, 600, 0)
    assert not read.used("stated")[read.models.index("silent")].any()


def test_an_answer_without_a_confidence_can_count_as_wrong():
    read = read_answers(messy(), **STATED, missing="count_as_wrong")
    silent = read.models.index("silent")
    assert read.used("stated").all(axis=1).tolist() == [i != silent for i in range(6)]
    i = read.models.index("tiny-1B")
    assert read.confidence["stated"][i, 5] == 0
    assert not read.correct_with("stated")[i, 5]
    assert not read.correct[i, ::10].any()


def test_a_question_that_a_model_did_not_answer_counts_for_none_or_as_wrong():
    table = answers(50).filter(~((pl.col("model") == "tiny-1B") & (pl.col("question") < 20)))
    read = read_answers(table, **STATED)
    assert (read.questions, read.used("stated").sum(axis=1).tolist()) == (30, [30] * len(read.models))
    assert read.left_out.startswith("20 of 50 questions are left out")
    assert "tiny-1B 20" in read.left_out
    whole = read_answers(table, **STATED, missing="count_as_wrong")
    i = whole.models.index("tiny-1B")
    assert (whole.questions, whole.left_out) == (50, "")
    assert whole.used("stated")[i].all()
    assert whole.correct[i].sum() == table.filter(pl.col("model") == "tiny-1B")["correct"].sum()
    assert whole.counts["stated"][i].rows == 30


def test_the_order_of_models_is_that_of_their_common_questions():
    """The one that was cut off answered the easy questions only, and was ranked first in accuracy."""
    long = pl.DataFrame({"model": "long", "question": range(100), "correct": [1] * 45 + [0] * 5 + [0] * 50})
    short = pl.DataFrame({"model": "short", "question": range(50), "correct": [1] * 40 + [0] * 10})
    read = read_answers(pl.concat([long, short]).with_columns(stated=pl.lit(0.8)), **STATED)
    assert read.correct.sum(axis=1).tolist() == [45, 40]


def test_too_few_common_questions_are_refused():
    table = answers(50).filter(~((pl.col("model") == "tiny-1B") & (pl.col("question") < 20)))
    table = table.filter(~((pl.col("model") == "tiny-4B") & (pl.col("question") >= 25)))
    with pytest.raises(InputError, match=r"got 5 of 50 .*tiny-4B 25 and tiny-1B 20.*count_as_wrong"):
        read_answers(table, **STATED)


def test_files_and_frames_give_the_same(tmp_path):
    table = messy(60)
    table.write_parquet(tmp_path / "a.parquet")
    table.write_csv(tmp_path / "a.csv", null_value="NA")
    table.write_ndjson(tmp_path / "a.jsonl")
    frames = [read_answers(tmp_path / name, **STATED) for name in ("a.parquet", "a.csv", "a.jsonl")]
    pandas = pytest.importorskip("pandas")
    frames.append(read_answers(pandas.DataFrame(table.to_dict(as_series=False)), **STATED))
    for one in frames:
        np.testing.assert_array_equal(one.confidence["stated"], read_answers(table, **STATED).confidence["stated"])
        assert one.counts == frames[0].counts


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda t: t, {"model": "modle"}, "did you mean 'model'"),
        (lambda t: t, {"confidence": ["sated"]}, "did you mean 'stated'"),
        (lambda t: t, {"correct": "right"}, "expected one of"),
        (lambda t: t, {"group": "subject"}, "expected one of"),
        (lambda t: t, {"question": "no"}, "expected one of"),
        (lambda t: t.drop("question"), {}, "--id-column"),
        (lambda t: t.filter(pl.col("model") == "tiny-1B"), {}, "at least two models"),
        (lambda t: t.with_row_index("row"), {"question": "row"}, "no common question"),
        (lambda t: pl.concat([t, t.head(3)]), {}, "3 more, the first for 'tiny-1B' and question '0'"),
        (lambda t: t.with_columns(correct=pl.col("correct") * 2), {}, "expected 0 or 1, got 2 in row"),
        (lambda t: t.with_columns(correct=pl.lit(None, pl.Int64)), {}, "0 or 1 in every row"),
        (lambda t: t.with_columns(correct=pl.lit("yes")), {}, "expected 0 or 1, got type String"),
        (lambda t: t.with_columns(stated=pl.lit("high")), {}, "expected numbers, got 'high' in row 0"),
        (lambda t: t.with_columns(stated=100 * pl.col("stated")), {}, "divide percentages by 100"),
        (lambda t: t.with_columns(model=pl.lit(None, pl.String)), {}, "a model in every row"),
        (lambda t: t.with_columns(category=pl.col("model")), {"group": "category"}, "one group for each question"),
        (lambda t: t.clear(), {}, "expected rows, got none"),
        (lambda t: messy(60), {"missing": "error"}, "none in 67 of 360 rows"),
        (lambda t: t, {"missing": "ignore"}, "expected one of"),
        (lambda t: t, {"confidence": ["stated", "tokens"], "missing": "count_as_wrong"}, "one confidence column"),
        (lambda t: t, {"confidence": ["stated", "stated"]}, "each column once"),
        (lambda t: {"model": ["a", "b"], "question": [1]}, {}, "columns of one length"),
    ],
)
def test_bad_tables_are_refused(change, options, words):
    with pytest.raises(InputError) as refused:
        read_answers(change(answers(60)), **({"confidence": ["stated"]} | options))
    assert words in str(refused.value)


def test_too_many_models_are_refused():
    table = {"model": np.repeat(np.arange(501), 2), "id": np.tile([0, 1], 501), "correct": np.ones(1002, dtype=int)}
    with pytest.raises(InputError, match="501 models"):
        read_answers(table | {"stated": np.full(1002, 0.5)}, **STATED)
