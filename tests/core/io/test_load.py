"""Predictions on disk: what goes in comes out, what is broken is refused, nothing is half-written."""

import os
import pickle
import zipfile

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.load import read_batches

SUFFIXES = [".npz", ".parquet", ".csv"]
LOGITS = np.random.default_rng(0).normal(size=(7, 3)) * [1, 1e-8, 1e8]
PROBS = np.array([[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0], [0.5, 0.25, 0.25]] * 2)[:7]
LABELS = [0, 1, 2, 0, 1, 2, 2]
IDS = {
    "no ids": None,
    "integers": [5, 4, 3, 2, 1, 0, 10**15],
    "strings": ["a", "b,c", 'd"e', "f g", "é", "  ", "7"],
    "digits": ["01", "02", "03", "04", "05", "06", "07"],
}


@pytest.fixture(params=SUFFIXES)
def suffix(request):
    return request.param


@pytest.fixture(params=[".parquet", ".csv"])
def table_suffix(request):
    return request.param


def write_table(path, columns):
    frame = pl.DataFrame(columns)
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)


# -- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_there_and_back(tmp_path, suffix, kind):
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probs
    p = make(LOGITS if kind == "logits" else PROBS, LABELS, features=np.eye(7)[:, :2] / 3)
    p.save(tmp_path / f"p{suffix}")
    q = Predictions.load(tmp_path / f"p{suffix}")
    assert q.score_type == kind
    assert np.array_equal(q.values, p.values)
    assert np.array_equal(q.labels, p.labels)
    assert np.array_equal(q.features, p.features)
    assert q.ids is None


@pytest.mark.parametrize("ids", ["no ids", "integers", "strings"])
def test_ids_come_back(tmp_path, suffix, ids):
    p = Predictions.from_logits(LOGITS, LABELS, ids=IDS[ids])
    p.save(tmp_path / f"p{suffix}")
    back = Predictions.load(tmp_path / f"p{suffix}").ids
    assert (back if back is None else back.tolist()) == IDS[ids]


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_ids_of_digits_stay_text_where_the_format_has_types(tmp_path, suffix):
    p = Predictions.from_logits(LOGITS, LABELS, ids=IDS["digits"])
    p.save(tmp_path / f"p{suffix}")
    assert Predictions.load(tmp_path / f"p{suffix}").ids.tolist() == IDS["digits"]


def test_ids_of_bytes_come_back_as_text(tmp_path, suffix):
    p = Predictions.from_logits(LOGITS, LABELS, ids=np.array([b"a", b"b", b"c", b"d", b"e", b"f", b"g"]))
    p.save(tmp_path / f"p{suffix}")
    assert Predictions.load(tmp_path / f"p{suffix}").ids.tolist() == ["a", "b", "c", "d", "e", "f", "g"]


def test_float32_stays_float32_where_the_format_has_types(tmp_path, suffix):
    p = Predictions.from_logits(LOGITS.astype(np.float32), LABELS)
    p.save(tmp_path / f"p{suffix}")
    q = Predictions.load(tmp_path / f"p{suffix}")
    assert np.array_equal(q.values.astype(np.float32), p.values)
    assert suffix == ".csv" or q.values.dtype == np.float32


def test_missing_folders_are_made(tmp_path, suffix):
    file = tmp_path / "new" / "folder" / f"p{suffix}"
    Predictions.from_logits(LOGITS, LABELS).save(str(file))
    assert Predictions.load(str(file)).n == 7


def test_saving_replaces_the_old_file(tmp_path, suffix):
    file = tmp_path / f"p{suffix}"
    Predictions.from_logits(LOGITS, LABELS).save(file)
    Predictions.from_probs(PROBS, LABELS).save(file)
    assert Predictions.load(file).score_type == "probs"
    assert [f.name for f in tmp_path.iterdir()] == [file.name]


def test_few_rows_must_be_meant(tmp_path, suffix):
    file = tmp_path / f"p{suffix}"
    Predictions.from_logits(LOGITS[:2], [0, 1]).save(file)
    with pytest.raises(InputError, match="--override allow_few_rows=true"):
        Predictions.load(file)
    assert Predictions.load(file, allow_few_rows=True).n == 2


# -- forms a table may have -----------------------------------------------------------------------


def test_list_columns_are_read(tmp_path):
    file = tmp_path / "p.parquet"
    for column, values in (("logits", LOGITS), ("probs", PROBS)):
        pl.DataFrame({"labels": LABELS, column: values.tolist()}).write_parquet(file)
        p = Predictions.load(file)
        assert p.score_type == column
        assert np.array_equal(p.values, values)
        pl.DataFrame(
            {"label": LABELS, column: values}, schema_overrides={column: pl.Array(pl.Float64, 3)}
        ).write_parquet(file)
        assert np.array_equal(Predictions.load(file).values, values)


