"""Every loss a second time: slow, obvious, straight from docs/methods/losses.md, sharing no code with calibrant.

Every function takes logits (B rows of k numbers) and labels (B integers). Losses of rows give a list of B numbers,
terms one number for the batch. Names are the names of the losses.
"""

import math

import numpy as np

# -- what the formulas are made of ----------------------------------------------------------------


def log_softmax(z):
    top = max(z)
    total = math.log(math.fsum(math.exp(value - top) for value in z))
    return [value - top - total for value in z]


def softmax(z):
    return [math.exp(value) for value in log_softmax(z)]


def batch(logits, labels):
    """(logits, probabilities, log-probabilities, label) of every row, in plain numbers."""
    rows = np.asarray(logits, dtype=np.float64).tolist()
    return [(z, softmax(z), log_softmax(z), int(y)) for z, y in zip(rows, labels, strict=True)]


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def minus_log_sigmoid(x):
    return math.log1p(math.exp(-x)) if x >= 0 else math.log1p(math.exp(x)) - x


def entropy_of(p):
    return -math.fsum(value * math.log(value) for value in p if value > 0)


def top_label(logits, labels):
    """(confidence, 1 if correct else 0) of every row; the lowest index wins a tie."""
    return [(max(p), float(p.index(max(p)) == y)) for _, p, _, y in batch(logits, labels)]


def soft_accuracy(logits, labels, slope=100.0):
    values = []
    for _, p, _, y in batch(logits, labels):
        rank = 0.5 + math.fsum(sigmoid(slope * (value - p[y])) for value in p)
        values.append(max(0.0, 2.0 - rank))
    return values


# -- losses of rows -------------------------------------------------------------------------------


def ce(logits, labels):
    return [-lp[y] for _, _, lp, y in batch(logits, labels)]


def lp_norm(logits, labels, alpha=0.01, p=1.0):
    rows = []
    for z, _, lp, y in batch(logits, labels):
        inside = math.fsum(abs(value) ** p for value in z) + (1e-12 if p > 1 else 0)
        rows.append(-lp[y] + alpha * inside ** (1 / p))
    return rows


def erl(logits, labels, beta=0.1):
    return [-lp[y] - beta * entropy_of(p) for _, p, lp, y in batch(logits, labels)]


def label_smoothing(logits, labels, epsilon=0.05, form="uniform"):
    rows = []
    for _, p, lp, y in batch(logits, labels):
        if form == "uniform":
            target = [epsilon / len(p) + (1 - epsilon) * (c == y) for c in range(len(p))]
        else:
            target = [1 - epsilon if c == y else epsilon / (len(p) - 1) for c in range(len(p))]
        rows.append(-math.fsum(t * value for t, value in zip(target, lp, strict=True)))
    return rows


def focal(logits, labels, gamma=3.0):
    return [-((1 - p[y]) ** gamma) * lp[y] for _, p, lp, y in batch(logits, labels)]


def focal_gradient(logits, labels, gamma):
    """Of each row with respect to its logits: g (p - onehot)."""
    rows = []
    for _, p, lp, y in batch(logits, labels):
        u = 1 - p[y]
        g = u**gamma - gamma * p[y] * u ** (gamma - 1) * lp[y]
        rows.append([g * (value - (c == y)) for c, value in enumerate(p)])
    return rows


def flsd(logits, labels, low=5.0, high=3.0, switch=0.2):
    rows = []
    for _, p, lp, y in batch(logits, labels):
        gamma = low if p[y] < switch else high
        rows.append(-((1 - p[y]) ** gamma) * lp[y])
    return rows


def flsc(logits, labels, epoch=0, epochs=350, first=5.0, second=3.0, third=1.0):
    gamma = first if 350 * epoch < 100 * epochs else second if 350 * epoch < 250 * epochs else third
    return focal(logits, labels, gamma)


def dual_focal(logits, labels, gamma=5.0):
    rows = []
    for _, p, lp, y in batch(logits, labels):
        runner_up = max([value for value in p if value < p[y]], default=0.0)
        rows.append(-((1 - p[y] + runner_up) ** gamma) * lp[y])
    return rows


