"""Logistic regression with a few coefficients by Newton's method, with a proof of the optimum or a diagnosis."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.maps.map import Fit
from calibrant.core.text.number_format import name_classes

TOLERANCE = 1e-9  # on the largest entry of the gradient of the mean loss, features standardised
STEPS = 200
HALVINGS = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class Logistic:
    """sigmoid(slopes . features + offset); `separable` says in words why the plain likelihood has no optimum."""

    slopes: Array  # (d,)
    offset: float
    gradient: float  # largest entry, of the standardised problem
    steps: int
    loss: float
    separable: str = ""

    @property
    def converged(self) -> bool:
        return self.gradient < TOLERANCE


def fit_logistic(features: Array, targets: Array, weights: Array | None = None) -> Logistic:
    """Minimise the mean log loss of targets in 0 .. 1 by damped Newton steps; features are (n, d).

    A feature that never varies gets slope 0. Without an optimum (separable targets) it stops unconverged.

    >>> fitted = fit_logistic(np.array([[0.0], [0.0], [1.0], [1.0], [1.0]]), np.array([0.0, 1, 1, 1, 0]))
    >>> abs(fitted.offset) < 1e-12, fitted.slopes.round(6), fitted.converged  # odds 1 at 0, 2 at 1: ln 2
    (True, array([0.693147]), True)
    """
    from scipy.special import expit

    n, d = features.shape
    w = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    largest = np.maximum(np.abs(features).max(axis=0), np.finfo(float).tiny)  # logits may be 1e300: no overflow
    x = features / largest
    mean = w @ x
    x = x - mean
    spread = np.sqrt(w @ x**2)
    varies = spread > 1e-14
    scale = np.where(varies, spread, 1.0)
    design = np.concatenate([np.where(varies, x / scale, 0.0), np.ones((n, 1))], axis=1)  # (n, d + 1)
    ridge = np.diag(np.append(~varies, False).astype(np.float64))
    rate = float(np.clip(w @ targets, 1e-12, 1 - 1e-12))
    theta = np.append(np.zeros(d), np.log(rate) - np.log1p(-rate))
    before, steps = np.inf, 0
    while True:
        margin = design @ theta
        q = expit(margin)
        gradient = design.T @ (w * (q - targets))
        largest_entry = float(np.abs(gradient).max())
        hessian = (design * (w * q * (1 - q))[:, None]).T @ design + ridge
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-15)[0]
        fall = float(gradient @ step)  # twice what a whole step would gain, were the loss a parabola
        near = fall < 1e-10  # so near that rounding hides the gain: whole steps, while the gradient shrinks
        if steps == STEPS or largest_entry == 0 or (near and largest_entry > before / 2):
            break
        theta = theta - step * (1.0 if near else _length(margin, design @ step, fall, targets, w))
        before, steps = largest_entry if near else np.inf, steps + 1
    slopes = theta[:d] / scale
    return Logistic(
        slopes=slopes / largest,
        offset=float(theta[d] - slopes @ mean),
        gradient=largest_entry,
        steps=steps,
        loss=_loss(margin, targets, w),
    )


def _length(margin: Array, along: Array, fall: float, targets: Array, w: Array) -> float:
    """The longest of 1, 1/2, 1/4, ... Newton steps by which the loss falls enough."""
    loss, length = _loss(margin, targets, w), 1.0
    for _ in range(HALVINGS):
        if _loss(margin - length * along, targets, w) <= loss - 1e-4 * length * fall:
            break
        length /= 2
    return length


def _loss(margin: Array, targets: Array, w: Array) -> float:
    return float(w @ (np.logaddexp(0.0, margin) - targets * margin))


def smooth_targets(targets: Array, weights: Array | None = None) -> Array:
    """Platt's targets: as if one more positive and one more negative had been seen, so that an optimum exists."""
    positives = float(targets.sum() if weights is None else weights @ targets)
    negatives = float(len(targets) if weights is None else weights.sum()) - positives
    return np.asarray(targets * (positives + 1) / (positives + 2) + (1 - targets) / (negatives + 2))


def explain_separation(scores: Array, targets: Array, *, rising: bool = False) -> str:
    """Why one threshold on the scores tells positives from negatives, in words, or "" if none does.

    `targets` are shares of positives; `rising` counts only positives above negatives.
    """
    positive, negative = targets > 0, targets < 1  # masks: copies of the scores would be eight times as large
    if not negative.any() or not positive.any():
        return "no negative" if positive.any() else "no positive"
    if scores.min() == scores.max():
        return ""
    if scores.max(where=negative, initial=-np.inf) <= scores.min(where=positive, initial=np.inf):
        return "every positive has a higher score than every negative"
    if not rising and scores.max(where=positive, initial=-np.inf) <= scores.min(where=negative, initial=np.inf):
        return "every positive has a lower score than every negative"
    return ""


def platt_of(scores: Array, targets: Array, weights: Array | None = None, *, smooth: bool = False) -> Logistic:
    """Fit one sigmoid; without an optimum, that of smoothed targets. Equal scores keep slope 1 and fit the offset."""
    aims = smooth_targets(targets, weights) if smooth else targets
    why = "" if smooth else explain_separation(scores, targets)
    if why:
        aims = smooth_targets(targets, weights)
    fitted = fit_logistic(scores[:, None], aims, weights)
    if scores.min() == scores.max():
        fitted = replace(fitted, slopes=np.ones(1), offset=fitted.offset - float(scores[0]))
    return replace(fitted, separable=why)


def report(fits: list[Logistic]) -> Fit:
    """Join how several fits ended into one report, for all classes or for the top label alone."""
    apart = np.flatnonzero([bool(f.separable) for f in fits])
    stopped = np.flatnonzero([not f.converged for f in fits])
    gradient, steps = max(f.gradient for f in fits), max(f.steps for f in fits)
    if len(apart):
        where = f"{name_classes(apart)}, {'the first: ' if len(apart) > 1 else ''}" if len(fits) > 1 else ""
        why = f"separable: {where}{fits[apart[0]].separable}; fitted to smoothed targets instead"
        return Fit(False, why, gradient, steps)
    if len(stopped):
        where = f" in {name_classes(stopped)}" if len(fits) > 1 else ""
        return Fit(False, f"stopped{where}: the gradient is still {gradient:.1g}", gradient, steps)
    return Fit(gradient=gradient, steps=steps)
