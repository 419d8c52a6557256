"""Whatever is typed, a command ends with its numbers or with one line that says what to do."""

import os

import pytest
from fuzz_counts import FEW, MANY, count, record
from hostile_commands import ended


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where commands run, so that a name without a folder does no harm."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_commands_end_clean(folder):
    counts = count(ended, FEW, folder)
    assert counts["other"] == 0
    assert counts["refused"] > FEW / 5
    assert counts["right"] > FEW / 4
    assert os.stat("/dev/null").st_mode & 0o170000 == 0o020000


@pytest.mark.slow
def test_many_commands_end_clean(folder):
    record("commands", count(ended, MANY, folder, first=FEW))
