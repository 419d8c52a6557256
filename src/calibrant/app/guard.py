"""Guard of the app: known hosts and origins, open routes, the token, and files of the browser that asks."""

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BROWSER = "x-calibrant-browser"  # the header by which the app learns which browser asks; never taken from a client
MOST_JSON = 1 << 20  # bytes of a request to the queue, which holds choices and no data
MOST_SESSIONS = 1000  # open tabs whose browser is remembered
MOST_UPLOADS = 50  # files of one browser that are kept
OLD_SECONDS = 3600.0  # after which those of a browser without an open tab go
FORM = 1 << 16  # bytes of an upload beside its files
SESSION = re.compile(r"[A-Za-z0-9]{1,64}")
FORWARDED = (
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-forwarded-for",
    "forwarded",
    "x-script-name",
)

# Everything that the page needs. Other routes of Gradio (files, proxies, streams, API, monitoring, ...) are closed.
API = "/gradio_api"
FILES = re.compile(r"/(static|assets)/[\w./@-]+|/theme\.css|/favicon\.ico|/manifest\.json", re.A)  # of the packages
PAGES = re.compile(r"/(pages|results)/[\w./-]+", re.A)
OPEN: dict[str, tuple[re.Pattern[str], ...]] = {
    "GET": (re.compile(r"/"), FILES, PAGES, re.compile(rf"{API}/(heartbeat/\w+|queue/data|upload_progress)", re.A)),
    "HEAD": (re.compile(r"/"), FILES, PAGES),
    "POST": (re.compile(rf"{API}/(queue/join|upload|cancel)"),),
}

CONTENT = (  # of every page: nothing is fetched from anywhere else
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-src 'self'; object-src 'none'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors {}"
)
SPACES = "'self' https://huggingface.co https://*.hf.space"


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may use the app: the hosts, the token, and the cookies of browsers."""

    port: int
    hosts: frozenset[str] | None  # names in the Host header; None: any, where a token or nothing secret protects
    token: str | None = None
    public: bool = False  # behind a proxy, in a frame of another site, for everybody
    max_upload: int = 500 << 20  # bytes
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def cookie(self) -> str:
        return f"calibrant-{self.port}"

    def browser_cookie(self) -> str:
        name = secrets.token_urlsafe(16)
        return f"{name}.{self._signature(name)}"

    def browser_of(self, cookie: str) -> str | None:
        """The browser that this cookie was given to; None if the cookie is not ours."""
        name, _, signature = cookie.partition(".")
        return name if hmac.compare_digest(signature.encode(), self._signature(name).encode()) else None

    def _signature(self, name: str) -> str:
        return hmac.new(self.secret, f"{self.token or ''}:{name}".encode(), hashlib.sha256).hexdigest()


class Owners:
    """The browser that each upload and each open tab belongs to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.uploads: dict[str, set[str]] = {}  # path -> browsers; the oldest first
        self.times: dict[str, float] = {}  # of the uploads
        self.sessions: dict[str, str] = {}  # open tab -> browser

    def add_upload(self, path: str, browser: str) -> None:
        with self.lock:
            self.uploads.setdefault(path, set()).add(browser)
            self.times[path] = time.monotonic()

    def make_room(self, browser: str) -> None:
        """Delete the oldest uploads of a browser that has many, and old ones of browsers that have no tab open."""
        with self.lock:
            open_browsers, own = set(self.sessions.values()), [p for p, who in self.uploads.items() if browser in who]
            for path in own[: max(0, len(own) - MOST_UPLOADS + 1)]:
                self._drop(path, browser)
            for path, browsers in list(self.uploads.items()):
                if time.monotonic() - self.times[path] > OLD_SECONDS:
                    for other in browsers - open_browsers:
                        self._drop(path, other)

    def _drop(self, path: str, browser: str) -> None:
        """Forget an upload of a browser, and delete it if it was the last that had it."""
        self.uploads[path].discard(browser)
        if not self.uploads[path]:
            del self.uploads[path], self.times[path]
            Path(path).unlink(missing_ok=True)

    def has_upload(self, path: object, browser: str) -> bool:
        with self.lock:
            return isinstance(path, str) and browser in self.uploads.get(path, ())

    def forget(self, session: str, browser: str) -> None:
        """Delete the uploads of a browser when the last of its tabs is closed."""
        with self.lock:
            self.sessions.pop(session, None)
            if browser in self.sessions.values():
                return
            for path in list(self.uploads):
                self._drop(path, browser)

    def claim(self, session: object, browser: str) -> bool:
        """Whether this tab belongs to the browser; the first to name a tab owns it."""
        if not isinstance(session, str) or not SESSION.fullmatch(session):
            return False
        with self.lock:
            if len(self.sessions) >= MOST_SESSIONS and session not in self.sessions:
                self.sessions.pop(next(iter(self.sessions)))
            return self.sessions.setdefault(session, browser) == browser


