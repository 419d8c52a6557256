"""How many hostile cases were tried and how they ended; the slow run writes the numbers into docs/security.md."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
FEW, MANY = 150, int(os.environ.get("CALIBRANT_FUZZ", "10000"))  # cases in the normal run and in the slow one

Case = Callable[[np.random.Generator, Path], str]  # one case in a folder of its own -> "refused" or "right"


def count(case: Case, cases: int, folder: Path, *, first: int = 0) -> Counter:
    """Run so many cases, each by a seed of its own; whatever is neither refused nor right fails with its seed."""
    counts = Counter()
    for seed in range(first, first + cases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is an end as well, and said on the command line
            try:
                ended = case(np.random.default_rng(seed), folder)
            except BaseException as error:
                error.add_note(f"seed {seed} of {case.__name__}")
                raise
        assert ended in ("refused", "right"), f"seed {seed}: {ended}"
        counts[ended] += 1
    return counts


def record(what: str, counts: Counter) -> None:
    """The row of the table on the page, written anew."""
    tried = sum(counts.values())
    row = f"| {what} | {tried:,} | {counts['refused']:,} | {counts['right']:,} | 0 |"
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(rf"^\| {re.escape(what)} \|.*$", re.MULTILINE)
    assert pattern.search(text), f"docs/security.md has no row '{what}'"
    PAGE.write_text(pattern.sub(row, text), encoding="utf-8")
