"""The running app: hostile requests, two people at once, a phone, the keyboard, a token, a Space."""

import json
import re
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from commands import run
from test_predictions_tab import choose, wait_for

import calibrant as cal
from calibrant.app.serve import LOOPBACK, Settings

PARENTS = """() => {
  const ids = [];
  for (let e = document.activeElement; e; e = e.parentElement) ids.push(e.id);
  return ids;
}"""
SPACE = Path(cal.__file__).parent / "app" / "space"


class Person:
    """Requests by hand, with the cookie that the page gave."""

    def __init__(self, server):
        self.base, self.host = server.url.partition("?")[0].rstrip("/"), urlsplit(server.url).netloc
        self.cookie = ""
        self.cookie = self.ask("/", method="GET")[1].get("set-cookie", "").partition(";")[0]

    def ask(self, path, body=None, *, method=None, **headers):
        sent = {"cookie": self.cookie} | {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.base + path, data=body, headers=sent, method=method)
        try:
            with OPENER.open(request, timeout=20) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def upload(self, name, content):
        head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'.encode()
        status, _, body = self.ask(
            "/gradio_api/upload", head + content + b"\r\n--x--\r\n", content_type="multipart/form-data; boundary=x"
        )
        return status, body

    def join(self, session, data, fn_index=0):
        body = json.dumps({"session_hash": session, "fn_index": fn_index, "data": data}).encode()
        return self.ask("/gradio_api/queue/join", body, content_type="application/json")[0]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)


def files_of(server):
    return [file for file in (server.folder / "tmp").rglob("*") if file.is_file()]


def test_hostile_requests_get_nothing_and_leave_the_server_up(server):
    person, other = Person(server), Person(server)
    secret = server.folder / "secret.txt"
    secret.write_text("the secret")
    status, body = person.upload("../../../evil.npz", b"some bytes")
    assert status == 200
    (path,) = json.loads(body)
    assert Path(path).is_relative_to(server.folder / "tmp")
    assert not [file for file in server.folder.rglob("evil.npz") if not file.is_relative_to(server.folder / "tmp")]
    paths = [str(secret), path, "/etc/passwd", "..%2f..%2fetc%2fpasswd"]
    for asked in paths:
        for route in (
            "/gradio_api/file=",
            "/file=",
            "/gradio_api/proxy=",
            "/static/",
            "/assets/",
            "/pages/",
            "/results/a/",
        ):
            status, _, content = person.ask(route + quote(asked))
            assert status in (403, 404), (route, asked)
            assert b"the secret" not in content
            assert b"root:" not in content
    for asked in (str(secret), "/etc/passwd", "http://127.0.0.1:9/x", path + "x"):
        assert person.join("mine1", [[{"path": asked, "meta": {"_type": "gradio.FileData"}}]]) == 403
    assert other.join("theirs1", [[{"path": path, "meta": {"_type": "gradio.FileData"}}]]) == 403
    assert person.join("mine1", [], fn_index=10**6) == 400
    assert person.join("mine1", []) == 200  # and the tab is this browser's
    assert other.ask("/gradio_api/queue/data?session_hash=mine1")[0] == 403
    assert person.ask("/", host="evil.example")[0] == 421
    assert person.ask("/", origin="http://evil.example")[0] == 403
    assert person.upload("empty.npz", b"")[0] == 200  # refused when it is read
    assert person.ask("/gradio_api/upload", b"x", content_length="999999999999")[0] == 413
    status, headers, content = person.ask("/")
    assert status == 200
    assert b"gradio" in content
    assert "frame-ancestors 'self'" in headers["content-security-policy"]


