"""Where the units of a study run, by name: processes of this machine, Ray, or one shard of many."""

from calibrant.core.errors import InputError
from calibrant.studying.engine import Executor
from calibrant.studying.store import Store
from calibrant.studying.unit import Unit


def executor_for(on: str, units: list[Unit], store: Store, limit: float) -> tuple[Executor, list[Unit], str]:
    """Where units run, which of them, and the name of their journal."""
    from calibrant.studying.pool import LocalPool

    kind, _, rest = on.partition(":")
    if kind == "ray":
        from calibrant.studying.on_ray import RayTasks

        return RayTasks(store.folder, on if rest else "", limit=limit), units, "ray"
    if kind == "local" and (not rest or (rest.isdigit() and int(rest) > 0)):
        return LocalPool(store.folder, int(rest or 0), limit=limit), units, "local"
    if kind == "shard":
        number, _, count = rest.partition("/")
        if number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count):
            chosen = shard(units, int(number), int(count))
            return LocalPool(store.folder, limit=limit), chosen, f"shard-{number}-of-{count}"
    raise InputError(
        "on", expected="local, local:2, ray, ray://HOST:PORT or shard:3/16", got=f"'{on}'", fix="use local"
    )


def shard(units: list[Unit], number: int, count: int) -> list[Unit]:
    """A part of the units: those that belong together by what they need are in one part."""

    def root(unit: Unit) -> str:
        return root(unit.needs[0]) if unit.needs else unit.key

    return [unit for unit in units if int(root(unit), 16) % count == number - 1]
