"""The measures of medicine, credit and forecasting on a million binary scores."""

from time import process_time

import numpy as np

from benchmarks._page import Section, Target, show, table
from calibrant import Predictions
from calibrant.measures import make

MEASURES = ("slope", "intercept", "in_the_large", "oe_ratio", "ici", "e50", "e90", "emax", "atb", "cutoff")
ROWS, SMOKE_ROWS = 1_000_000, 5000
ROUNDS, SMOKE_ROUNDS = 3, 1
MOST_SECONDS = 0.5
WORDS = (
    "From an array of scores (Beta(1, 9), too high) to the number, the validation of the input included: seconds of "
    "the processor, all threads together, best of three. ICI, E50, E90 and Emax are by the approximation of loess "
    "for many rows."
)


def run(*, smoke: bool) -> Section:
    n, rounds = (SMOKE_ROWS, SMOKE_ROUNDS) if smoke else (ROWS, ROUNDS)
    rng = np.random.default_rng(0)
    scores = rng.beta(1, 9, n)
    outcomes = rng.random(n) < scores**1.2
    section, lines = Section(f"Clinical measures: {n:,} binary scores", WORDS), []
    for name in MEASURES:
        value, seconds = _time(name, scores, outcomes, rounds)
        section.targets.append(Target(f"{name} of {n:,} binary scores", seconds, "most", MOST_SECONDS, " s"))
        lines.append([name, f"**{show(seconds)} s**", f"{value:.4g}"])
    section.tables.append(table(["measure", "time", "number"], lines))
    return section


def _time(name: str, scores: np.ndarray, outcomes: np.ndarray, rounds: int) -> tuple[float, float]:
    times, value = [], float("nan")
    for _ in range(rounds):
        start = process_time()
        value = make(name)(Predictions.binary(scores, outcomes))  # anew: predictions keep what was sorted
        times.append(process_time() - start)
    return value, min(times)
