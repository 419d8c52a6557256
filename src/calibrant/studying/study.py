"""A study on disk: its plan, the units it is made of, and what they have found so far."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.lock import locked
from calibrant.core.schema import read_json, typed, whole
from calibrant.studying.engine import Standing, run_units
from calibrant.studying.executors import executor_for
from calibrant.studying.plan import Plan, check_measure
from calibrant.studying.plan_files import find_plan, read_plan
from calibrant.studying.store import Store
from calibrant.studying.trainings import Cell, cells_of, check_code, units_of
from calibrant.studying.unit import Unit

if TYPE_CHECKING:
    import polars as pl

    from calibrant.studying.claims import Finding

VERSION = 1
LABELS = ("rescorer", "calibrator", "set", "measure", "value", "n", "k", "why")


@dataclass(frozen=True)
class Status:
    """How many units there are, and how they stand."""

    total: int
    done: int
    failed: int
    missing: int
    running: bool
    failures: dict[str, str]  # what failed -> the last line of its traceback


@dataclass(frozen=True)
class Study:
    """A plan and the folder of its results. Units are kept in a store that studies beside it share."""

    folder: Path
    plan: Plan
    store: Store

    @cached_property
    def cells(self) -> list[Cell]:
        return list(cells_of(self.plan))

    @cached_property
    def units(self) -> list[Unit]:
        return list(units_of(self.plan))

    def run(
        self,
        on: str = "local",
        *,
        limit: float = 0.0,
        cpus: float = 1,
        gpus: float = 0,
        retry: bool = False,
        on_progress: Callable[[Standing], None] | None = None,
    ) -> Standing:
        """Compute what is missing, on `local`, `local:2`, `ray`, `ray://HOST:PORT` or a part of it, `shard:3/16`.

        `cpus` and `gpus` are what a unit takes of a Ray cluster.
        """
        from calibrant.studying.estimate import check_data

        if not on.startswith("ray:"):  # whose nodes have the data
            check_data(self.plan, self.store.done())
        executor, units, driver = executor_for(on, self.units, self.store, limit, cpus=cpus, gpus=gpus)
        if retry:
            self.store.forget_failures()
        return run_units(units, self.store, executor, driver=driver, retry=retry, on_progress=on_progress)

    def status(self) -> Status:
        keys = {unit.key for unit in self.units}
        done, failed = self.store.done() & keys, {k: o for k, o in self.store.failures().items() if k in keys}
        names = {unit.key: self._name(unit) for unit in self.units if unit.key in failed}
        failures = {names[key]: outcome.why for key, outcome in failed.items()}
        missing = len(keys) - len(done) - len(failed)
        return Status(len(keys), len(done), len(failed), missing, _running(self.store.folder), failures)

    def rows(self, where: str = "") -> "pl.DataFrame":
        """One row for each training, entry, set and measure; `where` is a condition in SQL."""
        import polars as pl

        judged = self.store.rows("judge", [cell.judge.key for cell in self.cells])
        labels = pl.DataFrame(
            [{"unit": cell.judge.key, "method": cell.method, **cell.place} for cell in self.cells],
            infer_schema_length=None,
        )
        if judged.height == 0:
            columns = [*labels.columns, *LABELS, "entry"]
            return pl.DataFrame({name: [] for name in columns}, schema=dict.fromkeys(columns, pl.String))
        _check_judged(judged, self.store.folder)
        made = labels.join(judged.select("unit", *LABELS), on="unit", how="inner")
        rows = self.plan.rows
        names = {(e.method, e.rescorer, e.calibrator): name for name, e in rows.items()}
        keys = made.select("method", "rescorer", "calibrator").rows()
        made = made.with_columns(pl.Series("entry", [names.get(key, "") for key in keys], dtype=pl.String))
        return filtered(made, where)

    def table(self, measure: str, by: tuple[str, ...] = ("entry", "data"), where: str = "") -> "pl.DataFrame":
        """Mean, standard deviation and number of values of a measure, over everything that is not in `by`."""
        import polars as pl

        check_measure("measure", measure, self.plan.after.measures)
        self.check_judged()
        rows = self.rows(where).filter((pl.col("measure") == measure) & (pl.col("set") == "test"))
        for name in by:
            if name not in rows.columns:
                raise InputError("by", expected=f"some of {', '.join(rows.columns)}", got=name, fix="name a column")
        rows = rows.filter(pl.col("entry") != "") if "entry" in by else rows
        value = pl.col("value")
        return (
            rows.group_by(*by, maintain_order=True)
            .agg(value.mean().alias("mean"), value.std().alias("sd"), value.count().alias("runs"))
            .sort(*by)
        )

    def check_judged(self) -> None:
        """Refuse to make tables of nothing."""
        if not self.rows().height:
            fix = f"run the plan, or see how far it is: calibrant study status {self.folder}"
            raise InputError(str(self.folder), expected="judged trainings", got="nothing is judged yet", fix=fix)

    def claims(self) -> "list[Finding]":
        """Every claim of the plan: held, did not hold, or cannot be told, with the number."""
        from calibrant.studying.claims import judge_all

        return judge_all(self.plan, self.rows())

    def _name(self, unit: Unit) -> str:
        cell = next(cell for cell in self.cells if any(one.key == unit.key for one in cell.units))
        place = ", ".join(f"{key} {value}" for key, value in cell.place.items())
        more = "" if unit.kind in ("train", "judge") else f" {unit.options.get('rescorer') or unit.options.get('set')}"
        return f"{unit.kind}{more} of {cell.method} ({place})"


def study(
    plan: str | Path,
    out: str | Path,
    *,
    scale: str = "paper",
    on: str = "local",
    store: str | Path | None = None,
    run: bool = True,
    allow_code: bool = False,
) -> Study:
    """Run a plan into a folder; what is finished there, or in a study beside it, is not computed again.

    A plan that names code (`./mine.py`, `package.module:callable`, `hf:NAME`), itself or in its base recipe, is refused
    unless `allow_code` says that it is trusted; this is remembered until one of them changes.
    """
    made = open_plan(plan, out, scale=scale, store=store, allow_code=allow_code)
    if run:
        made.run(on)
    return made


def open_plan(
    plan: str | Path,
    out: str | Path,
    *,
    scale: str = "paper",
    store: str | Path | None = None,
    allow_code: bool = False,
) -> Study:
    """The study of a plan in a folder, a new one or one that was begun with the same plan."""
    from calibrant.studying.names import check_plan

    folder, file = Path(out), find_plan(plan)
    made = read_plan(file, scale=scale)
    check_plan(made, file, allow=allow_code)
    place = Path(store) if store is not None else folder.parent / "units"
    if (folder / "study.json").exists():
        known = _facts(folder)
        if known["title"] != made.title or known["scale"] != scale:
            raise InputError(
                str(folder),
                expected=f"a new folder, or that of '{made.title}' at scale {scale}",
                got=f"the study '{known['title']}' at scale {known['scale']}",
                fix="choose another --out",
            )
    text = file.read_bytes()
    write_whole(folder / "plan.toml", lambda stream: stream.write(text))
    facts = {"version": VERSION, "title": made.title, "scale": scale, "store": _relative(place, folder)}
    write_whole(folder / "study.json", lambda stream: stream.write(json.dumps(facts, indent=2).encode()))
    return Study(folder, made, Store(place))


def open_study(folder: str | Path, *, allow_code: bool = False) -> Study:
    """A study that was begun before; `allow_code`: see `study`."""
    found = _found(Path(folder))
    check_code(found.plan, found.folder / "plan.toml", allow=allow_code)
    return found


def _found(folder: Path) -> Study:
    facts = _facts(folder)
    plan = read_plan(folder / "plan.toml", scale=facts["scale"])
    return Study(folder, plan, Store(folder / facts["store"]))


def recomputed(plan: str | Path, out: str | Path, *, scale: str = "paper") -> int | None:
    """How many finished units of the folder's earlier plan the plan does not use; None where there is no study."""
    folder = Path(out)
    if not (folder / "study.json").exists():
        return None
    before = _found(folder)  # only names are looked at: nothing of it is built
    now = {unit.key for unit in units_of(read_plan(plan, scale=scale))}
    return len(({unit.key for unit in before.units} & before.store.done()) - now)


