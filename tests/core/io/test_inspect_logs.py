"""Logs of Inspect: confidence from metadata or tokens, correctness from C and I."""

import bz2
import json
import math
import struct
import sys
import tracemalloc
import zlib

import pytest

from calibrant import InputError, Predictions

if sys.version_info >= (3, 14):
    import zipfile

    from compression import zstd
else:
    from backports import zstd
    from backports.zstd import zipfile


def raw_deflate(content):
    return zlib.compress(content, 9)[2:-4]


def sample(i, value, *, confidence=None, logprobs=None, scorer="match", epoch=1, **metadata):
    score = {"value": value, "metadata": {} if confidence is None else {"confidence": confidence}}
    content = None if logprobs is None else {"content": [{"token": "x", "logprob": x} for x in logprobs]}
    output = {"choices": [{"message": {}, "logprobs": content}]}
    return {"id": i, "epoch": epoch, "metadata": metadata, "scores": {scorer: score}, "output": output}


def write(file, samples):
    header = {"version": 2, "status": "success", "eval": {"task": "demo"}}
    if file.suffix == ".json":
        file.write_text(json.dumps(header | {"samples": samples}))
        return
    with zipfile.ZipFile(file, "w", zipfile.ZIP_ZSTANDARD) as archive:  # as Inspect does by default (0.3.285)
        archive.writestr("header.json", json.dumps(header))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))


@pytest.mark.parametrize("suffix", [".eval", ".json"])
def test_stated_confidences_are_read(tmp_path, suffix):
    file = tmp_path / f"log{suffix}"
    rows = [("C", 0.9, "a"), ("I", 0.6, "b"), ("N", 0.2, "b"), (1, 0.8, "a")]
    write(file, [sample(i, value, confidence=c, topic=t) for i, (value, c, t) in enumerate(rows)])
    p = Predictions.load(file, group="topic")
    assert (p.task, p.score.tolist(), p.outcome.tolist()) == (
        "confidence",
        [0.9, 0.6, 0.2, 0.8],
        [True, False, False, True],
    )
    assert p.groups.tolist() == ["a", "b", "b", "a"]
    assert p.ids.tolist() == ["0", "1", "2", "3"]


def test_probabilities_of_tokens_are_confidences(tmp_path):
    write(tmp_path / "log.eval", [sample(1, "C", logprobs=[-0.1, -0.2]), sample(2, "I", logprobs=[-2.0])])
    p = Predictions.load(tmp_path / "log.eval")
    assert p.score.tolist() == pytest.approx([math.exp(-0.3), math.exp(-2.0)])
    assert "log-probabilities of tokens" in p.notes[0]


def test_samples_without_a_confidence_follow_the_policy(tmp_path):
    file = tmp_path / "log.eval"
    write(file, [sample(1, "C", confidence=0.9), sample(2, "C"), sample(3, "I", confidence=0.4)])
    with pytest.raises(InputError, match="none in 1 of 3 rows"):
        Predictions.load(file)
    assert Predictions.load(file, missing="drop").n == 2
    assert Predictions.load(file, missing="count_as_wrong").outcome.tolist() == [True, False, False]


def test_what_cannot_be_read_is_refused(tmp_path):
    file = tmp_path / "log.eval"
    write(file, [sample(1, "C"), sample(2, "I")])
    with pytest.raises(InputError, match="log-probabilities of tokens, got neither in any sample"):
        Predictions.load(file)
    write(file, [sample(1, "P", confidence=0.5), sample(2, "I", confidence=0.5)])
    with pytest.raises(InputError, match="sample 1: expected a score of C or I, or of 1 or 0, got 'P'"):
        Predictions.load(file)
    two = sample(1, "C", confidence=0.5)
    two["scores"]["model"] = {"value": "I", "metadata": {"confidence": 0.3}}
    write(file, [two, two | {"id": 2}])
    with pytest.raises(InputError, match="expected one scorer, got 2: match, model"):
        Predictions.load(file)
    assert Predictions.load(file, correct="model").score.tolist() == [0.3, 0.3]
    file.write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="a readable Inspect log, got a damaged one"):
        Predictions.load(file)


