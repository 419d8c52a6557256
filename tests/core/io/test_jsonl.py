"""Lines of JSON: which line is wrong is said, and no file takes more room or time than its size allows."""

import json

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.core.io import jsonl, size_limits
from calibrant.core.predictions import Predictions

ROW = '{"score": 0.5, "label": 1}\n'


def load(folder, text, **options):
    file = folder / "p.jsonl"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Predictions.load(file, **options)


def test_blank_lines_a_mark_and_a_missing_last_newline(tmp_path):
    p = load(tmp_path, b"\xef\xbb\xbf" + (ROW + "\n  \n" + ROW.rstrip()).encode())
    assert (p.n, p.task) == (2, "binary")


def test_scores_of_classes_as_lists(tmp_path):
    p = load(tmp_path, '{"logits": [1, 2.5], "label": 0}\n{"logits": [0, -1], "label": 1}\n')
    np.testing.assert_array_equal(p.values, [[1, 2.5], [0, -1]])
    assert p.task == "multiclass"


def test_lists_of_different_length_are_choices(tmp_path):
    p = load(tmp_path, '{"logits": [1, 2, 3], "label": 2}\n{"logits": [0, 1], "label": 1}\n', allow_few_rows=True)
    assert p.task == "choice"
    np.testing.assert_array_equal(p.row_data.option_mask, [[True, True, True], [True, True, False]])


REFUSED = {
    "no JSON": (ROW + "score=0.5\n", "line 2: expected a JSON object, got 'score=0.5'"),
    "half an object": (ROW + ROW + '{"score": 0.5', "line 3: expected a JSON object"),
    "a list": (ROW + "[0.5, 1]\n", "line 2: expected a JSON object"),
    "two objects": (ROW.strip() + ROW, "line 1: expected a JSON object"),
    "other bytes": (ROW.encode() + b'{"score": "\xff"}\n', "line 2: .*bytes that are not valid UTF-8"),
    "half a character": (ROW + '{"score": "\\ud800"}\n', "line 2: .*surrogate.*not valid UTF-8"),
    "deep": (ROW + "[" * 100_000 + "\n", "line 2: expected a JSON object"),
    "many digits": (ROW + '{"label": ' + "9" * 5000 + "}\n", "line 2: expected a JSON object"),
    "a large number": (ROW + '{"score": 0.5, "label": ' + "9" * 30 + "}\n", "at most 64 bits"),
    "two kinds": (ROW + '{"score": "high", "label": 1}\n', "text in line 2, numbers in line 1"),
    "an object": ('{"score": {"a": 1}, "label": 1}\n', "an object in line 1"),
    "text in a list": ('{"probs": [0.5, "x"], "label": 1}\n', "lists of numbers, got something else in line 1"),
    "one option": ('{"logits": [1.0], "label": 0}\n' * 2, "two columns"),
    "none of them": ('{"logits": [null, null], "label": 0}\n{"logits": [1, 2], "label": 0}\n', "at least two scores"),
    "no right option": ('{"logits": [1, 2, 3], "label": 2}\n{"logits": [1, 2], "label": 2}\n' * 2, "option 2 in row 1"),
    "nothing but space": ("\n\n", "a score or a confidence"),
    "an endless list": ("[\n  {\n", "a list without an end"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_lines_are_named(tmp_path, what):
    text, says = REFUSED[what]
    with pytest.raises(InputError, match=says) as refused:
        load(tmp_path, text)
    assert "\n" not in str(refused.value)


def test_kinds_are_the_same_in_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "BLOCK_ROWS", 2)
    assert load(tmp_path, ROW * 5 + '{"score": 1, "label": 0}\n').score.tolist() == [0.5] * 5 + [1.0]
    with pytest.raises(InputError, match="text in line 6, numbers in line 1"):
        load(tmp_path, ROW * 5 + '{"score": "x", "label": 0}\n')


# -- limits -----------------------------------------------------------------------------------------


def test_a_long_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "JSON_BYTES", 1000)
    with pytest.raises(InputError, match=r"line 2: expected less than"):
        load(tmp_path, ROW + '{"note": "' + "x" * 2000 + '"}\n')


def test_many_names_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "MOST_COLUMNS", 10)
    with pytest.raises(InputError, match="at most 10 names"):
        load(tmp_path, json.dumps({f"logit_{i}": 0 for i in range(20)}) + "\n")


def test_one_long_row_among_short_ones_is_refused(tmp_path, monkeypatch):
    """Padded, a small file would be a huge array."""
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 20)
    rows = ['{"logits": [1, 2], "label": 0}'] * 5000
    rows[7] = json.dumps({"logits": [1] * 20_000, "label": 0})
    with pytest.raises(InputError, match="GiB of numbers"):
        load(tmp_path, "\n".join(rows))


def test_empty_objects_behind_a_wide_one_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 20)
    wide = json.dumps({f"logit_{i}": 0 for i in range(2000)})
    with pytest.raises(InputError, match="GiB of numbers"):
        load(tmp_path, wide + "\n" + "{}\n" * 20_000)


def test_fields_that_nobody_needs_are_not_kept(tmp_path):
    wide = json.dumps({"score": 0.5, "label": 1, "doc": {"a": [1, {"b": 2}]}, "note": "x"})
    assert load(tmp_path, (wide + "\n") * 3).n == 3


# -- frames -----------------------------------------------------------------------------------------


def test_frames_of_pandas_and_polars_say_the_same():
    pd = pytest.importorskip("pandas")
    columns = {
        "s": [0.9, None, 0.2, 0.7],
        "y": ["yes", "no", "no", "yes"],
        "site": ["a", "b", "a", "b"],
        "w": [1, 1, 2, 1],
    }
    options = {"score": "s", "label": "y", "positive": "yes", "group": "site", "weight": "w", "missing": "drop"}
    results = [
        Predictions.from_frame(frame, **options) for frame in (pl.DataFrame(columns), pd.DataFrame(columns), columns)
    ]
    for p in results:
        assert p.score.tolist() == [0.9, 0.2, 0.7]
        assert p.outcome.tolist() == [True, False, True]
        assert p.groups.tolist() == ["a", "a", "b"]
        assert p.weights.tolist() == [1, 2, 1]
        assert p.classes == ("no", "yes")
        assert p.missing.rows == 1


def test_types_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"confidence": [0.5, 0.9, 0.1], "correct": [True, False, True], "extra": [object()] * 3})
    frame["group"] = pd.Categorical(["x", "y", "x"])
    frame["confidence"] = frame["confidence"].astype("Float64")
    p = Predictions.from_frame(frame)
    assert p.correct.tolist() == [True, False, True]
    assert p.groups.tolist() == ["x", "y", "x"]
    frame.loc[1, "confidence"] = pd.NA
    assert Predictions.from_frame(frame, missing="drop").n == 2


def test_what_is_no_frame_is_refused():
    for frame, says in (
        ([1, 2], "a pandas or polars frame, got list"),
        ({"score": [0.1, 0.2], "label": [0]}, "columns of one length"),
        (pl.DataFrame({"a": [1]}), "a score or a confidence"),
        (pl.DataFrame({"score": [], "label": []}), "no rows"),
    ):
        with pytest.raises(InputError, match=says):
            Predictions.from_frame(frame)
