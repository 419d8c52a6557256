"""Fits of calibrators: how fast, how good, and how much memory."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks._clock import NUMPY, OURS, Effort, Lap, fastest, race, with_numpy
from benchmarks._data import Data, overconfident, plain_softmax
from benchmarks._page import Section, Target, ratio, show, small_print, table
from benchmarks.memory import _forget_peak, _status
from calibrant import Map, Predictions, fit
from calibrant.core.maps.steps import Linear

SIZE, SMOKE_SIZE = (10_000, 100), (400, 4)
LARGE_SIZE, SMOKE_LARGE_SIZE = (50_000, 1000), (1000, 20)
SMALL_SIZE, SMOKE_SMALL_SIZE = (5000, 10), (300, 3)
LIMIT = 100.0  # seconds for a fit in a process of its own
SOFTMAX = "one numpy softmax"
RIDGED = {"svs": "SVSCalibrator", "sms": "SMSCalibrator"}  # what probmetrics calls them
LARGE = ("temperature", "vector", "svs", "ets")
MOST_SECONDS = {"vector": 4.0, "ets": 4.0}  # of fits of the large size
NOT_WORSE = 1e-8  # nats up to which two objectives count as equal
ROOT = Path(__file__).parents[1]
LOGITS = ROOT.parent / "shared" / "data" / "logits"
WORDS = (
    "From an array of logits to the fitted map: our time includes the validation of the input and the fingerprint of "
    "the rows, a peer's includes torch's softmax where it wants probabilities. In brackets the NLL on the rows of the "
    "fit, with the ridge for `svs` and `sms` (for `temperature`, T). Matrix scaling of many classes and the large fits "
    f"run in a process of their own, for at most {LIMIT:.0f} s. Objectives are computed by the same lines of float64 "
    "code for everyone, from the parameters that each found. Matrix scaling is judged on drawn labels: k (k + 1) "
    "numbers can separate the overconfident rows (accuracy 1 on the rows of the fit), so there no optimum exists."
)

Array = npt.NDArray[np.float64]
Part = tuple[list[Target], list[str]]


def run(*, smoke: bool) -> Section:
    section = Section("Calibrators", WORDS)
    for part in (_temperature, _race_scaling, _matrix, _reached, _large, _grid):
        targets, tables = part(smoke)
        section.targets += targets
        section.tables += tables
    return section


# -- what everyone found, in one form ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A fitted scaling: what it acts on (temperature first), weight, bias, and whether its maker says it converged."""

    weight: Array  # (), (k,) or (k, k)
    bias: Array
    first: Callable[[Data], Array]  # data -> the logits that weight and bias act on
    converged: bool = True

    def _applied(self, data: Data) -> Array:
        z = self.first(data)
        return np.asarray((z @ self.weight.T if self.weight.ndim == 2 else z * self.weight) + self.bias)

    def accuracy(self, data: Data) -> float:
        return float((self._applied(data).argmax(axis=1) == data.labels).mean())

    def nll(self, data: Data) -> float:
        u = self._applied(data)
        top = u.max(axis=1)
        norms = np.log(np.exp(u - top[:, None]).sum(axis=1)) + top
        return float((norms - u[np.arange(len(u)), data.labels]).mean())

    def objective(self, data: Data, what: str) -> float:
        """The NLL, and the ridge of structured scaling as its paper has it."""
        (n, k), w = data.logits.shape, self.weight
        if what not in RIDGED:
            return self.nll(data)
        moved = (np.diag(w) if w.ndim == 2 else w) - 1
        ridge = k / n * (moved @ moved + self.bias @ self.bias)
        off = w - np.diag(np.diag(w)) if w.ndim == 2 else np.zeros(1)
        return self.nll(data) + float(ridge + k * (k - 1) / n * (off**2).sum())


def _logits(data: Data) -> Array:
    return data.logits.astype(np.float64)


def ours(what: str, data: Data) -> Found:
    return _found(fit(Predictions.from_logits(data.logits, data.labels), what))


def _found(m: Map) -> Found:
    *first, last = m.steps
    assert isinstance(last, Linear)

    def act(data: Data) -> Array:
        q = Predictions.from_logits(data.logits.astype(np.float64), data.labels)
        for step in first:
            q = step(q)
        return np.asarray(q.logits, dtype=np.float64)

    return Found(last.weight, last.bias, act, m.fit.converged)


