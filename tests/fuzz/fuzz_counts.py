"""Count how hostile cases end: refused in words, accepted and right, or otherwise, which is a fault."""

import json
import os
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

FEW, MANY = 150, int(os.environ.get("CALIBRANT_FUZZ", "10000"))  # cases in the normal run and in the slow one

Case = Callable[[np.random.Generator, Path], str]  # one case in a folder of its own -> "refused" or "right"


def count(case: Case, cases: int, folder: Path, *, first: int = 0) -> Counter:
    """Run so many cases, each by its own seed. What is neither refused nor right is "other", printed with its seed."""
    counts = Counter({"refused": 0, "right": 0, "other": 0})
    for seed in range(first, first + cases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is an end as well, and said on the command line
            try:
                outcome = case(np.random.default_rng(seed), folder)
            except Exception:
                outcome = traceback.format_exc()
        if outcome not in ("refused", "right"):
            print(f"seed {seed} of {case.__name__}: {outcome}")
            outcome = "other"
        counts[outcome] += 1
    return counts


def record(what: str, counts: Counter, *, has_checksum: bool = False) -> None:
    """Append the counts to $CALIBRANT_COUNTS, a file that tools/fuzz_table.py reads; fail if there are others.

    What has a checksum may be refused every time.
    """
    if file := os.environ.get("CALIBRANT_COUNTS"):
        with open(file, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"what": what, **counts}) + "\n")
    assert counts["other"] == 0, f"{counts['other']} cases of {what} ended neither refused nor right"
    assert counts["refused"] > 0
    assert counts["right"] > 0 or has_checksum
