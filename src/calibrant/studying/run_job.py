"""One job done: the same function in a local process, in a Ray task and in a shard."""

import os
import sys
import time
import traceback
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.studying.job import Job, Outcome
from calibrant.studying.job_kinds import work_of
from calibrant.studying.sources import changed_code, describe
from calibrant.studying.store import Store


def use_one_thread() -> None:
    """Use one thread from now on in this process: more threads would add up in another order."""
    os.environ["CALIBRANT_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if torch := sys.modules.get("torch"):  # loaded by an earlier task, it reads the environment no more
        torch.set_num_threads(1)


def do(job: Job, folder: str | Path) -> Outcome:
    """Run a job and return its outcome; an exception becomes a record, so that the rest continues."""
    store, began = Store(folder), time.monotonic()
    try:
        rows = work_of(job.kind).run(job.options, [store.files(need.key) for need in job.needs], store.work(job.key))
        rows = plain(rows)
        if changed := changed_code(job.digests):
            got, fix = f"another {describe(changed)}", "run the plan again, which gives the job another key"
            raise InputError(f"job {job.key}", expected="the sources that it began with", got=got, fix=fix)
        store.finish_files(job.key)
    except Exception:
        return Outcome(job.key, job.kind, failed=traceback.format_exc(), seconds=time.monotonic() - began)
    return Outcome(job.key, job.kind, rows, seconds=time.monotonic() - began)
