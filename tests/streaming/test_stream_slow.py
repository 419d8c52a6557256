"""A long file is measured in constant memory, with the values of the whole."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import calibrant as cal

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


SPECS = ("accuracy", "brier", "gap", "ece")


def images(n, effect, seed, side=12):
    """P(positive) of pixels, off by an effect of their image, and outcomes."""
    rng = np.random.default_rng(seed)
    z = 1.4 + 2 * rng.normal(size=(n, side, side))
    p = 1 / (1 + np.exp(-(z + effect * rng.normal(size=(n, 1, 1)))))
    return 1 / (1 + np.exp(-1.3 * z)), (rng.random(z.shape) < p).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 0.5, 1.0])
def test_intervals_of_images_added_one_by_one_hold_the_truth(effect):
    """Coverage of a nominal 95 %, of 400 streams of 40 images."""
    truth = {m: cal.measure(cal.Predictions.binary(*images(10_000, effect, seed=9999)), m, resamples=0) for m in SPECS}
    held = dict.fromkeys(SPECS, 0)
    for seed in range(400):
        sums = cal.Accumulator(SPECS)
        for score, outcome in zip(*images(40, effect, seed), strict=True):
            sums.update(cal.Predictions.binary(score[None], outcome[None]))
        for m in sums.measure_all():
            held[m.measure] += m.low <= truth[m.measure].value <= m.high
    share = {spec: count / 400 for spec, count in held.items()}
    print(f"effect {effect}: {share}")
    assert all(0.91 <= one <= (1 if spec == "ece" else 0.98) for spec, one in share.items()), share
