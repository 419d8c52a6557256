"""A long file is measured in constant memory, with the values of the whole."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

SCRIPT = """
import sys
from calibrant.cli import main
sys.argv = ["calibrant", "measure", sys.argv[1], "--stream", "--json"]
try:
    main()
finally:
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(peak.split()[1], file=sys.stderr)
"""


def write(path, rows):
    """A calibrated binary classifier: the ECE goes to 0 with the rows."""
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    label = (rng.random(rows) < p).astype(np.int64)
    frame = pl.DataFrame({"label": label, "prob_0": 1 - p, "prob_1": p})
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)


def streamed(path):
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True)
    rows = {row["measure"]: row for row in json.loads(done.stdout)}
    return rows, int(done.stderr.split()[-1]) / 1024


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_memory_does_not_grow_with_the_rows(tmp_path, suffix):
    peaks = {}
    for rows in (500_000, 8_000_000 if suffix == ".parquet" else 3_000_000):
        file = tmp_path / f"{rows}{suffix}"
        write(file, rows)
        measured, peaks[rows] = streamed(file)
        assert measured["ece"]["n"] == rows
        assert measured["ece"]["value"] < 0.01
        assert measured["brier"]["value"] == pytest.approx(1 / 3, abs=0.01)  # 2 E[p (1 - p)]
        file.unlink()
    small, large = peaks.values()
    assert large < 1.5 * small, peaks
