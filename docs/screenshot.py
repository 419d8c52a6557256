"""Take a picture of a page in headless Chromium, by default docs/report.png, the picture of the README.

Usage: python docs/screenshot.py runs/demo/report.html
       python docs/screenshot.py src/calibrant/app/pages/understand.html docs/app-understand.png
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
        size.append("--virtual-time-budget=3000")  # a page may compute before it draws
        page = Path(sys.argv[1]).resolve().as_uri()
        subprocess.run([browser, *FLAGS, *size, f"--screenshot={shot}", page], check=True, capture_output=True)
        image = Image.open(shot).convert("RGB").quantize(64)
        image.save(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).parent / "report.png", optimize=True)


if __name__ == "__main__":
    main()