def probmetrics(what: str, data: Data) -> Found:
    """probmetrics keeps its start where its optimiser does not report success, so that is how failure shows."""
    import torch
    from probmetrics.calibrators import logistic
    from probmetrics.distributions import CategoricalLogits
    from probmetrics.utils import multiclass_probs_to_logits

    z, y = torch.from_numpy(data.logits), torch.from_numpy(data.labels)
    if what in RIDGED:
        made = getattr(logistic, RIDGED[what])().fit(torch.softmax(z, dim=1).numpy(), data.labels)

        def act(other: Data) -> Array:
            probs = made.ts_.predict_proba(plain_softmax(other.logits.astype(np.float64)))
            return np.asarray(multiclass_probs_to_logits(probs), dtype=np.float64)

        weight, bias = (made.v_, made.b_) if what == "svs" else (made.W_[:, :-1], made.W_[:, -1])
        return Found(np.asarray(weight, np.float64), np.asarray(bias, np.float64), act)
    if what == "vector":
        scaling = logistic.VectorScalingCalibrator().fit_torch(CategoricalLogits(z), y)
        weight, start = 1 / scaling.temp_.double().numpy(), np.ones(z.shape[1])
    else:
        scaling = logistic.MatrixScalingCalibrator().fit_torch(CategoricalLogits(z), y)
        weight, start = scaling.itemp_.double().numpy().T, np.eye(z.shape[1])
    return Found(weight, scaling.bias_.double().numpy(), _logits, not np.array_equal(weight, start))


# -- temperature -------------------------------------------------------------------------------------------------


def _temperature(smoke: bool) -> Part:
    from benchmarks._peers import TEMPERATURE, Input, thread_turn

    data = overconfident(*(SMOKE_SIZE if smoke else SIZE))
    x = Input.of(data)
    entries = {
        OURS: lambda: float(1 / ours("temperature", data).weight),
        NUMPY: with_numpy(lambda: float(1 / ours("temperature", data).weight)),
        SOFTMAX: lambda: float(plain_softmax(data.logits)[0, 0]),
    }
    entries |= {name: lambda peer=peer: peer(x) for name, peer in TEMPERATURE.items()}
    laps = race(entries, Effort(1, 0.0) if smoke else Effort(30, 3.0), turn=thread_turn)
    softmaxes = laps[OURS].best / laps.pop(SOFTMAX).best
    peer = fastest(laps)
    times = ratio(laps[peer], laps[OURS]) if peer else None
    what = f"temperature fit at {data.size}"
    targets = [
        Target(f"{what}, in softmaxes of the same array", softmaxes, "most", 12.0),
        Target(f"{what}, times faster than the fastest peer", times, "least", 8.0, note=peer or "no peer ran"),
    ]
    row = [f"**{show(softmaxes)}**", f"**{show(times)}x**" if times else "-", small_print(laps)]
    head = ["temperature", "our time in softmaxes", "the fastest peer's time / ours", "milliseconds (T)"]
    return targets, [table(head, [[f"{data.size} float32", *row]])]


# -- vector and matrix scaling, plain and structured -------------------------------------------------------------


def _race_scaling(smoke: bool) -> Part:
    large = overconfident(*(SMOKE_SIZE if smoke else SIZE))
    small = next(_sets(smoke))[1][0]
    effort = Effort(1, 0.0) if smoke else Effort(6, 4.0)
    targets, rows = [], []
    for count in (1, os.cpu_count() or 1):
        for what, data in (("vector", large), ("svs", large), ("sms", large), ("matrix", small)):
            laps = _two(what, data, effort, count)
            ran = laps["probmetrics"].ran
            times = ratio(laps["probmetrics"], laps[OURS]) if ran else None
            words = "one thread each" if count == 1 else "all threads each"
            if data is large:
                note = laps["probmetrics"].note
                promise = f"{what} at {data.size}, times faster than probmetrics, {words}"
                targets.append(Target(promise, times, "least", 1.5, note=note))
            rows.append([what, data.size, words, f"**{show(times)}x**" if times else "-", small_print(laps)])
    for what in ("ms_odir", "dirichlet"):
        lap = race({OURS: lambda what=what: ours(what, small).nll(small)}, Effort(1, 0.0))
        rows.append([what, small.size, "", "no peer ran", small_print(lap)])
    return targets, [
        table(["calibrator", "n x k", "threads", "probmetrics' time / ours", "milliseconds (objective)"], rows)
    ]


