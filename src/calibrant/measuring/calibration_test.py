"""Tests of calibration: could a perfectly calibrated model have given these outcomes?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import Bins, Curve
from calibrant.core.curves.weighted import is_whole
from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_outcomes import ClusteredOutcomes
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.multiple_tests import holm
from calibrant.core.statistics.sampling import Sampling, affordable
from calibrant.core.text.number_format import list_words, number, p_value
from calibrant.core.text.table import FrameResult, Table, TableResult
from calibrant.measures import CurveMeasure, check_predictions
from calibrant.measuring.estimating import check_resamples
from calibrant.measuring.measure import What, resolve

SPIEGELHALTER, HOSMER_LEMESHOW = "spiegelhalter", "hosmer_lemeshow"
USUAL = (SPIEGELHALTER, HOSMER_LEMESHOW, "atb", "ece")
DRAWS = 1000  # of outcomes, for the two statistics where rows come in clusters
ROWS_PER_GROUP = 5  # fewer make a chi-squared distribution a poor guide
FEWEST_EXPECTED = 1.0  # events, and rows without one, of a group: with fewer outcomes are drawn instead
SURE = 0.05

Method = Literal["normal", "chi-squared", "simulated outcomes", "simulated outcomes of clusters"]
BLIND = {
    SPIEGELHALTER: "errors at scores near 0.5, and errors at high and low scores that cancel",
    HOSMER_LEMESHOW: "errors that cancel within a group of rows with neighbouring scores",
}


@dataclass(frozen=True, kw_only=True)
class CalibrationTest(FrameResult, TableResult):
    """A test of calibration: a statistic, and how often a perfectly calibrated model on as many rows reaches it.

    Where there are too few rows or clusters for a test, `reason` says so and the p-value is NaN (null in JSON).
    """

    test: str
    statistic: float
    expected: float  # mean under perfect calibration
    upper: float  # 95 % quantile under perfect calibration
    degrees_of_freedom: int | None  # of the chi-squared distribution, where that is the method
    p_value: float
    method: Method
    blind_to: str
    n: int
    k: int
    reason: str | None = None

    def __bool__(self) -> bool:
        raise InputError("a test as true or false", expected="a level", got="none", fix="compare .p_value with 0.05")

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = plain(self)
        return fields

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of one row in a table of tests."""
        freedom = "" if self.degrees_of_freedom is None else str(self.degrees_of_freedom)
        numbers = (number(value) for value in (self.statistic, self.expected, self.upper))
        return (self.test, *numbers, freedom, p_value(self.p_value))

    HEAD: ClassVar[tuple[str, ...]] = ("test", "observed", "by chance, mean", "by chance, 95 % below", "df", "p")

    def table(self) -> Table:
        return f"{self.test} of these {self.n:,} rows, and of perfectly calibrated ones", self.HEAD, [self.cells]


class CalibrationTests(FrameResult, TableResult, list[CalibrationTest]):
    """Several tests of the same rows."""

    def table(self) -> Table:
        return f"tests of calibration, {self[0].n:,} rows", CalibrationTest.HEAD, [test.cells for test in self]

    @property
    def sentence(self) -> str:
        """The joint result of the tests at the 5 % level, corrected for their number by Holm's method."""
        tests = [test for test in self if np.isfinite(test.p_value)]
        if not tests:
            return f"Nothing can be concluded: {self[0].reason}."
        corrected = holm(np.array([test.p_value for test in tests]))
        rejected = [test.test for test, chance in zip(tests, corrected, strict=True) if chance <= SURE]
        number_of = f"corrected for {len(tests)} tests" if len(tests) > 1 else "one test"
        if not rejected:
            return (
                f"No evidence against calibration at the 5 % level ({number_of}). That does not prove it: these rows "
                "do not distinguish the scores from calibrated ones."
            )
        return f"Not calibrated, by {list_words(rejected)} at the 5 % level ({number_of})."


@overload
def calibration_test(  # type: ignore[overload-overlap]  # a text is a sequence of texts
    p: Predictions,
    what: What = "ece",
    *,
    groups: int = 10,
    seen: bool = False,
    resamples: int | None = None,
    seed: int = 0,
) -> CalibrationTest: ...


@overload
def calibration_test(
    p: Predictions,
    what: Sequence[What],
    *,
    groups: int = 10,
    seen: bool = False,
    resamples: int | None = None,
    seed: int = 0,
) -> CalibrationTests: ...


