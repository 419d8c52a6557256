"""Predictions made up to have a given calibration error and a given refinement."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import make

CLOSE = 5e-4  # how near the search must come to both numbers
GRID = (np.linspace(-1, 3, 6), np.linspace(-3, 1, 6), np.linspace(0, 4, 4))  # where the search looks first
STARTS = 12


def synthetic(
    *, ece: float, auroc: float, n: int = 1000, accuracy: float = 0.5, classes: int = 10, seed: int = 0
) -> Predictions:
    """Generate rows with Beta-distributed confidences of right and of wrong predictions that reach two targets.

    To see that calibration and refinement are two things: a low ECE with a low AUROC, a high ECE with a high one.
    The ECE has 15 bins of equal width; not every pair can be reached, and one that cannot is refused.

    >>> p = synthetic(ece=0.18, auroc=0.9946)
    >>> round(make("ece")(p), 2), abs(make("auroc_correct")(p) - 0.9946) < 0.0005
    (0.18, True)
    """
    from scipy.optimize import minimize

    _check(ece, auroc, n, accuracy, classes)
    rng = np.random.default_rng(seed)
    correct = round(accuracy * n)
    ranks = np.concatenate(
        [(np.arange(m) + rng.random(m)) / m for m in (correct, n - correct)]
    )  # one draw in each m-th
    order = rng.permutation(n)
    build = partial(
        _predictions, quantiles=ranks[order], right=order < correct, labels=rng.integers(classes, size=n), k=classes
    )
    targets, kinds = np.array([ece, auroc]), [make("ece"), make("auroc_correct")]

    def distance(options: Floats) -> float:
        p = build(options)
        return float(((np.array([kind(p) for kind in kinds]) - targets) ** 2).sum())

    def stop_when_close(intermediate_result: Any) -> None:  # scipy looks at this name
        if intermediate_result.fun < CLOSE**2:
            raise StopIteration

    best = None
    for start in sorted(map(np.array, product(*GRID)), key=distance)[:STARTS]:
        optimum = minimize(distance, start, method="Nelder-Mead", callback=stop_when_close, options={"fatol": 1e-9})
        best = optimum if best is None or optimum.fun < best.fun else best
        if best.fun < CLOSE**2:
            return build(best.x)
    assert best is not None
    near = ", ".join(f"{name} {kind(build(best.x)):.4f}" for name, kind in zip(("ECE", "AUROC"), kinds, strict=True))
    wanted = f"Beta confidences with ECE {ece:g} and AUROC {auroc:g} at accuracy {accuracy:g}"
    raise InputError("synthetic", expected=wanted, got=f"{near} at best", fix="ask for a pair that goes together")


def _predictions(options: Floats, quantiles: Array, right: npt.NDArray[np.bool_], labels: Ints, k: int) -> Predictions:
    """Predictions for a vector of options: logits of the two mean confidences from 1/k to 1, and log sharpness."""
    from scipy.special import betaincinv, expit

    mean = np.clip(np.where(right, expit(options[0]), expit(options[1])), 1e-3, 1 - 1e-3)
    sharpness = np.exp(np.clip(options[2], -2, 8))
    share = betaincinv(sharpness * mean, sharpness * (1 - mean), quantiles)
    confidence = 1 / k + (1 - 1 / k) * np.clip(share, 1e-6, 1 - 1e-9)
    probs = np.repeat((1 - confidence)[:, None] / (k - 1), k, axis=1)  # (n, k)
    predicted = np.where(right, labels, (labels + 1) % k).astype(np.int64)
    probs[np.arange(len(probs)), predicted] = confidence
    return Predictions.from_probs(probs, labels=labels)


def _check(ece: float, auroc: float, n: int, accuracy: float, classes: int) -> None:
    for name, value in (("ece", ece), ("auroc", auroc)):
        if not 0 <= value <= 1:
            raise InputError(name, expected="0 to 1", got=f"{value:g}", fix="divide percentages by 100")
    if classes < 2 or n < 10:
        raise InputError(
            "synthetic", expected="n of 10 and 2 classes or more", got=f"{n} and {classes}", fix="use more"
        )
    if not 0 < round(accuracy * n) < n:
        raise InputError("accuracy", expected="right and wrong rows", got=f"{accuracy:g}", fix="give 0.5, say")
