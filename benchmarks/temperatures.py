"""Temperatures under stress: data with a known optimum, and data that have none."""

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks._data import Data
from benchmarks._page import Section, Target, table
from benchmarks._peers import TEMPERATURE, Input, Single
from calibrant import Predictions, fit

SIZE, SMOKE_SIZE = (5000, 10), (400, 5)
TRUE = (0.02, 0.1, 1.0, 10.0, 100.0)
WRONG = 0.01  # relative error from which a temperature is printed bold
SAME = 1e-6
WORDS = (
    "Labels are drawn from softmax(z), and the tools get the logits T z in float32, so that the best temperature is "
    "about T (netcal wants probabilities and gets them in float64). The optimum is found by a scan, golden sections "
    "and the root of the derivative in float64, which share no code with calibrant. A cell has the temperature found, "
    "its relative error, and how much its NLL is above the optimum's. **Bold**: off by more than 1 %, not a positive "
    "number, or an exception. The last cases have no finite optimum: there the cell has the NLL instead, and calibrant "
    "says why. Those marked * are as probmetrics has them, which took over the code."
)


def run(*, smoke: bool) -> Section:
    n, k = SMOKE_SIZE if smoke else SIZE
    section = Section("Temperatures under stress", WORDS)
    tools = {**TEMPERATURE, "netcal": _in_double(TEMPERATURE["netcal"]), **_as_in_probmetrics()}
    rows, errors, excesses = [], [], []
    for name, data in _with_optimum(n, k).items():
        best = _search(data)
        m = fit(Predictions.from_logits(data.logits, data.labels), "temperature")
        T = m.parameters["T"]
        errors.append(abs(T / best - 1))
        excesses.append(_nll(data, T) - _nll(data, best))
        cells = [_cell(data, lambda T=T: T, best)] + [_cell(data, _call(tool, data), best) for tool in tools.values()]
        rows.append([name, f"{best:.5g}", *cells])
    named = 0
    without = _without_optimum(n, k)
    for name, data in without.items():
        m = fit(Predictions.from_logits(data.logits, data.labels), "temperature")
        named += not m.fit.converged
        mine = f"{m.parameters.get('T', 1.0):.4g}<br><small>{m.fit.diagnosis}</small>"  # nothing to fit: T stays 1
        rows.append([name, "none", mine, *(_cell(data, _call(tool, data), None) for tool in tools.values())])
    section.targets = [
        Target("relative error of T where there is an optimum, the largest", max(errors), "most", SAME, ""),
        Target("NLL above the optimum's, the largest", max(excesses), "most", 1e-12, " nats"),
        Target("cases without an optimum that are named", named, "least", len(without), ""),
    ]
    section.tables = [table(["case", "best T", "calibrant", *tools], rows)]
    return section


# -- cases -------------------------------------------------------------------------------------------------------


def _with_optimum(n: int, k: int) -> dict[str, Data]:
    results = {f"true T = {T:g}": _drawn(n, k, T) for T in TRUE}
    one_class = _drawn(n, k, 1.0)
    logits = one_class.logits.copy()
    logits[:, 0] += 1.0  # the only class that occurs, often but not always the largest
    results["one class"] = Data(logits, np.zeros(n, dtype=np.int64))
    results["n = 20"] = _drawn(20, 3, 2.0)
    return results


def _without_optimum(n: int, k: int) -> dict[str, Data]:
    logits = _drawn(n, k, 1.0).logits
    return {
        "separable: all right": Data(logits, logits.argmax(axis=1)),
        "anti-informative: all wrong": Data(logits, logits.argmin(axis=1)),
        "constant logits": Data(np.zeros_like(logits), np.arange(n) % k),
    }


def _drawn(n: int, k: int, T: float) -> Data:
    rng = np.random.default_rng(3)
    z = 2 * rng.normal(size=(n, k))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return Data((T * z).astype(np.float32), labels)


def _search(data: Data) -> float:
    """A scan of ln T, then golden sections between its neighbours."""
    from scipy.optimize import minimize_scalar

    scan = np.linspace(np.log(1e-3), np.log(1e3), 200)
    at = int(np.argmin([_nll(data, float(np.exp(s))) for s in scan]))
    bracket = (scan[at - 1], scan[at], scan[at + 1])
    result = minimize_scalar(lambda s: _nll(data, float(np.exp(s))), bracket=bracket, method="golden", tol=1e-12)
    return _polished(data, float(result.x))


def _polished(data: Data, s: float) -> float:
    """The NLL alone gives half of the digits; the root of its derivative gives the rest."""
    from scipy.optimize import brentq

    def slope(t: float) -> float:
        u = data.logits.astype(np.float64) * np.exp(-t)
        q = np.exp(u - u.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        return float((u[np.arange(len(u)), data.labels] - (q * u).sum(axis=1)).mean())

    return float(np.exp(brentq(slope, s - 1e-3, s + 1e-3, xtol=1e-14)))


def _nll(data: Data, T: float) -> float:
    z = data.logits.astype(np.float64)
    z = (z - z.max(axis=1, keepdims=True)) / T
    return float((np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), data.labels]).mean())


# -- tools -------------------------------------------------------------------------------------------------------


def _in_double(tool: Single) -> Single:
    return lambda x: tool(Input(x.logits.double(), x.labels))


def _as_in_probmetrics() -> Mapping[str, Single]:
    """Code of others that probmetrics carries along for comparison."""
    kinds = {
        "Guo's code*": "GuoTemperatureScalingCalibrator",
        "torch-uncertainty*": "TorchUncertaintyTemperatureScalingCalibrator",
        "torchcal*": "TorchcalTemperatureScalingCalibrator",
        "AutoGluon*": "AutoGluonTemperatureScalingCalibrator",
    }

    def single(kind: str) -> Single:
        def call(x: Input) -> float:
            from probmetrics.calibrators import temperature_scaling
            from probmetrics.distributions import CategoricalLogits

            result = getattr(temperature_scaling, kind)().fit_torch(CategoricalLogits(x.logits), x.labels)
            return float(1 / result.invtemp_) if hasattr(result, "invtemp_") else float(result.temp_)

        return call

    return {name: single(kind) for name, kind in kinds.items()}


def _call(tool: Single, data: Data) -> Callable[[], float]:
    return lambda: tool(Input.of(data))


def _cell(data: Data, tool: Callable[[], float], best: float | None) -> str:
    try:
        T = float(tool())
    except Exception as error:  # what a user would see is the result
        return f"**{type(error).__name__}**"
    if not np.isfinite(T) or T <= 0:
        return f"**{T:.4g}**"
    if best is None:
        return f"{T:.4g}<br><small>NLL {_nll(data, T):.4g}</small>"
    off = abs(T / best - 1)
    shown = f"**{T:.5g}**" if off > WRONG else f"{T:.5g}"
    return f"{shown}<br><small>{off:.1e}, {max(_nll(data, T) - _nll(data, best), 0.0):+.1e}</small>"
