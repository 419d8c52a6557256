"""Every measure a second time: slow, obvious, straight from docs/methods/measures.md, sharing no code with calibrant.

Every function takes probabilities (n rows of k numbers) and labels (n integers). Names are the names of the measures.
"""

import math
from itertools import pairwise

import numpy as np

# -- from probabilities to pairs (score, hit) -----------------------------------------------------


def softmax(logits):
    rows = []
    for z in np.asarray(logits, dtype=float).tolist():
        powers = [math.exp(value - max(z)) for value in z]
        rows.append([power / math.fsum(powers) for power in powers])
    return rows


def top_label(probs, labels):
    """(confidence, 1 if correct else 0) of every row; the lowest index wins a tie."""
    pairs = []
    for row, label in zip(probs, labels, strict=True):
        row = list(row)
        pairs.append((float(max(row)), float(row.index(max(row)) == label)))
    return pairs


def one_class(probs, labels, k):
    """(probability of class k, 1 if it is the label else 0) of every row."""
    return [(float(row[k]), float(label == k)) for row, label in zip(probs, labels, strict=True)]


def tie_groups(pairs):
    """Lists of pairs with equal score, ascending."""
    groups = {}
    for score, hit in pairs:
        groups.setdefault(score, []).append((score, hit))
    return [groups[score] for score in sorted(groups)]


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


# -- bins: a list of lists of pairs ---------------------------------------------------------------


def split_by_edges(pairs, edges, closed):
    """One bin between each two edges; the outer bins take everything beyond the ends."""
    bins = [[] for _ in edges[1:]]
    for score, hit in pairs:
        if closed == "right":
            index = sum(edge < score for edge in edges[1:-1])
        else:
            index = sum(edge <= score for edge in edges[1:-1])
        bins[index].append((score, hit))
    return bins


def chunks(items, count):
    """`count` nearly equal parts of a list; the first len mod count get one more."""
    size, more = divmod(len(items), count)
    parts, start = [], 0
    for m in range(count):
        stop = start + size + (1 if m < more else 0)
        parts.append(items[start:stop])
        start = stop
    return parts


