"""Take docs/report.png, the picture of the README, from a report in headless Chromium.

Usage: python docs/screenshot.py runs/demo/report.html
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 1100, 1120
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        size = [f"--window-size={WIDTH},{HEIGHT}", "--force-device-scale-factor=1.5", "--hide-scrollbars"]
        page = Path(sys.argv[1]).resolve().as_uri()
        subprocess.run([browser, *FLAGS, *size, f"--screenshot={shot}", page], check=True, capture_output=True)
        image = Image.open(shot).convert("RGB").quantize(64)
        image.save(Path(__file__).parent / "report.png", optimize=True)


if __name__ == "__main__":
    main()