def _two(what: str, data: Data, effort: Effort, count: int) -> dict[str, Lap]:
    """Only the fits are timed, with so many threads each; the objectives come from the last ones."""
    import torch

    from calibrant import threads

    before = threads()
    threads(count)
    torch.set_num_threads(count)
    last: dict[str, Found] = {}

    def keep(name: str, make: Callable[[str, Data], Found]) -> Callable[[], float]:
        def call() -> float:
            last[name] = make(what, data)
            return float("nan")

        return call

    entries = {OURS: keep(OURS, ours), NUMPY: with_numpy(keep(NUMPY, ours))}
    laps = race(entries | {"probmetrics": keep("probmetrics", probmetrics)}, effort)
    threads(before)
    for name, found in last.items():
        laps[name].number = found.objective(data, what)
    return laps


def _matrix(smoke: bool) -> Part:
    """Matrix scaling of many classes, alone in a process: nobody waits for longer than the limit.

    Judged on drawn labels. The overconfident rows can be separated by so many numbers: the NLL falls towards 0 for
    ever, no optimum exists, and a time says only when somebody stopped.
    """
    n, k = SMOKE_SIZE if smoke else SIZE
    targets, rows = [], []
    for source in ("drawn", "overconfident"):
        made = {name: _alone(f"{name} matrix {source}", n, k) for name in (OURS, "probmetrics")}
        mine, peer = made[OURS], made["probmetrics"]
        if source == "drawn":
            targets += _matrix_targets(f"matrix at {n:,} x {k}", mine, peer)
        for name, one in made.items():
            ends = one.note or ("yes" if one.converged else "no")
            rows.append([source, name, _seconds(one), ends, f"{one.nll:.6f}", f"{one.accuracy:.4f}"])
    head = [f"matrix at {n:,} x {k}", "", "seconds", "says it converged", "NLL", "accuracy on the rows of the fit"]
    return targets, [table(head, rows)]


def _matrix_targets(what: str, mine: "Alone", peer: "Alone") -> list[Target]:
    times, note = peer.seconds / mine.seconds, "" if peer.converged else "probmetrics did not converge"
    if peer.note:
        note = f"probmetrics: {peer.note}"
        times = LIMIT / mine.seconds if peer.note.startswith("stopped") else None  # it takes at least that long
    return [
        Target(f"{what}, converged", float(mine.converged), "least", 1.0, "", note=mine.note),
        Target(f"{what}, times faster than probmetrics", times, "least", 3.0, note=note),
    ]


# -- the objective reached ---------------------------------------------------------------------------------------


def _sets(smoke: bool) -> Iterator[tuple[str, tuple[Data, Data]]]:
    """A synthetic set with errors of its own in every class, then the real ones: first half to fit, second to test."""
    n, k = SMOKE_SMALL_SIZE if smoke else SMALL_SIZE
    made = _drawn(2 * n, k)
    yield "synthetic", _halves(made.logits, made.labels)
    for file in () if smoke else sorted(LOGITS.glob("*.npz")):
        with np.load(file) as arrays:
            yield file.stem, _halves(arrays["logits"], arrays["labels"])


def _drawn(n: int, k: int) -> Data:
    """Labels drawn from a softmax, then a slope and an offset for every class: noisy enough for an optimum."""
    rng = np.random.default_rng(1)
    true = 2 * rng.normal(size=(n, k))
    labels = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    return Data((true * rng.uniform(1, 4, size=k) + rng.normal(size=k)).astype(np.float32), labels)


def _halves(logits: npt.NDArray[Any], labels: npt.NDArray[np.int64]) -> tuple[Data, Data]:
    half = len(labels) // 2
    first, second = np.ascontiguousarray(logits[:half]), np.ascontiguousarray(logits[half:])
    return Data(first, labels[:half].copy()), Data(second, labels[half:].copy())