def make_bins(pairs, count, scheme, closed, mass_rule):
    if scheme == "width":
        return split_by_edges(pairs, [m / count for m in range(count + 1)], closed)
    scores = sorted(score for score, _ in pairs)
    n = len(scores)
    if mass_rule == "sort":
        # A cut through tied scores must not depend on the order of rows: every tied hit is their mean hit.
        shared = [(score, mean(hit for _, hit in group)) for group in tie_groups(pairs) for score, _ in group]
        return chunks(shared, count)
    if mass_rule == "midpoint":
        parts = [part for part in chunks(scores, count) if part]
        inner = {(left[-1] + right[0]) / 2 for left, right in pairwise(parts)}
        return split_by_edges(pairs, [0.0, *sorted(inner), 1.0], closed)
    if mass_rule == "stride":
        inner = [scores[m * (n // count)] for m in range(1, count)]
        return split_by_edges(pairs, [0.0, *inner, 1.0], closed)
    edges = np.interp(np.linspace(0, n, count + 1), np.arange(n), scores).tolist()
    bins = []
    for low, high in pairwise(edges):
        if closed == "right":
            bins.append([(c, a) for c, a in pairs if low < c <= high])
        else:
            bins.append([(c, a) for c, a in pairs if low <= c < high])
    return bins


def confidence(members):
    return mean(score for score, _ in members)


def accuracy_in(members):
    return mean(hit for _, hit in members)


def filled(bins):
    return [members for members in bins if members]


def abs_gap(members):
    return abs(confidence(members) - accuracy_in(members))


def power_sum(pairs, count, scheme, closed, mass_rule, norm):
    """Sum over bins of share times |confidence - accuracy|^norm."""
    bins = filled(make_bins(pairs, count, scheme, closed, mass_rule))
    return math.fsum(len(members) / len(pairs) * abs_gap(members) ** norm for members in bins)


# -- 2.2 bin-based --------------------------------------------------------------------------------


def ece(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort", norm=1.0):
    return power_sum(top_label(probs, labels), bins, scheme, closed, mass_rule, norm) ** (1 / norm)


def rmsce(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort"):
    return math.sqrt(power_sum(top_label(probs, labels), bins, scheme, closed, mass_rule, 2))


def avgce(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort"):
    return mean(
        abs_gap(members) for members in filled(make_bins(top_label(probs, labels), bins, scheme, closed, mass_rule))
    )


def mce(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort", min_count=1):
    full = filled(make_bins(top_label(probs, labels), bins, scheme, closed, mass_rule))
    return max([abs_gap(members) for members in full if len(members) >= min_count], default=0.0)


def debiased(probs, labels, bins=15, scheme="mass", closed="right", mass_rule="sort"):
    pairs = top_label(probs, labels)
    total = 0.0
    for members in make_bins(pairs, bins, scheme, closed, mass_rule):
        if len(members) >= 2:
            a = accuracy_in(members)
            noise = a * (1 - a) / (len(members) - 1)
            total += len(members) / len(pairs) * (abs_gap(members) ** 2 - noise)
    return math.sqrt(max(total, 0.0))


def overconfidence(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort"):
    pairs = top_label(probs, labels)
    total = 0.0
    for members in filled(make_bins(pairs, bins, scheme, closed, mass_rule)):
        c, a = confidence(members), accuracy_in(members)
        total += len(members) / len(pairs) * c * max(c - a, 0.0)
    return total


def gap(probs, labels):
    pairs = top_label(probs, labels)
    return confidence(pairs) - accuracy_in(pairs)


def classwise(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort", norm=1.0):
    k = len(probs[0])
    powers = [power_sum(one_class(probs, labels, c), bins, scheme, closed, mass_rule, norm) for c in range(k)]
    return mean(powers) ** (1 / norm)


def ace_nixon(probs, labels, bins=15, scheme="mass", closed="right", mass_rule="sort"):
    return tace(probs, labels, bins, scheme, closed, mass_rule, threshold=-1.0)


def tace(probs, labels, bins=15, scheme="mass", closed="right", mass_rule="sort", threshold=0.01):
    k = len(probs[0])
    total = 0.0
    for c in range(k):
        pairs = [(p, y) for p, y in one_class(probs, labels, c) if p > threshold]
        if pairs:
            total += sum(abs_gap(members) for members in filled(make_bins(pairs, bins, scheme, closed, mass_rule)))
    return total / (k * bins)


# -- 2.3 bin-free ---------------------------------------------------------------------------------


def ks(probs, labels):
    pairs = top_label(probs, labels)
    running, largest = 0.0, 0.0
    for group in tie_groups(pairs):
        running += sum(c - a for c, a in group)
        largest = max(largest, abs(running) / len(pairs))
    return largest


def kde(probs, labels, norm=1.0):
    """Direct kernel sums where calibrant bins linearly and uses an FFT.

    As in docs/methods/measures.md#kde: with fewer than two correct samples the spread is that of all; the bandwidth
    is at least 0.001; with norm d the gap is taken to the power d, without a root.
    """
    pairs = top_label(probs, labels)
    scores = [c for c, _ in pairs]
    right = [c for c, a in pairs if a]
    b = kde_bandwidth(probs, labels)
    t = np.linspace(-0.6, 1.6, 2**14)
    t = t[(t > 0) & (t < 1)]
    f, f_right = mirrored_density(scores, b, t), mirrored_density(right, b, t)
    integrand, last = [], 0.0
    for x, everything, correct in zip(t.tolist(), f.tolist(), f_right.tolist(), strict=True):
        if max(everything, correct) > 1e-6:
            accuracy_here = min(len(right) / len(scores) * correct / everything, 1.0) if everything > 0 else 1.0
            last = abs(x - accuracy_here) ** norm * everything
        integrand.append(last)
    # trapezoid: the density is zero outside (0, 1), so the cells at both ends are half empty
    step = 2.2 / (2**14 - 1)
    return step * (sum(integrand) - (integrand[0] + integrand[-1]) / 2) / np.trapezoid(f, dx=step)


def kde_bandwidth(probs, labels):
    pairs = top_label(probs, labels)
    right = [c for c, a in pairs if a]
    spread = np.std(right if len(right) > 1 else [c for c, _ in pairs])
    return max(float(spread) * (2 * len(pairs)) ** (-1 / 5), 0.001)


def mirrored_density(values, b, t):
    total = np.zeros(len(t))
    for value in values:
        for centre in (value, -value if value < 0.5 else 2 - value):
            u = (t - centre) / (3 * b)
            total += np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3, 0.0) / (3 * b)
    return 2 * total / (2 * len(values)) if values else total


def mmce(probs, labels, width=0.4):
    c, a = np.array(top_label(probs, labels)).T
    r = a - c
    kernel = np.exp(-np.abs(c[:, None] - c[None, :]) / width)
    return math.sqrt(max(r @ kernel @ r, 0.0)) / len(c)


def smooth(probs, labels):
    """Bisection for the smallest sigma whose error is at most sigma."""
    low, high = 0.001, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if smooth_error(probs, labels, middle) <= middle:
            high = middle
        else:
            low = middle
    return smooth_error(probs, labels, high)


def smooth_error(probs, labels, sigma):
    """Integral of |(1/n) sum of (c - a) K(t, c)|, K a Gaussian with its mirror images behind 0 and 1."""
    c, a = np.array(top_label(probs, labels)).T
    points = int(max(4000, 20 / sigma))
    t = (np.arange(points) + 0.5) / points
    field = np.zeros(points)
    sides = math.ceil((10 * sigma + 1) / 2)  # images more than ten sigma away are nothing
    for score, residual in zip(c, c - a, strict=True):
        for around in range(-sides, sides + 1):
            for image in (2 * around + score, 2 * around - score):
                if -10 * sigma < image < 1 + 10 * sigma:
                    field += residual * np.exp(-0.5 * ((t - image) / sigma) ** 2)
    return float(np.abs(field).mean() / (len(c) * sigma * math.sqrt(2 * math.pi)))


def sece(probs, labels, h=0.01, form="normalised", leave_one_out=False):
    c, a = np.array(top_label(probs, labels)).T
    kernel = np.exp(-((c[:, None] - c[None, :]) ** 2) / (2 * h**2))
    if form == "eq5":
        return mean(abs(a[i] * kernel[i].sum() - c[i]) for i in range(len(c)))
    values = []
    for i in range(len(c)):
        weights = kernel[i].copy()
        if leave_one_out:
            weights[i] = 0.0
            if weights.sum() < 1e-12:
                weights[i] = 1.0
        values.append(abs(weights @ a / weights.sum() - c[i]))
    return mean(values)


def nll(probs, labels, floor=1e-12):
    return mean(-math.log(max(row[label], floor)) for row, label in zip(probs, labels, strict=True))


def brier(probs, labels, form="sum"):
    if form == "top":
        return mean((c - a) ** 2 for c, a in top_label(probs, labels))
    total = mean(
        math.fsum((p - (k == label)) ** 2 for k, p in enumerate(row)) for row, label in zip(probs, labels, strict=True)
    )
    return total / {"sum": 1, "half": 2, "mean_k": len(probs[0])}[form]


def entropy(probs, labels):
    return mean(-math.fsum(p * math.log(p) for p in row if p > 0) for row in probs)


def accuracy(probs, labels):
    return accuracy_in(top_label(probs, labels))


def error(probs, labels):
    return 1 - accuracy(probs, labels)


# -- 4.3 and 6.22 decompositions ------------------------------------------------------------------


def reliability(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort"):
    return power_sum(top_label(probs, labels), bins, scheme, closed, mass_rule, 2)


def resolution(probs, labels, bins=15, scheme="width", closed="right", mass_rule="sort"):
    pairs = top_label(probs, labels)
    full = filled(make_bins(pairs, bins, scheme, closed, mass_rule))
    kept = [pair for members in full for pair in members]
    return math.fsum(len(members) / len(pairs) * (accuracy_in(members) - accuracy_in(kept)) ** 2 for members in full)


def uncertainty(probs, labels):
    rate = accuracy(probs, labels)
    return rate * (1 - rate)


def refinement(probs, labels, loss="nll", by="temperature", folds=5):
    """The loss of rows recalibrated by a map fitted on the other folds, mixed with 1 / (n + 1) of uniform.

    Rows are dealt to folds in the order of confidence, of the true class's probability, of label.
    """
    probs, labels = np.asarray(probs, dtype=float), np.asarray(labels)
    n, k = probs.shape
    order = sorted(range(n), key=lambda i: (probs[i].max(), probs[i][labels[i]], labels[i]))
    repaired = np.empty((n, k))
    for fold in range(folds):
        inside = [i for place, i in enumerate(order) if place % folds == fold]
        outside = [i for place, i in enumerate(order) if place % folds != fold]
        fit = {"temperature": tempered, "isotonic": isotonic_per_class}[by]
        share = 1 / (len(outside) + 1)
        repaired[inside] = (1 - share) * fit(probs[outside], labels[outside], probs[inside]) + share / k
    return {"nll": nll, "brier": brier}[loss](repaired.tolist(), labels.tolist())


def calibration(probs, labels, loss="nll", by="temperature", folds=5):
    return {"nll": nll, "brier": brier}[loss](probs, labels) - refinement(probs, labels, loss, by, folds)


def tempered(fit_on, labels, probs):
    """Bisection on the derivative of the NLL in the inverse temperature: mean of expected minus true logit."""
    z = np.log(np.maximum(fit_on, 1e-12))
    low, high = math.log(1e-4), math.log(1e4)
    for _ in range(100):
        middle = (low + high) / 2
        q = np.array(softmax(math.exp(middle) * z))
        slope = sum(q[i] @ z[i] - z[i][label] for i, label in enumerate(labels))
        low, high = (middle, high) if slope < 0 else (low, middle)
    return np.array(softmax(math.exp(low) * np.log(np.maximum(probs, 1e-12))))


def isotonic_per_class(fit_on, labels, probs):
    repaired = np.empty(probs.shape)
    for c in range(probs.shape[1]):
        x, y = pool_adjacent(one_class(fit_on, labels, c))
        repaired[:, c] = np.interp(probs[:, c], x, y)
    for row in repaired:
        row[:] = row / row.sum() if row.sum() > 0 else 1 / len(row)
    return repaired


def pool_adjacent(pairs):
    """Neighbouring blocks merge while the left one is higher."""
    blocks = []
    for group in tie_groups(pairs):
        blocks.append([group[0][0:1], [hit for _, hit in group]])
        while len(blocks) > 1 and mean(blocks[-2][1]) >= mean(blocks[-1][1]):
            x, hits = blocks.pop()
            blocks[-1] = [blocks[-1][0] + x, blocks[-1][1] + hits]
    return [x for block in blocks for x in block[0]], [mean(block[1]) for block in blocks for _ in block[0]]


# -- 4.1 refinement -------------------------------------------------------------------------------


def right_and_wrong(probs, labels):
    pairs = top_label(probs, labels)
    return [c for c, a in pairs if a], [c for c, a in pairs if not a]


def auroc_correct(probs, labels):
    right, wrong = right_and_wrong(probs, labels)
    if not right or not wrong:
        return math.nan
    won = sum(1.0 if good > bad else 0.5 if good == bad else 0.0 for good in right for bad in wrong)
    return won / (len(right) * len(wrong))


def mean_precision(positives, negatives):
    """Scores of both; a higher score means positive."""
    if not positives:
        return math.nan
    total, recall_before = 0.0, 0.0
    for threshold in sorted({*positives, *negatives}, reverse=True):
        above = sum(score >= threshold for score in positives)
        false = sum(score >= threshold for score in negatives)
        recall, precision = above / len(positives), above / (above + false)
        total += (recall - recall_before) * precision
        recall_before = recall
    return total


def roc_auc(probs, labels):
    """Of two classes, the second is positive."""
    pairs = one_class(probs, labels, 1)
    wanted, others = ([s for s, hit in pairs if hit == kind] for kind in (1.0, 0.0))
    if not wanted or not others:
        return math.nan
    return mean((a > b) + (a == b) / 2 for a in wanted for b in others)


def average_precision(probs, labels):
    pairs = one_class(probs, labels, 1)
    wanted, others = ([s for s, hit in pairs if hit == kind] for kind in (1.0, 0.0))
    return mean_precision(wanted, others) if wanted and others else math.nan


def aupr_success(probs, labels):
    return mean_precision(*right_and_wrong(probs, labels))


def aupr_error(probs, labels):
    right, wrong = right_and_wrong(probs, labels)
    return mean_precision([-c for c in wrong], [-c for c in right])


def fpr95(probs, labels, tpr=0.95):
    right, wrong = right_and_wrong(probs, labels)
    if not right or not wrong:
        return math.nan
    for threshold in sorted({*right, *wrong}, reverse=True):
        kept = sum(score >= threshold for score in right)
        if kept / len(right) >= tpr - 1e-12:
            return sum(score >= threshold for score in wrong) / len(wrong)
    raise AssertionError("the lowest threshold keeps everything")


def aurc(probs, labels):
    """The risk at the end of each tie group stands for every coverage inside the group."""
    pairs = top_label(probs, labels)
    risks, seen, wrong = [], 0, 0.0
    for group in reversed(tie_groups(pairs)):
        seen += len(group)
        wrong += sum(1 - a for _, a in group)
        risks += [wrong / seen] * len(group)
    return mean(risks)


def eaurc(probs, labels):
    e = error(probs, labels)
    best = e + (1 - e) * math.log(1 - e) if e < 1 else 1.0
    return aurc(probs, labels) - best
