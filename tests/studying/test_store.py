"""Finished jobs on disk: whole or not there, counted once, whatever was killed in between."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.studying import store as room
from calibrant.studying.job import Job, Outcome
from calibrant.studying.store import Journal, Store


def outcome(number, **more):
    job = Job("nothing", {"number": number})
    return Outcome(job.key, "nothing", [{"number": number, "square": number**2}], seconds=0.5, **more)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "jobs")


def test_keys_tell_everything_that_decides_a_result_apart():
    a = Job("nothing", {"number": 1, "file": "x"})
    assert a.key == Job("nothing", {"file": "x", "number": 1}).key
    assert len({a.key, Job("nothing", {"number": 2}).key, Job("nothing", {"number": 1, "file": "x"}, (a,)).key}) == 3


def test_other_code_of_a_kind_makes_other_jobs(tmp_path, monkeypatch):
    before = Job("nothing", {}).key
    copy = shutil.copytree(Path(__file__).parent.parent / "job_package", tmp_path / "package")
    monkeypatch.syspath_prepend(str(copy))
    assert Job("nothing", {}).key == before
    kind = copy / "trial_jobs" / "nothing.py"
    kind.write_text(kind.read_text().replace("** 2", "** 3"))
    assert Job("nothing", {}).key != before


def test_a_full_disk_is_named_and_loses_nothing_that_was_written(store):
    journal = Journal(store, "local")
    journal.add(outcome(1))
    journal.stream.close()
    with open("/dev/full", "w") as journal.stream:
        with pytest.raises(InputError, match=r"local/jobs\.jsonl: expected room .*, got No space left .* make room"):
            journal.add(outcome(2))
        journal.close()
    assert Store(store.folder).done() == {outcome(1).key}
    Journal(store, "local").close()
    assert store.rows("nothing")["number"].to_list() == [1]


def test_a_job_is_known_at_once_and_after_its_journal_became_a_part(store):
    journal = Journal(store, "local")
    journal.add(outcome(3))
    assert store.done() == {outcome(3).key}
    assert store.rows("nothing")["square"].to_list() == [9]
    journal.close()
    assert not list(store.folder.glob("journal/*/jobs.jsonl"))
    assert store.rows("nothing")["square"].to_list() == [9]


def test_a_line_that_was_cut_is_not_read(store):
    journal = Journal(store, "local")
    journal.add(outcome(1))
    journal.stream.write(json.dumps(vars(outcome(2)))[:40])
    journal.stream.close()
    assert store.done() == {outcome(1).key}
    Journal(store, "local").close()
    assert store.rows("nothing")["number"].to_list() == [1]


DAMAGES = {
    "{": "line 2 that is JSON",
    "\\xff": "line 2 that is JSON",
    "[1, 2]": "line 2 that tells of a job",
    '{"kind": "nothing"}': "key: expected a value, got none",
    '{"key": "a", "kind": "../evil"}': "'../evil'",
    '{"key": "a/b", "kind": "nothing"}': "'a/b'",
    '{"key": "a", "kind": "nothing", "more": 1}': "got 'more'",
    '{"key": "a", "kind": "nothing", "rows": [{"x": [1]}]}': "the row",
    '{"key": "a", "kind": "nothing", "rows": [{"job": "b"}]}': "the row",
    '{"key": "a", "kind": "nothing", "rows": [{"x": 99999999999999999999}]}': "the row",
}


@pytest.mark.parametrize("line", DAMAGES)
def test_a_damaged_line_is_refused_with_its_number(store, line):
    """Only the last line of a journal may be no JSON at all: a kill has cut it."""
    right = json.dumps(vars(outcome(1)))
    for name, look in [("journal/local/jobs", store.done), ("failed/a-1", store.failures)]:
        file = store.folder / f"{name}.jsonl"
        file.parent.mkdir(parents=True)
        file.write_bytes(f"{right}\n{line}\n{right}\n".encode().replace(rb"\xff", b"\xff"))
        with pytest.raises(InputError, match=re.escape(DAMAGES[line])) as refused:
            look()
        assert str(file) in str(refused.value)
        file.unlink()


@pytest.mark.parametrize(
    "table",
    [b"", b"PAR1 no", {"number": [1]}, {"job": [1]}, {"job": ["a", None]}, {"job": ["a"], "x": [[1.0]]}],
)
def test_a_damaged_part_is_refused(store, table):
    file = store.folder / "rows" / "nothing" / "part-a-1.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(table) if isinstance(table, bytes) else pl.DataFrame(table).write_parquet(file)
    with pytest.raises(InputError, match=re.escape(str(file))):
        store.rows("nothing")
    if not (isinstance(table, dict) and "x" in table):  # done looks at the keys alone
        with pytest.raises(InputError, match=re.escape(str(file))):
            store.done()


def test_killed_between_part_and_journal_a_job_counts_once(store, monkeypatch):
    journal = Journal(store, "local")
    journal.add(outcome(4))
    journal.stream.close()
    monkeypatch.setattr("pathlib.Path.unlink", lambda self: None)
    journal.compact()
    assert len(list(store.folder.glob("rows/nothing/*.parquet"))) == 1
    assert store.rows("nothing").height == 1
    assert store.rows("nothing", [outcome(4).key]).height == 1
    assert store.rows("nothing", ["another"]).height == 0


def test_parts_are_written_on_the_way(store, monkeypatch):
    monkeypatch.setattr(room, "PART_JOBS", 10)
    journal = Journal(store, "local")
    for number in range(25):
        journal.add(outcome(number))
    assert len(list(store.folder.glob("rows/nothing/*.parquet"))) == 2
    assert sorted(store.rows("nothing")["number"]) == list(range(25))
    journal.close()


def test_a_failure_is_remembered_until_the_jobs_is_done(store):
    journal = Journal(store, "local")
    journal.add(outcome(5, failed="Traceback ...\nValueError: no"))
    journal.close()
    assert store.failures()[outcome(5).key].failed.endswith("no")
    assert store.done() == set()
    journal = Journal(store, "local")
    journal.add(outcome(5))
    assert store.failures() == {}
    journal.close()


def test_a_million_rows_answer_a_question(store):
    big = pl.DataFrame({"job": ["a"] * 10**6, "number": range(10**6), "square": range(10**6), "seconds": [0.0] * 10**6})
    (store.folder / "rows" / "nothing").mkdir(parents=True)
    big.write_parquet(store.folder / "rows" / "nothing" / "part-a-1.parquet")
    assert store.rows("nothing").filter(pl.col("square") > 999_990)["number"].sum() == sum(range(999_991, 10**6))
