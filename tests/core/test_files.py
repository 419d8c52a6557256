"""Files are written whole or not at all, and what is not a regular file is never replaced."""

import errno
import fcntl
import gzip
import os
import resource
import stat
import subprocess
import sys
import threading

import polars as pl
import pytest

from calibrant.core import files
from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.io import size_limits


def put(data):
    return lambda stream: stream.write(data)


def test_a_failing_writer_leaves_the_old_file(tmp_path):
    file = tmp_path / "p.txt"
    file.write_text("old")

    def fail(stream):
        stream.write(b"half of the ne")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        write_whole(file, fail)
    assert file.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["p.txt"]


def test_a_failing_writer_leaves_nothing_new(tmp_path):
    def fail(stream):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "p.txt", fail)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    """A process that dies in the middle: the name never holds half a file."""
    (tmp_path / "p.txt").write_text("old")
    code = (
        "import os, sys; from calibrant.core.files import write_whole\n"
        "write_whole(sys.argv[1], lambda stream: (stream.write(b'half'), stream.flush(), os._exit(9)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p.txt")], check=False, timeout=60)
    assert done.returncode == 9
    assert (tmp_path / "p.txt").read_text() == "old"


def test_written_files_are_as_readable_as_any_other(tmp_path):
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "p.txt", lambda stream: stream.write(b"x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "p.txt").stat().st_mode) == 0o644


def test_a_new_file_gets_its_mode_from_the_start(tmp_path):
    """Between making and renaming it is never more open than it will be, and the umask is never touched."""
    seen = []

    def look(stream):
        seen.append(stat.S_IMODE(os.fstat(stream.fileno()).st_mode))

    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "p.txt", look)
    finally:
        os.umask(before)
    assert seen == [0o600]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_existing_file_keeps_its_mode(tmp_path, mode):
    file = tmp_path / "p.txt"
    file.write_text("old")
    file.chmod(mode)
    write_whole(file, put(b"new"))
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "p.txt", tmp_path / "p.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, put(b"new"))
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert [f.name for f in target.parent.iterdir()] == ["p.txt"]


def test_a_link_to_nothing_makes_what_it_points_to(tmp_path):
    link = tmp_path / "p.txt"
    link.symlink_to("later.txt")
    write_whole(link, put(b"new"))
    assert link.is_symlink()
    assert (tmp_path / "later.txt").read_text() == "new"


def test_a_pipe_is_written_through(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, put(b"through"))
    reader.join(timeout=10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_that_nobody_reads_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "READER_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(InputError, match="expected a file that can be written"):
            write_whole(tmp_path / name, lambda stream: stream.write(b"rows"))


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="expected a file that can be written"):
        write_whole(tmp_path / "a", lambda stream: stream.write(b"rows"))


def test_the_null_device_stays_a_device():
    write_whole("/dev/null", put(b"gone"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_folder_and_a_name_below_a_file_are_refused(tmp_path):
    (tmp_path / "file").write_text("old")
    for path in (tmp_path, tmp_path / "file" / "p.txt"):
        with pytest.raises(InputError, match=r"expected a file that can be written, got .*directory"):
            write_whole(path, put(b"x"))
    assert (tmp_path / "file").read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(InputError, match="name too long"):
        write_whole(tmp_path / ("x" * 300), put(b"x"))
    assert list(tmp_path.iterdir()) == []
    write_whole(tmp_path / ("x" * 255), put(b"x"))  # as long as a name may be


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="expected a file that can be written, got Permission denied"):
        write_whole(tmp_path / "p.txt", put(b"x"))
    tmp_path.chmod(0o700)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_step_that_fails_leaves_the_old_file(tmp_path, monkeypatch, step, number):
    (tmp_path / "p.txt").write_text("old")

    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(files.os, step, fail)
        with pytest.raises(InputError, match=os.strerror(number)):
            write_whole(tmp_path / "p.txt", put(b"new"))
    assert (tmp_path / "p.txt").read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["p.txt"]


@pytest.mark.parametrize("how", ["bytes", "parquet", "csv"])
def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path, how):
    """A limit on the size of files stands for the full disk: the same calls fail in the same way."""
    file = tmp_path / "p.txt"
    file.write_text("old")
    table = pl.DataFrame({"x": [i * 0.123456789 for i in range(20000)]})
    write = {"bytes": put(bytes(100_000)), "parquet": table.write_parquet, "csv": table.write_csv}[how]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(InputError, match="expected room for the whole file, got File too large"):
            write_whole(file, write)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["p.txt"]


# -- killed between any two writes ----------------------------------------------------------------

TWO_FILES = """
import sys
from calibrant.core.files import write_whole
for name in ("a.txt", "b.txt"):
    write_whole(sys.argv[1] + "/" + name, lambda stream: stream.write(b"new"))
"""


def run_two(folder, n):
    code = [sys.executable, "-c", TWO_FILES, str(folder)]
    return subprocess.run(code, env={**os.environ, "CALIBRANT_FAULT_AT": str(n)}, check=False, timeout=60).returncode


def test_a_fault_point_ends_the_process_between_any_two_writes(tmp_path):
    expected = {1: [], 2: ["a.txt"], 3: ["a.txt"], 4: ["a.txt", "b.txt"]}
    for n, names in expected.items():
        folder = tmp_path / str(n)
        assert run_two(folder, n) == 137
        assert sorted(f.name for f in folder.iterdir() if f.suffix == ".txt") == names
    assert run_two(tmp_path / "5", 5) == 0


def test_what_a_killed_process_left_is_cleaned_and_nothing_else(tmp_path):
    assert run_two(tmp_path, 1) == 137
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".calibrant-")
    mine = tmp_path / left.name.replace(left.name.split("-")[-2], str(os.getpid()))
    elsewhere = tmp_path / f".calibrant-anotherhost-{left.name.split('-', 2)[2]}"
    for other in (mine, elsewhere, tmp_path / ".calibrant-x.part"):
        other.write_text("of others")
    write_whole(tmp_path / "p.txt", put(b"x"))
    assert not left.exists()
    assert {f.name for f in tmp_path.iterdir()} == {mine.name, elsewhere.name, ".calibrant-x.part", "p.txt"}


def test_what_a_process_of_another_container_is_writing_stays(tmp_path):
    """It has a number that no process here has, but it holds its file."""
    assert run_two(tmp_path, 1) == 137
    (left,) = tmp_path.iterdir()
    with left.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        write_whole(tmp_path / "p.txt", put(b"x"))
        assert left.exists()
    write_whole(tmp_path / "p.txt", put(b"x"))
    assert not left.exists()


def test_a_packed_file_is_unpacked_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(size_limits, "FREE_BYTES", 1 << 16)
    (tmp_path / "some.gz").write_bytes(gzip.compress(bytes(1 << 16)))
    (tmp_path / "much.gz").write_bytes(gzip.compress(bytes(1 << 20)))
    assert files.read_bytes(tmp_path / "some.gz") == bytes(1 << 16)
    with pytest.raises(InputError, match="100 times its size"):
        files.read_bytes(tmp_path / "much.gz")
