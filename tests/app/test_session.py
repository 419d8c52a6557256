"""Open tabs: whose they are, what they keep, and that an older look never follows a newer."""

from types import SimpleNamespace

import pytest

import calibrant as cal
from calibrant.app import session as sessions_module
from calibrant.app.guard import BROWSER, Owners
from calibrant.app.session import Session, Sessions


def request(browser="ann", tab="tab1"):
    return SimpleNamespace(headers={BROWSER: browser}, session_hash=tab)


@pytest.fixture
def sessions(tmp_path):
    owners = Owners()
    for tab, browser in (("tab1", "ann"), ("tab2", "ann"), ("tab3", "bob")):
        owners.claim(tab, browser)
    return Sessions(tmp_path / "sessions", owners)


def test_a_tab_has_its_own_session_and_loses_it_when_closed(sessions, tmp_path):
    first = sessions.of(request())
    assert sessions.of(request()) is first
    assert sessions.of(request(tab="tab2")) is not first
    upload = tmp_path / "a.npz"
    upload.write_bytes(b"x")
    (kept,) = first.keep_files([str(upload)], "judged")
    assert kept.read_bytes() == b"x"
    assert kept.is_relative_to(first.folder)
    sessions.end(request())
    assert not first.folder.exists()
    assert first.stop.is_set()
    with pytest.raises(cal.InputError, match="closed"):
        sessions.of(request())
    for other in (request("bob", "tab2"), request("", "tab2"), request("../x", "tab2")):
        with pytest.raises(cal.InputError):
            sessions.of(other)


def test_results_are_for_the_browser_that_made_them(sessions):
    session = sessions.of(request())
    address = session.offer("map", "map.json", lambda: b"{}")
    _, _, key, name = address.split("/")
    assert sessions.result("ann", key, name).write() == b"{}"
    assert sessions.result("ann", key, "other.json") is None
    assert sessions.result("ann", "x", name) is None
    assert sessions.result("bob", key, name) is None
    assert session.offer("map", "map.json", lambda: b"[]") == address  # a link on the page stays good
    assert session.offer("report", "report.html", bytes) != session.offer("report", "report.html", bytes)


def test_uploads_of_others_are_refused(sessions):
    sessions.owners.add_upload("/tmp/a", "ann")
    assert sessions.owned(request(), ["/tmp/a"]) == ["/tmp/a"]
    for other, path in ((request("bob", "tab3"), "/tmp/a"), (request(), "/etc/passwd")):
        with pytest.raises(cal.InputError, match="from this browser"):
            sessions.owned(other, [path])


def test_only_so_many_tabs_are_kept(sessions, monkeypatch):
    monkeypatch.setattr(sessions_module, "MOST_SESSIONS", 2)
    folders = [sessions.of(request(*who)).folder for who in (("ann", "tab1"), ("ann", "tab2"), ("bob", "tab3"))]
    assert [folder.exists() for folder in folders] == [False, True, True]


def test_a_look_that_was_overtaken_is_not_shown(tmp_path):
    session, order = Session(folder=tmp_path), []
    for asked in (10.0, 12.5, 11.0, 12.5, 13, None, "x", float("nan")):
        with session.turn(asked) as is_newest:
            order.append(is_newest)
    assert order == [True, True, False, True, True, False, False, False]
