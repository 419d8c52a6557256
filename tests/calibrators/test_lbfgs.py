"""L-BFGS: the optimum of a quadratic and of a linear fit, and stages that share what they know of the curvature."""

from dataclasses import dataclass

import numpy as np
import pytest

from calibrant.calibrators._lbfgs import Stage, lbfgs
from calibrant.calibrators._linear import fit_linear
from calibrant.calibrators._objective import mean_nll
from calibrant.calibrators._scaling import Ridge

CURVES = np.geomspace(1, 1e3, 40)  # of a quadratic with its minimum at one


@dataclass(frozen=True)
class Plain:
    """No scaling: the first half are weights, the second biases."""

    size: int = 40

    def out_of(self, x, weight, bias):
        return weight + x[:20], bias + x[20:]

    def into(self, gw, gb):
        return np.concatenate([gw, gb])


def quadratic(looks):
    def objective(w, b):
        looks.append(1)
        off = np.concatenate([w, b]) - 1
        gradient = CURVES * off
        return float(off @ gradient / 2), gradient[:20], gradient[20:]

    return objective


def test_a_quadratic_is_minimised_and_later_stages_know_its_curvature():
    alone, rough, last = [], [], []
    start = np.zeros(20), np.zeros(20)
    w, b, _ = lbfgs((Stage(quadratic(rough), 1e-1), Stage(quadratic(last), 1e-9)), Plain(), *start, 500)
    np.testing.assert_allclose(np.concatenate([w, b]), 1, atol=1e-8)
    half = lbfgs((Stage(quadratic([]), 1e-1),), Plain(), *start, 500)
    lbfgs((Stage(quadratic(alone), 1e-9),), Plain(), *half[:2], 500)
    assert len(last) < len(alone)


def test_it_stops_after_the_iterations_given():
    assert lbfgs((Stage(quadratic([]), 1e-12),), Plain(), np.zeros(20), np.zeros(20), 3)[2] == 3


@pytest.mark.parametrize("penalty", [Ridge(0.01, 0.5, 0.02), None])
def test_a_matrix_fit_reaches_the_optimum_of_scipy(penalty):
    from scipy.optimize import minimize

    rng = np.random.default_rng(0)
    n, k = 1500, 35  # more numbers than Newton takes
    z = 2 * rng.normal(size=(n, k))
    labels = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)

    def objective(x):
        w, b = x[: k * k].reshape(k, k), x[k * k :]
        value, gw, gb = mean_nll(z, labels, w, b)
        if penalty is not None:
            extra, pw, pb = penalty(w, b)
            value, gw, gb = value + extra, gw + pw, gb + pb
        return value, np.concatenate([gw.ravel(), gb])

    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 0, "gtol": 1e-8, "maxcor": 30}
    start = np.concatenate([np.eye(k).ravel(), np.zeros(k)])
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    fitted = fit_linear(z, labels, "matrix", penalty=penalty)
    assert fitted.fit.converged
    assert fitted.objective == pytest.approx(best.fun, abs=1e-8)