def call_with_nonsense(person, session):
    """Call every function of the page with nonsense in place of its inputs; how many there are."""
    nonsense = ["\x00", -1e308, None, {"a": [1]}, "../x", True]
    inputs = [[nonsense[(fn_index + i) % 6] for i in range(30)] for fn_index in range(45)]
    statuses = [person.join(session, given, fn_index) for fn_index, given in enumerate(inputs)]
    functions = statuses.index(400)  # the numbers after them are of no function
    assert functions > 30
    assert statuses == [200] * functions + [400] * (45 - functions)
    return functions


def test_a_handler_that_fails_leaves_the_server_up(server):
    person = Person(server)
    call_with_nonsense(person, "broken")
    request = urllib.request.Request(f"{person.base}/gradio_api/heartbeat/broken", headers={"cookie": person.cookie})
    with OPENER.open(request, timeout=20) as stream:
        assert stream.readline() == b"data: ALIVE\n"
    assert person.ask("/")[0] == 200
    assert server.process.poll() is None


def test_people_who_leave_before_the_answer_leave_the_server_up(server):
    address = urlsplit(server.url)
    for _ in range(20):
        with socket.create_connection((address.hostname, address.port)) as impatient:
            impatient.sendall(f"GET / HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode() * 5)
    assert Person(server).ask("/")[0] == 200
    assert server.process.poll() is None


def test_an_upload_that_is_cut_leaves_nothing(server):
    person, address = Person(server), urlsplit(server.url)
    before, logged = files_of(server), server.log.read_text()
    head = f"POST /gradio_api/upload HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: {person.cookie}\r\n"
    head += "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2000000\r\n\r\n"
    part = '--x\r\nContent-Disposition: form-data; name="files"; filename="cut.npz"\r\n\r\n'
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall((head + part).encode() + bytes(500_000))
        until(lambda: files_of(server) != before)
    until(lambda: files_of(server) == before)
    assert server.log.read_text() == logged


def until(happens):
    deadline = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 143)])
def test_a_signal_ends_the_server_with_a_tab_open_and_removes_its_folder(start, name, code):
    server = start()
    person = Person(server)
    request = urllib.request.Request(f"{person.base}/gradio_api/heartbeat/open", headers={"cookie": person.cookie})
    with OPENER.open(request, timeout=20) as stream:
        assert stream.readline() == b"data: ALIVE\n"
        server.process.send_signal(getattr(signal, name))
        assert server.process.wait(20) == code
    assert files_of(server) == []
    assert list((server.folder / "tmp").iterdir()) == []
    assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_nohup_keeps_the_server_up_when_the_terminal_is_closed(start):
    server = start(command=["nohup", sys.executable, "-m", "calibrant", "app", "--port", "0", "--no-browser"])
    server.process.send_signal(signal.SIGHUP)
    assert Person(server).ask("/")[0] == 200
    time.sleep(3)  # as long as an end with open tabs takes
    assert Person(server).ask("/")[0] == 200


@pytest.mark.slow
def test_a_handler_that_fails_tells_nothing_of_this_machine(server):
    person = Person(server)
    functions = call_with_nonsense(person, "told")
    status, _, events = person.ask("/gradio_api/queue/data?session_hash=told")
    assert status == 200
    assert events.count(b'"process_completed"') == functions
    assert not any(word in events for word in (b"Traceback", b"calibrant/", b"site-packages", bytes(server.folder)))