def calibration_test(
    p: Predictions,
    what: What | Sequence[What] = "ece",
    *,
    groups: int = 10,
    seen: bool = False,
    resamples: int | None = None,
    seed: int = 0,
) -> CalibrationTest | CalibrationTests:
    """Test whether a perfectly calibrated model could have given these outcomes: small p-values mean miscalibration.

    A measure is compared with its values on outcomes drawn from the scores themselves. Rows in clusters share their
    noise: there all tests draw the outcomes of whole clusters together, with the correlation within clusters that the
    residuals show.

    Parameters
    ----------
    p : Predictions
        The rows to test.
    what : str, Measure, function, or sequence of these, default "ece"
        "spiegelhalter", "hosmer_lemeshow", or any measure that is lower for better calibration.
    groups : int, default 10
        The number of groups of Hosmer-Lemeshow. Where one expects less than one event, or less than one row without,
        outcomes are drawn.
    seen : bool, default False
        Whether the model was trained on these rows, for Hosmer-Lemeshow.
    resamples : int, optional
        How many sets of outcomes are drawn, by default as many as the measure asks for.
    seed : int, default 0
        The seed of all random numbers.

    Returns
    -------
    CalibrationTest or CalibrationTests
        The statistic with its p-value; where `what` names several, a list with one sentence on all of them.

    Examples
    --------
    >>> p = Predictions.binary([0.1, 0.3, 0.6, 0.9] * 30, [0, 0, 1, 1] * 30)
    >>> calibration_test(p, "spiegelhalter").p_value < 0.05
    True
    >>> calibration_test(p, ["spiegelhalter", "atb"], resamples=100).sentence
    'Not calibrated, by spiegelhalter and atb at the 5 % level (corrected for 2 tests).'
    """
    if isinstance(what, Sequence) and not isinstance(what, str):
        options: dict[str, Any] = {"groups": groups, "seen": seen, "resamples": resamples, "seed": seed}
        return CalibrationTests(calibration_test(p, one, **options) for one in what)
    check_predictions(p)
    check_resamples(resamples, least=1)
    if what == SPIEGELHALTER:
        return _of_statistic(p, SPIEGELHALTER, _spiegelhalter, None, resamples, seed)
    if what == HOSMER_LEMESHOW:
        return _hosmer_lemeshow(p, groups, seen, resamples, seed)
    return _of_measure(p, what, resamples, seed)


# -- statistics of known distribution -------------------------------------------------------------


def _spiegelhalter(curve: Curve) -> float:
    """Spiegelhalter's z: residuals weighed by how far the score is from one half, over their standard deviation."""
    s, w = curve.scores, curve.weights
    lean = 1 - 2 * s
    variance = float(((w if is_whole(w) else w**2) * lean**2) @ (s * (1 - s)))
    off = float((w * lean) @ (curve.outcomes - s))
    return off / float(np.sqrt(variance)) if variance > 0 else (0.0 if off == 0 else float(np.sign(off)) * np.inf)


def _hosmer_lemeshow(p: Predictions, groups: int, seen: bool, resamples: int | None, seed: int) -> CalibrationTest:
    least = 3 if seen else 2
    if groups < least:
        fix = "use 10"
        raise InputError("groups", expected=f"at least {least}", got=str(groups), fix=fix)

    def statistic(curve: Curve) -> float:
        return hosmer_lemeshow_of(groups_of_whole_scores(curve, groups))

    bins = groups_of_whole_scores(p.curve, groups)
    left, few = len(bins.count), None
    if p.n_effective < ROWS_PER_GROUP * left:
        few = f"too few rows for {left} groups: {p.n_effective:.3g}, at least {ROWS_PER_GROUP * left} are needed"
    elif seen and left < least:
        few = (
            f"too few distinct scores for a test of rows that the model has seen: {left} groups, at least 3 are needed"
        )
    freedom = left - 2 if seen else left
    fewest = float(np.minimum(bins.score_sum, bins.count - bins.score_sum).min() * bins.weight_unit)
    rare = not seen and fewest < FEWEST_EXPECTED - 1e-9
    return _of_statistic(p, HOSMER_LEMESHOW, statistic, freedom, resamples, seed, few, simulate=rare)


def groups_of_whole_scores(curve: Curve, groups: int) -> Bins:
    """Groups of about equal size, each ending at the first distinct score at or past its share; fewer where many tie.

    >>> p = Predictions.binary([0.2, 0.2, 0.2, 0.6, 0.8, 0.9], [0, 1, 0, 1, 1, 1])
    >>> groups_of_whole_scores(p.curve, 3).count
    array([3., 1., 2.])
    """
    starts = np.append(0, curve.group_ends[:-1])
    weight = np.cumsum(np.add.reduceat(curve.weights, starts))
    shares = weight[-1] * np.arange(1, groups + 1) / groups
    last = np.unique(np.minimum(weight.searchsorted(shares * (1 - 1e-12)), len(weight) - 1))
    first = starts[np.append(0, last[:-1] + 1)]
    sums = (curve.weights, curve.weights * curve.scores, curve.weights * curve.outcomes)
    count, score, outcome = (np.add.reduceat(values, first).astype(np.float64) for values in sums)
    return Bins(count, score, outcome, curve.total, curve.weight_unit)