def _reached(smoke: bool) -> Part:
    targets, rows, worst = [], [], dict[str, tuple[float, str]]()
    for name, (val, test) in _sets(smoke):
        whats = ("temperature", "vector", "svs", "sms") + (("matrix",) if val.logits.shape[1] <= 10 else ())
        for what in whats:
            made = {OURS: ours(what, val)} | dict(_peers_found(what, val))
            reached = {who: one.objective(val, what) for who, one in made.items()}
            tested = {who: one.nll(test) for who, one in made.items()}
            best = min((who for who in made if who != OURS), key=reached.__getitem__)
            gap = reached[OURS] - reached[best]
            worst[what] = max(worst.get(what, (-np.inf, "")), (gap, f"worst on {name}, {best}"))
            if what == "sms":
                gap_of_test = tested[OURS] - tested[best]
                worst["sms, test NLL"] = max(
                    worst.get("sms, test NLL", (-np.inf, "")), (gap_of_test, f"worst on {name}")
                )
            numbers = "; ".join(f"{who} {reached[who]:.7f} ({tested[who]:.5f})" for who in made)
            rows.append([name, what, best, f"**{gap:+.1e}**", f"<small>{numbers}</small>"])
    for what, (gap, note) in worst.items():
        limit = 1e-4 if "test" in what else NOT_WORSE
        words = "test NLL of sms above probmetrics'" if "test" in what else f"objective of {what} above the best peer's"
        targets.append(Target(words, gap, "most", limit, " nats", note=note))
    head = [
        "rows",
        "calibrator",
        "best peer",
        "ours minus its",
        "objective on the rows of the fit (NLL on the test rows)",
    ]
    return targets, [table(head, rows)]


def _peers_found(what: str, data: Data) -> Iterator[tuple[str, Found]]:
    if what != "temperature":
        yield "probmetrics", probmetrics(what, data)
        return
    from benchmarks._peers import TEMPERATURE, Input

    for name, peer in TEMPERATURE.items():
        yield name, Found(np.array(1 / peer(Input.of(data))), np.array(0.0), _logits)


# -- large arrays, and the grid ----------------------------------------------------------------------------------


def _large(smoke: bool) -> Part:
    n, k = SMOKE_LARGE_SIZE if smoke else LARGE_SIZE
    targets, rows = [], []
    for what in LARGE:
        one = _alone(f"{OURS} {what} overconfident", n, k)
        sizes = one.peak / (4 * n * k)
        most = MOST_SECONDS.get(what, LIMIT)
        targets += [
            Target(f"{what} at {n:,} x {k} finishes", one.seconds, "most", most, " s", one.note),
            Target(f"peak memory of {what} at {n:,} x {k} float32, in sizes of the input", sizes, "most", 4.0),
        ]
        rows.append([what, _seconds(one), f"**{show(sizes)}**", one.note or ("yes" if one.converged else "no")])
    return targets, [table([f"{n:,} x {k} float32", "seconds", "peak / input", "converged"], rows)]


def _grid(smoke: bool) -> Part:
    data = overconfident(*(SMOKE_SIZE if smoke else SIZE))
    lap = race({OURS: lambda: float(1 / ours("temperature_ece", data).weight)}, Effort(1, 0.0))[OURS]
    promise = f"temperature_ece at {data.size}: the ECE at 5,000 temperatures"
    return [Target(promise, lap.best, "most", 10.0, " s", f"T = {lap.number:g}")], []


# -- a process of its own ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alone:
    seconds: float = float("nan")
    peak: float = float("nan")  # bytes above what the imports held
    nll: float = float("nan")
    accuracy: float = float("nan")
    converged: bool = False
    note: str = ""


def _seconds(one: Alone) -> str:
    return "-" if one.seconds != one.seconds else f"**{show(one.seconds)}**"


def _alone(job: str, n: int, k: int) -> Alone:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.calibrators", *job.split(), str(n), str(k)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT + 20, check=True)
    except subprocess.TimeoutExpired:
        return Alone(note=f"stopped after {LIMIT:.0f} s")
    except subprocess.CalledProcessError as error:
        return Alone(note=f"fails: {error.stderr.strip().splitlines()[-1]}")
    return Alone(**json.loads(done.stdout.splitlines()[-1]))


def _in_fresh_process(who: str, what: str, source: str, n: int, k: int) -> Alone:
    """One fit; what it reached is computed after time and memory are read. 20 s are for imports and data."""
    if who == OURS:
        warm = overconfident(200, 3)
        fit(Predictions.from_logits(warm.logits, warm.labels), what)  # imports are not timed
    else:
        from probmetrics.calibrators import logistic  # noqa: F401, nor are theirs
    before = _forget_peak()
    data = _drawn(n, k) if source == "drawn" else overconfident(n, k)
    start = perf_counter()
    if who == OURS:
        made = fit(Predictions.from_logits(data.logits, data.labels), what)
    else:
        found = probmetrics(what, data)
    seconds, peak = perf_counter() - start, _status("VmHWM") - before
    if what in LARGE:
        return Alone(seconds, peak, converged=made.fit.converged)
    found = _found(made) if who == OURS else found
    return Alone(seconds, peak, found.nll(data), found.accuracy(data), found.converged)


if __name__ == "__main__":
    print(
        json.dumps(asdict(_in_fresh_process(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
    )