def test_two_people_at_once_have_their_own_data(visit, server, tmp_path):
    names = {"ann": 300, "bob": 500}
    tabs = {}
    for name, n in names.items():
        cal.example("fashion").test.take(np.arange(n)).save(tmp_path / f"{name}.npz")
        tabs[name] = visit(wait="#diagram svg")
    for name, tab in tabs.items():
        tab.set_input_files("#files input[type=file]", tmp_path / f"{name}.npz")
    links = {}
    for name, tab in tabs.items():
        wait_for(tab, f"{name}, uncalibrated: {names[name]} rows")
        choose(tab, "calibrator", "temperature")
        wait_for(tab, f"{name}, temperature: {names[name]} rows")
        tab.wait_for_selector("#downloads a[href$='/map.json']")
        links[name] = tab.get_attribute("#downloads a[href$='/map.json']", "href")
    base = server.url.rstrip("/")
    assert tabs["ann"].request.get(base + links["ann"]).status == 200
    assert tabs["ann"].request.get(base + links["bob"]).status == 404
    assert [file.name for file in files_of(server) if file.name in ("ann.npz", "bob.npz")]
    tabs["ann"].context.close()
    tabs["bob"].context.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (left := [f for f in files_of(server) if f.name in ("ann.npz", "bob.npz")]):
        time.sleep(0.2)
    assert left == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_and_the_keyboard(visit, scheme):
    phone = {"viewport": {"width": 390, "height": 800}, "color_scheme": scheme, "has_touch": True}
    tab = visit("?example=sneakers", wait="#diagram svg", **phone)
    wait_for(tab, "sneakers, uncalibrated")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.locator("#verdict").bounding_box()["width"] > 280
    page, ink = (
        tab.evaluate("getComputedStyle(document.querySelector('#verdict .headline')).color"),
        tab.evaluate("getComputedStyle(document.body).backgroundColor"),
    )
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) / 765 for colour in (page, ink)]
    assert abs(brightness[0] - brightness[1]) > 0.7
    assert (brightness[1] < 0.3) == (scheme == "dark")
    if scheme == "dark":
        return
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached |= set(tab.evaluate(PARENTS))
    assert {"files", "example", "calibrator", "bins", "scheme", "low", "high", "rows"} <= reached
    tab.locator("#bins input[type=range]").focus()
    tab.keyboard.press("ArrowRight")
    wait_for(tab, "in 16 bins")


@pytest.mark.slow
def test_another_address_asks_for_a_token(start):
    """`--host` with a name that is not this machine's own; here another address of the loopback network."""
    server = start("--host", "127.0.0.2")
    address = urlsplit(server.url)
    assert re.fullmatch(r"token=[\w-]{32}", address.query)
    stranger = Person(server)
    for path in ("/", "/assets/x.js", "/pages/understand.html", "/gradio_api/heartbeat/abc", "/theme.css"):
        assert stranger.ask(path)[0] == 401
    status, headers, _ = stranger.ask(f"/?{address.query}")
    assert status == 303
    assert headers["location"] == "/"
    stranger.cookie = headers["set-cookie"].partition(";")[0]
    assert stranger.ask("/")[0] == 200


def test_a_port_in_use_and_odd_options_are_refused(server, tmp_path):
    port = urlsplit(server.url).port
    assert "a free port" in run("app", "--port", port, "--no-browser", code=2).stderr
    assert "1 MB or more" in run("app", "--max-upload", 0, "--no-browser", code=2).stderr
    assert "run.json" in run("app", tmp_path, "--port", 0, "--no-browser", code=2).stderr
    assert Settings().host in LOOPBACK


def test_it_listens_on_this_machine_alone(server):
    port = urlsplit(server.url).port
    with pytest.raises(OSError), socket.create_connection(("127.0.0.3", port), timeout=2):  # noqa: PT011
        pass


@pytest.mark.slow
def test_the_files_of_a_space_start_it(start, browser, monkeypatch):
    monkeypatch.setenv("GRADIO_SERVER_NAME", "127.0.0.1")
    monkeypatch.setenv("GRADIO_SERVER_PORT", "0")
    text = (SPACE / "README.md").read_text()
    assert re.search(r"^sdk: gradio$", text, re.M)
    assert re.search(r"^app_file: app\.py$", text, re.M)
    assert (SPACE / "requirements.txt").read_text() == "calibrant[app,train]\n"
    server = start(command=[sys.executable, str(SPACE / "app.py")])
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(server.url)
    tab.wait_for_selector("#diagram svg", timeout=60_000)
    assert "deleted when you close the page" in tab.inner_text("body")
    context.close()
