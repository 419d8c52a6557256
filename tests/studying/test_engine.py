"""The driver on real processes: order, failures, kills, limits, locks, and the same rows wherever jobs run."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.lock import lock_folder
from calibrant.studying import on_ray
from calibrant.studying.engine import run_jobs
from calibrant.studying.executors import executor_for, shard
from calibrant.studying.job import Job
from calibrant.studying.pool import LocalPool
from calibrant.studying.run_job import use_one_thread
from calibrant.studying.store import Store


def jobs(count=6):
    first = Job("nothing", {"number": 100, "file": "a"})
    return [first, Job("nothing", {"number": 101}, (first,)), *(Job("nothing", {"number": i}) for i in range(count))]


THREADS = ("CALIBRANT_THREADS", "OMP_NUM_THREADS", "OMP_WAIT_POLICY")


@pytest.fixture
def eight_threads(monkeypatch):
    """A process that was told to use eight threads, and what torch hears, as a list."""
    for name in THREADS[:2]:
        monkeypatch.setenv(name, "8")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setattr("calibrant.core.parallel._asked", None)
    heard = []
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=heard.append))
    return heard


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "jobs")


def run(work, store, *, workers=2, limit=0.0, **options):
    return run_jobs(work, store, LocalPool(store.folder, workers, limit=limit), **options)


def table(store):
    return store.rows("nothing").select("job", "number", "square", "found").sort("job").rows()


def test_needed_jobs_come_first_and_finished_ones_are_not_computed_again(store):
    ended = run(jobs(), store)
    assert (ended.total, ended.done, ended.failed, ended.reused) == (8, 8, 0, 0)
    results = {row[1]: row[3] for row in table(store)}
    assert results[101] == 1  # it saw the file of the job it needs
    again = run([*jobs(), Job("nothing", {"number": 7})], store)
    assert (again.done, again.reused) == (9, 8)


def test_a_failure_stops_only_what_needs_it_and_can_be_tried_again(store, tmp_path):
    bad = Job("nothing", {"number": 1, "fail_unless": str(tmp_path / "now")})
    work = [bad, Job("nothing", {"number": 2}, (bad,)), Job("nothing", {"number": 3})]
    ended = run(work, store)
    assert (ended.done, ended.failed, ended.blocked) == (1, 1, 1)
    assert "told to fail" in store.failures()[bad.key].failed
    assert "Traceback" in store.failures()[bad.key].failed
    assert run(work, store).failed == 1  # known: not tried again by itself
    (tmp_path / "now").touch()
    store.forget_failures()
    assert run(work, store, retry=True).done == 3
    assert store.failures() == {}


def test_a_worker_that_dies_costs_nothing(store, tmp_path):
    dying = Job("nothing", {"number": 1, "die_unless": str(tmp_path / "died")})
    ended = run([dying, *jobs()], store)
    assert (ended.done, ended.failed) == (9, 0)


def test_a_job_that_takes_its_process_along_is_given_up_and_said(store):
    dying, greedy = Job("nothing", {"die": True}), Job("nothing", {"memory": 2**60})
    ended = run([dying, greedy, *jobs(2)], store)
    assert (ended.done, ended.failed) == (4, 2)
    assert store.failures()[dying.key].failed == "its process ended with exit code 9, 2 times"
    assert "MemoryError" in store.failures()[greedy.key].failed


def test_a_job_that_hangs_is_stopped_and_said(store):
    ended = run([Job("nothing", {"seconds": 600}), *jobs(2)], store, limit=4.0)
    assert (ended.done, ended.failed) == (4, 1)
    assert "time limit of 4 s" in next(iter(store.failures().values())).failed


def test_two_drivers_on_one_store_meet_a_lock(store):
    with (
        lock_folder(store.folder / "journal" / "driver"),
        pytest.raises(InputError, match="no other process is at work"),
    ):
        run(jobs(), store)


def test_shards_are_disjoint_and_whole_and_keep_what_belongs_together(store, tmp_path):
    work = jobs(20)
    parts = [shard(work, i, 3) for i in (1, 2, 3)]
    assert sorted(u.key for part in parts for u in part) == sorted(u.key for u in work)
    assert all(need in part for part in parts for u in part for need in u.needs)
    assert sorted(len([u for u in part if not u.needs]) for part in parts) == [7, 7, 7]  # dealt in turn
    for i in (1, 2, 3):
        executor, mine, driver = executor_for(f"shard:{i}/3", work, store, 0.0)
        run_jobs(mine, store, executor, driver=driver)
    other = Store(tmp_path / "whole")
    run(work, other)
    assert table(store) == table(other)


@pytest.mark.parametrize("on", ["locale", "shard:4/3", "shard:0/3", "local:x", "local:0", "shard:1"])
def test_unknown_places_to_run(store, on):
    with pytest.raises(InputError, match="on: expected local"):
        executor_for(on, [], store, 0.0)


DRIVER = """
import sys
from pathlib import Path
from calibrant.studying.engine import run_jobs
from calibrant.studying.pool import LocalPool
from calibrant.studying.store import Store
from calibrant.studying.job import Job
if __name__ == "__main__":
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    first = [Job("nothing", {"number": i, "file": "f", "seconds": 0.01}) for i in range(count)]
    later = [Job("nothing", {"number": 1000 + i, "seconds": 0.01}, (first[i],)) for i in range(count)]
    run_jobs([*first, *later], Store(folder), LocalPool(folder, 2))
