"""Run the hostile cases of `make slow` and write how they ended into the table of docs/security.md.

python tools/fuzz_table.py             all of them, 10,000 each (hours; CALIBRANT_FUZZ=1000 for fewer)
python tools/fuzz_table.py -k maps     some of them, chosen as pytest does
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "security.md"


def main(options: list[str]) -> int:
    """Run the tests with a file for their counts, and write what is in it whether they passed or not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.jsonl"
        tests = [sys.executable, "-m", "pytest", "-m", "slow", "tests/fuzz", *options]
        ended = subprocess.run(tests, cwd=ROOT, env=os.environ | {"CALIBRANT_COUNTS": str(file)}, check=False)
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    text = PAGE.read_text(encoding="utf-8")
    for line in lines:
        text = with_row(text, json.loads(line))
    PAGE.write_text(text, encoding="utf-8")
    return ended.returncode


def with_row(text: str, counts: dict[str, int | str]) -> str:
    """The page with the row of one kind of case replaced."""
    what, numbers = counts["what"], [int(counts[key]) for key in ("refused", "right", "other")]
    cells = [what, *(f"{number:,}" for number in (sum(numbers), *numbers))]
    pattern = re.compile(rf"^\| {re.escape(str(what))} \|.*$", re.MULTILINE)
    if not pattern.search(text):
        raise SystemExit(f"docs/security.md has no row '{what}'")
    return pattern.sub(f"| {' | '.join(map(str, cells))} |", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
