"""The first rows of files, whatever their columns are."""

import gzip

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.io.preview import MOST_COLUMNS, preview


def test_tables_show_their_first_rows(tmp_path):
    text = "p,y,note\n" + "".join(f"0.{i}25,{i % 2},word {i}\n" for i in range(9))
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.csv", "b.csv.gz"):
        table = preview(tmp_path / name, rows=2)
        assert table.names == table.head == ("p", "y", "note")
        assert table.rows == (("0.025", "0", "word 0"), ("0.125", "1", "word 1"))
    (tmp_path / "c.jsonl").write_text('{"confidence": 0.5, "correct": true}\n{"confidence": 0.25, "correct": false}\n')
    assert preview(tmp_path / "c.jsonl").rows == (("0.5", "True"), ("0.25", "False"))


def test_archives_show_their_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", values=np.zeros((7, 3), np.float32), y=np.arange(7))
    table = preview(tmp_path / "a.npz")
    assert table.names == ("values", "y")
    assert table.rows == (("values", "7 x 3", "float32"), ("y", "7", "int64"))


def test_many_columns_and_long_cells_are_cut(tmp_path):
    names = [f"c{i}" for i in range(40)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(["x" * 99] * 40) + "\n")
    table = preview(tmp_path / "a.csv")
    assert len(table.names) == 40
    assert len(table.head) == len(table.rows[0]) == MOST_COLUMNS
    assert table.rows[0][0] == "x" * 24 + "..."


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(cal.InputError, match="damaged"):
        preview(tmp_path / "a.npz")
