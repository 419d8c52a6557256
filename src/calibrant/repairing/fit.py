"""`fit`: one calibrator, several in a row (`temperature+isotonic`), the best by cross-fitting, or one per group."""

import warnings
from dataclasses import replace

import numpy as np

from calibrant.calibrators import Calibrator
from calibrant.core.errors import InputError, ProbabilitiesAsLogitsWarning, ReversedScoresWarning
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.validation import SURE_ROWS
from calibrant.measures import check_predictions
from calibrant.repairing.chain import Chain, fit_chain, fit_steps, parse_chain, with_weight
from calibrant.repairing.choose import choose, nothing_to_fit, outcomes_of
from calibrant.repairing.rule import UNCALIBRATED, Outcomes

LEAST_ROWS = 2
SURE = 3.0  # standard errors from which on scores are called reversed


def fit(p: Predictions, what: str | Calibrator = "auto", *, by_group: bool = False) -> Map:
    """Learn a map on held-out predictions: by default the calibrator that `choose` finds best by cross-fitting.

    `what` names a calibrator, or a chain of them joined with "+". Where all outcomes are alike there is nothing to fit:
    the map changes nothing then, and its diagnosis says so. Scores that rank rows in reverse, and logits that look like
    probabilities, give a warning.

    >>> p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> fit(p, "temperature")
    Map(temperature, k=2, T=1.82, T_low=0.232, T_high=14.28, converged)
    """
    check_predictions(p)
    if isinstance(what, type) or not isinstance(what, str | Calibrator):
        name = what.__name__ if isinstance(what, type) else type(what).__name__
        raise InputError(
            "fit",
            expected='a name ("temperature") or a calibrator (Temperature())',
            got=f"the class {name}" if isinstance(what, type) else name,
            fix=f"write {name}()" if isinstance(what, type) else "give one of these",
        )
    if what == "auto" and by_group:
        raise InputError(
            "auto", expected="one map for all rows", got="one map per group", fix="name the calibrator to fit per group"
        )
    _warn_of_scores(p)
    if what == "auto":
        return choose(p).map
    chain = parse_chain(what)
    for calibrator in chain:
        calibrator.check_shape(p)
    outcomes = outcomes_of(p)
    if outcomes != "differ" and any(calibrator.learns for calibrator in chain):
        return _leave(p, outcomes)
    return _fit_by_group(p, chain) if by_group else fit_chain(p, chain)


def _warn_of_scores(p: Predictions) -> None:
    """Warn of one score per row that is lower where the outcome is positive, or of a logit that is none."""
    if p.task not in ("binary", "confidence"):
        return  # rows of logits that look like probabilities are found when predictions are built
    z = p.values[:, 1]
    if p.score_type == "logits" and len(z) >= SURE_ROWS and z.min() >= 0 and z.max() <= 1 and np.ptp(z) > 0:
        warnings.warn(
            "every logit lies in [0, 1], as probabilities do: if they are probabilities, leave out logits=True",
            ProbabilitiesAsLogitsWarning,
            stacklevel=3,
        )
    difference, error = _difference_of_means(p)
    if difference < -SURE * error:
        rows, others, fix = "positive rows", "negative ones", "if the scores are P(negative), give 1 - scores"
        if p.task == "confidence":
            rows, others, fix = "right predictions", "wrong ones", "if the scores are P(wrong), give 1 - scores"
        text = f"{rows} have significantly lower scores than {others}: a map of them is of little use; {fix}"
        warnings.warn(text, ReversedScoresWarning, stacklevel=3)


def _difference_of_means(p: Predictions) -> tuple[float, float]:
    """How much higher the mean score of rows with a positive outcome is, and the standard error of that."""
    counts = np.ones(p.n) if p.counts is None else p.counts
    influence, means = np.zeros(p.n), []
    for rows in (p.outcome, ~p.outcome):
        total = counts[rows].sum()
        if total == 0:
            return 0.0, 0.0
        means.append(float(counts[rows] @ p.score[rows] / total))
        influence[rows] = counts[rows] * (p.score[rows] - means[-1]) / total * (1 if len(means) == 1 else -1)
    units = influence if p.clusters is None else np.bincount(p.clusters, influence)
    return means[0] - means[1], float(np.sqrt(units @ units))


def _leave(p: Predictions, outcomes: Outcomes) -> Map:
    """A map that changes nothing, with the reason in words."""
    m = fit_chain(p, parse_chain(UNCALIBRATED))
    return replace(m, fit=nothing_to_fit(outcomes))


def _fit_by_group(p: Predictions, chain: Chain) -> Map:
    """Fit one map per group with different outcomes, and one of all rows for every other group."""
    if p.groups is None:
        raise InputError(
            "groups", expected="a group for every row", got="none", fix="add a column group (in npz: groups)"
        )
    for calibrator in chain:
        calibrator.check_shape(p)
    rows = with_weight(p)
    names = rows.groups.astype(str)  # type: ignore[union-attr]
    maps = {}
    for name in np.unique(names):
        members = np.flatnonzero(names == name)
        if outcomes_of(own := rows.take(members)) == "differ":
            maps[str(name)] = fit_steps(own, chain)
    whole = replace(fit_steps(rows, chain), groups=maps, fingerprint=Fingerprint.of(p))
    failed = [name for name, m in maps.items() if not m.fit.converged]
    if not failed:
        return whole
    why = f"groups {', '.join(failed[:5])}: {maps[failed[0]].fit.diagnosis}"
    return replace(whole, fit=replace(whole.fit, converged=False, diagnosis=why))
