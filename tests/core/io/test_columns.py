"""Files of every shape, in every format, with columns of any name."""

import json

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.core.io.column_names import Columns
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.load import read_batches

FORMATS = (".npz", ".parquet", ".csv", ".jsonl")
RNG = np.random.default_rng(0)
N = 12
EXTRAS = {
    "weights": RNG.integers(1, 4, N),
    "clusters": np.repeat(np.arange(4), 3),
    "groups": np.array(["a", "b", "c"] * 4),
    "ids": np.arange(N) + 7,
}
MASK = RNG.random((N, 4)) < 0.7
MASK[:, :2] = True
TASKS = {
    "classes": Predictions.from_logits(RNG.normal(size=(N, 3)), RNG.integers(0, 3, N), classes=list("xyz"), **EXTRAS),
    "binary": Predictions.binary(RNG.random(N), ["no", "yes"] * 6, positive="yes", **EXTRAS),
    "margins": Predictions.binary(RNG.normal(size=N), [0, 1] * 6, logits=True, **EXTRAS),
    "confidence": Predictions.from_confidence(RNG.random(N), [True, False] * 6, **EXTRAS),
    "confidence logits": Predictions.from_confidence(RNG.normal(size=N), [0, 1] * 6, logits=True, **EXTRAS),
    "choices": Predictions.from_logits(RNG.normal(size=(N, 4)), [0, 1] * 6, mask=MASK, **EXTRAS),
    "choices, all there": Predictions.from_logits(
        RNG.normal(size=(N, 3)), [0, 1] * 6, mask=np.ones((N, 3), dtype=bool)
    ),
}


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("shape", TASKS)
def test_every_shape_there_and_back(tmp_path, shape, suffix):
    p = TASKS[shape]
    p.save(tmp_path / f"p{suffix}")
    q = Predictions.load(tmp_path / f"p{suffix}")
    assert (q.task, q.score_type, q.classes) == (p.task, p.score_type, p.classes)
    np.testing.assert_array_equal(q.values, p.values)
    for name, array in {"labels": p.labels, **p.row_data.arrays()}.items():
        again = q.labels if name == "labels" else getattr(q.row_data, name)
        np.testing.assert_array_equal(again, array, err_msg=name)


def write(file, columns):
    frame = pl.DataFrame(columns)
    if file.suffix == ".npz":
        np.savez(file, **{name: np.array(values) for name, values in columns.items()})
    elif file.suffix == ".csv":
        frame.write_csv(file)
    elif file.suffix == ".parquet":
        frame.write_parquet(file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in frame.to_dicts()))
    return file


@pytest.mark.parametrize("suffix", FORMATS)
def test_columns_by_any_name(tmp_path, suffix):
    table = {"s": [0.2, 0.9, 0.7], "y": ["no", "yes", "no"], "w": [1, 2, 1], "c": ["u", "u", "v"], "region": [1, 1, 2]}
    file = write(tmp_path / f"p{suffix}", table)
    p = Predictions.load(file, score="s", label="y", positive="yes", weight="w", cluster="c", group="region")
    assert (p.task, p.classes) == ("binary", ("no", "yes"))
    np.testing.assert_array_equal(p.score, [0.2, 0.9, 0.7])
    np.testing.assert_array_equal(p.outcome, [False, True, False])
    np.testing.assert_array_equal(p.weights, [1, 2, 1])
    np.testing.assert_array_equal(p.clusters, [0, 0, 1])
    np.testing.assert_array_equal(p.groups, [1, 1, 2])


@pytest.mark.parametrize("suffix", FORMATS)
def test_standard_names_need_no_options(tmp_path, suffix):
    binary = write(tmp_path / f"b{suffix}", {"score": [0.2, 0.9], "label": [0, 1]})
    margins = write(tmp_path / f"m{suffix}", {"margin": [-2.0, 3.0], "label": [0, 1]})
    sure = write(tmp_path / f"c{suffix}", {"confidence": [0.2, 0.9], "correct": [0, 1], "weight": [1.0, 3.0]})
    assert Predictions.load(binary).task == "binary"
    assert Predictions.load(margins).score_type == "logits"
    p = Predictions.load(sure)
    assert p.task == "confidence"
    assert p.weights.tolist() == [1, 3]
    assert Predictions.load(sure, weight="none").weights is None


def test_labels_that_are_text(tmp_path):
    columns = {"label": ["dog", "cat", "dog"], "prob_0": [0.2, 0.7, 0.1], "prob_1": [0.8, 0.3, 0.9]}
    file = write(tmp_path / "p.csv", columns)
    p = Predictions.load(file, classes=["cat", "dog"])
    assert p.labels.tolist() == [1, 0, 1]
    assert p.classes == ("cat", "dog")
    with pytest.raises(InputError, match="did you mean 'dog'"):
        Predictions.load(write(tmp_path / "q.csv", {**columns, "label": ["dgo", "cat", "dog"]}), classes=["cat", "dog"])


