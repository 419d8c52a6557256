"""Maps that every export is tried on: each step in each of its forms, chains of them, and every calibrator fitted."""

from functools import cache

import numpy as np
from synthetic import draw_rows

from calibrant import calibrators, fit
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves, Linear, LogProbs, Mix, Sigmoid
from calibrant.core.predictions import Predictions

K = 4
SCOPES = ("top", "classes", "shared")


def steps():
    """Every step in every form, by name."""
    rng = np.random.default_rng(0)
    results = {
        "number": (Linear(np.array(0.4), np.array(0.0)),),
        "vector": (Linear(rng.random(K), rng.normal(size=K)),),
        "one weight": (Linear(np.array([0.3]), np.array([0.1])),),
        "matrix": (Linear(rng.normal(size=(K, K)), rng.normal(size=K)),),
        "sharp": (Linear(np.array(50.0), np.array(0.0)),),
        "dirichlet": (LogProbs(), Linear(rng.random((K, K)), rng.normal(size=K))),
        "mix": (Mix(1.7, np.array([0.5, 0.3, 0.2])),),
        "mix without T": (Mix(1e-300, np.array([0.0, 0.9, 0.1])),),
    }
    for scope in SCOPES:
        count = K if scope == "classes" else 1
        x = [np.sort(rng.random(3 + c)) for c in range(count)]
        y = [np.sort(rng.random(4 + c)) for c in range(count)]
        results[f"stair {scope}"] = (Curves(x, y, "stair", scope),)
        results[f"line {scope}"] = (Curves(x, [v[1:] for v in y], "line", scope),)
        results[f"level {scope}"] = (Curves([np.empty(0)] * count, [np.array([0.7])] * count, "stair", scope),)
        results[f"one knot {scope}"] = (Curves([np.array([0.3])] * count, [np.array([0.6])] * count, "line", scope),)
        jump = Curves([np.array([0.1, 0.5, 0.5, 1.0])] * count, [np.array([0, 0.2, 0.8, 1.0])] * count, "line", scope)
        results[f"jump {scope}"] = (jump,)
        nothing = Curves([np.array([0.9])] * count, [np.array([0.0, 0.8])] * count, "stair", scope)
        results[f"zeros {scope}"] = (nothing,)
        for on in ("probs", "logits"):
            table = rng.normal(size=(count, 4)) * 0.3 + [1, 1, 0, 0]
            results[f"sigmoid {on} {scope}"] = (Sigmoid(table, on, scope),)
    results["top, linear, top"] = results["line top"] + results["vector"] + results["stair top"]
    results["shared, matrix, top"] = results["stair shared"] + results["matrix"] + results["sigmoid logits top"]
    results["classes, log, mix, top"] = results["line classes"] + (LogProbs(),) + results["mix"] + results["line top"]
    results["everything"] = tuple(
        one for name in list(results) if name not in ("sharp", "mix without T") for one in results[name]
    )
    return results


HAND_BUILT = {name: Map(calibrator="by hand", k=K, steps=these) for name, these in steps().items()}
NAMES = [*HAND_BUILT, *calibrators.names(), "temperature+isotonic"]


@cache
def map_of(name):
    """A hand-built map, or the named calibrator fitted on 300 overconfident rows."""
    if name in HAND_BUILT:
        return HAND_BUILT[name]
    k = 2 if "+" not in name and calibrators.find(name).binary else K
    return fit(Predictions.from_logits(*draw_rows(300, k, seed=1, sharpness=2.0)), name)


ONE_SCORE = (
    "temperature",
    "ets",
    "beta",
    "platt",
    "isotonic",
    "venn_abers",
    "histogram",
    "affine",
    "quadratic",
    "identity",
)
BY_TASK = [
    *(
        (task, name)
        for task in ("binary", "confidence")
        for name in (*ONE_SCORE, "ets+isotonic", "isotonic+temperature")
    ),
    *(("binary", name) for name in ("vector", "svs", "irm", "isotonic_ovr", "irm+beta", "vector+isotonic")),
    *(("choice", name) for name in ("temperature", "ets", "isotonic", "beta+temperature", "isotonic+ets", "identity")),
]


@cache
def map_of_task(task, name):
    """The named calibrator fitted on 300 rows of another task than scores of all classes."""
    logits, labels = draw_rows(300, K, seed=1, sharpness=2.0)
    if task == "choice":
        exists = np.random.default_rng(0).random((300, K)) < 0.7
        exists[np.arange(300), labels] = exists[:, 0] = exists[:, 1] = True
        return fit(Predictions.from_logits(logits, labels, mask=exists), name)
    build = Predictions.binary if task == "binary" else Predictions.from_confidence
    return fit(build(logits[:, 0] - 1, labels == 0, logits=True), name)


def shaped_rows(m, seed=5):
    """Rows that no export has tried itself on, as exports take them, with the map's probabilities, (n, k) or (n,)."""
    rng = np.random.default_rng(seed)
    labels = np.zeros(200, dtype=int)
    if m.task == "choice":
        logits = (4 * rng.normal(size=(200, K))).astype(np.float32)
        logits[:, 2:][rng.random((200, K - 2)) < 0.4] = -np.inf
        logits[0] = [80.0, -80.0, -np.inf, -np.inf]
        p = Predictions.from_logits(logits, labels, mask=np.isfinite(logits))
        return logits, m.apply(p).probs
    logits = np.append(4 * rng.normal(size=197), [-40.0, 0.0, 40.0]).astype(np.float32)
    build = Predictions.binary if m.task == "binary" else Predictions.from_confidence
    return logits, m.apply(build(logits.astype(np.float64), labels, logits=True)).score


def group_map():
    logits, labels = draw_rows(300, K, seed=2)
    groups = np.array(["a", "b"])[np.arange(300) % 2]
    return fit(Predictions.from_logits(logits, labels, groups=groups), "temperature", by_group=True)


def damaged_map():
    return Map(calibrator="damaged", k=K, steps=(Linear(np.ones(3), np.array(0.0)),))


def fresh(m, seed=5):
    """Rows that no export has tried itself on, with the map's probabilities."""
    logits = np.random.default_rng(seed).normal(size=(200, m.k)) * 4
    logits = logits.astype(np.float32)
    return logits, m.apply(Predictions._from_valid(logits.copy(), np.zeros(200, dtype=np.int64), "logits")).probs


def softmax(logits):
    e = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
