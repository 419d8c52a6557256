"""How long a person waits for the page: timed in a browser, from the drop of a file or the move of a slider on."""

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table
from calibrant.reporting.pdf import BROWSERS

SIZE, SMOKE_SIZE = (10_000, 100), (300, 5)
PEOPLE = 10
MOVES = 20
VERDICT_SECONDS, SLIDER_SECONDS = 3.0, 0.2
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WORDS = (
    "`calibrant app` in a process of its own, and Chromium. A verdict is timed from the drop of an .npz file to the "
    "headline and the diagram of its rows; the best of three. A slider is timed in the page, from its move to the "
    f"diagram that follows: the median of {MOVES} moves, and the slowest. Each strength of delta is new, so that the "
    f"network looks at all images again. Then {PEOPLE} people drop a file of their own at the same time."
)
MOVE = """async ([slider, values, shown]) => {
  const box = document.querySelector(slider + ' input[type=range]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const times = [];
  for (const [value, text] of values) {
    const begin = performance.now();
    set.call(box, value);
    box.dispatchEvent(new Event('input', { bubbles: true }));
    while (!document.querySelector(shown).textContent.includes(text) && performance.now() - begin < 20000)
      await new Promise((done) => setTimeout(done, 2));
    times.push((performance.now() - begin) / 1000);
  }
  return times;
}"""


def run(*, smoke: bool) -> Section:
    missing = _missing()
    if missing:
        promises = (("first verdict", VERDICT_SECONDS), ("slider", SLIDER_SECONDS))
        targets = [Target(f"app, {what}", None, "most", limit, " s", f"no {missing} here") for what, limit in promises]
        return Section("App", WORDS, targets, [])
    n, k = SMOKE_SIZE if smoke else SIZE
    with tempfile.TemporaryDirectory() as folder, _serve() as address, _browser() as browser:
        files = [_write(Path(folder), i, n, k) for i in range(2 if smoke else PEOPLE)]
        tab = _visit(browser, address)
        first = min(
            _drop(one, files[0], n) for one in [tab] + [_visit(browser, address) for _ in range(0 if smoke else 2)]
        )
        moves = 3 if smoke else MOVES
        bins = _move(tab, "#bins", [(str(b), f"in {b} bins") for b in range(20, 20 + moves)], "#diagram")
        tab.get_by_role("tab", name="Clamp a network").click()
        tab.wait_for_selector("#clamp-diagram svg", timeout=60_000)
        Ts = [f"{2 + i / 100:g}" for i in range(moves)]
        temperature = _move(tab, "#temperature", [(T, f"T = {T},") for T in Ts], "#clamp-diagram")
        tab.click("#fit-clamping_ce")
        tab.wait_for_function("document.querySelector('#tries').innerText.includes('cross-entropy')", timeout=300_000)
        strengths = [f"{0.5 + i / 20:g}" for i in range(moves)]
        strength = _move(tab, "#strength", [(s, f"strength of delta {s}:") for s in strengths], "#clamp-diagram")
        together = _together(browser, address, files, n)
    size = f"{n:,} x {k}"
    sliders = {"bins": bins, "temperature T": temperature, "strength of delta": strength}
    targets = [Target(f"app, {size} uploaded to the first verdict", first, "most", VERDICT_SECONDS, " s")]
    for name, times in sliders.items():
        targets.append(Target(f"app, the slider {name}", statistics.median(times), "most", SLIDER_SECONDS, " s"))
    rows = [[f"first verdict, {size}", f"**{show(first)} s**", ""]]
    rows += [
        [f"slider {name}", f"**{show(statistics.median(t))} s**", f"{show(max(t))} s"] for name, t in sliders.items()
    ]
    rows.append(
        [
            f"{len(files)} people at once: verdict",
            f"**{show(statistics.median(together))} s**",
            f"{show(max(together))} s",
        ]
    )
    return Section("App", WORDS, targets, [table(["what", "median", "slowest"], rows)])


def _missing() -> str:
    browser = "" if any(shutil.which(name) for name in BROWSERS) else "browser"
    return next((name for name in ("gradio", "playwright", "torch") if find_spec(name) is None), browser)


@contextmanager
def _serve() -> Iterator[str]:
    command = [sys.executable, "-m", "calibrant", "app", "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        matches = re.search(r"http://\S+", process.stdout.readline())
        assert matches, "the app did not start"
        yield matches[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next(path for name in BROWSERS if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        launched.close()


def _write(folder: Path, i: int, n: int, k: int) -> Path:
    data = overconfident(n, k, seed=i)
    file = folder / f"person{i}.npz"
    np.savez(file, logits=data.logits, labels=data.labels)
    return file


def _visit(browser: Any, address: str) -> Any:
    tab = browser.new_context().new_page()
    tab.goto(address)
    tab.wait_for_selector("#report iframe", timeout=120_000)
    return tab


def _drop(tab: Any, file: Path, n: int) -> float:
    start = perf_counter()
    tab.set_input_files("#files input[type=file]", file)
    _wait_for_verdict(tab, file, n)
    seconds = perf_counter() - start
    tab.wait_for_function("document.querySelector('#report-downloads').innerText.includes('card.png')", timeout=120_000)
    return seconds


def _wait_for_verdict(tab: Any, file: Path, n: int) -> None:
    text = f"{file.stem}, uncalibrated: {n:,} rows"
    tab.wait_for_function(f"document.querySelector('#diagram').innerText.includes('{text}')", timeout=120_000)


def _move(tab: Any, slider: str, values: list[tuple[str, str]], shown: str) -> list[float]:
    """Seconds of every move; the first, which opens the connection, is not counted."""
    times: list[float] = tab.evaluate(MOVE, [slider, values, shown])
    return times[1:]


def _together(browser: Any, address: str, files: list[Path], n: int) -> list[float]:
    """Seconds until each of several people has the verdict of their own file."""
    tabs = [_visit(browser, address) for _ in files]
    start = perf_counter()
    for tab, file in zip(tabs, files, strict=True):
        tab.set_input_files("#files input[type=file]", file)
    times = []
    for tab, file in zip(tabs, files, strict=True):
        _wait_for_verdict(tab, file, n)
        times.append(perf_counter() - start)
        tab.context.close()
    return times