# -- rows without a score ---------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_missing_confidences(tmp_path, suffix):
    none = float("nan") if suffix == ".npz" else None
    file = write(tmp_path / f"p{suffix}", {"stated": [0.9, none, 0.4, none], "correct": [1, 1, 0, 0]})
    with pytest.raises(InputError, match=r"got none in 2 of 4 rows \(50\.0 %\)\. To fix it: use missing='drop'"):
        Predictions.load(file, confidence="stated")
    dropped = Predictions.load(file, confidence="stated", missing="drop")
    assert dropped.confidence.tolist() == [0.9, 0.4]
    assert dropped.correct.tolist() == [True, False]
    assert (dropped.missing.rows, dropped.missing.share) == (2, 0.5)
    wrong = Predictions.load(file, confidence="stated", missing="count_as_wrong")
    assert wrong.confidence.tolist() == [0.9, 0, 0.4, 0]
    assert wrong.correct.tolist() == [True, False, False, False]
    assert wrong.notes == ("2 of 4 rows (50.0 %) have no confidence and count as wrong, with confidence 0.",)
    with pytest.raises(InputError, match="one of count_as_wrong, drop, error"):
        Predictions.load(file, confidence="stated", missing="skip")


def test_a_missing_score_of_two_classes_is_not_wrong(tmp_path):
    file = write(tmp_path / "p.csv", {"score": [0.9, None], "label": [1, 0]})
    with pytest.raises(InputError, match="expected confidences, of which a missing one can count as wrong"):
        Predictions.load(file, missing="count_as_wrong")


@pytest.mark.parametrize("suffix", FORMATS[1:])
def test_batches_have_the_same_rows(tmp_path, suffix):
    score = [None if i % 3 == 0 or 4 <= i < 8 else i / 20 for i in range(20)]
    file = write(tmp_path / f"p{suffix}", {"stated": score, "right": [i % 2 for i in range(20)]})
    columns = Columns(confidence="stated", correct="right", missing="drop")
    parts = list(read_batches(file, 4, columns=columns))
    whole = Predictions.load(file, confidence="stated", correct="right", missing="drop")
    np.testing.assert_array_equal(np.concatenate([part.confidence for part in parts]), whole.confidence)
    assert sum(part.missing.rows for part in parts if part.missing) <= whole.missing.rows


def test_batches_know_columns_of_any_name(tmp_path):
    table = {"feature_0": [0.2, 0.9, 0.7], "seen": [0, 1, 0], "id": ["a", "b", "c"], "score": [5, 5, 5]}
    file = write(tmp_path / "p.csv", table)
    parts = list(read_batches(file, 2, columns=Columns(score="feature_0", label="seen", id="id")))
    assert np.concatenate([part.score for part in parts]).tolist() == [0.2, 0.9, 0.7]


def test_columns_called_after_classes(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("prob_dog,prob_cat,label\n0.2,0.8,cat\n0.7,0.3,dog\n0.4,0.6,dog\n")
    p = Predictions.load(file, classes=["cat", "dog"])
    assert p.probs.tolist() == [[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    assert (p.labels.tolist(), p.classes) == ([0, 1, 1], ("cat", "dog"))
    parts = list(read_batches(file, 2, columns=Columns(classes=("cat", "dog"))))
    assert [q.labels.tolist() for q in parts] == [[0, 1], [1]]
    file.write_text("prob_0,prob_1,label\n0.2,0.8,cat\n0.7,0.3,dog\n0.4,0.6,dog\n")
    with pytest.raises(InputError, match=r"classes=\['cat', 'dog'\] \(--classes cat,dog\)"):
        Predictions.load(file)


def test_words_where_numbers_should_be(tmp_path):
    """What programs write for no number is no score; another word is refused with its row."""
    file = tmp_path / "p.csv"
    file.write_text("score,label\n0.2,0\nNA,1\n 0.7,1\nnan,0\n,1\n0.6,1\n")
    with pytest.raises(InputError, match="a score in every row, got none in 3 of 6 rows"):
        Predictions.load(file)
    p = Predictions.load(file, missing="drop")
    assert (p.score.tolist(), p.missing.rows) == ([0.2, 0.7, 0.6], 3)
    parts = list(read_batches(file, 2, columns=Columns(missing="drop")))
    assert np.concatenate([part.score for part in parts]).tolist() == [0.2, 0.7, 0.6]
    file.write_text("score,label\n0.2,0\nhigh,1\n0.7,1\nlow,0\n")
    with pytest.raises(InputError, match=r"column score: expected numbers, got 'high' in row 1 \(2 of 4 rows"):
        Predictions.load(file, missing="drop")
    file.write_text("prob_0,prob_1,label\n0.2,0.8,1\nnan,0.5,0\n0.3,0.7,1\n")
    with pytest.raises(InputError, match="finite numbers, got nan in row 1"):
        Predictions.load(file)
