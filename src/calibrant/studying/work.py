"""One unit done: the same function in a local process, in a Ray task and in a shard."""

import os
import sys
import time
import traceback
from pathlib import Path

from calibrant.core.plain import plain
from calibrant.studying.store import Store
from calibrant.studying.unit import Outcome, Unit, work_of


def use_one_thread() -> None:
    """From now on in this process, which does units beside others: more threads would add up in another order."""
    os.environ["CALIBRANT_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if torch := sys.modules.get("torch"):  # loaded by an earlier task, it reads the environment no more
        torch.set_num_threads(1)


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
