"""How a fit of Neural Clamping went, in numbers: what a clamped network carries, and what is saved with it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
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
    """How one weight does on rows that were left out of the fits."""

    gamma: float
    lam: float | None  # None: no perturbation at all
    T: float  # the best one for these rows
    loss: float  # mean focal loss there; no penalty in it


@dataclass(frozen=True)
class ClampReport:
    """How the fit went, on the calibration rows. The objective is the mean focal loss plus the penalty."""

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
    helped: bool  # whether the perturbation lowered the objective
    diagnosis: str
    options: dict[str, Any]  # of NeuralClamping
    rows: tuple[ClampRow, ...] = ()  # where several gammas or weights were tried
    held_out: tuple[HeldOut, ...] = ()  # the weights that lambda_rule="cv" compared
