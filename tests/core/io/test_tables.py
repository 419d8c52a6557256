"""Tables are read by their own name, in linear time and bounded memory, and odd columns are refused in words."""

import datetime
import gzip
import io
import os
import time
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.core.io import size_limits, tables
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.load import load_predictions, read_batches

LOGITS = np.random.default_rng(0).normal(size=(6, 3))
LABELS = np.array([0, 1, 2, 0, 1, 2])
NAMES = ["q*", "p[1]", "what?", "two words", "new\nline", "a=3", "~", "{a,b}", "#%20", "é", os.fsdecode(b"caf\xe9")]


@pytest.fixture(params=[".npz", ".parquet", ".csv"])
def suffix(request):
    return request.param


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_one_file(tmp_path, suffix, name):
    """Neighbours that a pattern would match hold other rows."""
    p = Predictions.from_logits(LOGITS, LABELS)
    p.take([0, 1, 2]).save(tmp_path / f"qq{suffix}")
    p.take([0, 1, 2]).save(tmp_path / f"p1{suffix}")
    folder = tmp_path / name
    for file in (tmp_path / f"{name}{suffix}", folder / f"p{suffix}"):
        p.save(file)
        assert np.array_equal(Predictions.load(file).values, LOGITS)
        if suffix != ".npz":
            assert sum(q.n for q in read_batches(file, 4)) == 6


def test_a_pattern_that_is_no_file_is_refused(tmp_path):
    Predictions.from_logits(LOGITS, LABELS).save(tmp_path / "q1.parquet")
    with pytest.raises(InputError, match="no such file"):
        Predictions.load(tmp_path / "q*.parquet")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(InputError, match="a pipe or a device"):
        Predictions.load(tmp_path / "p.csv")


# -- linear time, bounded memory ------------------------------------------------------------------


def lines(n):
    return ["label,logit_0,logit_1", *(f"{i % 2},{i / n},0.5" for i in range(n))]


@pytest.mark.parametrize("place", [1, 15_000])
def test_a_stray_quote_takes_no_longer_than_the_file(tmp_path, place):
    rows = lines(30_000)
    rows[place] = rows[place].replace(",", ',"', 1)
    (tmp_path / "p.csv").write_text("\n".join(rows))
    begun = time.process_time()
    with pytest.raises(InputError):
        list(read_batches(tmp_path / "p.csv", 100))
    assert time.process_time() - begun < 5  # joining the block anew for every line took minutes


def test_a_quote_that_never_closes_is_refused_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LINE_BYTES", 1000)
    (tmp_path / "p.csv").write_text("\n".join(lines(10)) + '\n0,"1,2\n' + "\n".join(["0,1,1"] * 1000))
    with pytest.raises(InputError, match="is a quote not closed"):
        list(read_batches(tmp_path / "p.csv", 5))
    (tmp_path / "p.csv").write_text("label,logit_0,logit_1\n0," + "1" * 2000)
    with pytest.raises(InputError, match="less than 0 MiB, got a longer one"):
        list(read_batches(tmp_path / "p.csv", 5))


def test_wide_tables_take_linear_time(tmp_path):
    """With a search among all names for every column it were 49 million comparisons."""
    k = 7000
    names = [f"logit_{c}" for c in range(k)]
    (tmp_path / "p.csv").write_text(",".join(["label", *names]) + "\n" + (",".join(["1"] + ["0.5"] * k) + "\n") * 2)
    begun = time.process_time()
    p = load_predictions(tmp_path / "p.csv", allow_few_rows=True)
    assert p.k == k
    assert time.process_time() - begun < 8


def test_rows_of_a_batch_are_fewer_where_rows_are_long(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_CELLS", 8)  # 4 columns: two rows at a time
    for name in ("p.csv", "p.parquet"):
        Predictions.from_logits(LOGITS, LABELS).save(tmp_path / name)
        parts = list(read_batches(tmp_path / name, 100))
        assert [part.n for part in parts] == [2, 2, 2]
        assert np.array_equal(np.concatenate([part.values for part in parts]), LOGITS)


@pytest.mark.parametrize("packed", [gzip.compress, lambda data: b"\x28\xb5\x2f\xfd" + data, lambda data: b"BZh" + data])
def test_compressed_text_is_refused_before_it_is_unpacked(tmp_path, packed):
    (tmp_path / "p.csv").write_bytes(packed("\n".join(lines(10)).encode()))
    for read in (load_predictions, lambda file: list(read_batches(file, 5))):
        with pytest.raises(InputError, match=r"expected plain text, got a .* archive"):
            read(tmp_path / "p.csv")


def test_tables_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    """Short rows under a long header, and a column that Parquet stores once for all rows."""
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 20)
    names = ",".join(f"logit_{c}" for c in range(1000))
    (tmp_path / "p.csv").write_text(f"label,{names}\n" + "1\n" * 20_000)
    pl.DataFrame({f"logit_{c}": np.zeros(100_000) for c in range(3)}).write_parquet(tmp_path / "p.parquet")
    for name in ("p.csv", "p.parquet"):
        with pytest.raises(InputError, match=r"at most 0\.0 GiB of numbers \(100 times its size\), got"):
            load_predictions(tmp_path / name)