def test_columns_may_come_in_any_order_and_with_others(tmp_path, table_suffix):
    file = tmp_path / f"p{table_suffix}"
    columns = {"logit_2": LOGITS[:, 2], "note": ["x"] * 7, "logit_0": LOGITS[:, 0], "label": LABELS}
    write_table(file, columns | {"logit_1": LOGITS[:, 1]})
    assert np.array_equal(Predictions.load(file).values, LOGITS)


def test_eleven_classes_are_in_the_order_of_numbers(tmp_path, table_suffix):
    logits = np.arange(132.0).reshape(12, 11)
    file = tmp_path / f"p{table_suffix}"
    Predictions.from_logits(logits, [0] * 12).save(file)
    assert np.array_equal(Predictions.load(file).values, logits)


def test_whole_numbers_in_a_csv_are_numbers(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("label,logit_0,logit_1\n0,1,2\n1,3,4.5\n")
    assert Predictions.load(file).values.tolist() == [[1, 2], [3, 4.5]]


# -- broken files ---------------------------------------------------------------------------------


def numbered(stem, values):
    return {f"{stem}_{c}": values[:, c] for c in range(values.shape[1])}


TABLES = {
    "no label": (numbered("logit", LOGITS), "a column named label"),
    "no scores": ({"label": LABELS}, "logits or probs"),
    "both": ({"label": LABELS} | numbered("logit", LOGITS) | numbered("prob", PROBS), "both"),
    "a hole": ({"label": LABELS, "logit_0": LABELS, "logit_2": LABELS}, "a column named logit_1"),
    "text": ({"label": LABELS, "logit_0": LABELS, "logit_1": ["x"] * 7}, "column logit_1: expected numbers"),
    "empty cells": ({"label": LABELS, "logit_0": LABELS, "logit_1": [1.0, None] + [2.0] * 5}, "1 empty cells"),
    "empty labels": ({"label": [None, *LABELS[1:]]} | numbered("logit", LOGITS), "1 empty cells"),
    "text labels": ({"label": ["cat"] * 7} | numbered("logit", LOGITS), "integers"),
    "labels out of range": ({"label": [3] * 7} | numbered("logit", LOGITS), r"0\.\.2"),
    "one class": ({"label": [0] * 7, "logit_0": LABELS}, "two columns"),
    "not a number": ({"label": LABELS} | numbered("logit", np.where(LOGITS > 1, np.nan, LOGITS)), "finite"),
    "logits as probs": ({"label": LABELS} | numbered("prob", LOGITS), "from_logits"),
}


@pytest.mark.parametrize("broken", TABLES)
def test_broken_tables_are_refused(tmp_path, table_suffix, broken):
    columns, says = TABLES[broken]
    file = tmp_path / f"p{table_suffix}"
    write_table(file, columns)
    with pytest.raises(InputError, match=says):
        Predictions.load(file)


ARCHIVES = {
    "no labels": ({"logits": LOGITS}, "an array named labels"),
    "no scores": ({"labels": LABELS}, "logits or probs"),
    "both": ({"labels": LABELS, "logits": LOGITS, "probs": PROBS}, "both"),
    "nothing": ({}, "nothing"),
    "other names": ({"y": LABELS, "z": LOGITS}, "only y, z"),
    "text": ({"labels": LABELS, "logits": LOGITS.astype(str)}, "numbers"),
    "labels out of range": ({"labels": [3] * 7, "logits": LOGITS}, r"0\.\.2"),
    "one row": ({"labels": [0], "logits": LOGITS[:1]}, "two rows"),
}


@pytest.mark.parametrize("broken", ARCHIVES)
def test_broken_archives_are_refused(tmp_path, broken):
    arrays, says = ARCHIVES[broken]
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(InputError, match=says):
        Predictions.load(tmp_path / "p.npz")


def test_lists_with_less_than_two_numbers_are_refused(tmp_path):
    file = tmp_path / "p.parquet"
    for rows, says in (
        ([[1.0, 2.0], [1.0]], "at least two scores in every row, got 1 empty cells, one of them in row 1"),
        ([[1.0, None], [1.0, 2.0]], "at least two scores in every row, got 1 empty cells, one of them in row 0"),
        ([[1.0, 2.0], None], r"a score in every row, got none in 1 of 2 rows \(50.0 %\)"),
    ):
        pl.DataFrame({"label": [0, 1], "logits": rows}).write_parquet(file)
        with pytest.raises(InputError, match=says):
            Predictions.load(file)
    pl.DataFrame({"label": [0, 1], "logits": [1.0, 2.0]}).write_parquet(file)
    with pytest.raises(InputError, match="a list of numbers"):
        Predictions.load(file)


class Trap:
    """Unpickled, it would make a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


def test_pickled_archives_are_refused_and_not_run(tmp_path):
    trap = np.array([Trap(str(tmp_path / "sprung"))], dtype=object)
    for arrays in ({"logits": trap, "labels": LABELS}, {"logits": LOGITS, "labels": LABELS, "ids": trap}):
        np.savez(tmp_path / "p.npz", **arrays)
        with pytest.raises(InputError, match="pickled"):
            Predictions.load(tmp_path / "p.npz")
    (tmp_path / "p.npz").write_bytes(pickle.dumps(trap))
    with pytest.raises(InputError):
        Predictions.load(tmp_path / "p.npz")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("kept", [0.02, 0.5, 0.9, 0.99])
def test_truncated_files_are_refused(tmp_path, kept):
    for suffix in (".npz", ".parquet"):
        file = tmp_path / f"p{suffix}"
        Predictions.from_logits(LOGITS, LABELS).save(file)
        whole = file.read_bytes()
        file.write_bytes(whole[: int(len(whole) * kept)])
        with pytest.raises(InputError, match="damaged"):
            Predictions.load(file)


def test_a_changed_byte_is_refused_or_changes_no_number(tmp_path):
    """Each byte in turn: a checksum covers those of an array; of the others some, such as a time, are never read."""
    file = tmp_path / "p.npz"
    Predictions.from_logits(LOGITS, LABELS).save(file)
    whole = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    starts = [one.header_offset + 30 + len(one.filename.encode()) for one in members]
    extras = [int.from_bytes(whole[one.header_offset + 28 : one.header_offset + 30], "little") for one in members]
    arrays = {
        place
        for one, start, extra in zip(members, starts, extras, strict=True)
        for place in range(start + extra, start + extra + one.compress_size)
    }
    harmless = set()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        file.write_bytes(damaged)
        try:
            p = Predictions.load(file)
        except InputError:
            continue
        harmless.add(place)
        assert np.array_equal(p.values, LOGITS)
        assert p.labels.tolist() == LABELS
    assert len(arrays) > 100
    assert not harmless & arrays
    assert harmless  # else nothing would be read at all


def test_other_content_under_our_suffix_is_refused(tmp_path, suffix):
    file = tmp_path / f"p{suffix}"
    for content in (b"hello\n", b"\x00" * 100, b"PK\x03\x04 not really", b"PAR1 not really PAR1"):
        file.write_bytes(content)
        with pytest.raises(InputError):
            Predictions.load(file)


def test_one_array_under_the_name_of_an_archive_is_refused(tmp_path):
    with (tmp_path / "p.npz").open("wb") as stream:
        np.save(stream, LOGITS)
    with pytest.raises(InputError):
        Predictions.load(tmp_path / "p.npz")


def test_empty_files_are_refused(tmp_path, suffix):
    (tmp_path / f"p{suffix}").touch()
    with pytest.raises(InputError, match="an empty file"):
        Predictions.load(tmp_path / f"p{suffix}")


def test_a_table_without_rows_is_refused(tmp_path, table_suffix):
    file = tmp_path / f"p{table_suffix}"
    write_table(file, {"label": [0], "logit_0": [0.0], "logit_1": [0.0]})
    if table_suffix == ".csv":
        file.write_text("label,logit_0,logit_1\n")
    else:
        pl.read_parquet(file).clear().write_parquet(file)
    with pytest.raises(InputError):
        Predictions.load(file)
    with pytest.raises(InputError):
        list(read_batches(file, 10))


def test_a_missing_file_names_its_neighbours(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        Predictions.load(tmp_path / "p.npz")
    Predictions.from_logits(LOGITS, LABELS).save(tmp_path / "test.npz")
    with pytest.raises(InputError, match=r"test\.npz"):
        Predictions.load(tmp_path / "p.npz")
    with pytest.raises(InputError, match="no such file"):
        Predictions.load(tmp_path / "no" / "folder" / "p.npz")


def test_folders_and_unknown_suffixes_are_refused(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(InputError, match="a folder"):
        Predictions.load(tmp_path / "folder.npz")
    for name in ("p.pkl", "p.json", "p"):
        (tmp_path / name).write_text("x")
        with pytest.raises(InputError, match=r"\.npz, \.parquet, \.csv"):
            Predictions.load(tmp_path / name)
        with pytest.raises(InputError, match=r"\.npz, \.parquet, \.csv"):
            Predictions.from_logits(LOGITS, LABELS).save(tmp_path / name)
        assert (tmp_path / name).read_text() == "x"


# -- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3, 6, 7, 100])
def test_batches_together_are_the_file(tmp_path, table_suffix, rows):
    """Also when the last batch, or every batch, is a single row."""
    file = tmp_path / f"p{table_suffix}"
    Predictions.from_logits(LOGITS, LABELS, ids=IDS["integers"], features=LOGITS[:, :2]).save(file)
    whole, parts = Predictions.load(file), list(read_batches(file, rows))
    assert [part.n for part in parts] == [min(rows, 7 - start) for start in range(0, 7, rows)]
    for name in ("values", "labels"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


def test_batches_carry_scores_and_labels_only(tmp_path, table_suffix):
    """Ids that look like numbers in one batch and like text in another do no harm."""
    ids = ["1", "2", "3", "4", "e", "f", "g"]
    file = tmp_path / f"p{table_suffix}"
    Predictions.from_logits(LOGITS, LABELS, ids=ids).save(file)
    assert Predictions.load(file).ids.tolist() == ids
    assert [part.ids for part in read_batches(file, 4)] == [None, None]


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_quoted_line_breaks_are_read(tmp_path, rows):
    """A quoted cell may hold a line break: rows are not lines, and must not be mixed up."""
    file = tmp_path / "p.csv"
    ids = ["a\nb", "c", "d\n\ne", "f", "g", "h", "i"]
    Predictions.from_logits(LOGITS, LABELS, ids=ids).save(file)
    assert Predictions.load(file).ids.tolist() == ids
    assert [i for part in read_batches(file, rows) for i in part.labels.tolist()] == list(LABELS)


def test_windows_line_ends_and_a_missing_last_one_are_read(tmp_path):
    file = tmp_path / "p.csv"
    file.write_bytes(b"label,logit_0,logit_1\r\n0,1.5,2\r\n1,3,4\r\n0,5,6\r\n1,7,8")
    assert Predictions.load(file).values.tolist() == [[1.5, 2], [3, 4], [5, 6], [7, 8]]
    assert [part.values.tolist() for part in read_batches(file, 2)] == [[[1.5, 2], [3, 4]], [[5, 6], [7, 8]]]


def test_wide_tables_are_streamed_in_linear_time(tmp_path, monkeypatch):
    """A list of all names is asked for as often of many columns as of few."""
    asked, usual = [], pl.DataFrame.columns
    counts = []
    for k in (50, 500):
        scores = {f"logit_{i}": [0.5, 1.0] for i in range(k)}
        pl.DataFrame({**scores, "label": [0, 1]}).write_csv(tmp_path / "wide.csv")
        with monkeypatch.context() as patch:
            patch.setattr(pl.DataFrame, "columns", property(lambda frame: asked.append(1) or usual.fget(frame)))
            assert [part.k for part in read_batches(tmp_path / "wide.csv", 1)] == [k, k]
        counts.append(len(asked))
        asked.clear()
    assert counts[0] == counts[1]


def test_an_error_in_a_batch_says_where(tmp_path, table_suffix):
    file = tmp_path / f"p{table_suffix}"
    write_table(file, {"label": [0, 1, 0, 1, 0, 5], "logit_0": [0.5] * 6, "logit_1": [1.5] * 6})
    batches = read_batches(file, 2)
    assert next(batches).n == 2
    assert next(batches).n == 2
    with pytest.raises(InputError, match="rows from 4 on"):
        next(batches)


def test_archives_are_not_streamed(tmp_path):
    Predictions.from_logits(LOGITS, LABELS).save(tmp_path / "p.npz")
    with pytest.raises(InputError, match="to stream"):
        next(read_batches(tmp_path / "p.npz", 3))


def test_the_share_of_seen_rows_in_an_archive_is_one_number(tmp_path):
    arrays = {"probs": np.eye(3), "labels": np.arange(3)}
    np.savez(tmp_path / "p.npz", **arrays, seen=0.25)
    assert Predictions.load(tmp_path / "p.npz", allow_few_rows=True).row_data.seen == 0.25
    for wrong in ([0.5, 0.25, 0.0], [0.5], [[0.5]]):
        np.savez(tmp_path / "p.npz", **arrays, seen=wrong)
        with pytest.raises(InputError, match=r"array seen: expected one number, got shape"):
            Predictions.load(tmp_path / "p.npz", allow_few_rows=True)
