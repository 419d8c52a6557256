"""`adapt`: a map for data with another base rate, known or estimated from unlabelled rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.calibrators import names as calibrator_names
from calibrant.core.arrays import Array
from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.base_rates import ScoreOrder, estimate_rates, mixture
from calibrant.core.statistics.bootstrap import OnDone, check_confidence, resample_counts
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import describe_task
from calibrant.repairing.chain import fit_chain, parse_chain

ASSUMED = "only the class frequencies have changed; within each class the scores are distributed as before"
LEVEL = 0.05  # of the test that may refute it
RESAMPLES = 200
ROUGH = 1e-6  # tolerance of the estimates on resamples, far below their spread
MOST_WIDTH = 0.9  # of an interval that tells something
FITTED = 0.9  # share of the labelled rows that the map knows: it was fitted on them


@dataclass(frozen=True, kw_only=True)
class BaseRates:
    """Estimated class frequencies of unlabelled rows, with intervals and a test of whether they explain the scores."""

    old: tuple[float, ...]  # of the labelled rows
    new: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    gap: float  # largest distance between the distribution of scores and the one that base rates explain
    p_value: float | None  # of "only the base rates have changed"; None where rows come in clusters
    n: int  # unlabelled rows
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether the test says that more than the base rate has changed."""
        return self.p_value is not None and self.p_value < LEVEL

    @property
    def words(self) -> str:
        text = self._estimate_words
        if self.p_value is None:
            return f"{text} Whether this explains the scores was not tested: rows come in clusters."
        gap = f"largest gap {self.gap:.3f}, {fmt.chance(self.p_value)}"
        if self.refuted:
            return (
                f"{text} A change of the base rate does NOT explain these scores ({gap}): more has changed, and a "
                "base-rate correction is not enough. Label some of these rows and fit a new map."
            )
        return (
            f"{text} A change of the base rate would explain these scores ({gap}), and so would a model that says "
            "everything higher or lower: only labels can tell."
        )

    @property
    def tells_nothing(self) -> bool:
        """Whether the interval of some class is nearly all of [0, 1]."""
        return any(high - low > MOST_WIDTH for low, high in zip(self.low, self.high, strict=True))

    @property
    def _estimate_words(self) -> str:
        rows = fmt.count(self.n, "unlabelled row")
        if self.tells_nothing:
            return (
                f"The scores of {rows} do not tell the base rate: it lies anywhere, by its 95 % interval. Verdicts or "
                "scores that hardly differ cannot; label some of these rows."
            )
        old, new = _rates_words(self.old), _rates_words(self.new)
        if len(self.new) == 2:
            new += f" (95 % interval {fmt.percent(self.low[1])} to {fmt.percent(self.high[1])})"
        ends = zip(self.low, self.old, self.high, strict=True)
        if all(low <= rate <= high for low, rate, high in ends):
            return f"No change of the base rate can be told: {old} before, {new} estimated from {rows}."
        return f"If nothing but the base rate has changed, it went from {old} to {new}, estimated from {rows}."

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self)) | {"refuted": self.refuted}


