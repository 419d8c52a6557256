"""Report of a fit of Neural Clamping, in numbers and in a sentence: plain values."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ClampRow:
    """One fit, with one gamma and one weight of the penalty; measures are those of the calibration rows."""

    gamma: float
    lam: float | None  # of the penalty; None where lambda_rule="cv" kept no perturbation
    T: float
    delta_norm: float
    objective: float
    objective_temperature: float  # with no perturbation, at the T that this fit would then take
    ece: float  # 15 bins
    entropy: float
    stopped: str  # why


@dataclass(frozen=True)
class HeldOut:
    """The loss of one weight of the penalty on rows that were left out of the fits."""

    gamma: float
    lam: float | None  # None: no perturbation at all
    T: float  # the best one for these rows
    loss: float  # mean focal loss there; no penalty in it


@dataclass(frozen=True, kw_only=True)
class ClampReport:
    """Report of the fit on the calibration rows. The objective is the mean focal loss plus the penalty."""

    gamma: float
    lam: float | None  # of the penalty; None where lambda_rule="cv" kept no perturbation
    T: float
    T_alone: float  # of temperature scaling with the same loss
    delta_norm: float
    objective_before: float  # of the uncalibrated network
    objective_temperature: float  # of temperature scaling with the same loss
    objective: float
    ece_before: float  # 15 bins
    ece_temperature: float
    ece: float
    n: int
    k: int
    passes: int  # over the calibration rows
    helped: bool | None  # on held-out rows, beyond plain temperature scaling; None where there were none
    diagnosis: str
    options: dict[str, Any]  # of NeuralClamping
    rows: tuple[ClampRow, ...] = ()  # where several gammas or weights were tried
    held_out: tuple[HeldOut, ...] = ()  # the weights that lambda_rule="cv" compared
    judged: "ClampComparison | None" = None  # on held-out rows, if there were any


@dataclass(frozen=True)
class ClampComparison:
    """A clamp and plain temperature scaling, fitted on the same rows, on rows that neither has seen."""

    n: int
    nll: float
    nll_temperature: float
    low: float  # 95 % interval of the difference, clamp minus temperature, paired by row
    high: float

    @property
    def helped(self) -> bool:
        return self.high < 0

    @property
    def words(self) -> str:
        result = "it helped" if self.helped else "it did harm" if self.low > 0 else "inconclusive"
        numbers = f"NLL {self.nll:.4f}, plain temperature scaling {self.nll_temperature:.4f}"
        change = f"change {self.low:+.4f} to {self.high:+.4f}"
        return f"On {self.n:,} rows that no fit has seen: {numbers} ({change}): {result}."