def test_one_long_id_is_refused_where_it_would_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 20)
    ids = ["a"] * 1999 + ["b" * 5000]
    table = pl.DataFrame({"label": [0, 1] * 1000, "logit_0": [0.5] * 2000, "logit_1": [0.5] * 2000, "id": ids})
    table.write_parquet(tmp_path / "p.parquet")
    with pytest.raises(InputError, match="of numbers"):
        load_predictions(tmp_path / "p.parquet")


def test_the_memory_of_the_machine_is_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "_memory", lambda: 1000)
    Predictions.from_logits(np.zeros((100, 3)), [0] * 100).save(tmp_path / "p.parquet")
    with pytest.raises(InputError, match="the memory of this machine"):
        load_predictions(tmp_path / "p.parquet")


def test_what_polars_prints_is_dropped_with_its_error_and_kept_without(capfd):
    """It writes to the terminal itself, past Python: pages of Rust for one damaged byte."""

    def read(damaged):
        with tables._quiet():
            os.write(2, b"thread panicked at ...")
            if damaged:
                raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        read(damaged=True)
    assert capfd.readouterr().err == ""
    read(damaged=False)
    assert capfd.readouterr().err == "thread panicked at ..."


# -- odd columns ----------------------------------------------------------------------------------

DAY = datetime.date(2020, 1, 1)
ODD = {
    "dates": [DAY] * 6,
    "times": [datetime.datetime(2020, 1, 1)] * 6,
    "ragged lists": [[1], [1, 2], [], [3], [4], [5]],
    "lists": [[1, 2]] * 6,
    "structs": [{"a": 1}] * 6,
    "decimals": [Decimal("1.5")] * 6,
    "bytes that are no text": [b"\xff\xfe"] * 6,
    "empty": [None] * 6,
    "minus one": [-1.0] * 6,
    "text": ["x"] * 6,
    "not a number": [float("nan")] * 6,
    "too large": [2**70] * 6,
    "booleans": [True] * 6,
}
FITTING = {("seen", "booleans"), ("predicted", "booleans"), ("label", "booleans"), ("id", "text"), ("group", "text")}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("column", ["seen", "id", "group", "predicted", "label", "logits", "logit_1"])
def test_odd_columns_are_refused_in_words(tmp_path, column, what):
    scores = {} if column == "logits" else {f"logit_{c}": LOGITS[:, c] for c in range(3)}
    dtype = pl.Int128 if what == "too large" else None
    table = pl.DataFrame({"label": LABELS, **scores}).with_columns(pl.Series(column, ODD[what], dtype=dtype))
    table.write_parquet(tmp_path / "p.parquet")
    if (column, what) in FITTING or (column == "logit_1" and what in ("decimals", "minus one", "too large")):
        assert Predictions.load(tmp_path / "p.parquet").n == 6
        return
    if column == "logits" and what == "lists":
        return  # which is how logits may be written
    with pytest.raises(InputError, match=r"p\.parquet"):
        Predictions.load(tmp_path / "p.parquet")


def test_labels_of_128_bits_are_labels(tmp_path):
    scores = {f"logit_{c}": LOGITS[:, c] for c in range(3)}
    pl.DataFrame({"label": pl.Series(LABELS, dtype=pl.Int128), **scores}).write_parquet(tmp_path / "p.parquet")
    assert np.array_equal(Predictions.load(tmp_path / "p.parquet").labels, LABELS)


def test_ids_of_bytes_may_be_any_text(tmp_path):
    ids = [f"é{i}" for i in range(6)]
    scores = {f"logit_{c}": LOGITS[:, c] for c in range(3)}
    table = pl.DataFrame({"label": LABELS, "id": [one.encode() for one in ids], **scores})
    table.write_parquet(tmp_path / "p.parquet")
    assert Predictions.load(tmp_path / "p.parquet").ids.tolist() == ids


@pytest.mark.parametrize("header", ["prob_²", "prob_" + "7" * 5000, "prob_02", "prob_٢"])
def test_odd_numbers_in_a_header_are_refused(tmp_path, header):
    rows = "0,0.5,0.25,0.25\n1,0.5,0.25,0.25\n" * 3
    (tmp_path / "p.csv").write_text(f"label,prob_0,prob_1,{header}\n{rows}")
    with pytest.raises(InputError, match="a column named prob_2") as error:
        Predictions.load(tmp_path / "p.csv")
    assert len(str(error.value)) < 1000


