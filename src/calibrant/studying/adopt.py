"""Adopt finished jobs of other sources: their rows get the keys of today, after some of them were computed again."""

import os
import random
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.json import parse_json
from calibrant.studying.expand_plan import check_code, jobs_of
from calibrant.studying.job import Job
from calibrant.studying.pool import LocalPool
from calibrant.studying.sources import Sources, load_sources, save_sources
from calibrant.studying.store import Store
from calibrant.studying.study import Study, open_study

TIMES = ("job", "seconds", "cpu_seconds", "train_seconds", "made_with")  # columns that differ from run to run
OPTIONS = "configuration"  # a column of rows that hold the options of their job


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """What was adopted: numbers of jobs, and how many of them were computed again, by kind."""

    adopted: int
    sampled: dict[str, int]
    studies: list[str]


@dataclass(frozen=True)
class _Pair:
    """A finished job by the sources that made it, and the same job by those on the disk."""

    before: Job
    now: Job


def adopt(place: str | Path, *, sample: int = 3) -> Adoption:
    """Give the finished jobs of a study, or of all studies of a store, the keys that today's sources make.

    `sample` of them are computed again, the quickest of every kind and others by chance, and at least one for each
    source that is known to have changed. Their rows and the arrays of their files must come out the same to the last
    bit, or nothing is adopted. The old rows stay where they are, for studies that use them.
    """
    studies, store = _find_studies(Path(place))
    pairs = _find_pairs(studies, store)
    chosen = _choose_sample(pairs, store, sample)
    _compare_sample(chosen, store)
    for pair in pairs:
        _link(store.files(pair.before.key), store.files(pair.now.key))
    for kind in sorted({pair.now.kind for pair in pairs}):
        store.copy_rows(kind, {pair.before.key: pair.now.key for pair in pairs if pair.now.kind == kind})
    for study in studies:
        save_sources(study.folder, replace(study, stored=None).digests)
    kinds = [pair.now.kind for pair in chosen]
    return Adoption(
        adopted=len(pairs),
        sampled={kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        studies=[str(study.folder) for study in studies],
    )


def _find_studies(place: Path) -> tuple[list[Study], Store]:
    """The study in a folder with its store, or the studies beside a store that share it."""
    if (place / "study.json").exists():
        study = open_study(place)
        return [study], study.store
    if not place.is_dir():
        fix = "give the folder of --out, or its --store"
        raise InputError(str(place), expected="a study, or a folder of finished jobs", got="no such folder", fix=fix)
    beside = [open_study(file.parent) for file in sorted(place.resolve().parent.glob("*/study.json"))]
    return [study for study in beside if study.store.folder.resolve() == place.resolve()], Store(place)


def _find_pairs(studies: list[Study], store: Store) -> list[_Pair]:
    """The finished jobs whose keys are no longer those of today."""
    pairs: list[_Pair] = []
    for study in studies:
        check_code(study.plan, study.folder / "plan.toml")
        now = list(jobs_of(study.plan))
        for stored in load_sources(study.folder):
            pairs += map(_Pair, jobs_of(study.plan, stored), now)
    live = Sources()
    for kind in store.kinds():
        rows = store.rows(kind)
        if OPTIONS in rows.columns:  # jobs that no plan has: networks of a table
            all_options: list[dict[str, Any]] = [parse_json(text) for text in rows[OPTIONS]]
            for stored in load_sources(store.folder.parent):
                pairs += [_Pair(Job(kind, o, sources=stored), Job(kind, o, sources=live)) for o in all_options]
    done = store.done()
    if not done & {key for pair in pairs for key in (pair.before.key, pair.now.key)}:
        got, fix = "none of a study that is beside it", "give the folder of the study"
        raise InputError(str(store.folder), expected="finished jobs of a study", got=got, fix=fix)
    old = [pair for pair in pairs if pair.before.key in done and pair.now.key not in done]
    return list({pair.now.key: pair for pair in reversed(old)}.values())[::-1]  # of the newest sources, where several


def _choose_sample(pairs: list[_Pair], store: Store, count: int) -> list[_Pair]:
    """The quickest job of every kind and of every source that has changed, and others by chance."""
    seconds: dict[str, float] = {}
    for kind in {pair.now.kind for pair in pairs}:
        rows = store.rows(kind)
        seconds |= dict(zip(rows["job"], rows["seconds"], strict=True))
    quickest = sorted(pairs, key=lambda pair: seconds[pair.before.key])
    chosen: dict[str, _Pair] = {}
    covered: set[tuple[str, str]] = set()
    for pair in quickest:
        news = {(f"job {pair.now.kind}", ""), *(pair.before.digests.items() - pair.now.digests.items())}
        if not news <= covered:
            covered |= news
            chosen[pair.now.key] = pair
    others = [pair for pair in pairs if pair.now.key not in chosen]
    random.Random(0).shuffle(others)
    return [*chosen.values(), *others[: max(0, count - len(chosen))]]


def _compare_sample(pairs: list[_Pair], store: Store) -> None:
    """Compute jobs again, in the way they were computed, and refuse where one is not the same to the last bit."""
    if not pairs:
        return
    store.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store.folder, prefix="adopt-") as folder:
        trial = Store(folder)
        by_key = {pair.now.key: pair for pair in pairs}
        pool = LocalPool(trial.folder, 1)
        try:
            for pair in pairs:
                for before, now in zip(pair.before.needs, pair.now.needs, strict=True):
                    _link(store.files(before.key), trial.files(now.key))
                pool.start(pair.now)
                for outcome in pool.wait():
                    old = by_key[outcome.key].before
                    if outcome.failed:
                        raise _refuse(store, outcome.kind, "an error", outcome.why)
                    _compare_rows(store, old, outcome.rows)
                    _compare_files(store, old, trial.files(outcome.key))
        finally:
            pool.close()


def _compare_rows(store: Store, old: Job, rows: list[dict[str, Any]]) -> None:
    stored = store.rows(old.kind, [old.key]).to_dicts()
    if len(stored) != len(rows or [{}]):
        raise _refuse(store, old.kind, f"{len(rows)} rows", f"{len(stored)} before")
    for before, now in zip(stored, rows, strict=False):
        for name in sorted({*before, *now} - {*TIMES}):
            if before.get(name) != now.get(name):
                words = ", ".join(f"{key} {now[key]}" for key in ("measure", "calibrator", "epoch") if key in now)
                raise _refuse(store, old.kind, f"{name} {now.get(name)!r} ({words})", f"{before.get(name)!r} before")


def _compare_files(store: Store, old: Job, files: Path) -> None:
    """Compare the arrays of archives; other files hold times and versions."""
    for file in sorted(files.rglob("*.npz")):
        before = store.files(old.key) / file.relative_to(files)
        with np.load(before, allow_pickle=False) as one, np.load(file, allow_pickle=False) as other:
            same = {*one.files} == {*other.files} and all(one[name].tobytes() == other[name].tobytes() for name in one)
        if not same:
            raise _refuse(store, old.kind, f"another {file.name}", "arrays with other numbers before")


def _refuse(store: Store, kind: str, got: str, before: str) -> InputError:
    return InputError(
        str(store.folder),
        expected=f"a job of the kind {kind} that comes out the same as before to the last bit",
        got=f"{got}, {before}",
        fix="run the plan, which computes its jobs again; nothing was adopted",
    )


def _link(source: Path, target: Path) -> None:
    """The files of a folder under another name, without a second copy where the file system can do so."""
    if not source.exists() or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as place:
        shutil.copytree(source, Path(place) / "files", copy_function=_link_file)
        os.replace(Path(place) / "files", target)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