def filtered(rows: "pl.DataFrame", where: str) -> "pl.DataFrame":
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
        if typed(facts, "version", int) != VERSION:
            raise ValueError(f"version is {facts['version']!r:.40}")
        found: dict[str, str] = {name: typed(facts, name, str) for name in ("title", "scale", "store")}
        if "\0" in found["store"]:
            raise ValueError(f"store is {found['store']!r:.40}")
    return found


def _check_judged(rows: "pl.DataFrame", store: Path) -> None:
    """Refuse rows that no judging has written."""
    import polars as pl

    for name in LABELS:
        kind, number = rows.schema.get(name), name in ("value", "n", "k")
        right = kind is not None and (kind == pl.Null or (kind.is_numeric() if number else kind == pl.String))
        if not right or (number and not rows[name].cast(pl.Float64).drop_nulls().is_finite().all()):
            expected, got = f"{'numbers' if number else 'words'} in the column {name}", "none" if kind is None else kind
            fix = "delete the parts that are not from a study, and run the plan again"
            raise InputError(str(store / "rows" / "judge"), expected=expected, got=str(got), fix=fix)


def _relative(place: Path, folder: Path) -> str:
    """The store as seen from the study, so that both can be moved together."""
    return os.path.relpath(place.resolve(), folder.resolve())


def _running(folder: Path) -> bool:
    """Whether a driver is at work on the store."""
    for place in folder.glob("journal/*"):
        try:
            with locked(place):
                pass
        except InputError:
            return True
    return False
