"""`decide`: a threshold by cost, or one with a guarantee, from labelled rows; and `evaluate`, on held-out rows."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.json import plain
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import check_confidence
from calibrant.core.statistics.clustered_guarantee import counts_rows, rows_to_answer
from calibrant.core.statistics.error_guarantee import AnsweredRows
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import describe_task
from calibrant.deciding.cost_lines import cost_lines
from calibrant.deciding.costs import CostRule, as_percent, check_rule, cost_rule
from calibrant.deciding.decision import Aim, Decision
from calibrant.deciding.policy import HAND_OVER, Policy
from calibrant.deciding.results import AnsweredShare, AnsweredSummary, CostLine
from calibrant.measures import check_predictions
from calibrant.measuring.check import State

ERROR_RATES = (0.01, 0.02, 0.05, 0.1)  # at which the share that can be answered is told
FEW_ERRORS = 10  # costly rows below which a cost is known only roughly
DEAR = 0.5  # of the largest cost of a row
ONE_OF = "one of cost, max_error and min_precision"

CostLike = str | Mapping[str, float] | npt.ArrayLike | CostRule


def decide(
    p: Predictions,
    *,
    cost: CostLike | None = None,
    max_error: float | None = None,
    min_precision: float | None = None,
    confidence: float = 0.95,
    map: Map | None = None,
) -> Decision:
    """Choose a threshold by cost or by a guarantee, as a frozen `Decision` that applies itself to new scores.

    - `cost`: "fn=50,fp=1", also with "abstain=0.5"; "wrong=5,abstain=1"; or a matrix (true class, class chosen).
    - `max_error`: answer the rows that are sure enough, so that at most this share of the answers is wrong.
    - `min_precision`: call rows positive so that at least this share of them is.

    The two bounds hold with this `confidence`, over the draw of the rows. With a `map`, fitted on separate rows,
    scores are calibrated first. Weights count, and rows of one cluster may depend on each other in any way.

    >>> p = Predictions.binary([0.05, 0.2, 0.6, 0.04], [1, 0, 1, 0])
    >>> decide(p, cost="fn=9,fp=1").threshold
    0.1
    """
    check_predictions(p)
    aim, bound = _aim(cost, max_error, min_precision)
    check_confidence(confidence)
    _check_rows(p, aim)
    q = p if map is None else map.apply(p)
    seen = max(p.row_data.seen, map.fingerprint.share_seen(p) if map is not None and map.fingerprint else 0.0)
    used = _identity_map(p) if map is None else replace(map, fingerprint=None)
    decision = Decision(
        aim=aim, policy=Policy(acts="answer"), map=used, settings={}, words="", n=p.n, fingerprint=Fingerprint.of(p)
    )
    if cost is not None:
        if seen:
            warnings.warn(f"{_seen(seen)}: the costs on them are optimistic.", LeakWarning, stacklevel=2)
        return _by_cost(decision, q, cost, confidence, _shares(p, None if map is None else q, confidence))
    if seen:
        raise InputError(
            "guarantee", expected="rows that the map was not fitted on", got=_seen(seen), fix="give held-out rows"
        )
    return _with_guarantee(decision, q, bound, confidence, _shares(p, None if map is None else q, confidence))


# -- by cost ------------------------------------------------------------------------------------


def _by_cost(
    decision: Decision, q: Predictions, cost: CostLike, confidence: float, shares: tuple[AnsweredShare, ...]
) -> Decision:
    rule = check_rule(cost_rule(cost), q)
    if rule.fn is None and rule.abstain is None and rule.matrix is None:
        fix = "use wrong=5,abstain=1, or a matrix"
        raise InputError("cost", expected="what a wrong answer and handing over cost", got="a threshold", fix=fix)
    lines = cost_lines(rule, q, confidence)
    settings = {"fn": rule.fn, "fp": rule.fp, "abstain": rule.abstain, "confidence": confidence}
    settings |= {"wrong": rule.wrong} if rule.fn is None and rule.matrix is None else {}
    chosen = {name: value for name, value in settings.items() if value is not None}
    words = _cost_words(rule, lines, q, confidence)
    notes = _few_errors(rule, q)
    return replace(decision, policy=rule.policy, settings=chosen, words=words, costs=lines, shares=shares, notes=notes)


def _few_errors(rule: CostRule, q: Predictions) -> tuple[str, ...]:
    """A note on why the interval of a cost is wide, where the cost rests on a handful of expensive rows."""
    costs = rule.actual(q, rule.policy(q))
    dear = costs >= costs.max() * DEAR if costs.max() > 0 else np.zeros(q.n, dtype=bool)
    few, part = int(dear.sum()), float(costs[dear].sum() / max(costs.sum(), 1e-300))
    if few == 0 or few >= FEW_ERRORS:
        return ()
    rows = fmt.count(few, "row")
    return (f"{fmt.whole_percent(part)} of the cost comes from {rows}, so its interval is wide.",)


def _cost_words(rule: CostRule, lines: tuple[CostLine, ...], q: Predictions, confidence: float) -> str:
    own = lines[0]
    text = (
        f"{rule.words[0].upper()}{rule.words[1:]}. On these {fmt.count(q.n, 'row')} this costs {fmt.number(own.cost)} "
        f"per row ({fmt.level(confidence)} interval {fmt.number(own.low)} to {fmt.number(own.high)})"
    )
    if own.low <= own.expected <= own.high:
        return f"{text}; by the scores themselves {fmt.number(own.expected)} was expected, which agrees within noise."
    less = "less" if own.expected < own.low else "more"
    advice = "the scores are not calibrated for this: fit a map on separate rows and give it"
    return f"{text}; by the scores themselves {fmt.number(own.expected)} was expected, {less}: {advice}."


# -- with a guarantee -----------------------------------------------------------------------------


def _with_guarantee(
    decision: Decision, q: Predictions, bound: float, confidence: float, shares: tuple[AnsweredShare, ...]
) -> Decision:
    precision = decision.aim == "min_precision"
    most = 1 - bound if precision else bound
    answered = rows_to_answer(q, q.curve if precision else q.top_label, most, confidence)
    policy = Policy(acts="positive" if precision else "answer", threshold=answered.threshold)
    settings = {decision.aim: bound, "confidence": confidence}
    words = _guarantee_words(answered, policy, bound, confidence)
    return replace(
        decision,
        policy=policy,
        settings=settings,
        words=words,
        answered=_count_answers(policy, q, confidence),
        rows_needed=None if answered.threshold is not None else answered.rows_needed,
        shares=shares,
        notes=_of_clusters(q),
    )


def _of_clusters(q: Predictions) -> tuple[str, ...]:
    """Notes on the guarantee where rows are not independent, or have unequal weights."""
    if counts_rows(q):
        return ()
    if q.clusters is None:
        return ("The guarantee is for the error rate by weight.",)
    return (f"Rows come in {len(np.unique(q.clusters)):,} clusters, which the guarantee counts as wholes.",)


def _guarantee_words(answered: AnsweredRows, policy: Policy, bound: float, confidence: float) -> str:
    positive = policy.acts == "positive"
    goal = (
        f"a precision of {as_percent(bound)} or more" if positive else f"an error rate of {as_percent(bound)} or less"
    )
    called = "called positive" if positive else "answered"
    if answered.threshold is None:
        text = f"Not possible with these {fmt.count(answered.total, 'row')}: none can be {called} with {goal}"
        text += f" at {fmt.level(confidence)} confidence."
        if answered.rows_needed is None:
            return f"{text} More rows alone may not help: even the surest of these err too often."
        more = max(1, answered.rows_needed - answered.total)
        return f"{text} About {fmt.count(fmt.two_figures(more), 'more row')} would be needed."
    score, otherwise = ("P(positive)", "leave the rest") if positive else ("a confidence", "hand over the rest")
    verb = "Call rows positive from" if positive else "Answer rows with"
    share = answered.errors / answered.n
    share_words = f"{fmt.percent(1 - share)} of those positive" if positive else f"{fmt.percent(share)} of those wrong"
    return (
        f"{verb} {score} of {100 * answered.threshold:.4g} % or more and {otherwise}: "
        f"{fmt.percent(answered.share)} of these {fmt.count(answered.total, 'row')} are {called}, {share_words}. For "
        f"new rows like these, {goal} is guaranteed with {fmt.level(confidence)} confidence."
    )


def _count_answers(policy: Policy, q: Predictions, confidence: float) -> AnsweredSummary:
    """Count the answers of a policy with one threshold: by weight, with an interval of the error rate."""
    from calibrant.core.statistics.clustered_shares import rows_of_clusters
    from calibrant.core.statistics.shares import wilson

    chosen = policy(q)
    positive = policy.acts == "positive"
    acted, right = (chosen == 1, q.outcome) if positive else (chosen != HAND_OVER, q.correct)
    share, total = q.mean(acted), q.curve.total
    recall = q.mean(acted & right) / q.mean(right) if positive and right.any() else None
    if not share:
        nan = float("nan")
        return AnsweredSummary(share=0.0, n=0.0, error=nan, low=nan, high=nan, recall=recall)
    error = q.mean(acted & ~right) / share
    rows = share * q.n_effective
    if q.clusters is not None:
        weights = None if q.weights is None else q.weights[acted]
        wrong = (~right[acted]).astype(np.float64)
        rows = min(rows, float(rows_of_clusters(wrong, weights, q.clusters[acted])[0]))
    low, high = (float(end) for end in wilson(error, rows, confidence))
    return AnsweredSummary(share=share, n=share * total, error=error, low=low, high=high, recall=recall)


def _shares(p: Predictions, q: Predictions | None, confidence: float) -> tuple[AnsweredShare, ...]:
    """Shares that can be answered at several error rates: a map that keeps the order of confidences changes nothing."""

    def share(rows: Predictions, rate: float) -> float:
        return rows_to_answer(rows, rows.top_label, rate, confidence).share

    return tuple(
        AnsweredShare(max_error=rate, before=share(p, rate), after=None if q is None else share(q, rate))
        for rate in ERROR_RATES
    )


# -- judged on held-out rows ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Costs or answers of a decision on rows that it was not decided on."""

    n: int
    costs: tuple[CostLine, ...] = ()
    answered: AnsweredSummary | None = None
    outcome: State | None = None  # of the bound: inconclusive where noise can explain the excess
    words: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self))