class RequestError(Exception):
    """A refused request, with the reason for the sender."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Guard:
    """ASGI middleware that serves what `OPEN` lists, to whom `Access` lets in."""

    def __init__(self, app: App, access: Access, owners: Owners, functions: int) -> None:
        self.app, self.access, self.owners = app, access, owners
        self.functions = functions  # of the page, which requests name by their number

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        try:
            await self._serve(scope, receive, send)
        except RequestError as error:
            await _answer(send, error.status, error.reason)
        except asyncio.CancelledError:
            return  # the server stops while a tab is open; uvicorn would print a traceback

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        path, query = str(scope["path"]), parse_qs(scope["query_string"].decode("latin-1"))
        self._check_host(headers)
        if any(len(values) > 1 for values in query.values()):  # of which the guard and Gradio may read different ones
            raise RequestError(400, "A name stands twice in this address.")
        if not any(pattern.fullmatch(path) for pattern in OPEN.get(scope["method"], ())) or ".." in unquote(path):
            raise RequestError(404, "There is nothing here.")
        cookies = _cookies(headers.get("cookie", ""))
        browser = self.access.browser_of(cookies.get(self.access.cookie, ""))
        token = query.pop("token", [""])[0]
        known = browser is not None or not self.access.token  # a browser has its cookie once it has shown the token
        if not known and not hmac.compare_digest(token.encode(), (self.access.token or "").encode()):
            raise RequestError(401, "This app needs its token: open the address that `calibrant app` has printed.")
        if path == "/" and (browser is None or token):
            return await self._welcome(send, query)
        if browser is None and not FILES.fullmatch(path):
            raise RequestError(
                403, "Open the page first, with cookies allowed: they keep your data apart from others'."
            )
        scope["headers"] = [
            pair
            for pair in scope["headers"]
            if pair[0].decode("latin-1").lower() not in (BROWSER, *self._headers_to_drop())
        ] + [(BROWSER.encode(), (browser or "").encode())]
        if path.startswith(API) and browser is not None:
            receive, send = await self._check_call(path, query, browser, headers, receive, send)
        await self.app(scope, receive, self._with_headers(send))

    def _check_host(self, headers: dict[str, str]) -> None:
        """Refuse host names that lead here by a trick of DNS, and pages of other sites."""
        host = headers.get("host", "")
        if self.access.hosts is not None and host not in self.access.hosts:
            raise RequestError(
                421, "This app answers to the address that `calibrant app` has printed, and to no other."
            )
        origin = headers.get("origin")
        if origin is not None and _site(origin) != host:
            raise RequestError(403, "Pages of other sites may not use this app.")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            raise RequestError(403, "Pages of other sites may not use this app.")

    def _headers_to_drop(self) -> tuple[str, ...]:
        """Names of proxy headers to drop where there is no proxy."""
        return () if self.access.public else FORWARDED

    async def _welcome(self, send: Send, query: dict[str, list[str]]) -> None:
        """Give the browser its cookie and send it to the page, without the token in the address."""
        rules = "SameSite=None; Secure; Partitioned" if self.access.public else "SameSite=Strict"
        cookie = f"{self.access.cookie}={self.access.browser_cookie()}; Path=/; HttpOnly; {rules}"
        address = "/" + (f"?{urlencode(query, doseq=True)}" if query else "")
        headers = [(b"location", address.encode()), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _check_call(
        self,
        path: str,
        query: dict[str, list[str]],
        browser: str,
        headers: dict[str, str],
        receive: Receive,
        send: Send,
    ) -> tuple[Receive, Send]:
        """Refuse tabs and files of other browsers; remember what is uploaded now."""
        if path == f"{API}/upload":
            self.owners.make_room(browser)
            limited = _limit_body(receive, self.access.max_upload + FORM, headers.get("content-length", ""))
            return limited, self._remember_uploads(send, browser)
        if path == f"{API}/upload_progress":
            return receive, send
        if path in (f"{API}/queue/join", f"{API}/cancel"):
            body = await _read(receive)
            try:
                document = json.loads(body)
                paths = list(_paths(document))
            except (ValueError, RecursionError):
                raise RequestError(400, "This is no request of the page.") from None
            session = document.get("session_hash") if isinstance(document, dict) else None
            number = document.get("fn_index", 0) if isinstance(document, dict) else 0
            if type(number) is not int or not 0 <= number < self.functions:
                raise RequestError(400, "This is no request of the page.")
            if not all(self.owners.has_upload(file, browser) for file in paths):
                raise RequestError(403, "This file was not uploaded from this browser.")
            receive = _again(body)
        elif path == f"{API}/queue/data":
            session = query.get("session_hash", [""])[0]
        else:
            session = path.rpartition("/")[2]
        if not self.owners.claim(session, browser):
            raise RequestError(403, "This tab belongs to another browser.")
        return receive, send

    def _remember_uploads(self, send: Send, browser: str) -> Send:
        body = bytearray()

        async def remember(message: Message) -> None:
            if message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    try:
                        paths = json.loads(body)
                    except ValueError:
                        paths = []
                    for path in paths if isinstance(paths, list) else []:
                        self.owners.add_upload(str(path), browser)
            await send(message)

        return remember

    def _with_headers(self, send: Send) -> Send:
        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                dropped = (b"access-control-allow-origin", b"access-control-allow-credentials", b"server")
                headers = [pair for pair in message.get("headers", []) if pair[0].lower() not in dropped]
                if not any(name.lower() == b"content-security-policy" for name, _ in headers):
                    frames = SPACES if self.access.public else "'self'"
                    headers.append((b"content-security-policy", CONTENT.format(frames).encode()))
                headers += [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
                message["headers"] = headers
            await send(message)

        return add


def _site(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # an address that is none
        return None


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _paths(value: object) -> Iterator[object]:
    """Every file path in a request, at any depth."""
    if isinstance(value, dict):
        if "path" in value:
            yield value["path"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _paths(item)


def _limit_body(receive: Receive, most: int, announced: str) -> Receive:
    """Receive the body up to a number of bytes, then refuse; Gradio deletes what it has of one that is cut."""
    from starlette.formparsers import MultiPartException

    too_large = RequestError(413, f"This upload is larger than {most >> 20:,} MB: see --max-upload.")
    if announced and (not announced.isdigit() or int(announced) > most):
        raise too_large
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise too_large
        if message["type"] == "http.disconnect":
            raise MultiPartException("This upload has ended early.")
        return message

    return limited


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_JSON:
            raise RequestError(413, "This request is larger than any of the page.")
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return bytes(body)


def _again(body: bytes) -> Receive:
    """A receive function that replays a body which has been read."""
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _answer(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    headers += [(b"x-content-type-options", b"nosniff"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": (text + "\n").encode()})
