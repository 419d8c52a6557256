"""Jobs as Ray tasks, here or on a cluster, with Ray's retries; rows and files come back by its object store."""

import io
import logging
import shutil
import tarfile
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.parallel import cores
from calibrant.studying.job import Job, Outcome
from calibrant.studying.run_job import do, use_one_thread
from calibrant.studying.store import Store

RETRIES = 3  # of a task whose node was lost
KEPT = 64  # packed files of needed jobs that stay in the object store; those of queued tasks do anyhow
AHEAD = 4  # tasks in the queue for every processor, so that none waits for the driver


class RayTasks:
    """Ray at an address, or started here; each job takes one processor unless told otherwise."""

    def __init__(
        self, folder: Path, address: str = "", *, limit: float = 0.0, cpus: float = 1, gpus: float = 0
    ) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError:
            fix = 'pip install "calibrant[ray]"'
            raise InputError("on ray", expected="the package ray", got="it is not installed", fix=fix) from None
        self.ray, self.store, self.limit = ray, Store(folder), limit
        self.began_here = not ray.is_initialized()
        if self.began_here:
            options: dict[str, Any] = {"address": address} if address else {"num_cpus": cores()}
            try:
                ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **options)
            except (OSError, RuntimeError, ValueError, ImportError, AssertionError) as error:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
                fix = "check the address and the port (10001 is Ray's own), and that both sides have the same Ray"
                raise InputError(f"--on {address or 'ray'}", expected="a Ray cluster", got=reason, fix=fix) from None
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1) / max(cpus, 0.01))) * AHEAD
        self._task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_task)
        self._running: dict[Any, Job] = {}
        self._packed: dict[str, Any] = {}  # files of needed jobs, in the object store

    def start(self, job: Job) -> None:
        needs = {need.key: self._files(need.key) for need in job.needs}
        self._running[self._task.remote(job, list(needs), *needs.values(), limit=self.limit)] = job

    def wait(self) -> list[Outcome]:
        ended, _ = self.ray.wait(list(self._running), num_returns=1)
        more, _ = self.ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        return [self._outcome(reference) for reference in {*ended, *more}]

    def close(self) -> None:
        for reference in self._running:
            self.ray.cancel(reference, force=True)
        self._running, self._packed = {}, {}
        if self.began_here:
            self.ray.shutdown()

    def _outcome(self, reference: Any) -> Outcome:
        job = self._running.pop(reference)
        try:
            outcome, files = self.ray.get(reference)
            assert isinstance(outcome, Outcome)
        except Exception as error:  # the node or the worker was lost too often
            return Outcome(job.key, job.kind, failed=f"{type(error).__name__}: {error}")
        if files and not outcome.failed:
            unpack(files, self.store.work(job.key))
            self.store.finish_files(job.key)
        return outcome

    def _files(self, key: str) -> Any:
        if key not in self._packed:
            self._packed[key] = self.ray.put(pack(self.store.files(key)))
            if len(self._packed) > KEPT:
                del self._packed[next(iter(self._packed))]
        return self._packed[key]


def _task(job: Job, keys: list[str], *packed: bytes, limit: float = 0.0) -> tuple[Outcome, bytes]:
    """Run a job on any node: needed files are unpacked beside it, and its files are packed again."""
    use_one_thread()
    place = Path(tempfile.mkdtemp(prefix="calibrant-job-"))
    try:
        store = Store(place)
        for key, files in zip(keys, packed, strict=True):
            unpack(files, store.files(key))
        outcome = _within(limit, job, place)
        return outcome, pack(store.files(job.key))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _within(limit: float, job: Job, place: Path) -> Outcome:
    """Run the job in a process of its own where it has a time limit, because only a process can be ended."""
    if not limit:
        return do(job, place)
    from calibrant.studying.pool import LocalPool

    pool = LocalPool(place, 1, limit=limit)
    try:
        pool.start(job)
        return pool.wait()[0]
    finally:
        pool.close()


def pack(folder: Path) -> bytes:
    """The files of a folder as one archive; nothing where there is no folder."""
    if not folder.exists():
        return b""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.add(file, arcname=str(file.relative_to(folder)), recursive=False)
    return stream.getvalue()


def unpack(files: bytes, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if files:
        with tarfile.open(fileobj=io.BytesIO(files)) as archive:
            archive.extractall(folder, filter="data")
