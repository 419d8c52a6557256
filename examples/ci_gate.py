"""A gate for continuous integration: fails when the data show that a limit is violated, not when noise does.

On the command line: `calibrant check test.npz --max ece=0.12 --min accuracy=0.8`, exit code 1 on failure.
"""

import sys
from pathlib import Path

import calibrant as cal

test = cal.Predictions.load(Path(cal.__file__).parent / "data" / "demo_test.npz")
found = [cal.check(test, "ece", limit=0.12), cal.check(test, "accuracy", limit=0.8, side="min")]
for one in found:
    print(f"{one.measure} {one.value:.4f}, limit {one.limit}: {one.state}")
sys.exit(any(one.state == "violated" for one in found))
