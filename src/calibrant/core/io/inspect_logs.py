"""Read logs of Inspect (.eval and .json): a confidence for each sample, and whether its answer was correct."""

import bz2
import json
import math
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrant.core.errors import DamagedFileError, InputError
from calibrant.core.io.column_names import ColumnRoles, Columns
from calibrant.core.io.missing import apply_policy
from calibrant.core.io.score_table import ScoreTable, build_table
from calibrant.core.io.size_limits import check_unpacked, most_bytes

DEFAULT_FIELD = "confidence"
LOCAL_HEADER = 30  # bytes before the name of a member
STORED, ENCRYPTED = 0, 1  # a method of compression, and a flag, of ZIP archives
GRADES = {"C": 1, "I": 0, "N": 0}  # correct, incorrect, no answer; P (partly correct) is neither right nor wrong
FROM_LOGPROBS = (
    "Confidences are the probabilities of the whole generated answers, from the log-probabilities of tokens."
)


def is_inspect_log(file: Path) -> bool:
    """Whether the name is that of an Inspect log, and a .json file begins like one."""
    if file.suffix == ".eval":
        return True
    if file.suffix != ".json" or not file.is_file():
        return False
    with file.open("rb") as stream:
        start = stream.read(1 << 12)
    return b'"version"' in start and b'"eval"' in start


def read_inspect_log(file: Path, columns: Columns) -> ScoreTable:
    """Confidence and correctness of every sample.

    The confidence is the field `columns.confidence` of the metadata of the score or of the sample ("confidence" by
    default). Where no sample has such a field and none was named, it is the probability of the generated tokens, for
    all samples: a column never holds both. `columns.correct` names the scorer
    where there are several. A sample that ended in an error has no confidence. Samples that were asked in several
    epochs are clusters.
    """
    answers = [_read_answer(file, sample, columns) for sample in _samples(file)]
    if not answers:
        raise InputError(str(file), expected="a log with samples", got="none", fix="log the samples of the run")
    from_tokens = columns.confidence is None and all(answer.stated is None for answer in answers)
    confidences = [answer.of_tokens if from_tokens else answer.stated for answer in answers]  # one kind for all
    gaps = np.array([confidence is None for confidence in confidences])
    if gaps.all():
        field = columns.confidence or DEFAULT_FIELD
        raise InputError(
            str(file),
            expected=f"a field {field} in the metadata of scores or samples, or log-probabilities of tokens",
            got="neither in any sample",
            fix="let the scorer write the confidence into its metadata, or run with --logprobs",
        )
    missing = apply_policy(str(file), "confidence", int(gaps.sum()), len(gaps), columns.missing)
    rows = [i for i, gap in enumerate(gaps) if not gap or columns.missing != "drop"]
    kept = [answers[i] for i in rows]
    arrays: dict[str, Any] = {
        "confidence": np.array([confidences[i] or 0.0 for i in rows]),
        "labels": np.array([0 if gaps[i] else answers[i].grade for i in rows]),
        "ids": np.array([answer.id for answer in kept]),
    }
    if len({answer.epoch for answer in kept}) > 1:
        arrays["clusters"] = arrays["ids"]
        arrays["ids"] = np.array([f"{answer.id}, epoch {answer.epoch}" for answer in kept])
    for array, name in (("groups", columns.group), ("clusters", columns.cluster)):
        if name is not None:
            arrays.pop(array, None)
        if name not in (None, "none"):
            arrays[array] = np.array([getattr(answer, array.removesuffix("s")) for answer in kept])
    notes = (FROM_LOGPROBS,) if from_tokens else ()
    roles = ColumnRoles("confidence", columns.confidence or DEFAULT_FIELD, {})
    return build_table(str(file), arrays, roles, columns, missing=missing, notes=notes, rows_known=True)


@dataclass(frozen=True, kw_only=True)
class SampleAnswer:
    """The part of a sample that is kept; a sample may hold megabytes of messages."""

    id: str
    epoch: str
    stated: float | None  # the confidence in the metadata
    of_tokens: float | None  # the probability of the generated tokens
    grade: int
    group: str | None
    cluster: str | None


def _read_answer(file: Path, sample: dict[str, Any], columns: Columns) -> SampleAnswer:
    stated, of_tokens, grade = None, None, 0
    if sample.get("scores") or not sample.get("error"):  # neither: the log was not scored, which _score says
        where = f"{file}, sample {sample.get('id')}"
        score = _score(where, sample, columns.correct)
        grade = _grade(where, score.get("value"))
        stated = _read_stated(columns.confidence or DEFAULT_FIELD, score, sample)
        of_tokens = _token_probability(sample)
    return SampleAnswer(
        id=str(sample.get("id")),
        epoch=str(sample.get("epoch", 1)),
        stated=stated,
        of_tokens=of_tokens,
        grade=grade,
        group=_field(file, sample, columns.group),
        cluster=_field(file, sample, columns.cluster),
    )


