"""Choose a calibrator on the rows it will be fitted on: cross-fitted losses of several, and the rule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.maps.map import Fit, Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.text.number_format import bracket, number
from calibrant.core.text.table import Table, TableResult
from calibrant.measures import check_predictions
from calibrant.measures.nll import NLL
from calibrant.repairing.bound import clip_to_laplace
from calibrant.repairing.chain import fit_chain, parse_chain
from calibrant.repairing.cross_fit import calibrate_folds, choose_folds
from calibrant.repairing.rule import (
    ALIKE,
    KEEP_ARGMAX,
    PART,
    THESE,
    UNCALIBRATED,
    Candidate,
    CandidateLosses,
    Outcomes,
    Ruling,
    decide,
)

CANDIDATES = ("identity", "temperature", "ets", "beta", "svs", "isotonic", "histogram", "sms")
OF_POSITIVES = ("platt", "platt:of=score")  # more for P(positive)
MOST_ROWS, MOST_ELEMENTS = 200_000, 1 << 21  # rows, and rows x classes, that decide; of more, a random part does


@dataclass(frozen=True)
class Choice(TableResult):
    """The chosen map, and the ruling with its reasons."""

    map: Map
    ruling: Ruling

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The cross-fitted loss of every candidate."""
        return self.ruling.candidates

    @property
    def verdict(self) -> str:
        """The choice and its reasons in words."""
        return self.ruling.words

    def table(self) -> Table:
        head = ("candidate", "cross-fitted NLL", "change", "interval", "predictions")
        rows = []
        for c in sorted(self.candidates, key=lambda c: c.nll):
            change = number(c.difference, sign=True), bracket(c.low, c.high, sign=True)
            numbers = ("", "") if c.calibrator == UNCALIBRATED else change
            rows.append((c.calibrator, number(c.nll), *numbers, "kept" if c.keeps_argmax else "may change"))
        return self.verdict, head, rows


def choose(
    p: Predictions,
    candidates: Sequence[str] | None = None,  # those of `candidates_for`
    *,
    folds: int | None = None,  # five, or as many as there are rows
    keep_argmax: bool = KEEP_ARGMAX,
    seed: int = 0,
) -> Choice:
    """Choose a calibrator by cross-fitted losses and the rule, and fit it on all rows.

    "identity", which changes nothing, is always a candidate and wins where no other is significantly better, and where
    all outcomes are alike, so that there is nothing to fit. With `keep_argmax` only calibrators that cannot change a
    prediction take part. A chosen map never says 0 or 1 on the evidence of n rows: see `clip_to_laplace`. Of very many
    rows a random part decides, and the verdict says so.
    """
    check_predictions(p)
    names = with_identity(candidates_for(p) if candidates is None else candidates)
    names = [name for name in names if may_take_part(name, p, keep_argmax=keep_argmax)]
    part = random_part(p, seed)
    ruling = rule_on(part, names, folds=folds, keep_argmax=keep_argmax, seed=seed, rows=THESE if part is p else PART)
    m = fit_candidate(p, ruling.chosen)
    if ruling.outcomes != "differ":
        return Choice(replace(m, fit=nothing_to_fit(ruling.outcomes)), ruling)
    why = f"{m.fit.diagnosis}; chosen from {len(names)} candidates by cross-fitting"
    return Choice(replace(m, fit=replace(m.fit, diagnosis=why)), ruling)


def nothing_to_fit(outcomes: Outcomes) -> Fit:
    """How a fit ends where all outcomes are alike."""
    return Fit(converged=False, diagnosis=f"{ALIKE[outcomes]}, so there is nothing to fit")


def candidates_for(p: Predictions) -> tuple[str, ...]:
    """The names of calibrators that are tried where no others are asked for."""
    return (*CANDIDATES, *OF_POSITIVES) if p.task == "binary" else CANDIDATES


def with_identity(names: Sequence[str]) -> list[str]:
    """The names, each once, "identity" first."""
    return list(dict.fromkeys((UNCALIBRATED, *names)))


def may_take_part(name: str, p: Predictions, *, keep_argmax: bool = KEEP_ARGMAX) -> bool:
    """Whether a calibrator, or a chain of them, suits the task, the classes among the labels, and `keep_argmax`."""
    chain = parse_chain(name)
    suits = all(p.task in calibrator.tasks and (p.k == 2 or not calibrator.binary) for calibrator in chain)
    knows = len(absent_classes(p)) == 0 or not any(calibrator.needs_every_class for calibrator in chain)
    return suits and knows and (not keep_argmax or all(calibrator.keeps(p.task) for calibrator in chain))


