"""The guard in front of a small application: who gets in, and what belongs to whom."""

import asyncio
import json
import time

import pytest

from calibrant.app.guard import API, BROWSER, MOST_JSON, OLD_SECONDS, Access, Guard, Owners

PORT = 7860
HOSTS = frozenset(f"{name}:{PORT}" for name in ("127.0.0.1", "localhost", "[::1]"))


class Behind:
    """An application that says what reached it."""

    def __init__(self, uploads=()):
        self.uploads, self.seen, self.bodies = list(uploads), [], []

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.seen.append(scope)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"server", b"x")]})
        answer = json.dumps(self.uploads) if scope["path"].endswith("/upload") else "behind"
        await send({"type": "http.response.body", "body": answer.encode()})


class Client:
    """A browser in front of a guard."""

    def __init__(self, guard, host=f"127.0.0.1:{PORT}"):
        self.guard, self.host, self.cookie = guard, host, None

    def ask(self, method, path, *, query="", body=b"", chunks=None, **headers):
        sent = {"host": self.host} | ({"cookie": self.cookie} if self.cookie else {})
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value is not None],
        }
        messages, parts = [], list(chunks or [body])

        async def receive():
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message):
            messages.append(message)

        asyncio.run(self.guard(scope, receive, send))
        start = messages[0]
        self.headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        if "set-cookie" in self.headers:
            self.cookie = self.headers["set-cookie"].partition(";")[0]
        return start["status"], b"".join(m.get("body", b"") for m in messages[1:]).decode()

    def join(self, session="tab1", data=(), **more):
        body = json.dumps({"session_hash": session, "fn_index": 0, "data": list(data)} | more).encode()
        return self.ask("POST", f"{API}/queue/join", body=body)[0]


@pytest.fixture
def behind():
    return Behind(["/tmp/uploads/1/a.npz"])


@pytest.fixture
def owners():
    return Owners()


@pytest.fixture
def guard(behind, owners):
    return Guard(behind, Access(port=PORT, hosts=HOSTS, max_upload=1000), owners, 40)


@pytest.fixture
def client(guard):
    client = Client(guard)
    assert client.ask("GET", "/", query="bins=20")[0] == 303
    assert client.headers["location"] == "/?bins=20"
    assert "HttpOnly; SameSite=Strict" in client.headers["set-cookie"]
    return client


def test_a_name_that_stands_twice_is_refused(client, behind):
    """The guard read the first, Gradio the last: so one browser read the rows of another."""
    for query in ("session_hash=mine&session_hash=theirs", "session_hash=theirs&session_hash=mine"):
        assert client.ask("GET", f"{API}/queue/data", query=query)[0] == 400
    assert behind.seen == []


@pytest.mark.parametrize("number", [-1, 40, 99999, "0", None, 1.5, True])
def test_functions_that_the_page_does_not_have_are_refused(client, behind, number):
    assert client.join(fn_index=number) == 400
    assert behind.seen == []


def test_uploads_of_one_browser_are_capped_and_old_ones_of_closed_tabs_go(tmp_path, owners, monkeypatch):
    files = [tmp_path / f"{i}.npz" for i in range(60)]
    for file in files:
        file.write_bytes(b"x")
        owners.make_room("b1")
        owners.add_upload(str(file), "b1")
    assert [file.exists() for file in files] == [False] * 10 + [True] * 50
    (tmp_path / "other.npz").write_bytes(b"x")
    owners.add_upload(str(tmp_path / "other.npz"), "b2")
    owners.claim("tab", "b2")
    later = time.monotonic() + OLD_SECONDS + 1
    monkeypatch.setattr("calibrant.app.guard.time.monotonic", lambda: later)
    owners.make_room("b3")
    assert [file.name for file in tmp_path.iterdir()] == ["other.npz"]