def test_samples_of_several_epochs_are_clusters(tmp_path):
    file = tmp_path / "log.eval"
    rows = [(1, 1), (2, 1), (1, 2), (2, 2)]
    write(file, [sample(i, "C", confidence=0.9, epoch=epoch, topic="t") for i, epoch in rows])
    p = Predictions.load(file)
    assert p.ids.tolist() == ["1, epoch 1", "2, epoch 1", "1, epoch 2", "2, epoch 2"]
    assert p.clusters[0] == p.clusters[2] != p.clusters[1] == p.clusters[3]
    assert Predictions.load(file, cluster="none").clusters is None
    assert len(set(Predictions.load(file, cluster="topic").clusters)) == 1


def test_samples_that_ended_in_an_error_follow_the_policy(tmp_path):
    file = tmp_path / "log.eval"
    failed = sample(3, "C") | {"scores": {}, "error": {"message": "ConnectionError"}}
    write(file, [sample(1, "C", confidence=0.9), sample(2, "I", confidence=0.4), failed])
    with pytest.raises(InputError, match="none in 1 of 3 rows"):
        Predictions.load(file)
    assert Predictions.load(file, missing="drop").n == 2


def test_logs_compressed_by_deflate_and_damaged_ones(tmp_path):
    with zipfile.ZipFile(tmp_path / "old.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(3):
            archive.writestr(f"samples/{i}_epoch_1.json", json.dumps(sample(i, "C", confidence=0.5 + i / 10)))
    assert Predictions.load(tmp_path / "old.eval").n == 3
    write(tmp_path / "log.eval", [sample(i, "C", confidence=0.9, text="ab" * 200 + str(i)) for i in range(3)])
    damaged = bytearray((tmp_path / "log.eval").read_bytes())
    where = damaged.find(b"samples/1_epoch_1.json") + 30
    damaged[where : where + 20] = bytes(20)
    (tmp_path / "log.eval").write_bytes(damaged)
    with pytest.raises(InputError, match="got a damaged one"):
        Predictions.load(tmp_path / "log.eval")


def test_stated_confidences_and_probabilities_of_tokens_never_share_a_column(tmp_path):
    """They were mixed sample by sample, without a word."""
    file = tmp_path / "log.eval"
    write(file, [sample(i, "C", confidence=0.9 if i % 2 else None, logprobs=[-0.5]) for i in range(12)])
    with pytest.raises(InputError, match="6 of 12"):
        Predictions.load(file)
    p = Predictions.load(file, missing="drop")
    assert (p.n, set(p.score.tolist())) == (6, {0.9})
    assert not p.row_data.notes or "log-probabilities" not in p.row_data.notes[0]
    tokens = tmp_path / "tokens.eval"
    write(tokens, [sample(i, "C", logprobs=[-0.5]) for i in range(12)])
    assert Predictions.load(tokens).score.tolist() == pytest.approx([math.exp(-0.5)] * 12)


def lying_archive(file, member, packed, method, size):
    """An archive whose only member says that it has `size` bytes, whatever it unpacks to."""
    name = member.encode()
    facts = struct.pack("<HHHHIIIHH", 0, method, 0, 0, 0, len(packed), size, len(name), 0)
    local = b"PK\x03\x04" + struct.pack("<H", 63) + facts + name + packed
    central = b"PK\x01\x02" + struct.pack("<HH", 63, 63) + facts + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    file.write_bytes(local + central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0))


@pytest.mark.parametrize(("method", "pack"), [(12, bz2.compress), (93, zstd.compress), (8, raw_deflate)])
@pytest.mark.parametrize("suffix", [".eval", ".npz"])
def test_an_archive_that_lies_about_its_size_takes_no_more_than_it_says(method, pack, suffix, tmp_path):
    file = tmp_path / f"bomb{suffix}"
    member = "samples/1.json" if suffix == ".eval" else "confidence.npy"
    lying_archive(file, member, pack(b" " * (64 << 20)), method, 192)
    tracemalloc.start()
    with pytest.raises(InputError, match="bomb"):
        Predictions.load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
