"""The rule that chooses a calibrator: from the losses of rows to a winner and its reasons.

`choose`, `fit --with auto` and the report all use it, on cross-fitted losses of the rows that calibrators are fitted
on. The effect of a calibrator on held-out rows is given by the same intervals.

In this order:

1. Where all outcomes are alike there is nothing to fit: predictions stay uncalibrated.
2. With `keep_argmax`, only calibrators that cannot change a prediction take part.
3. A calibrator may win if its loss is significantly lower than that of the uncalibrated predictions: the 95 % interval
   of the difference, by a paired bootstrap, excludes zero; or the labels are at least 100 times as likely under it,
   each row by a map that was not fitted on it. (The second rule sees what resamples of few rows may miss, such as
   positives with a score of 0. Of calibrated predictions it seldom holds: docs/repair.md has the figures.)
4. If none may win, predictions stay uncalibrated. Except binary scores of exactly 0 or 1, as votes of a forest are: one
   error among later rows would cost without bound, so a calibrator that fits P(positive) and gives no 0 or 1 wins,
   unless it is significantly worse.
5. Of those that may win, the ones whose mean loss is within one standard error of the lowest, and under which the
   labels are not 100 times less likely, count as equally good. The simplest of them wins.
6. Of equally simple ones: for binary predictions those that fit P(positive) itself, so that its mean is the base rate,
   and of them the one with the lowest loss (where scores are 0 or 1, first one that does not take their logit);
   otherwise the first in the list.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, log
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Integers
from calibrant.core.cached_property import cached_property
from calibrant.core.json import NOT_IN_JSON
from calibrant.core.statistics.bootstrap import resample_counts
from calibrant.core.statistics.estimate import Draws, Estimate, Normal
from calibrant.core.text import number_format as fmt

CONFIDENCE = 0.95
RESAMPLES = 200
LIKELIER = log(100)
KEEP_ARGMAX = False  # the default of `choose`, `fit --with auto` and the report
UNCALIBRATED = "identity"
THESE, FITTING, PART = "these {}", "the {} of the fitting set", "{} drawn at random"  # the rows that decided, in words
TOO_MANY = 100  # times the rows there are: a difference that takes more to show does not matter

Significant = Literal["better", "worse", "neither"]
Outcomes = Literal["differ", "all right", "all wrong", "all positive", "all negative"]
ALIKE: dict[Outcomes, str] = {
    "all right": "every prediction is right",
    "all wrong": "every prediction is wrong",
    "all positive": "every row is positive",
    "all negative": "every row is negative",
}


@dataclass(frozen=True, kw_only=True)
class CandidateLosses:
    """The losses of one calibrator on the rows it is judged on, and the facts that the rule uses."""

    calibrator: str
    losses: Array  # (n,)
    complexity: int
    keeps_argmax: bool
    fits_positives: bool = False  # of binary predictions: the mean of P(positive) is fitted too
    weights: Array | None = None  # (n,) how many rows each is worth
    clusters: Integers | None = None  # (n,) 0, 1, ...: rows that came together
    certain: bool = False  # of binary predictions: some scores are 0 or 1, so that one error costs without bound
    of_raw_score: bool = False  # takes scores as they are: those of 0 and 1 have no logit
    outcomes: Outcomes = "differ"
    absent: tuple[int, ...] = ()  # classes without a row

    @cached_property
    def mean(self) -> float:
        return _mean(self.losses, self.weights)

    def ahead_of(self, other: "CandidateLosses") -> tuple[float, float]:
        """How much lower its mean loss is than the other's, and the standard error of that difference."""
        gain = other.losses - self.losses
        mean = _mean(gain, self.weights)
        w = np.ones(len(gain)) if self.weights is None else self.weights
        apart = w * (gain - mean)
        units = apart if self.clusters is None else np.bincount(self.clusters, apart)
        return mean, float(np.sqrt(units @ units) / w.sum())

    def likelier_than(self, other: "CandidateLosses") -> float:
        """Logarithm of the likelihood ratio of the labels under it and under the other.

        Rows that came together count as their mean, and shares of rows not more than one row: so the ratio is not
        further from 1 than rows that say something of their own would take it.
        """
        gain = other.losses - self.losses
        if self.weights is not None:
            whole = np.array_equal(self.weights, np.round(self.weights))
            gain = gain * (self.weights if whole else self.weights / max(1.0, self.weights.max()))
        if self.clusters is not None:
            gain = np.bincount(self.clusters, gain) / np.bincount(self.clusters)
        return float(gain.sum())


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Mean loss (NLL) of one calibrator, and the difference from no calibration with a 95 % interval."""

    calibrator: str
    nll: float
    difference: float
    low: float
    high: float
    significant: Significant  # better or worse only where the interval excludes zero
    keeps_argmax: bool
    likelier: float = 0.0  # logarithm of how many times as likely the labels are under it

    @property
    def may_win(self) -> bool:
        return self.significant == "better" or (self.difference < 0 and self.likelier >= LIKELIER)


@dataclass(frozen=True)
class Rival:
    """The nearest other candidate, where it does not differ significantly from the chosen one."""

    calibrator: str
    rows: int  # in all, at which the difference would be significant


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """The winner and its reasons. `otherwise` wins with the opposite `keep_argmax`."""

    chosen: str
    otherwise: str
    keep_argmax: bool
    candidates: tuple[Candidate, ...]
    rival: Rival | None
    n: int
    rows: str = field(default=THESE, metadata=NOT_IN_JSON)
    outcomes: Outcomes = "differ"
    absent: tuple[int, ...] = ()  # classes without a row

    def of(self, calibrator: str) -> Candidate:
        return next(c for c in self.candidates if c.calibrator == calibrator)

    @property
    def words(self) -> str:
        if self.outcomes != "differ":
            return self.choice_words
        parts = (self.choice_words, self.option_words, self.rival_words, self.absent_words)
        return " ".join(part for part in parts if part)

    @property
    def choice_words(self) -> str:
        """The choice and its reason, in words."""
        where = "" if self.rows == THESE else f" of {self._rows}"
        if self.outcomes != "differ":
            return f"No calibration: {ALIKE[self.outcomes]}, so there is nothing to fit."
        if self.chosen != UNCALIBRATED:
            c, change = self.of(self.chosen), _change(self.of(self.chosen), self.of(UNCALIBRATED))
            if c.significant == "better":
                return f"Use {c.calibrator}: it lowers the loss{where}, {change}."
            if c.may_win:
                return f"Use {c.calibrator}: the labels{where} are far likelier under it, {change}."
            return f"Use {c.calibrator}: scores of 0 and 1 leave no room for error, and one error is enough; {change}."
        others = [
            c for c in self.candidates if c.calibrator != UNCALIBRATED and (c.keeps_argmax or not self.keep_argmax)
        ]
        if not others:
            return "No calibration: there was no calibrator to try."
        nearest = min(others, key=lambda c: c.nll)
        return (
            f"No calibration: no calibrator has a significantly lower loss{where}. The nearest is "
            f"{nearest.calibrator}, {_change(nearest, self.of(UNCALIBRATED))}."
        )

    @property
    def option_words(self) -> str:
        """Whether predictions were allowed to change, and what the other option would choose."""
        used = (
            "Only calibrators that keep every prediction took part"
            if self.keep_argmax
            else "Calibrators that may change predictions took part"
        )
        if all(c.keeps_argmax for c in self.candidates):  # the other option had nothing else to choose from
            return f"{used}." if self.keep_argmax else ""
        other = "if predictions may change" if self.keep_argmax else "if every prediction must stay"
        if self.otherwise == self.chosen:
            return f"{used}; {other}, the choice is the same."
        name = "no calibration" if self.otherwise == UNCALIBRATED else self.otherwise
        return f"{used}; {other}, the choice is {name} (NLL {fmt.number(self.of(self.otherwise).nll)})."

    @property
    def rival_words(self) -> str:
        """A sentence on the candidate that is not significantly different, and how many rows would tell."""
        if self.rival is None:
            return ""
        pair = " and ".join("no calibration" if c == UNCALIBRATED else c for c in (self.chosen, self.rival.calibrator))
        if self.rival.rows > TOO_MANY * self.n:
            return f"Between {pair} {self._rows} show no difference that matters."
        more = fmt.count(max(fmt.two_figures(self.rival.rows) - self.n, 1))
        return f"Between {pair} {self._rows} are inconclusive; about {more} more would decide."

    @property
    def absent_words(self) -> str:
        """A sentence on the classes without a row, of which nothing is known."""
        if not self.absent:
            return ""
        verb = "has" if len(self.absent) == 1 else "have"
        return f"{fmt.sentence(fmt.name_classes(self.absent))} {verb} no row: nothing is learned about them."

    @property
    def _rows(self) -> str:
        return self.rows.format(fmt.count(self.n, "row"))


def decide(
    judged: Sequence[CandidateLosses],
    *,
    keep_argmax: bool = KEEP_ARGMAX,
    resamples: int = RESAMPLES,
    seed: int = 0,
    rows: str = THESE,
) -> Ruling:
    """Choose the winner among these; the first must be "identity", which is no calibration.

    >>> rng = np.random.default_rng(0)
    >>> base = rng.exponential(size=500)
    >>> better, noise = base - 0.1 + 0.01 * rng.normal(size=500), base + 0.01 * rng.normal(size=500)
    >>> rows = [
    ...     CandidateLosses(calibrator="identity", losses=base, complexity=0, keeps_argmax=True),
    ...     CandidateLosses(calibrator="sms", losses=better, complexity=3, keeps_argmax=False),
    ...     CandidateLosses(calibrator="beta", losses=noise, complexity=1, keeps_argmax=True),
    ... ]
    >>> decide(rows).chosen, decide(rows).otherwise
    ('sms', 'identity')
    """
    candidates = _candidates(judged, resamples, seed)
    chosen, otherwise = (_winner(judged, candidates, keep) for keep in (keep_argmax, not keep_argmax))
    allowed = [candidate for candidate in judged if candidate.keeps_argmax or not keep_argmax]
    return Ruling(
        chosen=chosen,
        otherwise=otherwise,
        keep_argmax=keep_argmax,
        candidates=candidates,
        rival=_rival(allowed, chosen),
        n=len(judged[0].losses),
        rows=rows,
        outcomes=judged[0].outcomes,
        absent=judged[0].absent,
    )


def _candidates(judged: Sequence[CandidateLosses], resamples: int, seed: int) -> tuple[Candidate, ...]:
    """Mean losses of all candidates with intervals from the same resamples, which are also those of `compare`."""
    gains = np.stack([candidate.losses - judged[0].losses for candidate in judged], axis=1)  # (n, candidates)
    n = len(gains)
    w = np.ones(n) if judged[0].weights is None else judged[0].weights
    resamples_of = resample_counts(n, resamples, seed, judged[0].clusters)
    resampled = np.concatenate([(counts * w) @ gains / (counts @ w)[:, None] for counts in resamples_of])
    candidates = []
    for candidate, gain, draws in zip(judged, gains.T, resampled.T, strict=True):
        difference = _mean(gain, judged[0].weights)
        e = Estimate(value=difference, noise=Draws.from_resamples(difference, draws))
        low, high = e.limits(CONFIDENCE)
        sure = e.p_value() < 1 - CONFIDENCE and not low <= 0 <= high
        candidates.append(
            Candidate(
                calibrator=candidate.calibrator,
                nll=candidate.mean,
                difference=difference,
                low=low,
                high=high,
                significant="neither" if not sure else "better" if difference < 0 else "worse",
                keeps_argmax=candidate.keeps_argmax,
                likelier=candidate.likelier_than(judged[0]),
            )
        )
    return tuple(candidates)


def _winner(judged: Sequence[CandidateLosses], candidates: Sequence[Candidate], keep_argmax: bool) -> str:
    if judged[0].outcomes != "differ":
        return UNCALIBRATED
    named = {c.calibrator for c in candidates if c.may_win and (c.keeps_argmax or not keep_argmax)}
    able = [candidate for candidate in judged if candidate.calibrator in named]
    if judged[0].certain and all(candidate.certain for candidate in able):
        out = {c.calibrator for c in candidates if c.significant == "worse" or (keep_argmax and not c.keeps_argmax)}
        able = [
            candidate
            for candidate in judged
            if candidate.fits_positives and not candidate.certain and candidate.calibrator not in out
        ] or able
    able = [candidate for candidate in able if not candidate.certain] or able
    if not able:
        return UNCALIBRATED
    lowest = min(able, key=lambda candidate: candidate.mean)
    near = [candidate for candidate in able if _is_near(lowest, candidate)]
    least = min(candidate.complexity for candidate in near)
    simplest = [candidate for candidate in near if candidate.complexity == least]
    of_positives = [candidate for candidate in simplest if candidate.fits_positives]
    if judged[0].certain:
        of_positives = [candidate for candidate in of_positives if candidate.of_raw_score] or of_positives
    return (min(of_positives, key=lambda candidate: candidate.mean) if of_positives else simplest[0]).calibrator


def _is_near(lowest: CandidateLosses, other: CandidateLosses) -> bool:
    """Whether the candidate of lowest loss is neither a standard error ahead of another nor 100 times as likely."""
    ahead, error = lowest.ahead_of(other)
    return ahead <= error and lowest.likelier_than(other) < LIKELIER


def _mean(values: Array, weights: Array | None) -> float:
    return float(values.mean()) if weights is None else float(weights @ values / weights.sum())


def _rival(allowed: Sequence[CandidateLosses], chosen: str) -> Rival | None:
    """The nearest other candidate; None where the chosen one differs significantly from the best of the others."""
    winner = next(candidate for candidate in allowed if candidate.calibrator == chosen)
    others = [candidate for candidate in allowed if candidate.calibrator not in (chosen, UNCALIBRATED)]
    if not others:
        return None
    other = min(others, key=lambda candidate: candidate.mean)
    mean, error = winner.ahead_of(other)
    half = Estimate(value=mean, noise=Normal(error=error)).limits()[1] - mean
    if abs(mean) > half or mean == 0:
        return None
    return Rival(other.calibrator, ceil(len(winner.losses) * (half / mean) ** 2))


def _change(c: Candidate, before: Candidate) -> str:
    low, high = fmt.apart([c.low, c.high], 4, sign=True)
    return f"NLL {fmt.from_to(before.nll, c.nll, 4)} (change {low} to {high})"
