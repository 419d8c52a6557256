"""One server in a process of its own for all tests of the app, and a browser for each file."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from calibrant.reporting.pdf import BROWSERS

CHROMIUM = next((path for name in BROWSERS if (path := shutil.which(name))), None)
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


class Server:
    """A running app: its address, its process, and the folder that all its files are in."""

    def __init__(self, folder, *options, command=None):
        self.folder = folder
        self.log = folder / "log.txt"
        command = command or [sys.executable, "-m", "calibrant", "app", "--port", "0", "--no-browser", *options]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(folder), cwd=folder
            )
        line = self.process.stdout.readline()
        matches = re.search(r"http://\S+", line)
        assert matches, line + self.log.read_text()
        self.url = matches[0]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def environment(folder):
    import os

    (folder / "tmp").mkdir(exist_ok=True)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as in a service
    return environ | {"TMPDIR": str(folder / "tmp"), "COLUMNS": "200"}


@pytest.fixture(scope="session")
def start(tmp_path_factory):
    """Start a server with options; all are stopped at the end."""
    if find_spec("gradio") is None:
        pytest.skip("NO GRADIO: the app was NOT tested; pip install 'calibrant[app]'")
    running = []

    def start(*options, command=None):
        running.append(Server(tmp_path_factory.mktemp("app"), *options, command=command))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture(scope="session")
def server(start):
    return start()


@pytest.fixture(scope="module")  # a second one in the same process is refused, and other modules start their own
def browser():
    if CHROMIUM is None:
        pytest.skip(f"NO BROWSER: the app was NOT tested; install one of {', '.join(BROWSERS)}")
    api = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: the app was NOT tested; pip install it")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def visit(browser, server):
    """Open the app as a person of their own; at the end nothing has left this machine and nothing went wrong."""
    opened, asked, wrong = [], [], []

    def visit(address="", *, base=None, wait="#report iframe", **options):
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
        opened.append(context)
        tab = context.new_page()
        tab.set_default_timeout(60_000)  # of a busy machine
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        tab.goto((base or server.url) + address)
        if wait:
            tab.wait_for_selector(wait, state="attached")
        return tab

    visit.wrong = wrong
    yield visit
    try:
        foreign = [url for url in asked if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))]
        assert foreign == []
        assert wrong == []
    finally:
        for context in opened:
            context.close()
