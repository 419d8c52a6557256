"""Every test has a home of its own: nothing is read from or left in the user's."""

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder decoded images go to."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    return tmp_path / "cache" / "decoded"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    return folder