def test_the_page_is_served_to_a_browser_with_its_cookie(client, behind):
    assert client.ask("GET", "/") == (200, "behind")
    assert client.headers["content-security-policy"].startswith("default-src 'self';")
    assert "server" not in client.headers
    assert dict(behind.seen[0]["headers"])[BROWSER.encode()]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7860", "127.0.0.1:1", "127.0.0.1", "localhost.evil:7860", ""]
)
def test_a_name_that_was_rebound_is_refused(guard, behind, host):
    assert Client(guard, host).ask("GET", "/")[0] == 421
    assert behind.seen == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://[::1"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"},
        {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"},
    ],
)
def test_other_sites_are_refused(client, behind, headers):
    assert client.ask("POST", f"{API}/queue/join", **headers)[0] == 403
    assert client.ask("GET", "/", **headers)[0] == 403
    assert behind.seen == []
    assert client.ask("GET", "/", origin=f"http://127.0.0.1:{PORT}")[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{API}/file=/etc/passwd"),
        ("GET", f"{API}/file/etc/passwd"),
        ("GET", f"{API}/proxy=http://169.254.169.254/"),
        ("GET", "/file=/etc/passwd"),
        ("POST", f"{API}/run/predict"),
        ("POST", f"{API}/call/begin"),
        ("POST", f"{API}/component_server"),
        ("GET", f"{API}/info"),
        ("GET", f"{API}/openapi.json"),
        ("GET", f"{API}/startup-events"),
        ("GET", f"{API}/stream/a/b/c/playlist.m3u8"),
        ("POST", f"{API}/process_recording"),
        ("POST", f"{API}/vibe-edit"),
        ("GET", f"{API}/vibe-code"),
        ("GET", f"{API}/deep_link"),
        ("GET", f"{API}/runs"),
        ("GET", "/config"),
        ("GET", "/monitoring"),
        ("GET", "/login"),
        ("POST", "/login"),
        ("GET", "/svelte/svelte.js"),
        ("GET", "/robots.txt"),
        ("GET", "/assets/../../../etc/passwd"),
        ("GET", "/static/..%2f..%2fetc/passwd"),
        ("GET", "//etc/passwd"),
        ("PUT", "/"),
        ("DELETE", f"{API}/queue/join"),
        ("OPTIONS", f"{API}/queue/join"),
        ("TRACE", "/"),
    ],
)
def test_what_the_page_does_not_need_is_closed(client, behind, method, path):
    assert client.ask(method, path)[0] == 404
    assert behind.seen == []


def test_without_a_cookie_of_ours_only_the_files_of_the_packages_are_open(guard, client, behind):
    stranger = Client(guard)
    assert stranger.ask("GET", "/assets/index.js")[0] == 200
    for cookie in (None, "calibrant-7860=abc.def", "calibrant-7860=", "calibrant-7860=\x00", f"{client.cookie}0"):
        stranger.cookie = cookie
        assert stranger.join() == 403
        assert stranger.ask("GET", "/results/abc/map.json")[0] == 403
    assert len(behind.seen) == 1


def test_a_header_of_the_client_never_names_the_browser(client, behind):
    client.ask("GET", "/", **{BROWSER: "somebody-else", "x_forwarded_host": "evil.example"})
    sent = [(name.decode(), value.decode()) for name, value in behind.seen[0]["headers"]]
    assert [value for name, value in sent if name == BROWSER] == [client.cookie.partition("=")[2].partition(".")[0]]
    assert "evil.example" not in dict(sent).values()


def file(path, **more):
    return {"path": path, "meta": {"_type": "gradio.FileData"}} | more


