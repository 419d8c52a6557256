"""Compressed and rotated files, and standard input."""

import gzip
import io

import numpy as np
import pytest

from calibrant import InputError, Predictions
from calibrant.core.predictions.load import read_batches

CSV = "confidence,correct\n0.9,1\n0.4,0\n0.7,1\n"
JSONL = '{"confidence": 0.9, "correct": 1}\n{"confidence": 0.4, "correct": 0}\n{"confidence": 0.7, "correct": 1}\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.csv.gz", CSV), ("p.jsonl.gz", JSONL), ("p.jsonl.1", JSONL), ("p.csv.12", CSV), ("p.jsonl.2.gz", JSONL)],
)
def test_compressed_and_rotated_files_are_read(tmp_path, name, text):
    file = tmp_path / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert Predictions.load(file).score.tolist() == [0.9, 0.4, 0.7]
    assert [p.n for p in read_batches(file, 2)] == [2, 1]


@pytest.mark.parametrize("text", [CSV, JSONL])
def test_standard_input_is_read(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert Predictions.load("-").outcome.tolist() == [True, False, True]


def test_an_archive_may_come_from_standard_input(monkeypatch):
    stream = io.BytesIO()
    np.savez(stream, probs=np.full((3, 2), 0.5), labels=[0, 1, 1])
    stream.seek(0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
    assert Predictions.load("-").n == 3


def test_errors_name_the_file_that_the_user_knows(tmp_path, monkeypatch):
    file = tmp_path / "p.csv.gz"
    file.write_bytes(gzip.compress(b"confidence,right\n0.9,1\n"))
    with pytest.raises(InputError, match=r"^\S*p\.csv\.gz: expected a column named correct") as error:
        Predictions.load(file)
    assert "calibrant-" not in str(error.value)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"confidence,correct\n2,1\n3,0\n")))
    with pytest.raises(InputError, match=r"^standard input: confidence: expected probabilities"):
        Predictions.load("-")


def test_damaged_and_endless_archives_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "p.csv.gz"
    file.write_bytes(gzip.compress(CSV.encode())[:-6])
    with pytest.raises(InputError, match="a damaged one"):
        Predictions.load(file)
    monkeypatch.setattr("calibrant.core.io.size_limits.FREE_BYTES", 1 << 16)
    file.write_bytes(gzip.compress(b"confidence,correct\n" + b"0" * (1 << 22)))
    with pytest.raises(InputError, match=r"p\.csv\.gz: expected at most .* of numbers"):
        Predictions.load(file)


class SlowPipe(io.BytesIO):
    """Gives a few bytes at a time, as a pipe of a running program does."""

    def __init__(self, text, size):
        super().__init__(text.encode())
        self.size = size

    def read1(self, most=-1):
        return super().read1(self.size)


@pytest.mark.parametrize("size", [1, 7, 25])
@pytest.mark.parametrize("text", [CSV, JSONL, CSV.rstrip("\n"), JSONL.rstrip("\n")])
def test_standard_input_is_read_as_it_arrives(monkeypatch, text, size):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(SlowPipe(text, size)))
    batches = list(read_batches("-", 100))
    assert np.concatenate([p.score for p in batches]).tolist() == [0.9, 0.4, 0.7]
    assert np.concatenate([p.outcome for p in batches]).tolist() == [True, False, True]
    assert len(batches) > 1


def test_a_line_break_in_quotes_does_not_end_a_row_of_standard_input(monkeypatch):
    text = 'group,confidence,correct\n"a\nb",0.9,1\n"c",0.4,0\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(SlowPipe(text, 3)))
    assert [p.groups.tolist() for p in read_batches("-", 100)] == [["a\nb"], ["c"]]


def test_nothing_on_standard_input_is_an_error(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(InputError, match="standard input: expected predictions, got nothing"):
        Predictions.load("-")
