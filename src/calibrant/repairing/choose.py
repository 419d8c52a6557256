"""Choose a calibrator on the rows it would be fitted on: cross-fitted losses of several, and the rule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.calibrators import CATALOGUE, Calibrator
from calibrant.core.arrays import Array, Ints
from calibrant.core.map import Map, put_together
from calibrant.core.notebook import Shown, Table
from calibrant.core.predictions import Predictions
from calibrant.core.recalibrate import check_folds, dealt
from calibrant.core.views import PROBABILITY_FLOOR
from calibrant.core.wording import bracket, number
from calibrant.measures.nll import NLL
from calibrant.repairing.fit import fit
from calibrant.repairing.rule import KEEP_ARGMAX, THESE, UNCALIBRATED, Candidate, Judged, Ruling, decide

CANDIDATES = ("identity", "temperature", "ets", "beta", "svs", "isotonic", "histogram", "sms")
SIGMOID = "platt:of=score"  # takes no logit, which scores of 0 and 1 have not
OF_POSITIVES = ("platt", SIGMOID)  # more for P(positive)
FOLDS = 5


@dataclass(frozen=True)
class Choice(Shown):
    """The chosen map, and why."""

    map: Map
    ruling: Ruling

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What every candidate reached."""
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
    """The calibrator that the rule chooses by cross-fitted losses, fitted on all rows.

    "identity", which changes nothing, is always a candidate and wins where no other is shown to be better. With
    `keep_argmax` only calibrators that cannot change a prediction are tried.
    """
    asked = with_identity(candidates_for(p) if candidates is None else candidates)
    names = [name for name in asked if may_take_part(name, p, keep_argmax=keep_argmax)]
    ruling = rule_on(p, names, folds=folds, keep_argmax=keep_argmax, seed=seed)
    m = fit(p, ruling.chosen)
    why = f"{m.fit.diagnosis}; chosen from {len(names)} candidates by cross-fitting"
    return Choice(replace(m, fit=replace(m.fit, diagnosis=why)), ruling)


def candidates_for(p: Predictions) -> tuple[str, ...]:
    """What is tried where nothing else is asked for."""
    return (*CANDIDATES, *OF_POSITIVES) if p.shape == "binary" else CANDIDATES


def is_certain(p: Predictions) -> bool:
    """Whether some binary scores are 0 or 1, so that a single error costs without bound; logits never say that."""
    given = p.shape == "binary" and p.kind == "probs"
    return given and bool(np.minimum(p.score, 1 - p.score).min() < PROBABILITY_FLOOR)


def rule_on(
    p: Predictions,
    names: Sequence[str],
    *,
    folds: int | None = None,
    keep_argmax: bool = KEEP_ARGMAX,
    seed: int = 0,
    rows: str = THESE,
) -> Ruling:
    """What the rule says of these calibrators, "identity" first, by their cross-fitted losses."""
    fold = deal_folds(p, folds, seed)
    judged = [judge(name, p if name == UNCALIBRATED else _calibrated(p, name, fold), fold) for name in names]
    return decide(judged, keep_argmax=keep_argmax, seed=seed, rows=rows)


def judge(name: str, q: Predictions, folds: Ints | None = None) -> Judged:
    """What the rule asks of a calibrator, given the predictions it made, cross-fitted by these folds if at all."""
    chain = chain_of(name)
    keeps, fits = all(one.keeps(q.shape) for one in chain), q.shape == "binary" and chain[-1].of_score
    simple = max(one.complexity for one in chain)
    return Judged(name, NLL().rows(q), simple, keeps, fits, q.counts, q.clusters, folds, is_certain(q), name == SIGMOID)


def may_take_part(name: str, p: Predictions, *, keep_argmax: bool = KEEP_ARGMAX) -> bool:
    """Whether a calibrator, or a chain of them, suits these predictions, and may change them if it does."""
    chain = chain_of(name)
    suits = all(p.shape in one.shapes and (p.k == 2 or not one.binary) for one in chain)
    return suits and (not keep_argmax or all(one.keeps(p.shape) for one in chain))


def chain_of(name: str) -> list[Calibrator]:
    """The calibrators of a chain such as "temperature+isotonic"."""
    return [CATALOGUE.make(one.strip()) for one in name.split("+")]


def with_identity(names: Sequence[str]) -> list[str]:
    """Each once, and no calibration first."""
    return list(dict.fromkeys((UNCALIBRATED, *names)))


def cross_fit(p: Predictions, what: str, *, folds: int | None = None, seed: int = 0) -> tuple[Predictions, Array]:
    """Every row calibrated by a map fitted on the other folds, and ln p(true class) of each row.

    Five folds, or one for each row where there are fewer. Rows of one cluster stay in one fold.
    """
    made = _calibrated(p, what, deal_folds(p, folds, seed))
    return made, made.true_log_prob


def deal_folds(p: Predictions, folds: int | None, seed: int) -> Ints:
    """The fold of each row, at random, but with its share of every class in each."""
    units = p.n if p.clusters is None else int(p.clusters.max()) + 1
    folds = min(FOLDS, max(2, units)) if folds is None else folds
    check_folds(folds, p)
    shuffled = np.random.default_rng(seed).permutation(p.n)
    return dealt(shuffled[np.argsort(p.labels[shuffled], kind="stable")], p.clusters, folds)


def _calibrated(p: Predictions, what: str, fold: Ints) -> Predictions:
    rows = [np.flatnonzero(fold == f) for f in range(int(fold.max()) + 1)]
    return put_together(p, [(i, fit(p.take(fold != f), what).apply(p.take(i))) for f, i in enumerate(rows)])