def absent_classes(p: Predictions) -> Ints:
    """Classes without a row among the labels; none for binary predictions and bare confidences."""
    if p.task != "multiclass":
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.bincount(p.labels, minlength=p.k) == 0)


def random_part(p: Predictions, seed: int) -> Predictions:
    """A random part of very many rows, in whole clusters; all rows otherwise."""
    share = min(MOST_ROWS / p.n, MOST_ELEMENTS / (p.n * p.k))
    if share >= 1:
        return p
    rng = np.random.default_rng(seed)
    if p.clusters is None:
        return p.take(np.sort(rng.choice(p.n, int(p.n * share), replace=False)))
    clusters = int(p.clusters.max()) + 1
    chosen = np.zeros(clusters, dtype=bool)
    chosen[rng.choice(clusters, max(2, int(clusters * share)), replace=False)] = True
    return p.take(chosen[p.clusters])


def rule_on(
    p: Predictions,
    names: Sequence[str],
    *,
    folds: int | None = None,
    keep_argmax: bool = KEEP_ARGMAX,
    seed: int = 0,
    rows: str = THESE,
) -> Ruling:
    """Apply the rule to these calibrators, "identity" first, by their cross-fitted losses."""
    fold = choose_folds(p, folds, seed)
    losses, certain = {name: np.empty(p.n) for name in names[1:]}, dict.fromkeys(names[1:], False)
    for f in range(int(fold.max()) + 1):
        inside, outside = p.take(fold == f), p.take(fold != f)  # one after the other fits on the same rows
        for name in names[1:]:
            q = fit_candidate(outside, name).apply(inside)
            losses[name][fold == f] = NLL().rows(q)
            certain[name] |= is_certain(q)
    judged = [build_candidate(name, p, losses[name], certain=certain[name]) for name in names[1:]]
    return decide([measure_candidate(names[0], p), *judged], keep_argmax=keep_argmax, seed=seed, rows=rows)


def fit_candidate(p: Predictions, name: str) -> Map:
    """Fit and bound a map, as it would be recommended."""
    return clip_to_laplace(fit_chain(p, parse_chain(name)), p)


def cross_fit_candidate(p: Predictions, name: str, fold: Ints) -> Predictions:
    """Calibrate every row by the map that would be recommended on the other folds."""
    return calibrate_folds(p, fold, lambda rows: fit_candidate(rows, name))


def measure_candidate(name: str, q: Predictions) -> CandidateLosses:
    """The losses and facts that the rule needs, from the predictions of this calibrator."""
    return build_candidate(name, q, NLL().rows(q), certain=is_certain(q))


def build_candidate(name: str, p: Predictions, losses: Array, *, certain: bool) -> CandidateLosses:
    """The losses and facts that the rule needs, from the losses of this calibrator on these rows."""
    chain = parse_chain(name)
    return CandidateLosses(
        calibrator=name,
        losses=losses,
        complexity=max(calibrator.complexity for calibrator in chain),
        keeps_argmax=all(calibrator.keeps(p.task) for calibrator in chain),
        fits_positives=p.task == "binary" and chain[-1].of_score,
        weights=p.counts,
        clusters=p.clusters,
        certain=certain,
        of_raw_score=all(calibrator.of_raw_score for calibrator in chain),
        outcomes=outcomes_of(p),
        absent=tuple(absent_classes(p).tolist()),
    )


def is_certain(p: Predictions) -> bool:
    """Whether some binary scores are 0 or 1, so that a single error costs without bound; logits never say that."""
    has_probs = p.task == "binary" and p.score_type == "probs"
    return has_probs and bool(np.minimum(p.score, 1 - p.score).min() < PROBABILITY_FLOOR)


def outcomes_of(p: Predictions) -> Outcomes:
    """Whether the outcomes that count differ, or all are the same."""
    outcome = p.outcome if p.weights is None else p.outcome[p.weights > 0]
    if outcome.any() and not outcome.all():
        return "differ"
    if p.task == "binary":
        return "all positive" if outcome.all() else "all negative"
    return "all right" if outcome.all() else "all wrong"