def adapt(
    m: Map,
    *,
    from_rates: npt.ArrayLike | None = None,
    to_rates: npt.ArrayLike | None = None,
    fit_on: Predictions | None = None,
    unlabelled: Predictions | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Map:
    """Adapt a map to data in which only the class frequencies differ: a constant is added to each logit.

    Give both base rates (of the positive class, or one for each class), or the labelled rows of the fit and unlabelled
    rows of today, from which the new rates are estimated. Undersampled training data: `from_rates` is their rate.

    >>> m = Map(calibrator="identity", k=2, steps=(), task="binary", score_type="probs")
    >>> adapt(m, from_rates=0.2, to_rates=0.5)([0.3]).round(8)
    array([0.63157895])
    """
    known, unknown = (from_rates, to_rates), (fit_on, unlabelled)
    if all(rates is not None for rates in known) and unknown == (None, None):
        _check_task(m)
        old, new = check_rates("from_rates", from_rates, m.k), check_rates("to_rates", to_rates, m.k)
        return with_rates(m, old, new)
    if fit_on is not None and unlabelled is not None and known == (None, None):
        return with_estimate(m, base_rates(m, fit_on, unlabelled, resamples=resamples, seed=seed))
    raise InputError(
        "adapt",
        expected="both base rates, or labelled and unlabelled rows",
        got="neither, or a part of each",
        fix="give from_rates and to_rates (--from, --to), or fit_on and unlabelled (--fit-on, --unlabelled)",
    )


def with_rates(m: Map, old: Array, new: Array, **more: Any) -> Map:
    """Append a step to the map that changes the base rates."""
    step = Linear(np.array(1.0), np.log(new) - np.log(old))
    facts = {"base_rates": {"from": old.tolist(), "to": new.tolist(), "assumed": ASSUMED, **more}}

    def add_step(part: Map) -> Map:
        name = f"{part.calibrator}+base_rate"
        return replace(
            part, calibrator=name, steps=(*part.steps, step), parameters=part.parameters | facts, keeps_argmax=False
        )

    groups = None if m.groups is None else {name: add_step(part) for name, part in m.groups.items()}
    return replace(add_step(m), groups=groups)


def with_estimate(m: Map, rates: BaseRates) -> Map:
    """Adapt a map to estimated base rates; its parameters hold the interval and the test."""
    facts = {name: value for name, value in rates.to_dict().items() if name not in ("old", "new")}
    return with_rates(m, np.array(rates.old), np.array(rates.new), **facts)


def base_rates(
    m: Map,
    fit_on: Predictions,
    unlabelled: Predictions,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_done: OnDone | None = None,
) -> BaseRates:
    """Estimate class frequencies of unlabelled rows by EM, with a bootstrap interval and a test of the assumption.

    Weights count; whole clusters are resampled. The interval counts the noise of both sets: where the map was fitted on
    `fit_on`, its calibrator is fitted anew on every resample. The test compares the scores of the unlabelled rows with
    those of labelled rows mixed by the new rates: largest gap of the distribution functions, over all classes, and as
    often as it is as large when both sets are drawn from that mixture and the rates are estimated anew.
    """
    _check_task(m)
    check_confidence(confidence)
    p, q = m.apply(fit_on), m.apply(unlabelled)
    old = _frequencies(p)
    labelled, today, w, v = p.probs, q.probs, _shares(p), _shares(q)
    new = estimate_rates(today, old, v)
    draws = _bootstrap(m, fit_on, q, unlabelled, new, resamples, seed, on_done)
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    gap = ScoreOrder(labelled, today).gap(mixture(p.labels, w, new), v)
    clustered = fit_on.clusters is not None or unlabelled.clusters is not None

    def estimate(weights: Array) -> Array:
        return estimate_rates(labelled, old, weights, start=new, tolerance=ROUGH)

    p_value = None if clustered else _p_value(p, new, estimate, gap, q.n_effective, resamples, seed)
    return BaseRates(
        old=_plain(old),
        new=_plain(new),
        low=_plain(np.minimum(low, new)),
        high=_plain(np.maximum(high, new)),
        gap=gap,
        p_value=p_value,
        n=q.n,
    )


def _bootstrap(
    m: Map,
    fit_on: Predictions,
    q: Predictions,
    unlabelled: Predictions,
    new: Array,
    resamples: int,
    seed: int,
    on_done: OnDone | None,
) -> Array:
    """Estimates on resamples of both sets, (resamples, k)."""
    refit, draws = _refit(m, fit_on), []
    counts = resample_counts(q.n, resamples, seed, q.clusters)
    other = resample_counts(fit_on.n, resamples, seed + 1, fit_on.clusters)
    v = _shares(q)
    rows = (counts_of_rows for batch in other for counts_of_rows in batch)
    for batch in counts:
        for count in batch:
            index = np.repeat(np.arange(fit_on.n), next(rows))
            sample = fit_on.take(index)
            if len(np.unique(sample.labels)) < m.k:  # a class is missing: nothing can be estimated
                continue
            probs = q.probs if refit is None else refit(sample).apply(unlabelled).probs
            old = _frequencies(sample)
            weights = v * count / (v @ count)
            draws.append(estimate_rates(probs, old, weights, start=new, tolerance=ROUGH))
        if on_done:
            on_done(len(batch))
    return np.array(draws)


def _refit(m: Map, fit_on: Predictions) -> Callable[[Predictions], Map] | None:
    """A function that refits the map: only of a calibrator of the package, and only if these rows fitted it."""
    if m.fingerprint is None or m.groups is not None or m.fingerprint.share_seen(fit_on) < FITTED:
        return None
    if any(name_of(part) not in calibrator_names() for part in m.calibrator.split("+")):
        return None
    chain = parse_chain(m.calibrator)
    return lambda rows: fit_chain(rows, chain)


def rates_explain(fit_on: Predictions, p: Predictions, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """The p-value of "only the base rates differ" between two labelled sets: the same test, with known rates."""
    labelled, new = fit_on.probs, _frequencies(p)
    gap = ScoreOrder(labelled, p.probs).gap(mixture(fit_on.labels, _shares(fit_on), new), _shares(p))

    def count(weights: Array) -> Array:
        return np.asarray(np.bincount(fit_on.labels, weights, fit_on.k), dtype=np.float64)

    return _p_value(fit_on, new, count, gap, p.n_effective, resamples, seed)


def _p_value(
    p: Predictions, new: Array, estimate: Callable[[Array], Array], gap: float, n: float, resamples: int, seed: int
) -> float:
    """The chance of such a gap when only the base rates differ: both sets drawn anew, rates estimated anew."""
    rng = np.random.default_rng(seed + 2)
    probs, labels, w = p.probs, p.labels, _shares(p)
    order = ScoreOrder(probs, probs[:0])
    mixed, size, larger = mixture(labels, w, new), round(p.n_effective), 0
    for _ in range(resamples):
        labelled = rng.multinomial(size, w / w.sum()) / size
        unlabelled = rng.multinomial(round(n), mixed / mixed.sum()) / round(n)
        larger += order.gap(mixture(labels, labelled, estimate(unlabelled)) - unlabelled, probs[:0, 0]) >= gap
    return (1 + larger) / (1 + resamples)


# -- checks ---------------------------------------------------------------------------------------


def check_rates(name: str, rates: npt.ArrayLike | None, k: int) -> Array:
    """Base rates of all classes: one number is that of the positive class of two."""
    values = np.asarray(rates, dtype=np.float64)
    if values.ndim == 0 and k == 2:
        values = np.array([1 - float(values), float(values)])
    if values.shape != (k,):
        got = "one number" if values.ndim == 0 else f"{values.size} of them"
        expected = "the rate of the positive class, or two" if k == 2 else f"{k} base rates, one for each class"
        raise InputError(name, expected=expected, got=got, fix="give them in the order of the classes")
    outside = ~((values > 0) & (values < 1))
    if outside.any():
        expected, fix = "base rates strictly between 0 and 1", "use shares: 0.02 for 2 %"
        raise InputError(name, expected=expected, got=f"{values[outside][-1]:g}", fix=fix)
    if abs(values.sum() - 1) > 1e-6:
        got, fix = f"a sum of {values.sum():g}", "give the rates of all classes"
        raise InputError(name, expected="base rates that sum to one", got=got, fix=fix)
    return np.asarray(values / values.sum())


def _check_task(m: Map) -> None:
    if m.task not in ("binary", "multiclass"):
        raise InputError(
            "adapt",
            expected="a map of scores of classes, which have base rates",
            got=f"{m.task} ({describe_task(m.task)})",
            fix="fit a new map on rows of today",
        )


def _frequencies(p: Predictions) -> Array:
    """The frequency of every class among the labelled rows, by weight."""
    rates = np.bincount(p.labels, _shares(p), p.k)
    if (rates == 0).any():
        missing = fmt.list_words([p.classes[c] if p.classes else str(c) for c in np.flatnonzero(rates == 0)])
        raise InputError(
            "fit_on", expected="labelled rows of every class", got=f"none of {missing}", fix="add rows of each class"
        )
    return np.asarray(rates, dtype=np.float64)


def _shares(p: Predictions) -> Array:
    """The weights of the rows, scaled to sum to one."""
    return np.full(p.n, 1 / p.n) if p.weights is None else np.asarray(p.weights / p.weights.sum())


def _plain(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _rates_words(rates: tuple[float, ...]) -> str:
    return fmt.percent(rates[1]) if len(rates) == 2 else "(" + ", ".join(fmt.percent(rate) for rate in rates[:10]) + ")"
