"""One unit done: the same function in a local process, in a Ray task and in a shard."""

import time
import traceback
from pathlib import Path

from calibrant.core.plain import plain
from calibrant.studying.store import Store
from calibrant.studying.unit import Outcome, Unit, work_of


def do(unit: Unit, folder: str | Path) -> Outcome:
    """The outcome of a unit; whatever it raises becomes a record, so that the rest continues."""
    store, began = Store(folder), time.monotonic()
    try:
        rows = work_of(unit.kind).run(
            unit.options, [store.files(need.key) for need in unit.needs], store.work(unit.key)
        )
        rows = plain(rows)
        store.finish_files(unit.key)
    except Exception:
        return Outcome(unit.key, unit.kind, failed=traceback.format_exc(), seconds=time.monotonic() - began)
    return Outcome(unit.key, unit.kind, rows, seconds=time.monotonic() - began)
