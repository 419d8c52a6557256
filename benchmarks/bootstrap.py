"""An interval for the ECE: 1,000 resamples."""

from collections.abc import Callable

import calibration
import numpy as np
import torch
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from benchmarks._clock import OURS, Effort, Lap, race
from benchmarks._data import Data, overconfident
from benchmarks._page import Section, Target, ratio, show, small_print, table
from benchmarks._peers import Input, thread_turn
from calibrant import Predictions, measure

SIZE, SMOKE_SIZE = (10_000, 100), (400, 5)
RESAMPLES = 1000
SHARE = 10  # peers do one in so many resamples, and their time is multiplied
LOGITS, TOP = "a loop over torchmetrics", "a loop over torchmetrics on confidences"
THEIRS = "uncertainty-calibration"
WORDS = (
    f"`measure(p, 'ece')` from raw logits, {RESAMPLES:,} resamples included. Against it: a plain loop that draws rows "
    "and calls torchmetrics on them; the same loop after the softmax, on confidences and correctness alone; and "
    f"uncertainty-calibration's own bootstrap, whose bins are of equal mass. Peers run {RESAMPLES // SHARE} resamples "
    f"(the number that uncertainty-calibration fixes) and their time is multiplied by {SHARE}."
)


def run(*, smoke: bool) -> Section:
    data = overconfident(*(SMOKE_SIZE if smoke else SIZE))
    laps = race(_entries(data), Effort(1, 0.0) if smoke else Effort(6, 2.0), turn=thread_turn)
    for name, lap in laps.items():
        lap.best *= 1 if name == OURS else SHARE
    promise = f"an interval of the ECE from {RESAMPLES:,} resamples at {data.size}"
    return Section(
        "Bootstrap", WORDS, [Target(promise, laps[OURS].best, "most", 0.5, " s")], [_table(laps), small_print(laps)]
    )


def _entries(data: Data) -> dict[str, Callable[[], float]]:
    x = Input.of(data)
    return {
        OURS: lambda: _width(Predictions.from_logits(data.logits, data.labels)),
        TOP: lambda: _loop_over_confidences(x),
        LOGITS: lambda: _loop_over_logits(x),
        THEIRS: lambda: _their_bootstrap(x),
    }


def _width(p: Predictions) -> float:
    measurement = measure(p, "ece", resamples=RESAMPLES)
    assert measurement.low is not None
    assert measurement.high is not None
    return measurement.high - measurement.low


def _loop_over_confidences(x: Input) -> float:
    confidence, correct = x.softmax().top
    correct = correct.long()

    def ece(rows: torch.Tensor) -> float:
        return float(binary_calibration_error(confidence[rows], correct[rows], n_bins=15))

    return _loop(ece, len(correct))


def _loop_over_logits(x: Input) -> float:
    k = x.logits.shape[1]

    def ece(rows: torch.Tensor) -> float:
        return float(multiclass_calibration_error(x.logits[rows], x.labels[rows], num_classes=k, n_bins=15))

    return _loop(ece, len(x.labels))


def _loop(ece: Callable[[torch.Tensor], float], n: int) -> float:
    """Width of the interval."""
    draw = torch.Generator().manual_seed(0)
    draws = [ece(torch.randint(n, (n,), generator=draw)) for _ in range(RESAMPLES // SHARE)]
    return float(np.ptp(np.quantile(draws, [0.025, 0.975])))


def _their_bootstrap(x: Input) -> float:
    low, _, high = calibration.get_calibration_error_uncertainties(x.softmax().p, x.y, p=1, alpha=5, mode="top-label")
    return float(high - low)


def _table(laps: dict[str, Lap]) -> str:
    rows = [[name, f"**{show(ratio(lap, laps[OURS]))}x**"] for name, lap in laps.items() if lap.ran and name != OURS]
    return table(["peer", "its time / ours"], rows)
