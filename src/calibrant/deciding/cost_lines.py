"""Costs of a decision on rows, beside the best threshold in hindsight and decisions without a model."""

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.mean_of_levels import mean_of_levels
from calibrant.deciding.costs import CostRule, as_percent
from calibrant.deciding.policy import HAND_OVER, Policy
from calibrant.deciding.results import Choice, CostLine


def cost_lines(
    rule: CostRule, p: Predictions, confidence: float = 0.95, *, hindsight: Policy | None = None
) -> tuple[CostLine, ...]:
    """Costs per row of the rule's decision (first) and of others; intervals count weights, and clusters as wholes.

    The best threshold in hindsight is that of these rows, so its cost is optimistic; `hindsight` gives that of others.
    """
    chosen = rule.policy(p)
    lines = []
    for choice, label, (threshold, lower), decided in _rivals(rule, p, chosen, hindsight):
        cost, more = mean_cost(rule, p, decided), mean_cost(rule, p, decided, less=chosen)
        (low, high), (more_low, more_high) = cost.limits(confidence), more.limits(confidence)
        lines.append(
            CostLine(
                choice=choice,
                label=label,
                threshold=threshold,
                lower=lower,
                acted=p.mean(decided == 1 if rule.fn is not None else decided != HAND_OVER),
                handed_over=p.mean(decided == HAND_OVER),
                expected=p.mean(rule.expected(p, decided)),
                cost=cost.value,
                low=low,
                high=high,
                more=more.value,
                more_low=more_low,
                more_high=more_high,
            )
        )
    return tuple(lines)


def mean_cost(rule: CostRule, p: Predictions, decided: Ints, *, less: Ints | None = None) -> Estimate:
    """Mean cost per row of decisions, or how much more they cost than other decisions on the same rows.

    Costs that no row happened to bring count in the interval: a miss that was not seen is not impossible.
    """
    if less is None:
        possible = rule.possible(np.unique(decided))
        return mean_of_levels(p, rule.actual(p, decided), np.unique(possible))
    pairs = np.unique((decided + 1) * (p.k + 2) + less + 1)
    first, second = pairs // (p.k + 2) - 1, pairs % (p.k + 2) - 1
    possible = rule.possible(first) - rule.possible(second)
    return mean_of_levels(p, rule.actual(p, decided) - rule.actual(p, less), np.unique(possible))


Thresholds = tuple[float | None, float | None]
Rival = tuple[Choice, str, Thresholds, Ints]
NO_THRESHOLD: Thresholds = (None, None)


def _rivals(rule: CostRule, p: Predictions, chosen: Ints, hindsight: Policy | None) -> list[Rival]:
    """The decision of the rule, and the decisions it is compared with, on the same rows."""
    constant = np.ones(p.n, dtype=np.int64)
    if rule.matrix is not None:
        totals = np.array([p.mean(column) for column in rule.matrix[p.labels].T])
        cheapest = int(totals[: p.k].argmin())
        rivals: list[Rival] = [
            ("chosen", "least expected cost", NO_THRESHOLD, chosen),
            ("likeliest", "the likeliest class", NO_THRESHOLD, p.predicted),
            (
                "one_class",
                f"always class {p.classes[cheapest] if p.classes else cheapest}",
                NO_THRESHOLD,
                cheapest * constant,
            ),
        ]
        over = rule.matrix.shape[1] > p.k
        return [*rivals, ("hand_over_all", "hand over all", NO_THRESHOLD, HAND_OVER * constant)] if over else rivals
    best = _best_policy(rule, p) if hindsight is None else hindsight
    bar = f"threshold {as_percent(rule.threshold or 0.0)}"
    rivals = [
        ("chosen", bar, (rule.threshold, rule.lower), chosen),
        ("hindsight", "best in hindsight", (best.threshold, best.lower), best(p)),
    ]
    if rule.fn is not None:
        rivals += [("always", "always act", (0.0, None), constant), ("never", "never act", NO_THRESHOLD, 0 * constant)]
    else:
        answer = constant if p.task == "confidence" else p.predicted
        rivals += [("answer_all", "answer all", (0.0, None), answer)]
    if rule.abstain is not None:
        rivals += [("hand_over_all", "hand over all", NO_THRESHOLD, HAND_OVER * constant)]
    return rivals


def _best_policy(rule: CostRule, p: Predictions) -> Policy:
    """The thresholds of least actual cost on these rows."""
    curve = p.curve if rule.fn is not None else p.top_label
    positives, negatives = curve.groups
    positives_below, negatives_below = (np.concatenate([[0.0], np.cumsum(counts)]) for counts in (positives, negatives))
    if rule.fn is None or rule.fp is None:  # below: handed over; above: answered
        costs = (rule.abstain or 0.0) * (positives_below + negatives_below) + rule.wrong * (
            negatives_below[-1] - negatives_below
        )
        return Policy(acts="answer", threshold=_score_at(curve, int(costs.argmin())))
    left, called = rule.fn * positives_below, rule.fp * (negatives_below[-1] - negatives_below)
    if rule.abstain is None:
        return Policy(acts="positive", threshold=_score_at(curve, int((left + called).argmin())))
    between = rule.abstain * (positives_below + negatives_below)
    first = _running_argmin(left - between)
    upper = int(((left - between)[first] + between + called).argmin())
    threshold = _score_at(curve, upper)
    lower = _score_at(curve, int(first[upper])) if first[upper] < upper else None
    return Policy(acts="positive", threshold=threshold, lower=lower)


def _score_at(curve: Curve, place: int) -> float | None:
    """The score of a group of equal scores; None behind the last, which no row reaches."""
    return None if place == len(curve.group_ends) else float(curve.scores[curve.group_ends[place] - 1])


def _running_argmin(values: Array) -> Ints:
    """The index of the least value up to each place.

    >>> _running_argmin(np.array([2.0, 1.0, 3.0, 0.0]))
    array([0, 1, 1, 3])
    """
    lowest = np.minimum.accumulate(values)
    is_new = np.concatenate([[True], values[1:] < lowest[:-1]])
    return np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
