"""Every loss a second time: slow, obvious, straight from METHODS 5, in plain loops, sharing no code with calibrant.

Functions of the names of the losses take logits (n lists of k numbers), labels (n integers) and the options. Losses of
rows return a list of n numbers, terms one number.
"""

import math


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def log_softmax(row):
    top = max(row)
    total = top + math.log(math.fsum(math.exp(z - top) for z in row))
    return [z - total for z in row]


def softmax(row):
    return [math.exp(value) for value in log_softmax(row)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def log_sigmoid(x):
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


def row_entropy(row):
    return -math.fsum(p * math.log(p) for p in softmax(row) if p > 0)


def confidence_and_hit(row, label):
    p = softmax(row)
    return max(p), float(p.index(max(p)) == label)


def tops(logits, labels):
    pairs = [confidence_and_hit(row, label) for row, label in zip(logits, labels, strict=True)]
    return [c for c, _ in pairs], [a for _, a in pairs]


def soft_accuracy(logits, labels, slope=100.0):
    found = []
    for row, label in zip(logits, labels, strict=True):
        p = softmax(row)
        rank = 0.5 + math.fsum(sigmoid(slope * (q - p[label])) for q in p)
        found.append(max(0.0, 2 - rank))
    return found


# -- losses of rows -------------------------------------------------------------------------------


def ce(logits, labels):
    return [-log_softmax(row)[label] for row, label in zip(logits, labels, strict=True)]


def lp_norm(logits, labels, alpha=0.01, p=1.0):
    norms = [math.fsum(abs(z) ** p for z in row) ** (1 / p) for row in logits]
    return [c + alpha * norm for c, norm in zip(ce(logits, labels), norms, strict=True)]


def erl(logits, labels, beta=0.1):
    return [c - beta * row_entropy(row) for c, row in zip(ce(logits, labels), logits, strict=True)]


def label_smoothing(logits, labels, epsilon=0.05, form="uniform"):
    found = []
    for row, label in zip(logits, labels, strict=True):
        k = len(row)
        truth = [epsilon / k if form == "uniform" else epsilon / (k - 1)] * k
        truth[label] = 1 - epsilon + (epsilon / k if form == "uniform" else 0.0)
        found.append(-math.fsum(t * lp for t, lp in zip(truth, log_softmax(row), strict=True)))
    return found


def focal(logits, labels, gamma=3.0):
    return [(1 - math.exp(-c)) ** gamma * c for c in ce(logits, labels)]


def flsd(logits, labels, low=5.0, high=3.0, switch=0.2):
    found = []
    for c in ce(logits, labels):
        p = math.exp(-c)
        found.append((1 - p) ** (low if p < switch else high) * c)
    return found


def flsc(logits, labels, epoch=0, epochs=350):
    gamma = 5 if epoch * 350 < 100 * epochs else 3 if epoch * 350 < 250 * epochs else 1
    return focal(logits, labels, gamma)


def dual_focal(logits, labels, gamma=5.0):
    found = []
    for row, label in zip(logits, labels, strict=True):
        p = softmax(row)
        below = [q for q in p if q < p[label]]
        found.append((1 - p[label] + (max(below) if below else 0.0)) ** gamma * -math.log(p[label]))
    return found


def brier(logits, labels):
    found = []
    for row, label in zip(logits, labels, strict=True):
        found.append(math.fsum((p - (k == label)) ** 2 for k, p in enumerate(softmax(row))))
    return found


def margin(logits, labels, alpha=0.1, margin=10.0):
    penalties = [mean(max(0.0, max(row) - z - margin) for z in row) for row in logits]
    return [c + alpha * penalty for c, penalty in zip(ce(logits, labels), penalties, strict=True)]


def cpc(logits, labels, bdc=1.0, bec=1.0):
    found = []
    for c, row, label in zip(ce(logits, labels), logits, labels, strict=True):
        others = [j for j in range(len(row)) if j != label]
        pairs = [(i, j) for i in others for j in others if i != j]
        against_each = mean(-log_sigmoid(row[label] - row[j]) for j in others)
        one_another = mean(-0.5 * log_sigmoid(row[i] - row[j]) for i, j in pairs) if bec else 0.0
        found.append(c + bdc * against_each + bec * one_another)
    return found


# -- terms of a batch -----------------------------------------------------------------------------


def mmce(logits, labels, width=0.4):
    c, a = tops(logits, labels)
    n = len(c)
    pairs = [(i, j) for i in range(n) for j in range(n)]
    return math.fsum((a[i] - c[i]) * (a[j] - c[j]) * math.exp(-abs(c[i] - c[j]) / width) for i, j in pairs) / n**2


def mmce_weighted(logits, labels, width=0.4, form="formula"):
    c, a = tops(logits, labels)
    right = [x for x, hit in zip(c, a, strict=True) if hit]
    wrong = [x for x, hit in zip(c, a, strict=True) if not hit]
    if not right or not wrong:
        return 0.0

    def kernel(x, y):
        return math.exp(-abs(x - y) / width)

    both_right = mean((1 - x) * (1 - y) * kernel(x, y) for x in right for y in right)
    both_wrong = mean(x * y * kernel(x, y) for x in wrong for y in wrong)
    mixed = mean((1 - x) * y * kernel(x, y) for x in right for y in wrong)
    if form == "code":
        both_right /= len(right) ** 2
        both_wrong /= len(wrong) ** 2
        mixed /= len(right) * len(wrong)
    return math.sqrt(both_right + both_wrong - 2 * mixed + 1e-10)


def dece(logits, labels, bins=15, temperature=0.01, slope=100.0):
    c, _ = tops(logits, labels)
    accuracy = soft_accuracy(logits, labels, slope)
    members = []
    for x in c:
        scores = [(j * x - math.fsum(edge / bins for edge in range(j))) / temperature for j in range(1, bins + 1)]
        soft = [share + 1e-6 for share in softmax(scores)]
        members.append([share / math.fsum(soft) for share in soft])
    total = 0.0
    for j in range(bins):
        mass = math.fsum(m[j] for m in members)
        conf = math.fsum(m[j] * x for m, x in zip(members, c, strict=True)) / mass
        acc = math.fsum(m[j] * x for m, x in zip(members, accuracy, strict=True)) / mass
        total += mass / len(c) * abs(acc - conf)
    return total


def sece(logits, labels, h=0.01, form="normalised", accuracy="soft", leave_one_out=False, slope=100.0):
    c, a = tops(logits, labels)
    pi = a if accuracy == "hard" else soft_accuracy(logits, labels, slope)
    gaps = []
    for i, x in enumerate(c):
        kernel = [math.exp(-((x - other) ** 2) / (2 * h**2)) for other in c]
        if form == "eq5":
            gaps.append(abs(math.fsum(pi[i] * value for value in kernel) - x))
            continue
        if leave_one_out:
            kernel[i] = 0.0
            if math.fsum(kernel) < 1e-12:
                kernel[i] = 1.0
        local = math.fsum(value * p for value, p in zip(kernel, pi, strict=True)) / math.fsum(kernel)
        gaps.append(abs(local - x))
    return mean(gaps)


def soft_binned_ece(logits, labels, p=2.0, bins=15, temperature=0.01):
    c, a = tops(logits, labels)
    members = [softmax([-((x - (j + 0.5) / bins) ** 2) / temperature for j in range(bins)]) for x in c]
    mass = [math.fsum(m[j] for m in members) for j in range(bins)]
    total = 0.0
    for j in range(bins):
        conf = math.fsum(m[j] * x for m, x in zip(members, c, strict=True)) / max(mass[j], 1e-5)
        acc = math.fsum(m[j] * x for m, x in zip(members, a, strict=True)) / max(mass[j], 1e-5)
        total += mass[j] / math.fsum(mass) * abs(conf - acc) ** p
    return total ** (1 / p)


def avuc(logits, labels, threshold=1.0):
    right_sure = right_unsure = wrong_sure = wrong_unsure = 0.0
    for row, label in zip(logits, labels, strict=True):
        c, a = confidence_and_hit(row, label)
        u = row_entropy(row)
        t = math.tanh(u)
        if a and u <= threshold:
            right_sure += c * (1 - t)
        elif a:
            right_unsure += c * t
        elif u <= threshold:
            wrong_sure += (1 - c) * (1 - t)
        else:
            wrong_unsure += (1 - c) * t
    return math.log(1 + (right_unsure + wrong_sure) / max(right_sure + wrong_unsure, 1e-10))


def sb_avuc(logits, labels, kappa=0.5, temperature=1.0):
    good = bad = 0.0
    for row, label in zip(logits, labels, strict=True):
        _, a = confidence_and_hit(row, label)
        u = row_entropy(row)
        part = u / math.log(len(row))
        q = sigmoid(math.log(part * (1 - kappa) / ((1 - part) * kappa)) / temperature)
        t = math.tanh(u)
        if a:
            good += (1 - q) * (1 - t)
            bad += q * t
        else:
            bad += (1 - q) * (1 - t)
            good += q * t
    return math.log(1 + bad / max(good, 1e-10))


def mdca(logits, labels):
    probs = [softmax(row) for row in logits]
    k = len(logits[0])
    return mean(abs(mean(p[j] for p in probs) - mean(float(y == j) for y in labels)) for j in range(k))


def dca(logits, labels):
    c, a = tops(logits, labels)
    return abs(mean(c) - mean(a))


def crl(logits, labels, counts, epoch, score="max"):
    """`counts`: in how many of `epoch` epochs each sample was right; here the batch is the whole training set."""
    scores = []
    for row in logits:
        p = sorted(softmax(row), reverse=True)
        by_entropy = -row_entropy(row) / math.log(len(row))
        scores.append({"max": p[0], "margin": p[0] - p[1], "entropy": by_entropy}[score])
    least = min(counts)
    past = [(count - least) / (epoch - least) if epoch > least else 0.0 for count in counts]
    losses = []
    for i in range(len(scores)):
        j = (i + 1) % len(scores)
        more, lead = past[i] - past[j], scores[i] - scores[j]
        sign = (more > 0) - (more < 0)
        losses.append(max(0.0, -sign * lead + abs(more)) if sign else 0.0)
    return mean(losses)


ROWS = [ce, lp_norm, erl, label_smoothing, focal, flsd, flsc, dual_focal, brier, margin, cpc]
TERMS = [mmce, mmce_weighted, dece, sece, soft_binned_ece, avuc, sb_avuc, mdca, dca, crl]
