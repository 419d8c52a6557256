"""Sessions of the app, one for each open tab: its files, what is computed from them, results to download."""

import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.app.guard import BROWSER, Owners
from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from calibrant.app.analysis import Analysis
    from calibrant.rescoring.clamp_trials import ClampTrials

MOST_SESSIONS = 200  # open tabs; the one not used for longest goes first
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".py": "text/x-python; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
}


@dataclass(frozen=True)
class SessionFile:
    """A file that the page shows or that can be downloaded, written when it is asked for; it never touches the disk."""

    name: str
    write: Callable[[], bytes]

    @property
    def media(self) -> str:
        return MEDIA[Path(self.name).suffix]


@dataclass(kw_only=True)
class Session:
    """One open tab."""

    folder: Path
    analysis: "Analysis | None" = None
    clamping: "ClampTrials | None" = None
    results: dict[str, tuple[str, SessionFile]] = field(default_factory=dict)  # what it is -> its id and content
    keys: dict[str, str] = field(default_factory=dict)  # what it is -> its part of the address
    stop: threading.Event = field(default_factory=threading.Event)  # set by the button that cancels
    lock: threading.RLock = field(default_factory=threading.RLock)
    newest: float = 0.0  # time in the browser of the last look that was shown

    @contextmanager
    def turn(self, asked: object) -> Iterator[bool]:
        """Run one look at a time; false for one older than those shown, because the queue may overtake.

        `asked` is the time in the browser when it was asked for.
        """
        time = float(asked) if isinstance(asked, int | float) else 0.0
        with self.lock:
            is_newest = time >= self.newest
            self.newest = max(self.newest, time)
            yield is_newest

    def offer(self, what: str, name: str, write: Callable[[], bytes]) -> str:
        """The address of a result, which stays while its content changes; each report that is shown has its own."""
        key = secrets.token_urlsafe(16) if what == "report" else self.keys.setdefault(what, secrets.token_urlsafe(16))
        self.results[what] = key, SessionFile(name, write)
        return f"/results/{key}/{name}"

    def keep_files(self, paths: list[str], kind: str) -> list[Path]:
        """The uploads in the folder of this tab, under their own names, in place of those before."""
        folder = self.folder / kind
        shutil.rmtree(folder, ignore_errors=True)
        copies = []
        for i, path in enumerate(paths):
            name = Path(path).name
            (folder / str(i)).mkdir(parents=True)
            copies.append(folder / str(i) / name)
            try:
                os.link(path, copies[-1])
            except OSError:  # another disk
                shutil.copyfile(path, copies[-1])
        return copies


class Sessions:
    """All open tabs, each of one browser."""

    def __init__(self, folder: Path, owners: Owners) -> None:
        self.folder, self.owners = folder, owners
        self.lock = threading.Lock()
        self.open: dict[tuple[str, str], Session] = {}

    def of(self, request: Any) -> Session:
        """The tab that a request of Gradio comes from."""
        browser, tab = key = self._key(request)
        if self.owners.sessions.get(tab) != browser:  # what still waits in the queue when a tab is closed
            raise InputError("tab", expected="an open one", got="one that was closed", fix="load the page again")
        with self.lock:
            session = self.open.pop(key, None) or Session(folder=self.folder / secrets.token_hex(16))
            self.open[key] = session  # the one used last stands last
            gone = [self.open.pop(old) for old in list(self.open)[:-MOST_SESSIONS]]
        session.folder.mkdir(parents=True, exist_ok=True)
        for other in gone:
            shutil.rmtree(other.folder, ignore_errors=True)
        return session

    def owned(self, request: Any, paths: list[str]) -> list[str]:
        """Paths of uploads, checked to be this browser's own."""
        browser = self._key(request)[0]
        if not all(self.owners.has_upload(path, browser) for path in paths):
            fix = "drop the file once more"
            raise InputError("upload", expected="a file from this browser", got="another", fix=fix)
        return paths

    def end(self, request: Any) -> None:
        """Forget a tab that was closed."""
        browser, tab = key = self._key(request)
        with self.lock:
            session = self.open.pop(key, None)
        if session is not None:
            session.stop.set()
            shutil.rmtree(session.folder, ignore_errors=True)
        self.owners.forget(tab, browser)

    def result(self, browser: str, key: str, name: str) -> SessionFile | None:
        """A result of one of this browser's tabs."""
        with self.lock:
            tabs = [session for (owner, _), session in self.open.items() if owner == browser]
        for session in tabs:
            for offered, result in list(session.results.values()):
                if secrets.compare_digest(offered, key) and result.name == name:
                    return result
        return None

    @staticmethod
    def _key(request: Any) -> tuple[str, str]:
        browser = str(request.headers.get(BROWSER, ""))
        if not re.fullmatch(r"[\w-]+", browser):
            raise InputError("request", expected="one of the page", got="another", fix="open the page again")
        return browser, str(request.session_hash)