def test_lists_as_arrays_of_one_width_are_read(tmp_path):
    values = pl.Series("logits", LOGITS, dtype=pl.Array(pl.Float64, 3))
    pl.DataFrame({"label": LABELS, "logits": values}).write_parquet(tmp_path / "p.parquet")
    assert np.array_equal(Predictions.load(tmp_path / "p.parquet").values, LOGITS)


# -- archives -------------------------------------------------------------------------------------


def npy(header, data=b"", version=b"\x01\x00"):
    text = header if isinstance(header, bytes) else header.encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def archive(path, **members):
    import zipfile

    whole = {"labels": LABELS, "logits": LOGITS, **members}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for name, data in whole.items():
            if not isinstance(data, bytes):
                buffer = io.BytesIO()
                np.save(buffer, data)
                data = buffer.getvalue()
            zip_file.writestr(f"{name}.npy", data)


HEADERS = {
    "30 GiB": "{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000, 2), }\n",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-6, -3), }\n",
    "no bytes": "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }\n",
    "overflow": "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n",
    "a call": "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (6, 3), }\n",
    "not closed": "{'descr': '<f8', 'fortran_order': False, 'shape': (6, 3",
    "deep": "(" * 5000,
    "text": "hello\n",
    "empty": "",
    "bytes": b"\xff\xfe\x00",
    "other keys": "{'a': 1}\n",
    "odd type": "{'descr': 'zz', 'fortran_order': False, 'shape': (6, 3), }\n",
    "nested type": "{'descr': [('a', '<f8', (1000000, 1000000))], 'fortran_order': False, 'shape': (6, 3), }\n",
}


@pytest.mark.parametrize("what", HEADERS)
@pytest.mark.parametrize("name", ["logits", "labels", "ids"])
def test_broken_headers_of_arrays_are_refused(tmp_path, what, name):
    archive(tmp_path / "p.npz", **{name: npy(HEADERS[what], bytes(144))})
    with pytest.raises(InputError, match=r"p\.npz"):
        Predictions.load(tmp_path / "p.npz")


def test_archives_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "p.npz", logits=np.zeros((100_000, 3)), labels=LABELS)
    with pytest.raises(InputError, match=r"at most 0\.0 GiB of numbers"):
        Predictions.load(tmp_path / "p.npz")


def test_arrays_that_nobody_asks_for_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "p.npz", logits=LOGITS, labels=LABELS, losses=np.zeros(10**6))
    assert Predictions.load(tmp_path / "p.npz").n == 6


ARRAYS = {
    "text": np.array(["x"] * 6),
    "complex": np.ones(6, dtype=complex),
    "dates": np.array(["2020-01-01"] * 6, dtype="datetime64[D]"),
    "bytes": np.array([b"\xff\xff"] * 6),
    "no characters": np.full(6, 0x11FFFF, dtype=np.uint32).view("<U1"),
    "half a character": np.full(6, 0xD800, dtype=np.uint32).view("<U1"),
    "records": np.zeros(6, dtype=[("a", "f8")]),
    "nothing": np.empty((0,)),
    "too few": np.zeros(2),
    "minus one": np.full(6, -1),
    "not a number": np.full(6, np.nan),
}


@pytest.mark.parametrize("what", ARRAYS)
@pytest.mark.parametrize("name", ["seen", "ids", "groups", "predicted", "labels", "logits", "features"])
def test_odd_arrays_are_refused_in_words(tmp_path, name, what):
    np.savez(tmp_path / "p.npz", **{"logits": LOGITS, "labels": LABELS, name: ARRAYS[what]})
    fits = {("ids", "text"), ("groups", "text"), ("ids", "minus one"), ("groups", "minus one")}
    if (name, what) in fits:
        assert Predictions.load(tmp_path / "p.npz").n == 6
        return
    with pytest.raises(InputError, match=r"p\.npz"):
        Predictions.load(tmp_path / "p.npz")


def test_a_csv_of_many_short_rows_is_refused_at_once(tmp_path):
    """Polars would fill up each of them: 2.5 MB took more than five minutes."""
    header = ",".join(f"c{i}" for i in range(3000)) + ",confidence,correct\n"
    (tmp_path / "short.csv").write_text(header + "1\n" * 1_200_000)
    with pytest.raises(InputError, match="expected rows with a cell for each of 3,002 columns"):
        list(read_batches(tmp_path / "short.csv", 100_000))