def evaluate(decision: Decision, test: Predictions) -> Evaluation:
    """Apply a decision to held-out rows; `best in hindsight` stays that of the rows it was decided on."""
    decision.warn_of_leak(test)
    q = decision.calibrate(test)
    confidence = float(decision.settings["confidence"])
    if decision.aim == "cost":
        acts, best = decision.policy.acts, [line for line in decision.costs if line.choice == "hindsight"]
        hindsight = Policy(acts=acts, threshold=best[0].threshold, lower=best[0].lower) if best else None
        lines = cost_lines(_rule_of(decision), q, confidence, hindsight=hindsight)
        own, level = lines[0], fmt.level(confidence)
        ends = f"{level} interval {fmt.number(own.low)} to {fmt.number(own.high)}"
        words = f"On {fmt.count(q.n, 'held-out row')} this costs {fmt.number(own.cost)} per row ({ends})."
        return Evaluation(n=q.n, costs=lines, words=words)
    answered = _count_answers(decision.policy, q, confidence)
    most = 1 - decision.settings["min_precision"] if decision.aim == "min_precision" else decision.settings["max_error"]
    if not answered.share:
        return Evaluation(n=q.n, answered=answered, words=f"Of {fmt.count(q.n, 'held-out row')} none is answered.")
    holds = answered.error <= most
    outcome: State = "holds" if holds else "inconclusive" if answered.low <= most else "violated"
    words_of = {
        "holds": "the bound holds",
        "inconclusive": "above the bound, within noise",
        "violated": "the bound is violated",
    }
    called, event = ("called positive", "positive") if decision.aim == "min_precision" else ("answered", "wrong")
    rate, low, high = answered.error, answered.low, answered.high
    if event == "positive":
        rate, low, high = 1 - rate, 1 - high, 1 - low
    words = (
        f"Of {fmt.count(q.n, 'held-out row')} {fmt.percent(answered.share)} are {called}, and {fmt.percent(rate)} of "
        f"those are {event} ({fmt.level(confidence)} interval {fmt.percent(low)} to {fmt.percent(high)}): "
        f"{words_of[outcome]}."
    )
    return Evaluation(n=q.n, answered=answered, outcome=outcome, words=words)


