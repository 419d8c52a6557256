"""How often an interval holds the truth: sets of rows whose true probabilities are known, seven ways to be wrong."""

from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from synthetic import any_classes

from calibrant.core.curves.curve import Bins
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import ClassMeasure, CurveMeasure, RatioMeasure, RowMeasure, make, names
from calibrant.measures.kde import KDE
from calibrant.measures.refinement import Refinement
from calibrant.measuring.estimating import estimate

KINDS = {
    "logits x 1.25": 1.25,
    "logits x 2": 2.0,
    "logits x 0.8": 0.8,
    "calibrated": 1.0,
    "too sure by 2 points": 0.02,
    "too sure by 5 points": 0.05,
    "a wave of 6 points": None,
}
SIZES = (500, 1000, 10_000)
SETS = 300  # of each kind and size
RESAMPLES = 200
PAGE = Path(__file__).parents[1] / "docs" / "intervals.md"
BEGIN, END = "<!-- coverage: written by tools/coverage_table.py -->\n", "<!-- end of coverage -->"
VARIANTS = ["ece:scheme=mass", "ece:bins=100", "classwise:scheme=mass"]
SPECS = {spec: m for spec in [*any_classes(names()), *VARIANTS] if not (m := make(spec)).without_interval}
MISSING = "-"  # not measured yet
REFERENCE = 500_000  # rows of the set that stands for infinitely many


def draw_rows(kind, n, seed, k=5):
    """Logits, and the true probability of every class (n, k)."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    honest = _softmax(logits)
    how = KINDS[kind]
    if kind.startswith("logits") or kind == "calibrated":
        return how * logits, honest
    top, rows = honest.argmax(axis=1), np.arange(n)
    c = honest[rows, top]
    right = np.clip(c - (0.06 * np.sin(4 * np.pi * c) if how is None else how), 0, 1)
    true = honest * ((1 - right) / (1 - c))[:, None]
    true[rows, top] = right
    return logits, true


def labelled(logits, true, seed):
    below = true.cumsum(axis=1) < np.random.default_rng([seed, 1]).random((len(true), 1)) * true.sum(axis=1)[:, None]
    return Predictions.from_logits(logits, below.sum(axis=1))


def sets(kind, n, count, k=5):
    for seed in range(count):
        yield labelled(*draw_rows(kind, n, seed, k), seed)


@lru_cache(maxsize=1)
def _reference(kind, k):
    logits, true = draw_rows(kind, REFERENCE, 2**31, k)
    return labelled(logits, true, 2**31), true


def truth(m, kind, k=5):
    """The measure on infinitely many rows: labels take part by their true probabilities, so they add no noise."""
    if m.of_calibration and kind == "calibrated":
        return 0.0
    p, true = _reference(kind, k)
    if isinstance(m, ClassMeasure):
        return m.of_classes(_class_bins(m, p, true))
    if isinstance(m, RatioMeasure):
        return float(true[np.arange(p.n), p.predicted].sum() / p.confidence.sum())
    if isinstance(m, RowMeasure) and not isinstance(m, Refinement):
        each = [m.rows(Predictions._from_valid(p.values, np.full(p.n, label), p.score_type)) for label in range(k)]
        return float(np.einsum("ni,in->", true, np.array(each)) / p.n)
    if isinstance(m, CurveMeasure) and not isinstance(m, KDE):
        curve, hits = p.top_label, true[np.arange(p.n), p.predicted]
        return m.from_curve(curve.with_outcomes(hits[curve.order]))
    return m(p)  # kde, refinement and calibration need labels


def _class_bins(m, p, true):
    sums = np.zeros((3, p.k * m.bins))
    entries = m.entries(p)
    for rows, probs in p.prob_rows():
        kept = probs > m.above
        _, cell, _ = next(entries)
        for total, values in zip(sums, (np.ones(len(cell)), probs[kept], true[rows][kept]), strict=True):
            total += np.bincount(cell, values, minlength=len(total))
    return Bins(*(total.reshape(p.k, m.bins) for total in sums), n=p.n)


@cache
def _truth(m, kind):
    return truth(m, kind)


def coverage(measures, kind, n, count):
    """The share of sets whose interval holds the truth, of each of the measures, all on the same sets and resamples."""
    covered = dict.fromkeys(measures, 0)
    for seed, p in enumerate(sets(kind, n, count)):
        for m in measures:
            low, high = estimate(m, p, Sampling.of(p, seed=seed, resamples=RESAMPLES)).limits()
            covered[m] += low <= _truth(m, kind) + 1e-9 and _truth(m, kind) <= high + 1e-9
    return {m: times / count for m, times in covered.items()}


def _softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def read_table():
    """Of each measure, its shares as the page has them, by kind and n."""
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    ids = [(kind, n) for kind in KINDS for n in SIZES]
    return {row[0].strip("`"): dict(zip(ids, " ".join(row[1:-1]).split(), strict=True)) for row in rows}
