"""Options of Neural Clamping. No torch here, so that the command line can name them without loading it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.rescorers._base import Rescorer

PAPER_POOL = tuple(float(g) for g in np.round(np.arange(21) * 0.05, 2))
LAM_POOL = (0.01, 0.1, 1.0)  # shares of the loss that lambda_rule="ece" tries
CV_POOL = (0.01, 0.1, 1.0, 10.0, 100.0)  # and "cv", beside no perturbation at all
NEXT = 12  # fits for the next gamma start where the last one ended, and get this part of the passes


@dataclass(frozen=True, kw_only=True)
class ClampOptions(Rescorer):
    """Options of Neural Clamping, checked."""

    gamma: float = 1.0  # of the focal loss; 0 is cross-entropy
    gamma_pool: str | tuple[float, ...] | None = None  # "paper", or values: the one with the smallest calibration ECE
    init: Literal["random", "data", "logit_grad", "zero"] = "random"
    init_scale: float = 0.001  # of the random start, and of a data-driven one where the data leave no room
    lam: float | None = None  # weight of the penalty; None: by the rule
    lambda_rule: Literal["loss", "term", "ece", "cv"] = "loss"
    # a tenth of the loss; so that the penalty at the start is that; by calibration ECE; by rows left out of the fit
    folds: int = 5  # of "cv"
    norm: Literal["squared", "plain"] = "squared"  # plain: what the authors' toolkit does
    what: Literal["both", "delta", "T"] = "both"  # is fitted
    keep: Literal["both", "delta", "T"] = "both"  # of what was fitted, for ablations
    by: Literal["lbfgs", "sgd", "efficient"] = "lbfgs"
    keep_inside: bool = False  # x + delta stays between low and high for every calibration input
    low: float | tuple[float, ...] | None = None  # feasible inputs, one number or one a channel, after normalisation
    high: float | tuple[float, ...] | None = None
    seed: int = 0
    passes: int = 60  # over the calibration batches, at most
    tolerance: float = 1e-4  # stop when a step lowers the objective by less than this share
    epochs: int = 100  # of "sgd", over rows shuffled by the seed
    rate: float = 0.001
    momentum: float = 0.9
    batch: int = 512  # rows in a step of "sgd", and at a time in the fits of "cv"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self)

    @property
    def gammas(self) -> tuple[float, ...]:
        """The gammas to try, ascending: each fit starts where the last ended."""
        if self.gamma_pool is None:
            return (self.gamma,)
        return PAPER_POOL if self.gamma_pool == "paper" else tuple(sorted(set(map(float, self.gamma_pool))))

    @property
    def most_passes(self) -> int:
        """The largest number of passes over the calibration batches, for progress bars."""
        if self.by == "efficient" or (self.what == "T" and self.by != "sgd"):
            return 1 if self.what == "T" else 3
        rule = self.lambda_rule if self.lam is None and self.what != "T" else ""
        weights, gammas = {"ece": len(LAM_POOL), "cv": len(CV_POOL)}.get(rule, 1), len(self.gammas)
        # Every fold has a first pass, and for every weight a fit and a look at the rows left out.
        folds = gammas * self.folds * (1 + weights * (self._most(1) + 1)) if rule == "cv" else 0
        return folds + weights * self._most(gammas)

    def _most(self, gammas: int) -> int:
        return 2 + gammas * (self.epochs + 1) if self.by == "sgd" else self.passes + (gammas - 1) * self.next_passes

    @property
    def next_passes(self) -> int:
        """The number of passes of a later fit of several, which starts where the last one ended."""
        return max(2, self.passes // NEXT)


def check_numbers(o: ClampOptions) -> None:
    """Refuse options that contradict each other or are out of range."""
    _check_gammas(o)
    for name, least in (("init_scale", 0), ("rate", 0), ("lam", 0), ("tolerance", 0), ("momentum", 0)):
        value = getattr(o, name)
        if value is not None and (value < least or (value == 0 and name in ("init_scale", "rate"))):
            above = "above 0" if name in ("init_scale", "rate") else "0 or more"
            raise InputError(f"NeuralClamping.{name}", expected=above, got=f"{value:g}", fix="give another value")
    for name, fewest in (("passes", 4), ("epochs", 1), ("batch", 1), ("folds", 2)):
        if getattr(o, name) < fewest:
            got = str(getattr(o, name))
            raise InputError(f"NeuralClamping.{name}", expected=f"at least {fewest}", got=got, fix="allow more")
    if o.by == "efficient" and o.lam:
        fix = "leave lam out, or fit by lbfgs"
        raise InputError("lam", expected="none by 'efficient', which fixes delta", got=f"{o.lam:g}", fix=fix)
    if o.lambda_rule == "term" and o.lam is None and o.init == "zero":
        fix = "use lambda_rule='loss', another init, or give lam"
        raise InputError("lambda_rule='term'", expected="a start other than 0", got="init='zero'", fix=fix)


def _check_gammas(o: ClampOptions) -> None:
    if isinstance(o.gamma_pool, str) and o.gamma_pool != "paper":
        fix = "write 'paper', or give the values"
        raise InputError("gamma_pool", expected="'paper' or values of gamma", got=f"'{o.gamma_pool}'", fix=fix)
    if not len(o.gammas) or min(o.gammas) < 0 or o.gamma < 0:
        got = f"{min((*o.gammas, o.gamma)):g}" if o.gammas else "none"
        raise InputError("gamma", expected="0 or more", got=got, fix="use 0 for cross-entropy, or 1")
