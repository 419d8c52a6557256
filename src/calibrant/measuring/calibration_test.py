"""Test of calibration: how often would a perfectly calibrated model reach the observed error?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.text.notebook import Table, TableResult
from calibrant.core.text.number_format import number, p_value
from calibrant.measuring.confidence_limits import affordable, check_resamples
from calibrant.measuring.measure import What, resolve


@dataclass(frozen=True)
class CalibrationTest(TableResult):
    """The observed value of a measure beside its values for a perfectly calibrated model on as many rows.

    Where there are too few clusters for a test, `reason` says so and the p-value is NaN (null in JSON).
    """

    measure: str
    observed: float
    expected: float  # mean under perfect calibration
    upper: float  # 95 % quantile under perfect calibration
    p_value: float
    n: int
    k: int
    reason: str | None = None

    def __bool__(self) -> bool:
        raise InputError("a test as true or false", expected="a level", got="none", fix="compare .p_value with 0.05")

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = plain(self)
        return fields

    def table(self) -> Table:
        head = ("measure", "observed", "by chance, mean", "by chance, 95 % below", "p")
        numbers = (number(value) for value in (self.observed, self.expected, self.upper))
        caption = f"{self.measure} of these {self.n:,} rows, and of perfectly calibrated ones"
        return caption, head, [(self.measure, *numbers, p_value(self.p_value))]


def calibration_test(
    p: Predictions, what: What = "ece", *, resamples: int | None = None, seed: int = 0
) -> CalibrationTest:
    """Consistency resampling: small p-values mean miscalibration, not noise.

    Labels are drawn from the model's own probabilities. Rows in clusters share their noise, so there the residuals of
    whole clusters get random signs instead (the wild bootstrap), which only calibration errors allow.

    >>> p = Predictions.from_probs([[0.9, 0.1]] * 20, labels=[0] * 18 + [1] * 2)
    >>> calibration_test(p, "ece", resamples=200).p_value > 0.5
    True
    """
    chosen, name = resolve(what)
    if chosen.direction != "down":
        raise InputError(
            "calibration_test",
            expected="a measure where lower is better",
            got=f"'{name}'",
            fix="use for instance ece",
        )
    chosen.check_shape(p)
    check_resamples(resamples, least=1)
    size = affordable(chosen, p.n) if resamples is None else resamples
    observed, draws = chosen(p), chosen.under_calibration(p, size, seed)
    reason = None if p.clusters is None else too_few_rows(int(p.clusters.max()) + 1, clusters=True)
    chance = (1 + (draws >= observed - 1e-12).sum()) / (len(draws) + 1)
    return CalibrationTest(
        measure=name,
        observed=observed,
        expected=float(draws.mean()),
        upper=float(np.quantile(draws, 0.95)),
        p_value=np.nan if reason else float(chance),
        n=p.n,
        k=p.k,
        reason=reason,
    )
