"""How long a user waits before anything happens: the import, and the help of the command line."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks._clock import OURS, Effort, Lap, race
from benchmarks._page import Section, Target, ratio, show, small_print, table

HEAVY = ("torch", "scipy", "polars", "altair")
PEERS = {  # name -> what its user imports
    "torchmetrics": "torchmetrics.functional.classification",
    "netcal": "netcal.metrics",
    "uncertainty-calibration": "calibration",
    "relplot": "relplot",
    "probmetrics": "probmetrics.metrics",
    "scikit-learn": "sklearn.metrics",
}
ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "calibrant" / "data" / "demo_test.npz"
WORDS = (
    "`import` in a fresh interpreter, timed inside it, so that Python's own start does not count: each peer once, ours "
    "before every peer and the best of it. `python -m calibrant --help` and `calibrant measure demo_test.npz` as "
    "whole processes."
)


def run(*, smoke: bool) -> Section:
    modules = {OURS: "calibrant"} if smoke else {OURS: "calibrant"} | PEERS
    laps = _race_imports(modules)
    laps["calibrant --help"] = race({"help": _help}, Effort(1 if smoke else 8, 3.0))["help"]
    laps["calibrant measure"] = race({"measure": _measure}, Effort(1 if smoke else 8, 4.0))["measure"]
    targets = [
        Target("`calibrant measure` of a small file", laps["calibrant measure"].best, "most", 0.6, " s"),
        Target("import calibrant", laps[OURS].best, "most", 0.3, " s"),
        Target(f"how many of {', '.join(HEAVY)} import calibrant loads", _heavy_loaded(), "most", 0.0, ""),
        Target("calibrant --help", laps["calibrant --help"].best, "most", 0.4, " s"),
    ]
    return Section("Start", WORDS, targets, [_table(laps), small_print(laps, numbers=False)])


def _race_imports(modules: Mapping[str, str]) -> dict[str, Lap]:
    """Each peer once, and we before every one of them."""
    laps = {name: Lap() for name in modules}
    for name, module in modules.items():
        laps[OURS].best = min(laps[OURS].best, _import_seconds(modules[OURS]))
        try:
            laps[name].best = min(laps[name].best, _import_seconds(module))
        except subprocess.CalledProcessError as error:
            laps[name].note = f"fails: {error.stderr.strip().splitlines()[-1]}"
    return laps


def _import_seconds(module: str) -> float:
    return float(_python(f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"))


def _heavy_loaded() -> float:
    return float(_python(f"import sys, calibrant; print(sum(name in sys.modules for name in {HEAVY}))"))


def _help() -> float:
    command = [sys.executable, "-m", "calibrant", "--help"]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).returncode)


def _measure() -> float:
    command = [sys.executable, "-m", "calibrant", "measure", str(DEMO)]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).returncode)


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def _table(laps: dict[str, Lap]) -> str:
    rows = [[name, f"**{show(ratio(laps[name], laps[OURS]))}x**"] for name in PEERS if name in laps and laps[name].ran]
    return table(["peer", "its import / ours"], rows)
