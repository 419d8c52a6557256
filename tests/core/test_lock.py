"""The lock of a folder: one holder, named in the message; a process that has ended holds nothing."""

import os
import subprocess
import sys
import threading
import time

import pytest

from calibrant.core.errors import InputError
from calibrant.core.lock import NAME, lock_folder

HOLD = """
import os, sys
from calibrant.core.lock import lock_folder
with lock_folder(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
    os._exit(1)  # as if killed: nothing is cleaned up
"""


def test_a_second_holder_is_told_who_the_first_one_is(tmp_path):
    folder = tmp_path / "a" / "run"
    folder.mkdir(parents=True)
    with lock_folder(folder):
        assert (folder / NAME).read_text().startswith(f"process {os.getpid()} on ")
        with pytest.raises(InputError, match=rf"no other process is at work, got one that process {os.getpid()} on"), \
                lock_folder(folder):  # fmt: skip
            pass
        with lock_folder(tmp_path / "another"):
            pass
    assert list(folder.iterdir()) == []
    with lock_folder(folder):
        pass


def test_a_new_folder_stays_if_something_is_in_it(tmp_path):
    with lock_folder(tmp_path / "empty"):
        pass
    with lock_folder(tmp_path / "used"):
        (tmp_path / "used" / "file").write_text("")
    assert [folder.name for folder in tmp_path.iterdir()] == ["used"]


def test_an_error_inside_frees_the_folder(tmp_path):
    with pytest.raises(KeyError), lock_folder(tmp_path):
        raise KeyError
    with lock_folder(tmp_path):
        pass


def test_a_process_that_was_killed_holds_nothing(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(InputError, match=rf"process {holder.pid} on .*choose another folder"), lock_folder(tmp_path):
        pass
    holder.communicate("end\n", timeout=30)
    assert (tmp_path / NAME).exists()
    with lock_folder(tmp_path):
        assert f"process {os.getpid()} " in (tmp_path / NAME).read_text()


def test_many_at_once_one_at_a_time(tmp_path):
    """Holders come and go and remove the file under each other: never are two inside."""
    inside, most = [], []

    def work():
        own = 0
        while own < 10:
            try:
                with lock_folder(tmp_path):
                    inside.append(1)
                    most.append(len(inside))
                    own += 1
                    inside.pop()
            except InputError:
                time.sleep(0.001)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 40


@pytest.mark.skipif(os.name != "posix", reason="flock")
def test_a_file_system_without_locks_gives_a_warning(tmp_path, monkeypatch):
    import errno
    import fcntl

    def none(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.warns(UserWarning, match="has no locks"), lock_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a folder that can be written"), lock_folder(tmp_path / "file"):
        pass
