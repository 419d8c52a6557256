"""Take the pictures of docs/app.md and the README: the app, started here, in headless Chromium.

Usage: python docs/app_screenshots.py
"""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parent
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LONG = 300_000  # milliseconds


def main() -> None:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    command = [sys.executable, "-m", "calibrant", "app", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        matches = re.search(r"http://\S+", server.stdout.readline())
        assert matches, "the app did not start"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            take_predictions(browser, matches[0])
            take_clamp(browser, matches[0])
            take_phone(browser, matches[0])
            browser.close()
    finally:
        server.terminate()
        server.wait()


def take_predictions(browser: Any, address: str) -> None:
    tab = open_page(browser, f"{address}?example=fashion&low=0.6&high=0.8", 1200, 1500)
    save(tab, "app.png")


def take_clamp(browser: Any, address: str) -> None:
    tab = open_page(browser, address, 1200, 1480)
    tab.get_by_role("tab", name="Clamp a network").click()
    tab.wait_for_selector("#clamp-diagram svg")
    for method, title in (("temperature", "temperature scaling"), ("clamping_focal", "focal loss")):
        tab.click(f"#fit-{method}")
        tab.wait_for_function(f"document.querySelector('#tries').innerText.includes('{title}')", timeout=LONG)
    tab.evaluate("window.scrollTo(0, 0)")
    save(tab, "app-clamp.png")


def take_phone(browser: Any, address: str) -> None:
    tab = open_page(browser, f"{address}?example=sneakers", 390, 844, dark=True)
    tab.locator("#verdict").scroll_into_view_if_needed()
    tab.evaluate("document.querySelector('#verdict').scrollIntoView()")
    save(tab, "app-phone.png")


def open_page(browser: Any, address: str, width: int, height: int, *, dark: bool = False) -> Any:
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", device_scale_factor=1.25
    )
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_selector("#report iframe", timeout=LONG)
    tab.wait_for_timeout(1000)
    return tab


def save(tab: Any, name: str) -> None:
    tab.wait_for_timeout(500)
    image = Image.open(io.BytesIO(tab.screenshot())).convert("RGB").quantize(64)
    image.save(DOCS / name, optimize=True)
    print(f"{name}: {(DOCS / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