"""


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))  # what is written beyond it fails
"""


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path):
    script, full = tmp_path / "driver.py", tmp_path / "full.py"
    script.write_text(DRIVER)
    full.write_text(FULL + DRIVER)
    ended = subprocess.run([sys.executable, str(full), str(tmp_path / "a"), "12"], capture_output=True, text=True)
    assert ended.returncode != 0
    assert "File too large" in ended.stderr
    before = len(Store(tmp_path / "a").done())
    assert 0 < before < 24
    subprocess.run([sys.executable, str(script), str(tmp_path / "a"), "12"], check=True)
    rows = Store(tmp_path / "a").rows("nothing")
    assert sorted(rows["number"]) == [*range(12), *range(1000, 1012)]
    assert rows.filter(pl.col("number") >= 1000)["found"].to_list() == [1] * 12


def _disturbed(folder: Path, script: Path, kills: int, count: int, seed: int) -> int:
    """Kill the driver, or one of its workers, at random points, most of them amid its jobs; then let it end."""
    rng = random.Random(seed)
    journal, amid = folder / "journal" / "driver" / "jobs.jsonl", 0
    command = [sys.executable, str(script), str(folder), str(count)]
    for _ in range(kills):
        process = subprocess.Popen(command)
        wanted = rng.randrange(5)  # jobs that this driver may finish before
        while process.poll() is None and _lines_of(journal) < wanted:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.1))
        amid += process.poll() is None and wanted > 0
        victims = [process.pid, *_children(process.pid)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(victims), signal.SIGKILL)
        if process.poll() is None and rng.random() < 0.8:
            process.kill()
        process.wait()
    subprocess.run(command, check=True)
    return amid


def _lines_of(journal: Path) -> int:
    try:
        return journal.read_bytes().count(b"\n")
    except OSError:
        return 0


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


@pytest.mark.parametrize(("kills", "count"), [(4, 12), pytest.param(100, 150, marks=pytest.mark.slow)])
def test_killed_at_random_points_it_ends_with_the_same_table(tmp_path, kills, count):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), str(tmp_path / "calm"), str(count)]
    calm = threading.Thread(target=subprocess.run, args=(command,), kwargs={"check": True})
    calm.start()
    amid = _disturbed(tmp_path / "killed", script, kills, count, seed=kills)
    calm.join()
    assert amid >= kills / 4  # otherwise nothing was tried
    assert len(table(Store(tmp_path / "calm"))) == 2 * count
    assert table(Store(tmp_path / "killed")) == table(Store(tmp_path / "calm"))
    assert not Store(tmp_path / "killed").failures()


def test_a_task_of_ray_uses_one_thread(eight_threads):
    """The task itself, without Ray: whatever its process was told before."""
    assert cal.threads() == 8
    outcome, files = on_ray._task(Job("nothing", {"number": 3, "file": "a"}), [])
    assert outcome.rows == [{"number": 3, "square": 9, "found": 0}]
    assert files
    assert cal.threads() == 1
    assert [os.environ[name] for name in THREADS] == ["1", "1", "ACTIVE"]
    assert eight_threads == [1]  # and not by loading it


def test_one_thread_waits_without_spinning_and_loads_no_torch(eight_threads, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY")
    monkeypatch.delitem(sys.modules, "torch")
    use_one_thread()
    assert [os.environ[name] for name in THREADS] == ["1", "1", "PASSIVE"]
    assert "torch" not in sys.modules


@pytest.mark.slow
def test_ray_of_two_nodes_gives_the_same_rows_and_survives_the_loss_of_one(tmp_path):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from calibrant.studying.on_ray import RayTasks

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    extra = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, include_dashboard=False, log_to_driver=False)
    try:
        store, local = Store(tmp_path / "ray"), Store(tmp_path / "local")
        run_jobs(jobs(), store, RayTasks(store.folder), driver="ray")
        run(jobs(), local)
        assert table(store) == table(local)
        slow = [Job("nothing", {"number": 200 + i, "seconds": 1.0}) for i in range(8)]
        at_work = []

        def lose() -> None:
            at_work.append(_busy(extra))
            cluster.remove_node(extra, allow_graceful=False)

        killer = threading.Timer(2.5, lose)
        killer.start()
        assert run_jobs(slow, store, RayTasks(store.folder), driver="ray").done == 8
        killer.join()
        assert at_work == [1]  # a job was on it when it was lost
        run(slow, local)
        assert table(store) == table(local)
    finally:
        ray.shutdown()
        cluster.shutdown()


def _busy(node) -> int:
    """How many processors of a node are taken."""
    from ray._private.state import available_resources_per_node

    return 1 - int(available_resources_per_node()[node.node_id].get("CPU", 0))


def test_a_cluster_that_does_not_answer_is_named(tmp_path, monkeypatch):
    """A dead port was "file: ... timeout"."""

    def init(**options):
        raise ConnectionError("ray client connection timeout")

    fake = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr(on_ray, "import_module", lambda name: fake)
    with pytest.raises(InputError, match=r"--on ray://host:1: expected a Ray cluster, got ray client connection"):
        on_ray.RayTasks(tmp_path, "ray://host:1")


def test_a_kind_that_is_not_installed_says_what_to_do():
    with pytest.raises(InputError, match=r"none called nas_trane.*pip install -e"):
        _ = Job("nas_trane", {}).key