def test_files_and_tabs_belong_to_the_browser_that_brought_them(guard, client, owners):
    other = Client(guard)
    other.ask("GET", "/")
    assert client.ask("POST", f"{API}/upload", body=b"x")[0] == 200
    assert client.join("tab1", [[file("/tmp/uploads/1/a.npz")]]) == 200
    assert other.join("tab2", [[file("/tmp/uploads/1/a.npz")]]) == 403
    for path in (
        "/etc/passwd",
        "http://evil.example/x",
        "/tmp/uploads/1/../1/a.npz",
        None,
        7,
        ["/tmp/uploads/1/a.npz"],
        {},
    ):
        assert client.join("tab1", [[file(path)]]) == 403
        assert client.join("tab1", event_data={"deep": [file(path)]}) == 403
    assert other.join("tab1") == 403
    assert other.ask("GET", f"{API}/queue/data", query="session_hash=tab1")[0] == 403
    assert other.ask("GET", f"{API}/heartbeat/tab1")[0] == 403
    body = json.dumps({"session_hash": "tab1", "fn_index": 0, "event_id": "x"}).encode()
    assert other.ask("POST", f"{API}/cancel", body=body)[0] == 403
    assert client.ask("POST", f"{API}/cancel", body=body)[0] == 200


def test_uploads_go_with_the_last_tab_of_their_browser(client, guard, owners, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"x")
    guard.app.uploads = [str(path)]
    client.ask("POST", f"{API}/upload", body=b"x")
    client.join("tab1")
    client.join("tab2")
    browser = owners.sessions["tab1"]
    owners.forget("tab1", browser)
    assert path.exists()
    owners.forget("tab2", browser)
    assert not path.exists()
    assert owners.uploads == {}


def test_the_body_of_a_request_reaches_the_application_whole(client, behind):
    assert client.join("tab1", ["a", 1, None]) == 200
    assert json.loads(behind.bodies[-1])["data"] == ["a", 1, None]


@pytest.mark.parametrize(
    ("status", "body"),
    [(400, body) for body in (b"", b"{", b"[" * 100_000, b"\xff")]
    + [(403, body) for body in (b"[]", b"null", b'{"session_hash": "../x"}', b'{"session_hash": 1}')],
)
def test_requests_that_are_none_are_refused(client, behind, status, body):
    assert client.ask("POST", f"{API}/queue/join", body=body)[0] == status
    assert behind.seen == []


def test_large_requests_are_refused_while_they_come(client, behind):
    assert client.ask("POST", f"{API}/queue/join", body=b" " * (MOST_JSON + 1))[0] == 413
    assert client.ask("POST", f"{API}/upload", content_length=str(10**9))[0] == 413
    assert client.ask("POST", f"{API}/upload", chunks=[b"x" * 40_000] * 3)[0] == 413
    assert client.ask("POST", f"{API}/upload", content_length="many")[0] == 413
    assert behind.seen == []


def test_a_token_opens_the_page_and_is_not_kept_in_the_address(behind, owners):
    access = Access(port=PORT, hosts=None, token="secret-token")
    guard = Guard(behind, access, owners, 40)
    client = Client(guard, "machine:7860")
    for query in ("", "token=", "token=wrong", "token=secret-tokem"):
        assert client.ask("GET", "/", query=query)[0] == 401
        assert client.ask("GET", "/assets/index.js", query=query)[0] == 401
        assert client.ask("GET", "/pages/understand.html", query=query)[0] == 401
    assert client.ask("GET", "/", query="token=secret-token&bins=9")[0] == 303
    assert client.headers["location"] == "/?bins=9"
    assert client.ask("GET", "/")[0] == 200
    stranger = Client(guard, "machine:7860")
    stranger.cookie = f"calibrant-7860={Access(port=PORT, hosts=None).browser_cookie()}"  # signed with another secret
    assert stranger.ask("GET", "/")[0] == 401
    assert len(behind.seen) == 1


def test_a_public_page_may_stand_in_a_frame_of_its_host(behind, owners):
    client = Client(Guard(behind, Access(port=PORT, hosts=None, public=True), owners, 40), "x.hf.space")
    client.ask("GET", "/")
    assert "SameSite=None; Secure; Partitioned" in client.headers["set-cookie"]
    client.ask("GET", "/")
    assert "frame-ancestors 'self' https://huggingface.co" in client.headers["content-security-policy"]


def test_websockets_are_closed(guard):
    sent = []

    async def send(message):
        sent.append(message["type"])

    asyncio.run(guard({"type": "websocket"}, None, send))
    assert sent == ["websocket.close"]