def hosmer_lemeshow_of(bins: Bins) -> float:
    """Squared differences of observed and expected events in groups, each over its binomial variance, added up."""
    observed, expected, size = (part * bins.weight_unit for part in (bins.outcome_sum, bins.score_sum, bins.count))
    variance = expected * (1 - np.divide(expected, size, out=np.zeros_like(size), where=size > 0))
    off = (observed - expected) ** 2
    known = variance > 1e-12 * np.maximum(size, 1)
    impossible = bool((off[~known] > 1e-12).any())  # an event that the scores rule out
    return np.inf if impossible else float((off[known] / variance[known]).sum())


def _of_statistic(
    p: Predictions,
    name: str,
    statistic: Callable[[Curve], float],
    freedom: int | None,
    resamples: int | None,
    seed: int,
    few: str | None = None,
    *,
    simulate: bool = False,
) -> CalibrationTest:
    """Test a z (two-sided) or, with degrees of freedom, chi-squared statistic; of clusters, by drawn outcomes."""
    from scipy.special import chdtrc, chdtri, ndtr, ndtri

    value, two_sided = statistic(p.curve), freedom is None
    method: Method = "normal" if freedom is None else "chi-squared"
    expected, upper = (0.0, -float(ndtri(0.025))) if freedom is None else (float(freedom), float(chdtri(freedom, 0.05)))
    chance = float(2 * ndtr(-abs(value)) if freedom is None else chdtrc(freedom, value))
    reason = few or _too_few(p)
    if (p.clusters is not None or simulate) and reason is None:
        method, freedom = "simulated outcomes" if p.clusters is None else "simulated outcomes of clusters", None
        size = affordable(DRAWS, p.n) if resamples is None else resamples
        draws = (_draws if p.clusters is None else _clustered_draws)(p, p.curve, statistic, size, seed)
        reached = np.abs(draws) >= abs(value) - 1e-12
        chance, expected = (1 + int(reached.sum())) / (len(draws) + 1), float(draws.mean())
        upper = float(np.quantile(np.abs(draws) if two_sided else draws, 0.95))
    return CalibrationTest(
        test=name,
        statistic=value,
        expected=expected,
        upper=upper,
        degrees_of_freedom=freedom,
        p_value=np.nan if reason else chance,
        method=method,
        blind_to=BLIND[name],
        n=p.n,
        k=p.k,
        reason=reason,
    )


# -- measures, by drawn outcomes ------------------------------------------------------------------


def _of_measure(p: Predictions, what: What, resamples: int | None, seed: int) -> CalibrationTest:
    chosen, name = resolve(what)
    if chosen.direction != "down":
        raise InputError(
            "calibration_test",
            expected=f"a measure where lower is better, {SPIEGELHALTER} or {HOSMER_LEMESHOW}",
            got=f"'{name}'",
            fix="use for instance ece",
        )
    chosen.check_shape(p)
    rows = Sampling.of(p, seed=seed, resamples=resamples)
    size = rows.affordable(chosen.resamples)
    value, reason = chosen(p), _too_few(p)
    if p.clusters is None:
        draws = chosen.draws_if_calibrated(p, rows)
    elif isinstance(chosen, CurveMeasure):
        draws = np.full(1, np.nan) if reason else _clustered_draws(p, chosen.curve(p), chosen.from_curve, size, seed)
    else:
        expected = "a measure of the curve of scores and outcomes, whose outcomes can be drawn by cluster"
        raise InputError(name, expected=expected, got="rows in clusters", fix="use for instance ece or atb")
    chance = (1 + (draws >= value - 1e-12).sum()) / (len(draws) + 1)
    return CalibrationTest(
        test=name,
        statistic=value,
        expected=float(draws.mean()),
        upper=float(np.quantile(draws, 0.95)),
        degrees_of_freedom=None,
        p_value=np.nan if reason else float(chance),
        method="simulated outcomes" if p.clusters is None else "simulated outcomes of clusters",
        blind_to=chosen.blind_to or f"what {chosen.title[:1].lower()}{chosen.title[1:]} does not see",
        n=p.n,
        k=p.k,
        reason=reason,
    )


def _draws(p: Predictions, curve: Curve, of: Callable[[Curve], float], count: int, seed: int) -> Array:
    """The statistic of outcomes that are drawn row by row."""
    rng = np.random.default_rng(seed)
    draws = (curve.with_outcomes((rng.random(curve.n) < curve.scores).astype(np.float64)) for _ in range(count))
    return np.array([of(sample) for sample in draws])


def _clustered_draws(p: Predictions, curve: Curve, of: Callable[[Curve], float], count: int, seed: int) -> Array:
    """The statistic of outcomes that are drawn for whole clusters."""
    assert p.clusters is not None
    rng = np.random.default_rng(seed)
    clusters = np.unique(p.clusters[curve.order], return_inverse=True)[1]
    redrawn = ClusteredOutcomes.estimate(curve.scores, curve.outcomes, clusters, curve.weights, rng)
    return np.array([of(curve.with_outcomes(outcomes)) for outcomes in redrawn.draws(count, rng)])


def _too_few(p: Predictions) -> str | None:
    if p.clusters is None:
        return None
    return too_few_rows(int(p.clusters.max()) + 1, clusters=True)
