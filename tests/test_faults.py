"""Faults put into a copy of the source by hand: the tests of the file must find each of them.

A test that cannot fail protects nothing. Each fault is one small change in mathematics that everything rests on, of the
kind that a slip of the pen makes; the named file of tests must fail with it, and must not fail to be collected.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAILED = 1  # the code by which pytest says that tests failed, and not that something else went wrong


@dataclass(frozen=True)
class Fault:
    """One change in one file, and the tests that must find it."""

    name: str
    file: str
    right: str
    wrong: str
    tests: str


FAULTS = (
    Fault(
        "bins are closed on the other side",
        "core/curves/binning.py",
        "np.searchsorted(scores, edges, side=self.closed)",
        'np.searchsorted(scores, edges, side="left" if self.closed == "right" else "right")',
        "tests/core/curves/test_curve.py",
    ),
    Fault(
        "a cut through a group of ties takes all of it",
        "core/curves/curve.py",
        "part = np.where(places > 0, (places - weight) / (whole - weight), 0.0)",
        "part = np.where(places > 0, 1.0, 0.0)",
        "tests/core/curves/test_curve.py",
    ),
    Fault(
        "the last chunks get the rows that are left over",
        "core/curves/binning.py",
        "return np.asarray(index * size + np.minimum(index, more))",
        "return np.asarray(index * size + np.maximum(index - (count - more), 0))",
        "src/calibrant/core/curves/binning.py",
    ),
    Fault(
        "the standard error of T counts weights as rows",
        "core/statistics/temperature.py",
        "stderr = float(T / np.sqrt(p.n_effective * curvature))",
        "stderr = float(T / np.sqrt(scores.total * curvature))",
        "tests/core/statistics/test_temperature.py",
    ),
    Fault(
        "a separable sample has a finite temperature",
        "core/statistics/temperature.py",
        "    if scores.worst >= 0:\n",
        "    if scores.worst > 0:\n",
        "tests/core/statistics/test_temperature.py",
    ),
    Fault(
        "the standard error is that of ln T",
        "core/statistics/temperature.py",
        "stderr = float(T / np.sqrt(p.n_effective * curvature))",
        "stderr = float(1 / np.sqrt(p.n_effective * curvature))",
        "tests/core/statistics/test_temperature.py",
    ),
    Fault(
        "a percentile interval in place of the basic one",
        "core/statistics/estimate.py",
        "noise = resampled - value",
        "noise = value - resampled",
        "src/calibrant/core/statistics/estimate.py",
    ),
    Fault(
        "a p-value of one side",
        "core/statistics/estimate.py",
        "_widen_p_value(float(min(1.0, 2 * min(below, above))), self.freedom)",
        "_widen_p_value(float(min(1.0, min(below, above))), self.freedom)",
        "tests/measuring/test_compare.py",
    ),
    Fault(
        "both tails in one of an interval",
        "core/statistics/estimate.py",
        "return self.ends((1 - confidence) / 2)",
        "return self.ends(1 - confidence)",
        "tests/measuring/test_estimating.py",
    ),
    Fault(
        "clusters count as rows in the choice of a calibrator",
        "repairing/rule.py",
        "units = apart if self.clusters is None else np.bincount(self.clusters, apart)",
        "units = apart",
        "tests/repairing/test_rule.py",
    ),
    Fault(
        "the lowest loss wins, however little simpler ones are behind",
        "repairing/rule.py",
        "return ahead <= error",
        "return ahead <= 0",
        "tests/repairing/test_rule.py",
    ),
    Fault(
        "a calibrator that changes predictions wins though they are to be kept",
        "repairing/rule.py",
        "if c.may_win and (c.keeps_argmax or not keep_argmax)}",
        "if c.may_win}",
        "tests/repairing/test_rule.py",
    ),
    Fault(
        "claims are not corrected for their number",
        "studying/claims.py",
        "level = LEVEL / max(1.0, count - len(decided) / 2)",
        "level = LEVEL",
        "tests/studying/test_claims.py",
    ),
    Fault(
        "a claim of 'higher' is judged as 'lower'",
        "studying/claims.py",
        '    if claim.is_ == "higher":\n        low, high = -high, -low\n',
        "",
        "tests/studying/test_claims.py",
    ),
    Fault(
        "degrees of freedom are those of the smallest cell",
        "studying/claims.py",
        "float(shares.sum() ** 2 / (shares**2 / freedoms).sum())",
        "float(freedoms.min())",
        "tests/studying/test_claims.py",
    ),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The source and the tests in a folder of their own."""
    folder = tmp_path_factory.mktemp("faults")
    ignored = shutil.ignore_patterns("__pycache__", ".*", "site", "runs", "studies")
    for name in ("src", "tests", "recipes"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_put_in(fault):
    """The source changes; a fault that no longer fits it would be missed until `make slow`."""
    text = (ROOT / "src" / "calibrant" / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.right) == 1, f"{fault.file} has changed: write the fault anew"
    assert (ROOT / fault.tests).exists()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_find_a_fault(fault, copy):
    file = copy / "src" / "calibrant" / fault.file
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider"]
    try:
        ended = subprocess.run(
            [*command, "-m", "not slow", fault.tests],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=900,
        )
    finally:
        file.write_text(text, encoding="utf-8")
    assert ended.returncode == FAILED, f"{fault.tests} did not find it:\n{ended.stdout[-2000:]}{ended.stderr[-1000:]}"
