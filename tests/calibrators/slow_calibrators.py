"""Second, slow and obvious implementations of the calibrators of one score.

Each takes calibration scores, hits (0 or 1) and new scores, all plain arrays, and returns the new scores' values.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

FLOOR = 1e-6


def pooled(scores, hits):
    """[(score, rows, hits)] in order of score."""
    return [(s, int((scores == s).sum()), int(hits[scores == s].sum())) for s in sorted(set(scores.tolist()))]


def pav(scores, hits):
    """Blocks [first score, last score, rows, hits, sum of scores] by the textbook loop, in exact fractions."""
    blocks = []
    for s, rows, good in pooled(scores, hits):
        blocks.append([s, s, rows, good, s * rows])
        while len(blocks) > 1 and Fraction(blocks[-2][3], blocks[-2][2]) >= Fraction(blocks[-1][3], blocks[-1][2]):
            _, last, rows2, good2, sum2 = blocks.pop()
            first, _, rows1, good1, sum1 = blocks.pop()
            blocks.append([first, last, rows1 + rows2, good1 + good2, sum1 + sum2])
    return blocks


def line(knots, s):
    """Linear between knots [(x, y)], constant outside."""
    if s <= knots[0][0]:
        return knots[0][1]
    for (x0, y0), (x1, y1) in pairwise(knots):
        if s <= x1:
            return y1 if x1 == x0 else y0 + (y1 - y0) * (s - x0) / (x1 - x0)
    return knots[-1][1]


def isotonic(scores, hits, new):
    knots = []
    for first, last, rows, good, _ in pav(scores, hits):
        knots += [(first, good / rows), (last, good / rows)]
    return np.array([line(knots, s) for s in new])


def isotonic_nudged(scores, hits, new):
    return isotonic(scores, hits, new) + 1e-9 * new


def centred_isotonic(scores, hits, new):
    knots = [(total / rows, good / rows) for _, _, rows, good, total in pav(scores, hits)]
    return np.array([line(knots, s) for s in new])


def venn_abers(scores, hits, new):
    """Two isotonic fits per new score."""
    values = []
    for s in new:
        p0, p1 = (_value_at(np.append(scores, s), np.append(hits, extra), s) for extra in (0, 1))
        values.append(p1 / (1 - p0 + p1))
    return np.array(values)


def _value_at(scores, hits, s):
    for first, last, rows, good, _ in pav(scores, hits):
        if first <= s <= last:
            return good / rows
    raise AssertionError


def chunk_edges(values, bins):
    """0, edges halfway between neighbouring chunks without repeats, 1."""
    chunks = [c for c in np.array_split(np.sort(values), bins) if len(c)]
    inner = {(a[-1] + b[0]) / 2 for a, b in pairwise(chunks)}
    return [0.0, *sorted(e for e in inner if e < 1), 1.0]


def bin_of(edges, s):
    for j in range(1, len(edges) - 1):
        if s <= edges[j]:
            return j - 1
    return len(edges) - 2


def histogram(scores, hits, new, bins=15):
    edges = chunk_edges(scores, bins)
    inside = [[] for _ in edges[1:]]
    for s, hit in zip(scores, hits, strict=True):
        inside[bin_of(edges, s)].append(hit)
    values = [sum(b) / len(b) if b else (edges[j] + edges[j + 1]) / 2 for j, b in enumerate(inside)]
    return np.array([values[bin_of(edges, s)] for s in new])


def bbq(scores, hits, new, score="bayes"):
    n = len(scores)
    root = n ** (1 / 3)
    low = max(1, math.floor(root / 10))
    high = max(low, min(math.ceil(10 * root), n // 5))
    logs, answers = [], []
    for count in range(low, high + 1):
        edges = chunk_edges(scores, count)
        b = len(edges) - 1
        log, values = 0.0, []
        for j in range(b):
            inside = [h for s, h in zip(scores, hits, strict=True) if bin_of(edges, s) == j]
            rows, good = len(inside), sum(inside)
            pi = min(max((edges[j] + edges[j + 1]) / 2, FLOOR), 1 - FLOOR)
            alpha, beta = 2 / b * pi, 2 / b * (1 - pi)
            values.append((good + alpha) / (rows + 2 / b))
            if score == "bayes":
                log += math.lgamma(2 / b) - math.lgamma(rows + 2 / b) + math.lgamma(good + alpha) - math.lgamma(alpha)
                log += math.lgamma(rows - good + beta) - math.lgamma(beta)
            else:
                log += sum(math.log(good / rows if h else 1 - good / rows) for h in inside) - math.log(n) / 2
        logs.append(log)
        answers.append([values[bin_of(edges, s)] for s in new])
    weights = np.exp(np.array(logs) - max(logs))
    return weights @ np.array(answers) / weights.sum()


def bbq_bic(scores, hits, new):
    return bbq(scores, hits, new, score="bic")


def spline(scores, hits, new, knots=6):
    """The natural cubic basis of truncated powers: 1, t, and d_j - d_last."""
    n = len(scores)
    order = np.argsort(scores)
    c = scores[order]
    shared = np.array([hits[scores == s].mean() for s in c])
    t = np.linspace(0, 1, n)
    error = np.cumsum(shared - c) / n
    at = np.linspace(0, 1, min(knots, n))

    def d(j, t):
        return (np.maximum(t - at[j], 0) ** 3 - np.maximum(t - at[-1], 0) ** 3) / (at[-1] - at[j])

    def slope(j, t):
        return 3 * (np.maximum(t - at[j], 0) ** 2 - np.maximum(t - at[-1], 0) ** 2) / (at[-1] - at[j])

    last = len(at) - 2
    basis = np.stack([np.ones(n), t, *(d(j, t) - d(last, t) for j in range(last))], axis=1)
    slopes = np.stack([np.zeros(n), np.ones(n), *(slope(j, t) - slope(last, t) for j in range(last))], axis=1)
    value = c + slopes @ np.linalg.lstsq(basis, error)[0]
    points = [(s, value[c == s].mean()) for s in sorted(set(c.tolist()))]
    return np.clip([line(points, s) for s in new], 0, 1)


def minimised(loss, gradient, start, bounds=None):
    """A general optimiser, pushed as far as it goes."""
    optimum = start
    for _ in range(3):
        optimum = minimize(
            loss, optimum, jac=gradient, bounds=bounds, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-13}
        ).x
    return optimum


def logistic(features, targets, bounds=None):
    x = np.column_stack([features, np.ones(len(targets))])

    def loss(w):
        return np.mean(np.logaddexp(0, x @ w) - targets * (x @ w))

    def gradient(w):
        return x.T @ (expit(x @ w) - targets) / len(targets)

    return minimised(loss, gradient, np.zeros(x.shape[1]), bounds and [*bounds, (None, None)])


def logit(s):
    s = np.clip(s, FLOOR, 1 - FLOOR)
    return np.log(s / (1 - s))


def platt(scores, hits, new):
    a, b = logistic(logit(scores)[:, None], hits)
    return expit(a * logit(new) + b)


def platt_smooth(scores, hits, new):
    targets = np.where(hits == 1, (hits.sum() + 1) / (hits.sum() + 2), 1 / ((1 - hits).sum() + 2))
    return platt(scores, targets, new)


def platt_of_logits(z, hits, new):
    a, b = logistic(z[:, None], hits)
    return expit(a * new + b)


def beta(scores, hits, new):
    def features(s):
        s = np.clip(s, FLOOR, 1 - FLOOR)
        return np.column_stack([np.log(s), -np.log(1 - s)])

    a, b, c = logistic(features(scores), hits, bounds=[(0, None), (0, None)])
    return expit(features(new) @ [a, b] + c)


def scaling_binning(scores, hits, new, bins=15):
    g, ours = platt(scores, hits, scores), platt(scores, hits, new)
    g = np.round(g, 12)  # equal scores have equal values
    edges = chunk_edges(g, bins)
    if edges[-2] >= g.max():  # no bin above every value
        edges.pop(-2)
    inside = [[v for v in g if bin_of(edges, v) == j] for j in range(len(edges) - 1)]
    values = [sum(b) / len(b) if b else (edges[j] + edges[j + 1]) / 2 for j, b in enumerate(inside)]
    return np.array([values[bin_of(edges, v)] for v in np.round(ours, 12)])