def _rule_of(decision: Decision) -> CostRule:
    """The cost rule that a decision was made by."""
    if decision.policy.matrix is not None:
        return CostRule(matrix=decision.policy.matrix)
    numbers = {name: value for name, value in decision.settings.items() if name in ("fn", "fp", "wrong", "abstain")}
    return replace(CostRule(**numbers), threshold=decision.policy.threshold, lower=decision.policy.lower)


# -- what can be asked ----------------------------------------------------------------------------


def _aim(cost: object, max_error: float | None, min_precision: float | None) -> tuple[Aim, float]:
    aims = {"cost": cost, "max_error": max_error, "min_precision": min_precision}
    names = [name for name, value in aims.items() if value is not None]
    if len(names) != 1:
        raise InputError(
            "decide", expected=ONE_OF, got=fmt.list_words(names) if names else "none", fix=f"give {ONE_OF}"
        )
    for name, value in (("max_error", max_error), ("min_precision", min_precision)):
        if value is not None and not 0 < value < 1:
            fix = "use 0.02 for 2 %" if name == "max_error" else "use 0.9 for 90 %"
            raise InputError(name, expected="a share strictly between 0 and 1", got=f"{value:g}", fix=fix)
    aim: Aim = "cost" if cost is not None else "max_error" if max_error is not None else "min_precision"
    return aim, float(max_error if max_error is not None else min_precision or 0.0)


def _check_rows(p: Predictions, aim: Aim) -> None:
    if aim == "min_precision" and p.task != "binary":
        fix = "use max_error, which every task has"
        raise InputError("min_precision", expected=describe_task("binary"), got=describe_task(p.task), fix=fix)
    if p.task == "binary" and len(np.unique(p.labels)) == 1:
        only = "positive" if p.labels[0] else "negative"
        raise InputError(
            "labels", expected="positive and negative rows", got=f"{only} ones only", fix="add rows of the other class"
        )


def _seen(share: float) -> str:
    return f"the map was fitted on about {fmt.whole_percent(share)} of these rows"


def _identity_map(p: Predictions) -> Map:
    """A map without steps, for scores like these."""
    return Map(calibrator="identity", k=p.k, steps=(), keeps_argmax=True, task=p.task, score_type=p.score_type)
