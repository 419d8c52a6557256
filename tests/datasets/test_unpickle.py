"""Pickles are read as data: everything numpy and Python write comes back, nothing is ever run."""

import bz2
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.datasets._unpickle import read_pickled

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def contents():
    rng = np.random.default_rng(0)
    twice = rng.normal(size=2)
    return {
        "data": rng.integers(0, 256, (7, 12), dtype=np.uint8),
        "labels": [1, 2, 300, 70_000, -5, 2**40, -(2**70), True, False, None, 2.5],
        "fortran": np.asfortranarray(rng.normal(size=(3, 4))),
        "nested": [np.arange(3, dtype=">i4"), {"a": (1.5, "é☃", b"\xff\x00", b"")}, [], {}, ()],
        "tuples": ((1,), (1, 2), (1, 2, 3), (1, 2, 3, np.arange(2))),
        "scalars": [np.float32(3.5), np.int64(-3), np.bool_(True)],
        "twice": [twice, twice],
        "flags": np.array([True, False]),
        "none": np.zeros((0, 3)),
        "point": np.array(3),
        "read only": np.frombuffer(b"abcd", dtype=np.uint8),
        "steps": np.arange(20)[::2],
        "words": np.array(["ab", "c"]),
        "raw": np.array([b"ab", b"c"]),
        "sets": [{1, 2, "a"}, set()],
        "many": list(range(3000)),
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("key", [str, str.encode], ids=["str", "bytes"])
def test_comes_back_as_it_was(tmp_path, protocol, key):
    file = tmp_path / "batch"
    file.write_bytes(pickle.dumps({key(name): value for name, value in contents().items()}, protocol))
    batch = read_pickled(file)
    assert list(batch) == list(contents())
    np.testing.assert_equal(batch, contents())
    for name, value in contents().items():
        if isinstance(value, np.ndarray):
            assert batch[name].dtype == value.dtype


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ordered_dictionaries_are_dictionaries(tmp_path, protocol):
    marked = OrderedDict([("b", OrderedDict()), ("a", 1)])
    marked.attribute = "an attribute is no data"
    (tmp_path / "batch").write_bytes(pickle.dumps(marked, protocol))
    batch = read_pickled(tmp_path / "batch")
    assert list(batch.items()) == [("b", {}), ("a", 1)]


@pytest.mark.parametrize("name", ["batch.bz2", "batch.pbz2"])
def test_files_packed_by_bz2(tmp_path, name):
    (tmp_path / name).write_bytes(bz2.compress(pickle.dumps({"a": 1})))
    assert read_pickled(tmp_path / name) == {"a": 1}
    (tmp_path / name).write_bytes(b"no bz2")
    with pytest.raises(InputError, match="expected a whole file"):
        read_pickled(tmp_path / name)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_byte_arrays_come_back_as_bytes(tmp_path, protocol):
    (tmp_path / "batch").write_bytes(pickle.dumps({"a": bytearray(b"a\xff")}, protocol))
    assert bytes(read_pickled(tmp_path / "batch")["a"]) == b"a\xff"


RAW = bytes([0, 10, 39, 92, 200, 255])  # with a line break, a quote and a backslash
PYTHON_2 = (  # what Python 2's cPickle writes at protocol 2: texts and arrays are byte strings
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05"
    b"(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff"
    b"K\x00tb\x89U\x06" + RAW + b"tbU\x06labelsq\x08]q\x09(K\x06K\x09e"
    b"U\x0bbatch_labelq\x0aU\x14training batch 1 of5q\x0bu."
)
PYTHON_2_TEXT = (  # and at protocol 0
    b"(dp0\nS'data'\np1\ncnumpy.core.multiarray\n_reconstruct\np2\n(cnumpy\nndarray\np3\n(I0\ntS'b'\ntRp4\n"
    b"(I1\n(I2\nI3\ntcnumpy\ndtype\np5\n(S'u1'\nI0\nI1\ntRp6\n(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\n"
    b"S\"\\x00\\n'\\\\\\xc8\\xff\"\ntbsS'labels'\np7\n(lp8\nI6\naI9\nasS'batch_label'\nS'training batch 1 of5'\ns."
)


@pytest.mark.parametrize("content", [PYTHON_2, PYTHON_2_TEXT], ids=["protocol 2", "protocol 0"])
def test_python_2(tmp_path, content):
    (tmp_path / "batch").write_bytes(content)
    batch = read_pickled(tmp_path / "batch")
    assert batch["data"].tolist() == [[0, 10, 39], [92, 200, 255]]
    assert batch["labels"] == [6, 9]
    assert batch["batch_label"] == "training batch 1 of5"
    np.testing.assert_equal(batch, pickle.loads(content, encoding="latin1"))  # our own bytes


class Runs:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


class Plain:
    pass


MARK = "calibrant_pickle_was_run"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "bad",
    [
        Runs(os.system, f"touch {MARK}"),
        Runs(eval, "1"),
        Runs(getattr, "a", "upper"),
        Runs(np.load, "x"),
        Plain(),
        Plain,
        np.load,
        frozenset({1, 2}),
        np.array([{}], dtype=object),
        np.zeros(2, dtype=[("a", int)]),
        1j,
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_code_is_refused(tmp_path, monkeypatch, protocol, bad):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batch").write_bytes(pickle.dumps({"data": bad}, protocol))
    with pytest.raises(InputError, match="this file contains code, and code is never run"):
        read_pickled(tmp_path / "batch")
    assert not (tmp_path / MARK).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cposix\nsystem\n(S'touch x'\ntR.",
        b"(iposix\nsystem\n.",
        b"(cposix\nsystem\nS'x'\no.",
        b"\x80\x02cnumpy\ndtype\n)\x81.",
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93.",
        b"\x82\x01.",
        b"Pid\n.",
        b"\x80\x05\x97.",
        b"(S'a'\ntS'b'\nR.",
        b"c_codecs\nencode\n(S'x'\nS'rot13'\ntR.",
        b"cnumpy\nndarray\n(I3\ntR.",
        b"]N}b.",
    ],
)
def test_instructions_that_call_are_refused(tmp_path, content):
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(InputError, match="never run"):
        read_pickled(tmp_path / "batch")


def test_only_a_dictionary_will_do(tmp_path):
    (tmp_path / "batch").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(InputError, match="expected a dictionary, got a list"):
        read_pickled(tmp_path / "batch")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_damaged_files_give_a_clear_error_or_data(tmp_path, protocol):
    """Cut anywhere it is refused; with bytes changed it is refused or still a dictionary."""
    names = ("data", "labels", "nested", "scalars")
    whole = pickle.dumps({name: contents()[name] for name in names}, protocol)
    rng, file = np.random.default_rng(protocol), tmp_path / "batch"
    for cut in rng.integers(0, len(whole) - 1, 60):
        file.write_bytes(whole[:cut])
        with pytest.raises(InputError):
            read_pickled(file)
    refused = 0
    for _ in range(150):
        changed = bytearray(whole)
        for place in rng.integers(0, len(whole), 2):
            changed[place] = rng.integers(256)
        file.write_bytes(bytes(changed))
        try:
            assert isinstance(read_pickled(file), dict)
        except InputError:
            refused += 1
    assert 0 < refused < 150  # pixels may change unseen, instructions may not
