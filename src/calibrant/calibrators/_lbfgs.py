"""L-BFGS in coordinates where the problem is well scaled, until the gradient in plain ones is small."""

from contextlib import suppress

import numpy as np

from calibrant.calibrators._objective import Objective, largest_entry
from calibrant.calibrators._scaling import Scaling
from calibrant.core.arrays import Array
from calibrant.core.parallel import one_blas_thread


def lbfgs(
    objective: Objective,
    scale: Scaling,
    weight: Array,
    bias: Array,
    iterations: int,
    enough: float,
    tries: float = np.inf,
) -> tuple[Array, Array, int]:
    """L-BFGS in scaled coordinates; stops when the gradient in plain coordinates is small."""
    from scipy.optimize import minimize

    largest, tried, reached, steps = largest_entry(objective, weight, bias), 0, np.zeros(scale.size), 0
    if largest < enough:
        return weight, bias, 0

    def scaled(x: Array) -> tuple[float, Array]:
        nonlocal largest, tried
        tried += 1
        if tried > tries:
            raise _StuckError
        value, gw, gb = objective(*scale.out_of(x, weight, bias))
        largest = max(np.abs(gw).max(), np.abs(gb).max())
        return value, scale.into(gw, gb)

    def stepped(x: Array) -> None:
        nonlocal tried, reached, steps
        tried, reached, steps = 0, x.copy(), steps + 1
        if largest < enough:
            raise StopIteration

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 10, "ftol": 0.0, "gtol": 1e-12}
    with suppress(_StuckError), one_blas_thread():  # once more: scipy has a library of its own, loaded above
        minimize(scaled, reached, jac=True, method="L-BFGS-B", options=options, callback=stepped)
    return *scale.out_of(reached, weight, bias), steps


class _StuckError(Exception):
    """A line search that finds no better point: rounding hides what is left to gain."""