def brier(logits, labels):
    return [math.fsum((value - (c == y)) ** 2 for c, value in enumerate(p)) for _, p, _, y in batch(logits, labels)]


def margin(logits, labels, alpha=0.1, margin=10.0):
    rows = []
    for z, _, lp, y in batch(logits, labels):
        rows.append(-lp[y] + alpha * mean(max(0.0, max(z) - value - margin) for value in z))
    return rows


def bdc(logits, labels):
    rows = []
    for z, _, _, y in batch(logits, labels):
        rows.append(mean(minus_log_sigmoid(z[y] - z[j]) for j in range(len(z)) if j != y))
    return rows


def bec(logits, labels):
    rows = []
    for z, _, _, y in batch(logits, labels):
        others = [j for j in range(len(z)) if j != y]
        rows.append(mean(minus_log_sigmoid(z[i] - z[j]) / 2 for i in others for j in others if i != j))
    return rows


def cpc(logits, labels, **weights):
    l1, l2 = weights.get("bdc", 1.0), weights.get("bec", 1.0)
    rows = [a + l1 * b for a, b in zip(ce(logits, labels), bdc(logits, labels), strict=True)]
    return [a + l2 * b for a, b in zip(rows, bec(logits, labels), strict=True)] if l2 else rows


# -- terms of a batch -----------------------------------------------------------------------------


def mmce(logits, labels, width=0.4):
    pairs = top_label(logits, labels)
    return mean((a - c) * (b - d) * math.exp(-abs(c - d) / width) for c, a in pairs for d, b in pairs)


def mmce_weighted(logits, labels, width=0.4, form="formula"):
    pairs = top_label(logits, labels)
    s = [c for c, a in pairs if a]
    t = [c for c, a in pairs if not a]
    if not s or not t:
        return 0.0
    again = [pairs + 1e-5 if form == "code" else 1 for pairs in (len(s) ** 2, len(t) ** 2, len(s) * len(t))]
    right = mean((1 - a) * (1 - b) * math.exp(-abs(a - b) / width) for a in s for b in s)
    wrong = mean(a * b * math.exp(-abs(a - b) / width) for a in t for b in t)
    cross = mean((1 - a) * b * math.exp(-abs(a - b) / width) for a in s for b in t)
    return math.sqrt(max(0.0, right / again[0] + wrong / again[1] - 2 * cross / again[2]) + 1e-10)


def dece(logits, labels, bins=15, temperature=0.01, slope=100.0):
    pairs, soft = top_label(logits, labels), soft_accuracy(logits, labels, slope)
    shares = []
    for c, _ in pairs:
        scores = [(j * c - math.fsum(m / bins for m in range(1, j))) / temperature for j in range(1, bins + 1)]
        shares.append([(share + 1e-6) / (1 + (bins + 1) * 1e-6) for share in softmax(scores)])  # as published code
    total = 0.0
    for j in range(bins):
        mass = math.fsum(row[j] for row in shares)
        confidence = math.fsum(row[j] * c for row, (c, _) in zip(shares, pairs, strict=True)) / mass
        accuracy = math.fsum(row[j] * a for row, a in zip(shares, soft, strict=True)) / mass
        total += mass / len(pairs) * abs(accuracy - confidence)
    return total


def sece(logits, labels, h=0.01, form="normalised", accuracy="soft", leave_one_out=False, slope=100.0):
    pairs = top_label(logits, labels)
    right = [a for _, a in pairs] if accuracy == "hard" else soft_accuracy(logits, labels, slope)
    gaps = []
    for i, (c, _) in enumerate(pairs):
        kernel = [math.exp(-((c - d) ** 2) / (2 * h**2)) for d, _ in pairs]
        if form == "eq5":
            gaps.append(abs(math.fsum(right[i] * weight for weight in kernel) - c))
            continue
        if leave_one_out:
            kernel[i] = 0.0
            if math.fsum(kernel) < 1e-12:
                kernel = [float(j == i) for j in range(len(pairs))]
        local = math.fsum(weight * a for weight, a in zip(kernel, right, strict=True)) / math.fsum(kernel)
        gaps.append(abs(local - c))
    return mean(gaps)


