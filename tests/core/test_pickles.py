"""Pickles of a few bytes that describe huge or deep values are refused before anything is built."""

import io
import pickle
import struct
import time

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from calibrant import InputError
from calibrant.core.pickles import check_nesting
from calibrant.core.torch.checkpoint import load_weights
from calibrant.datasets._unpickle import read_pickled

DOUBLED = b")" + b"2\x86" * 40  # a pair of pairs of pairs ...: 2^40 empty tuples to hash
BOMBS = {
    "doubled key": b"}" + DOUBLED + b"K\x01s",
    "doubled member of a set": b"}X\x01\0\0\0a\x8f(" + DOUBLED + b"\x90s",
    "doubled name": b"N\x85" + b"2\x86" * 28 + b"X\x01\0\0\0x\x93",
    "deep key": b"})" + b"\x85" * 1_000_000 + b"K\x01s",
    "less deep key": b"})" + b"\x85" * 20_000 + b"K\x01s",
    "deep name": b")" + b"\x85" * 100_000 + b"X\x01\0\0\0x\x93",
    "long number as a key": b"}\x8b" + struct.pack("<i", 2_000_000) + b"\x01" * 2_000_000 + b"K\x01s",
    "no bytes": b"}X\x01\0\0\0acnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    b"(K\x01K\x05\x85cnumpy\ndtype\nX\x02\0\0\0u1\x85R\x89\x8a\x08" + struct.pack("<q", 20_000_000_000) + b"tbs",
    "a type that is a list": b"}X\x01\0\0\0acnumpy\ndtype\n](X\x01\0\0\0aX\x02\0\0\0i4\x86e\x85Rs",
}


@pytest.mark.parametrize("name", BOMBS)
def test_data_sets_refuse_in_one_line_at_once(name, tmp_path):
    file = tmp_path / "data_batch_1"
    file.write_bytes(b"\x80\x04" + BOMBS[name] + b".")
    began = time.process_time()
    with pytest.raises(InputError, match="data_batch_1") as raised:
        read_pickled(file)
    assert "\n" not in str(raised.value)
    assert time.process_time() - began < 20  # a hang is what is looked for


@pytest.mark.parametrize("name", ["doubled key", "deep key", "less deep key"])
@pytest.mark.parametrize("start", [b"\x80\x02", b""])
def test_checkpoints_refuse_before_torch_sees_them(name, start, tmp_path):
    file = tmp_path / "w.pt"
    before = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    file.write_bytes((before if start else b"\x80\x02") + start + BOMBS[name] + b".")
    with pytest.raises(InputError, match="a torch file with tensors only"):
        load_weights(file)


@pytest.mark.parametrize(
    "content", [b"\x80\x02.", b"\x80\x02N.", b"\x80\x02h\x09.", b"\x80\x02}]K\x01b.", b"PK\x05\x06"]
)
def test_checkpoints_that_are_none_are_refused(content, tmp_path):
    file = tmp_path / "w.pt"
    file.write_bytes(content)
    with pytest.raises(InputError):
        load_weights(file)


@pytest.mark.parametrize("new", [True, False])
def test_real_checkpoints_pass(new, tmp_path):
    file = tmp_path / "w.pt"
    layers = {f"layer{i}.weight": torch.full((2, 2), float(i)) for i in range(300)}
    torch.save(
        {"state_dict": layers, "epoch": 3, "args": {"lr": [0.1, (1, 2)]}}, file, _use_new_zipfile_serialization=new
    )
    assert load_weights(file)["layer7.weight"].tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_ordinary_values_pass_whatever_their_length():
    values = {"labels": list(range(200_000)), "rows": [(i, str(i)) for i in range(5000)], "data": np.arange(9)}
    for protocol in (0, 2, 4):
        check_nesting(io.BytesIO(pickle.dumps(values, protocol)))
