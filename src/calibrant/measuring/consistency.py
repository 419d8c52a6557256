"""Could a perfectly calibrated model show this? Labels are drawn from the model's own probabilities."""

from dataclasses import dataclass

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.notebook import Shown, Table
from calibrant.core.predictions import Predictions
from calibrant.core.wording import number, p_value
from calibrant.measuring.limits import affordable, check_resamples
from calibrant.measuring.measure import What, resolve


@dataclass(frozen=True)
class Consistency(Shown):
    """What the measure shows by noise alone at this n, and how often that reaches what was observed."""

    measure: str
    observed: float
    expected: float  # mean under perfect calibration
    upper: float  # 95 % of perfectly calibrated models show less
    p_value: float
    n: int
    k: int

    def table(self) -> Table:
        head = ("measure", "observed", "by chance, mean", "by chance, 95 % below", "p")
        numbers = (number(value) for value in (self.observed, self.expected, self.upper))
        said = f"{self.measure} of these {self.n:,} rows, and of perfectly calibrated ones"
        return said, head, [(self.measure, *numbers, p_value(self.p_value))]


def consistency(p: Predictions, what: What = "ece", *, resamples: int | None = None, seed: int = 0) -> Consistency:
    """Consistency resampling: small p-values mean miscalibration, not noise.

    >>> p = Predictions.from_probs([[0.9, 0.1]] * 20, labels=[0] * 18 + [1] * 2)
    >>> consistency(p, "ece", resamples=200).p_value > 0.5
    True
    """
    chosen, name = resolve(what)
    if chosen.direction != "down":
        raise InputError(
            "consistency",
            expected="a measure where lower is better",
            got=f"'{name}'",
            fix="use for instance ece",
        )
    check_resamples(resamples, least=1)
    size = affordable(chosen, p.n) if resamples is None else resamples
    observed, draws = chosen(p), chosen.under_calibration(p, size, seed)
    reached = (draws >= observed - 1e-12).sum()
    return Consistency(
        name,
        observed,
        float(draws.mean()),
        float(np.quantile(draws, 0.95)),
        float((1 + reached) / (size + 1)),
        p.n,
        p.k,
    )