def soft_binned_ece(logits, labels, p=2.0, bins=15, temperature=0.01):
    pairs = top_label(logits, labels)
    anchors = [(j - 0.5) / bins for j in range(1, bins + 1)]
    shares = [softmax([-((c - anchor) ** 2) / temperature for anchor in anchors]) for c, _ in pairs]
    mass = [math.fsum(row[j] for row in shares) for j in range(bins)]
    total = 0.0
    for j in range(bins):
        confidence = math.fsum(row[j] * c for row, (c, _) in zip(shares, pairs, strict=True)) / max(mass[j], 1e-5)
        accuracy = math.fsum(row[j] * a for row, (_, a) in zip(shares, pairs, strict=True)) / max(mass[j], 1e-5)
        total += mass[j] / math.fsum(mass) * abs(confidence - accuracy) ** p
    return total ** (1 / p)


def avuc(logits, labels, threshold=1.0):
    ac = au = ic = iu = 0.0
    for (c, a), (_, p, _, _) in zip(top_label(logits, labels), batch(logits, labels), strict=True):
        u = entropy_of(p)
        t = math.tanh(u)
        if a and u <= threshold:
            ac += c * (1 - t)
        elif a:
            au += c * t
        elif u <= threshold:
            ic += (1 - c) * (1 - t)
        else:
            iu += (1 - c) * t
    return math.log(1 + (au + ic) / max(ac + iu, 1e-10))


def avuc_threshold(logits, labels, before=1.0):
    """After an epoch of these samples; where all are right or all wrong it stays."""
    sums = {0.0: [], 1.0: []}
    for (_, a), (_, p, _, _) in zip(top_label(logits, labels), batch(logits, labels), strict=True):
        sums[a].append(entropy_of(p))
    return mean([mean(sums[0.0]), mean(sums[1.0])]) if sums[0.0] and sums[1.0] else before


def sb_avuc(logits, labels, kappa=0.5, temperature=1.0):
    ac = au = ic = iu = 0.0
    for (_, a), (_, p, _, _) in zip(top_label(logits, labels), batch(logits, labels), strict=True):
        u = entropy_of(p)
        t, part = math.tanh(u), min(max(u / math.log(len(p)), 1e-6), 1 - 1e-6)
        unsure = sigmoid(math.log(part * (1 - kappa) / ((1 - part) * kappa)) / temperature)
        if a:
            ac += (1 - unsure) * (1 - t)
            au += unsure * t
        else:
            ic += (1 - unsure) * (1 - t)
            iu += unsure * t
    return math.log(1 + (au + ic) / max(ac + iu, 1e-10))


def mdca(logits, labels):
    rows = batch(logits, labels)
    k = len(rows[0][0])
    return mean(abs(mean(p[c] for _, p, _, _ in rows) - mean(float(y == c) for *_, y in rows)) for c in range(k))


def dca(logits, labels):
    pairs = top_label(logits, labels)
    return abs(mean(c for c, _ in pairs) - mean(a for _, a in pairs))


def crl(logits, labels, counts, epoch, ids, score="max"):
    """`counts` of all training samples, `ids` of the batch, `epoch` = epochs complete."""
    least = min(counts)
    past = [(counts[i] - least) / (epoch - least) if epoch > least else 0.0 for i in ids]
    scores = []
    for _, p, _, _ in batch(logits, labels):
        first, second = sorted(p, reverse=True)[:2]
        by_entropy = -entropy_of(p) / math.log(len(p))
        scores.append({"max": first, "margin": first - second, "entropy": by_entropy}[score])
    losses = []
    for i in range(len(scores)):
        j = (i + 1) % len(scores)
        more = past[i] - past[j]
        sign = (more > 0) - (more < 0)
        losses.append(max(0.0, -sign * (scores[i] - scores[j]) + abs(more)) if sign else 0.0)
    return mean(losses)


# -- mixup ----------------------------------------------------------------------------------------


def mixup(logits, labels, partners, share):
    mine, theirs = ce(logits, labels), ce(logits, partners)
    return [share * a + (1 - share) * b for a, b in zip(mine, theirs, strict=True)]
