"""A study on disk: its plan, the jobs it is made of, and what they have found so far."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.cached_property import cached_property
from calibrant.core.errors import InputError
from calibrant.core.files import write_text, write_whole
from calibrant.core.json import read_json, read_typed, whole
from calibrant.core.lock import lock_folder
from calibrant.studying.engine import StudyProgress, run_jobs
from calibrant.studying.executors import executor_for
from calibrant.studying.expand_plan import StudyCell, cells_of, check_code, jobs_of
from calibrant.studying.job import Job
from calibrant.studying.plan import Plan, check_measure
from calibrant.studying.plan_files import find_plan, read_plan
from calibrant.studying.sources import (
    Digests,
    EarlierSources,
    Sources,
    describe,
    load_sources,
    save_sources,
)
from calibrant.studying.store import Store

if TYPE_CHECKING:
    import polars as pl

    from calibrant.studying.claims import Finding

VERSION = 1
LARGEST = 1e100  # of a number in a row: no measure gives a larger one, and sums of squares of larger ones overflow
LABELS = ("rescorer", "calibrator", "set", "measure", "value", "n", "k", "why")


@dataclass(frozen=True, kw_only=True)
class Status:
    """Counts of the jobs of a study by state."""

    total: int
    done: int
    failed: int
    missing: int
    running: bool
    failures: dict[str, str]  # what failed -> the last line of its traceback


@dataclass(frozen=True, kw_only=True)
class Study:
    """A plan and the folder of its results. Jobs are kept in a store that studies beside it share."""

    folder: Path
    plan: Plan
    store: Store
    stored: Sources | None = None  # by which the keys of its jobs are made; None: those on the disk
    unused: int = 0  # finished jobs of the plan that was in the folder before, which this plan does not use
    outdated: int = 0  # finished jobs of this plan that other sources have made
    changed: tuple[str, ...] = ()  # the names of these sources, where they are known

    @cached_property
    def cells(self) -> tuple[StudyCell, ...]:
        return cells_of(self.plan, self.stored)

    @cached_property
    def jobs(self) -> list[Job]:
        return list(jobs_of(self.plan, self.stored))

    def run(
        self,
        on: str = "local",
        *,
        limit: float = 0.0,
        cpus: float = 1,
        gpus: float = 0,
        retry: bool = False,
        on_progress: Callable[[StudyProgress], None] | None = None,
    ) -> StudyProgress:
        """Compute what is missing, on `local`, `local:2`, `ray`, `ray://HOST:PORT` or a part of it, `shard:3/16`.

        `cpus` and `gpus` are what a job takes of a Ray cluster.
        """
        from calibrant.studying.plan_cost import check_data

        self._check_sources()
        if not on.startswith("ray:"):  # whose nodes have the data
            check_data(self.plan, self.store.done())
        executor, jobs, driver = executor_for(on, self.jobs, self.store, limit, cpus=cpus, gpus=gpus)
        if retry:
            self.store.forget_failures()
        return run_jobs(jobs, self.store, executor, driver=driver, retry=retry, on_progress=on_progress)

    def status(self) -> Status:
        keys = {job.key for job in self.jobs}
        done, failed = self.store.done() & keys, {k: o for k, o in self.store.failures().items() if k in keys}
        names = {job.key: self._name(job) for job in self.jobs if job.key in failed}
        failures = {names[key]: outcome.why for key, outcome in failed.items()}
        missing = len(keys) - len(done) - len(failed)
        return Status(
            total=len(keys),
            done=len(done),
            failed=len(failed),
            missing=missing,
            running=_running(self.store.folder),
            failures=failures,
        )

    def rows(self, where: str = "") -> "pl.DataFrame":
        """One row for each training, entry, set and measure; `where` is a condition in SQL."""
        import polars as pl

        judged = self.store.rows("judge", [cell.judge.key for cell in self.cells])
        labels = pl.DataFrame(
            [{"job": cell.judge.key, "method": cell.method, **cell.place} for cell in self.cells],
            infer_schema_length=None,
        )
        if judged.height == 0:
            columns = [*labels.columns, *LABELS, "entry"]
            return pl.DataFrame({name: [] for name in columns}, schema=dict.fromkeys(columns, pl.String))
        _check_judged(judged, self.store.folder)
        joined = labels.join(judged.select("job", *LABELS), on="job", how="inner")
        rows = self.plan.rows
        names = {(e.method, e.rescorer, e.calibrator): name for name, e in rows.items()}
        keys = joined.select("method", "rescorer", "calibrator").rows()
        joined = joined.with_columns(pl.Series("entry", [names.get(key, "") for key in keys], dtype=pl.String))
        return filter_rows(joined, where)

    def values(self, measure: str | None = None, by: tuple[str, ...] = (), where: str = "") -> "pl.DataFrame":
        """Single values: all rows, or those of a measure; with `by` its columns and whatever tells rows apart."""
        import polars as pl

        rows = self.rows(where)
        if measure is not None:
            check_measure("measure", measure, self.plan.after.measures)
            rows = rows.filter(pl.col("measure") == measure)
        _check_columns(by, rows)
        keys = [name for name in rows.columns if name not in ("job", "value", "n", "k", "why")]
        kept = [name for name in keys if name in ("seed", "measure", "set") or rows[name].n_unique() > 1]
        return rows.select(*dict.fromkeys([*by, *kept, "value"])) if by else rows

    def table(self, measure: str, by: tuple[str, ...] = (), where: str = "") -> "pl.DataFrame":
        """Mean and standard deviation of a measure over the seeds, by default for every entry and cell of the grid."""
        import polars as pl

        check_measure("measure", measure, self.plan.after.measures)
        axes = [axis for axis in self.plan.grid if axis != "seed"]
        by = by or ("entry", *(axis for axis in axes if axis == "data" or len(self.plan.grid[axis]) > 1))
        self.check_judged()
        rows = self.rows(where).filter((pl.col("measure") == measure) & (pl.col("set") == "test"))
        _check_columns(by, rows)
        rows = rows.filter(pl.col("entry") != "") if "entry" in by else rows
        _check_one_run_a_seed(rows, by, ["method", "rescorer", "calibrator", *axes])
        value = pl.col("value")
        return (
            rows.group_by(*by, maintain_order=True)
            .agg(value.mean().alias("mean"), value.std().alias("sd"), value.count().alias("runs"))
            .sort(*by)
        )

    def check_judged(self) -> None:
        """Refuse to make tables while nothing is measured yet."""
        if not self.rows().height:
            fix = f"run the plan, or see how far it is: calibrant study status {self.folder}"
            raise InputError(str(self.folder), expected="judged trainings", got="nothing is judged yet", fix=fix)

    def claims(self) -> "list[Finding]":
        """Every claim of the plan: held, did not hold, inconclusive or different between data sets, with the number."""
        from calibrant.studying.claims import decide_claims

        return decide_claims(self.plan, self.rows())

    @cached_property
    def digests(self) -> Digests:
        """The digests of the sources of all its jobs."""
        return {name: digest for job in self.jobs for name, digest in job.digests.items()}

    def find_changes(self) -> list[str]:
        """The names of sources that are no longer on the disk as they were; nothing is run to see this."""
        return Sources(self.digests).differing(Sources())

    def check_code(self) -> None:
        """Refuse code that is not allowed, where something of the plan is going to be made: a measure has a unit."""
        check_code(self.plan, self.folder / "plan.toml")

    def _check_sources(self) -> None:
        """Refuse code that is not allowed, and to run under keys of sources that are gone."""
        self.check_code()
        changed = ["version of calibrant"] if isinstance(self.stored, EarlierSources) else self.find_changes()
        if changed:
            again = f"calibrant study run {self.folder / 'plan.toml'} --scale {self.plan.scale} --out {self.folder}"
            raise InputError(
                str(self.folder),
                expected="the sources of its finished jobs",
                got=f"another {describe(changed)}",
                fix=f"run the plan, which computes its jobs again: {again}",
            )

    def _name(self, job: Job) -> str:
        cell = next(cell for cell in self.cells if any(other.key == job.key for other in cell.jobs))
        place = ", ".join(f"{key} {value}" for key, value in cell.place.items())
        more = "" if job.kind in ("train", "judge") else f" {job.options.get('rescorer') or job.options.get('set')}"
        return f"{job.kind}{more} of {cell.method} ({place})"


def study(
    plan: str | Path,
    out: str | Path,
    *,
    scale: str = "paper",
    on: str = "local",
    store: str | Path | None = None,
    run: bool = True,
) -> Study:
    """Run a plan into a folder; what is finished there, or in a study beside it, is not computed again.

    A plan that names code (`./mine.py`, `package.module:callable`, `hf:NAME`), itself or in its base recipe, is refused
    outside `with allow_code():`, which says that it is trusted; this is remembered until one of them changes.
    """
    opened = open_plan(plan, out, scale=scale, store=store)
    if run:
        opened.run(on)
    return opened


def open_plan(
    plan: str | Path,
    out: str | Path,
    *,
    scale: str = "paper",
    store: str | Path | None = None,
) -> Study:
    """The study of a plan in a folder, a new one or one that was begun with the same plan."""
    from calibrant.studying.validate_plan import check_plan

    folder, file = Path(out), find_plan(plan)
    study_plan = read_plan(file, scale=scale)
    check_plan(study_plan, file)
    place = Path(store) if store is not None else folder.parent / "jobs"
    opened = Study(folder=folder, plan=study_plan, store=Store(place))
    unused, outdated, changed = 0, 0, list[str]()
    if (folder / "study.json").exists():
        known = _facts(folder)
        if known["title"] != study_plan.title or known["scale"] != scale:
            raise InputError(
                str(folder),
                expected=f"a new folder, or that of '{study_plan.title}' at scale {scale}",
                got=f"the study '{known['title']}' at scale {known['scale']}",
                fix="choose another --out",
            )
        before = open_study(folder)
        unused, outdated = _count_left(before, opened)
        changed = before.find_changes()
    text = file.read_bytes()
    write_whole(folder / "plan.toml", lambda stream: stream.write(text))
    facts = {"version": VERSION, "title": study_plan.title, "scale": scale, "store": _relative(place, folder)}
    write_text(folder / "study.json", json.dumps(facts, indent=2))
    save_sources(folder, opened.digests, keep=bool(outdated))
    return replace(opened, unused=unused, outdated=outdated, changed=tuple(changed))


def open_study(folder: str | Path) -> Study:
    """A study that was begun before, by the sources that it has stored: the files themselves may be elsewhere."""
    folder = Path(folder)
    facts = _facts(folder)
    plan = read_plan(folder / "plan.toml", scale=facts["scale"])
    store = Store(folder / facts["store"])
    return Study(folder=folder, plan=plan, store=store, stored=load_sources(folder)[0])


def _count_left(before: Study, study: Study) -> tuple[int, int]:
    """Numbers of finished jobs that a study does not use: those that it has no more, and those by other sources."""
    keys, finished, plain = {job.key for job in study.jobs}, before.store.done(), EarlierSources()
    left = [
        alike.key
        for job, alike in zip(before.jobs, jobs_of(before.plan, plain), strict=True)
        if job.key in finished and job.key not in keys
    ]
    outdated = len(set(left) & {job.key for job in jobs_of(study.plan, plain)})
    return len(left) - outdated, outdated


def filter_rows(rows: "pl.DataFrame", where: str) -> "pl.DataFrame":
    """Rows for which a condition holds; only a condition, so nothing can be read or written by it."""
    import polars as pl

    if not where:
        return rows
    try:
        return rows.filter(pl.sql_expr(where))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0]
        fix = f"columns are {', '.join(rows.columns)}; write for instance \"data = 'cifar10'\""
        raise InputError("--where", expected="a condition in SQL", got=f"'{where}' ({reason})", fix=fix) from None


def _facts(folder: Path) -> dict[str, str]:
    file, fix = folder / "study.json", "run the plan again"
    if not file.exists():
        raise InputError(
            str(folder), expected="the folder of a study", got="no study.json in it", fix="give the folder of --out"
        )
    facts = read_json(file, expected="a study.json", fix=fix)
    with whole(str(file), fix=fix):
        if read_typed(facts, "version", int) != VERSION:
            raise ValueError(f"version is {facts['version']!r:.40}")
        texts: dict[str, str] = {name: read_typed(facts, name, str) for name in ("title", "scale", "store")}
        if "\0" in texts["store"]:
            raise ValueError(f"store is {texts['store']!r:.40}")
    return texts


def _check_columns(names: tuple[str, ...], rows: "pl.DataFrame") -> None:
    for name in names:
        if name not in rows.columns:
            raise InputError("by", expected=f"some of {', '.join(rows.columns)}", got=name, fix="name a column")


def _check_one_run_a_seed(rows: "pl.DataFrame", by: tuple[str, ...], apart: list[str]) -> None:
    """Refuse groups in which rows differ by more than their seed: their spread is not that of runs."""
    for name in apart:
        if name not in by and rows.height and rows.select(*by, name).unique().height > rows.select(*by).unique().height:
            values = ", ".join(map(str, rows[name].unique(maintain_order=True).to_list()))
            raise InputError(
                "by",
                expected="columns that leave only seeds to differ",
                got=f"several values of {name} in one group ({values})",
                fix=f"add {name}, or keep one of them: --where \"{name} = '{rows[name][0]}'\"",
            )


def _check_judged(rows: "pl.DataFrame", store: Path) -> None:
    """Refuse rows that no job of kind `judge` has written."""
    import polars as pl

    for name in LABELS:
        kind, number = rows.schema.get(name), name in ("value", "n", "k")
        right = kind is not None and (kind == pl.Null or (kind.is_numeric() if number else kind == pl.String))
        if not right or (number and not (rows[name].cast(pl.Float64).drop_nulls().abs() <= LARGEST).all()):
            expected, got = f"{'numbers' if number else 'words'} in the column {name}", "none" if kind is None else kind
            fix = "delete the parts that are not from a study, and run the plan again"
            raise InputError(str(store / "rows" / "judge"), expected=expected, got=str(got), fix=fix)


def _relative(place: Path, folder: Path) -> str:
    """The path of the store relative to the study, so that both can be moved together."""
    return os.path.relpath(place.resolve(), folder.resolve())


def _running(folder: Path) -> bool:
    """Whether a driver is running on the store."""
    for place in folder.glob("journal/*"):
        try:
            with lock_folder(place):
                pass
        except InputError:
            return True
    return False
