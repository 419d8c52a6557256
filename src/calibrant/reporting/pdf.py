"""The page on paper: printed by a browser that is on this machine, without a window and without a network."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from calibrant.core.errors import InputError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120
OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
    "--no-pdf-header-footer",
)


def find_browser() -> str:
    """The first of the known browsers on the path."""
    for name in BROWSERS:
        if browser := shutil.which(name):
            return browser
    raise InputError(
        "report.pdf",
        expected=f"one of {', '.join(BROWSERS)} on the path",
        got="none",
        fix="install chromium, or write report.html and print it from your own browser",
    )


def print_page(page: str) -> bytes:
    """The bytes of the PDF."""
    browser = find_browser()
    # Snap packages of Chromium may not read /tmp; a folder in the current one works everywhere.
    with tempfile.TemporaryDirectory(prefix=".calibrant-", dir=Path.cwd()) as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        command = [browser, *OPTIONS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={target}", source.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # as root the browser's sandbox refuses to start
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise _failure(browser, f"it took more than {SECONDS} s") from None
        if done.returncode != 0 or not target.is_file() or target.stat().st_size == 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise _failure(browser, lines[-1] if lines else f"exit code {done.returncode}")
        return target.read_bytes()


def _failure(browser: str, why: str) -> InputError:
    return InputError(
        "report.pdf",
        expected=f"a page printed by {Path(browser).name}",
        got=f"a failure ({why})",
        fix="write report.html and print it from your own browser",
    )
