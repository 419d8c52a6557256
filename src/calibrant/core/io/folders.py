"""Read a folder of results: the logs of all tasks of one model, pooled into one table."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.io.column_names import Columns
from calibrant.core.io.inspect_logs import is_inspect_log, read_inspect_log
from calibrant.core.io.lm_eval import NotMultipleChoiceError, read_lm_eval
from calibrant.core.io.missing import total_missing
from calibrant.core.io.score_table import ScoreTable

MOST_FILES = 10_000
SAMPLES = re.compile(r"samples_(.+?)(_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl")
INSPECT_LOG = re.compile(r"(?:\d{4}-\d\d-\d\dT[\d:+-]+_)?(.+?)(?:_[A-Za-z0-9]{22})?\.(?:eval|json)")  # time, task, id


def read_folder(folder: Path, columns: Columns) -> ScoreTable:
    """The tasks of one model: samples of lm-evaluation-harness, or logs of Inspect. Each task is a group."""
    logs = _task_files(folder)
    tables, left_out = dict[str, ScoreTable](), list[str]()
    for task, file in logs.items():
        read: Callable[[Path, Columns], ScoreTable] = read_lm_eval if file.suffix == ".jsonl" else read_inspect_log
        try:
            tables[task] = read(file, columns)
        except NotMultipleChoiceError as error:
            left_out.append(task)
            reason = error
    if not tables:
        raise reason
    return _pool(folder, tables, left_out, columns)


def _task_files(folder: Path) -> dict[str, Path]:
    """The log of each task; an error where a task has two, or the folder has those of two models."""
    files: dict[str, Path] = {}
    for file in sorted(folder.rglob("*"))[:MOST_FILES]:
        if not file.is_file():
            continue
        match = SAMPLES.fullmatch(file.name) or (is_inspect_log(file) and INSPECT_LOG.fullmatch(file.name))
        if not match:
            continue
        task = match[1]
        if task in files:
            raise InputError(
                str(folder),
                expected="one log of each task",
                got=f"two of {task}: {files[task].relative_to(folder)} and {file.relative_to(folder)}",
                fix="name the folder of one run, or a file",
            )
        files[task] = file
    if len({file.suffix for file in files.values()}) > 1:
        got = "samples of lm-evaluation-harness and logs of Inspect"
        raise InputError(str(folder), expected="logs of one tool", got=got, fix="name a file inside it")
    if len(parents := sorted({str(file.parent.relative_to(folder)) for file in files.values()})) > 1:
        got = f"logs in {', '.join(parents[:5])}"
        raise InputError(str(folder), expected="logs of one model", got=got, fix="name one of these folders")
    if not files:
        inside = ", ".join(sorted(file.name for file in folder.iterdir())[:5]) or "nothing"
        got = f"a folder with {inside}"
        fix = "name a file inside it; folders are read where they hold logs of lm-evaluation-harness or Inspect"
        raise InputError(str(folder), expected="a file of predictions", got=got, fix=fix)
    return files


def _pool(folder: Path, tables: dict[str, ScoreTable], left_out: list[str], columns: Columns) -> ScoreTable:
    parts = list(tables.values())
    sizes = [len(part.scores) for part in parts]
    tasks = np.repeat(np.array(list(tables)), sizes)
    counts = ", ".join(f"{task} ({size:,})" for task, size in zip(tables, sizes, strict=True))
    notes = [f"{len(parts)} tasks are pooled: {counts}." if len(parts) > 1 else f"The task is {counts}."]
    if left_out:
        notes.append(f"Left out, for they have no scores of options: {', '.join(left_out)}.")
    k = max(part.scores.shape[1] for part in parts) if parts[0].scores.ndim == 2 else 0
    ids = np.concatenate([_texts(part.ids, size) for part, size in zip(parts, sizes, strict=True)])
    return ScoreTable(
        place=str(folder),
        content=parts[0].content,
        scores=np.concatenate([_wide(part.scores, k) for part in parts]),
        labels=np.concatenate([np.asarray(part.labels) for part in parts]),
        mask=np.concatenate([_wide(np.asarray(part.mask), k) for part in parts]) if k else None,
        ids=np.char.add(np.char.add(tasks, "/"), ids),
        groups=tasks if columns.group is None else _join([part.groups for part in parts]),
        weights=_join([part.weights for part in parts]),
        clusters=_join([part.clusters for part in parts]),
        missing=total_missing([part.missing for part in parts if part.missing is not None]),
        notes=tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.notes)])),
        rows_known=True,
    )


def _wide(array: np.ndarray[Any, Any], k: int) -> np.ndarray[Any, Any]:
    """Rows filled up to k options with zeros."""
    return array if array.ndim == 1 else np.pad(array, ((0, 0), (0, k - array.shape[1])))


def _texts(ids: np.ndarray[Any, Any] | None, n: int) -> np.ndarray[Any, Any]:
    return np.arange(n).astype(str) if ids is None else ids.astype(str)


def _join(arrays: list[np.ndarray[Any, Any] | None]) -> np.ndarray[Any, Any] | None:
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None
