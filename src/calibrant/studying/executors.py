"""Executors of a study's jobs, by name: processes of this machine, Ray, or one shard of many."""

from calibrant.core.errors import InputError
from calibrant.studying.engine import Executor
from calibrant.studying.job import Job
from calibrant.studying.store import Store


def executor_for(
    on: str, jobs: list[Job], store: Store, limit: float, *, cpus: float = 1, gpus: float = 0
) -> tuple[Executor, list[Job], str]:
    """The executor of this name, the jobs it runs, and the name of its journal."""
    from calibrant.studying.pool import LocalPool

    if not 0 <= limit < float("inf"):
        raise InputError("limit", expected="0 (none) or more seconds", got=f"{limit}", fix="give the seconds of a job")
    kind, _, rest = on.partition(":")
    if kind == "ray":
        from calibrant.studying.on_ray import RayTasks

        address = on if rest else ""
        return RayTasks(store.folder, address, limit=limit, cpus=cpus, gpus=gpus), jobs, "ray"
    if kind == "local" and (not rest or (rest.isdigit() and int(rest) > 0)):
        return LocalPool(store.folder, int(rest or 0), limit=limit), jobs, "local"
    if kind == "shard":
        number, _, count = rest.partition("/")
        if number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count):
            chosen = shard(jobs, int(number), int(count))
            return LocalPool(store.folder, limit=limit), chosen, f"shard-{number}-of-{count}"
    raise InputError(
        "on", expected="local, local:2, ray, ray://HOST:PORT or shard:3/16", got=f"'{on}'", fix="use local"
    )


def shard(jobs: list[Job], number: int, count: int) -> list[Job]:
    """One of several parts of the jobs, of about equal size; jobs that need each other are in one part."""

    def root(job: Job) -> str:
        return root(job.needs[0]) if job.needs else job.key

    dealt = {key: turn % count for turn, key in enumerate(sorted({root(job) for job in jobs}))}
    return [job for job in jobs if dealt[root(job)] == number - 1]
