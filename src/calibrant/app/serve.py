"""Start the app: on this machine alone unless asked otherwise, in a temporary folder that is removed at the end."""

import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from calibrant.app.guard import BROWSER, Access, Guard, Owners
from calibrant.core.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
QUIET = {  # no calls to other servers and no history; Gradio reads these when it is imported
    "GRADIO_ANALYTICS_ENABLED": "False",
    "GRADIO_RUN_HISTORY": "False",
    "GRADIO_MCP_SERVER": "False",
    "GRADIO_SSR_MODE": "False",
    "GRADIO_SHARE": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
}
SHOWN_FRAME = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; sandbox allow-scripts"
)

OnReady = Callable[[str], None]  # called with the address


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the server of the app."""

    run: Path | None = None  # a network of one's own to clamp
    host: str = "127.0.0.1"
    port: int = 7860  # 0: any that is free
    max_upload: int = 500  # MB
    public: bool = False  # no token, behind a proxy: for a page that everybody may use

    def __post_init__(self) -> None:
        if not 1 <= self.max_upload <= 1 << 20:
            raise InputError("--max-upload", expected="1 MB or more", got=str(self.max_upload), fix="use 500")


def serve(settings: Settings, on_ready: OnReady) -> None:
    """Serve until interrupted, terminated, or its terminal is closed; then the folder with uploads is removed."""
    import uvicorn

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))  # which uvicorn handles
    with _bind(settings) as server_socket, TemporaryDirectory(prefix="calibrant-app-") as folder:
        port = server_socket.getsockname()[1]
        access = _access(settings, port)
        app = create(settings, access, Path(folder))
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, ws="none",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
        name = f"[{host}]" if ":" in host else host
        on_ready(f"http://{name}:{port}/" + (f"?token={access.token}" if access.token else ""))
        uvicorn.Server(config).run(sockets=[server_socket])


def create(settings: Settings, access: Access, folder: Path) -> Any:
    """The ASGI application: Gradio and the routes of our own behind the guard."""
    uploads = folder / "uploads"
    uploads.mkdir()
    os.environ |= QUIET | {"GRADIO_TEMP_DIR": str(uploads)}
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of torch: people at once share the cores, and waiting threads cost
    if settings.run is not None:
        from calibrant.rescoring.clamp_trials import open_subject

        # What is wrong with it is said before anything starts.
        open_subject(settings.run)
    import gradio as gr
    from fastapi import FastAPI

    from calibrant.app.look import css, theme
    from calibrant.app.page import build
    from calibrant.app.session import Sessions

    owners = Owners()
    sessions = Sessions(folder / "sessions", owners)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    _add_routes(app, sessions)
    blocks = build(sessions, settings.run, public=settings.public)
    blocks.queue(default_concurrency_limit=4, max_size=100)
    mounted = gr.mount_gradio_app(
        app, blocks, "/", css=css(), theme=theme(), max_file_size=access.max_upload, footer_links=[], show_error=False,
        run_history=False, ssr_mode=False, pwa=False, mcp_server=False, enable_monitoring=False,
    )  # fmt: skip
    return Guard(mounted, access, owners, functions=1 + max(blocks.fns))


def _access(settings: Settings, port: int) -> Access:
    local = settings.host in LOOPBACK
    names = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
    return Access(
        port=port,
        hosts=names if local and not settings.public else None,
        token=None if local or settings.public else secrets.token_urlsafe(24),
        public=settings.public,
        max_upload=settings.max_upload << 20,
    )


def _bind(settings: Settings) -> socket.socket:
    try:
        return socket.create_server(
            (settings.host, settings.port), family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        )
    except (OSError, OverflowError) as error:
        got, fix = f"{settings.host}:{settings.port} ({error})", "choose another with --port, for instance --port 7861"
        raise InputError("app", expected="a free port", got=got, fix=fix) from None


def _add_routes(app: Any, sessions: Any) -> None:
    """Results of a tab, for its browser alone, and the static pages."""
    from fastapi import Request, Response

    from calibrant.app.page import PAGES, TITLES

    @app.get("/results/{key}/{name}")  # type: ignore[untyped-decorator]
    @app.head("/results/{key}/{name}")  # type: ignore[untyped-decorator]
    def result(key: str, name: str, request: Request) -> Response:
        offered = sessions.result(request.headers.get(BROWSER, ""), key, name)
        if offered is None:
            return Response("This result is gone: look again.", 404, media_type="text/plain")
        headers = {"content-security-policy": SHOWN_FRAME, "cache-control": "no-store"}
        if not offered.name.endswith(".html"):
            headers["content-disposition"] = f'attachment; filename="{offered.name}"'
        return Response(offered.write(), headers=headers, media_type=offered.media)

    @app.get("/pages/{name}")  # type: ignore[untyped-decorator]
    @app.head("/pages/{name}")  # type: ignore[untyped-decorator]
    def static_page(name: str) -> Response:
        pages = {f"{known}.html": PAGES / f"{known}.html" for known in TITLES}
        if name not in pages or not pages[name].is_file():
            return Response("There is nothing here.", 404, media_type="text/plain")
        return Response(pages[name].read_bytes(), media_type="text/html; charset=utf-8")
