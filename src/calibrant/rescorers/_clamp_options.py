"""Options of Neural Clamping that make no sense, and the range of feasible inputs."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.rescorers._clamp_fit import Box
from calibrant.rescorers._clamp_passes import Passes

if TYPE_CHECKING:
    from calibrant.rescorers.clamping import NeuralClamping

SLACK = 1e-4  # of the range, by which rounding may take inputs out of it


def check_numbers(o: "NeuralClamping") -> None:
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


def feasible(o: "NeuralClamping", passes: Passes) -> Box | None:
    """How far a perturbation may go in every coordinate before an input of the calibration set leaves the range."""
    if o.low is None or o.high is None:
        if o.keep_inside or o.init == "data":
            asked = "keep_inside" if o.keep_inside else "init='data'"
            fix = "give low and high after normalisation: (0 - mean) / std and (1 - mean) / std for images"
            raise InputError(asked, expected="the feasible range of inputs", got="no low or no high", fix=fix)
        return None
    least, most = (_spread(value, passes.shape, name) for value, name in ((o.low, "low"), (o.high, "high")))
    slack = SLACK * (most - least)
    if not ((passes.low >= least - slack) & (passes.high <= most + slack)).all():
        got = f"inputs from {float(passes.low.min()):.4g} to {float(passes.high.max()):.4g}"
        fix = "give the range after normalisation"
        raise InputError("low and high", expected="a range that holds all calibration inputs", got=got, fix=fix)
    return Box((least - passes.low).clamp(max=0), (most - passes.high).clamp(min=0))


def _spread(value: float | tuple[float, ...], shape: torch.Size, name: str) -> Tensor:
    """One number, or one a channel, for every coordinate."""
    numbers = torch.tensor(value, dtype=torch.float64).reshape(-1)
    if len(numbers) > 1 and (not shape or len(numbers) != shape[0]):
        expected = f"one number or {shape[0] if shape else 1}, one a channel"
        raise InputError(name, expected=expected, got=str(len(numbers)), fix="give one a channel")
    return numbers.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) if shape else numbers[0]


def _check_gammas(o: "NeuralClamping") -> None:
    if isinstance(o.gamma_pool, str) and o.gamma_pool != "paper":
        fix = "write 'paper', or give the values"
        raise InputError("gamma_pool", expected="'paper' or values of gamma", got=f"'{o.gamma_pool}'", fix=fix)
    if not len(o.gammas) or min(o.gammas) < 0 or o.gamma < 0:
        got = f"{min((*o.gammas, o.gamma)):g}" if o.gammas else "none"
        raise InputError("gamma", expected="0 or more", got=got, fix="use 0 for cross-entropy, or 1")