def _samples(file: Path) -> Iterator[dict[str, Any]]:
    """The samples of a log: a list in the JSON document, or one JSON file each in the archive."""
    # Inspect compresses by Zstandard, which Python's own zipfile reads from 3.14 on
    if sys.version_info >= (3, 14):
        import zipfile

        from compression.zstd import ZstdDecompressor, ZstdError
    else:
        from backports.zstd import ZstdDecompressor, ZstdError, zipfile

    decompressors: dict[int, Callable[[], Any]] = {
        zipfile.ZIP_DEFLATED: lambda: zlib.decompressobj(-zlib.MAX_WBITS),
        zipfile.ZIP_BZIP2: bz2.BZ2Decompressor,
        zipfile.ZIP_ZSTANDARD: ZstdDecompressor,
    }
    try:
        if file.suffix == ".json":
            if file.stat().st_size > most_bytes(file):
                check_unpacked(file, file.stat().st_size)
            document = json.loads(file.read_text(encoding="utf-8"))
            samples = document.get("samples") if isinstance(document, dict) else None
            yield from (sample for sample in samples or [] if isinstance(sample, dict))
            return
        with file.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            members = [info for info in archive.infolist() if _is_sample(info.filename)]
            check_unpacked(file, sum(info.file_size for info in members))
            for info in members:
                sample = json.loads(_unpack(stream, info, decompressors))
                if isinstance(sample, dict):
                    yield sample
    except (
        OSError,
        ValueError,
        RecursionError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        ZstdError,
        NotImplementedError,
        KeyError,
        RuntimeError,  # an archive with a password
    ) as error:
        if isinstance(error, InputError):
            raise
        raise DamagedFileError.from_reason(file, "a readable Inspect log", error, "write the log again") from error


def _unpack(stream: IO[bytes], info: Any, decompressors: Mapping[int, Callable[[], Any]]) -> bytes:
    """The bytes of a member, never more than it declares: zipfile itself unpacks all that it has read."""
    stream.seek(info.header_offset)
    header = stream.read(LOCAL_HEADER)
    if len(header) < LOCAL_HEADER or info.flag_bits & ENCRYPTED:
        raise ValueError(f"{info.filename} is cut or encrypted")
    stream.seek(sum(struct.unpack("<HH", header[-4:])), os.SEEK_CUR)  # name and extra field
    packed = stream.read(info.compress_size)
    if info.compress_type == STORED:
        content = packed
    elif info.compress_type in decompressors:
        content = decompressors[info.compress_type]().decompress(packed, info.file_size + 1)
    else:
        raise ValueError(f"{info.filename} is compressed by method {info.compress_type}, which Inspect never uses")
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise ValueError(f"{info.filename} does not hold the {info.file_size:,} bytes that it declares")
    return content


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _score(where: str, sample: dict[str, Any], scorer: str | None) -> dict[str, Any]:
    scores = sample.get("scores")
    known = scores if isinstance(scores, dict) else {}
    if scorer is None and len(known) != 1:
        got = f"{len(known)}" + (f": {', '.join(map(str, list(known)[:8]))}" if known else "")
        fix = "say which: correct='...' (--correct-column)" if known else "score the log first: inspect score"
        raise InputError(where, expected="one scorer", got=got, fix=fix)
    score = known.get(next(iter(known)) if scorer is None else scorer)
    if not isinstance(score, dict):
        got = f"only {', '.join(map(str, list(known)[:8])) or 'none'}"
        raise InputError(where, expected=f"a score of {scorer}", got=got, fix="name one of the scorers of the log")
    return score


def _grade(where: str, value: Any) -> int:
    """1 for correct, 0 for incorrect: C and I, true and false, 1 and 0."""
    if isinstance(value, str) and value in GRADES:
        return GRADES[value]
    if isinstance(value, bool | int | float) and value in (0, 1):
        return int(value)
    got, fix = f"'{str(value)[:40]}'", "use a scorer that says correct or incorrect; partly correct is neither"
    raise InputError(where, expected="a score of C or I, or of 1 or 0", got=got, fix=fix)


def _read_stated(field: str, score: dict[str, Any], sample: dict[str, Any]) -> float | None:
    for holder in (score.get("metadata"), sample.get("metadata")):
        value = holder.get(field) if isinstance(holder, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    return None


def _token_probability(sample: dict[str, Any]) -> float | None:
    """The product of the probabilities of all generated tokens; None where they were not logged."""
    try:
        tokens = sample["output"]["choices"][0]["logprobs"]["content"]
        total = sum(float(token["logprob"]) for token in tokens)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return math.exp(min(total, 0.0)) if tokens and math.isfinite(total) else None


def _field(file: Path, sample: dict[str, Any], name: str | None) -> str | None:
    if name in (None, "none"):
        return None
    metadata = sample.get("metadata")
    value = sample.get(name, metadata.get(name) if isinstance(metadata, dict) else None)
    if value is None:
        got = f"none in sample {sample.get('id')}"
        raise InputError(f"{file}, {name}", expected="a field of every sample or its metadata", got=got, fix="check it")
    return str(value)
