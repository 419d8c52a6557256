"""What must hold for any predictions (docs/methods/vectors.md#properties).

Values are drawn coarse, so that ties and bin edges are common.
"""

import math

import numpy as np
import pytest
import slow_measures
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from synthetic import any_classes

from calibrant.core.errors import UndefinedMeasureError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import make, names

# Drawn logits of 0 and 1 may look like probabilities.
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.core.errors.ProbabilitiesAsLogitsWarning")

VARIANTS = [
    "ece:bins=10",
    "ece:bins=20,closed=left",
    "ece:bins=5,norm=2",
    *[f"ece:bins=4,scheme=mass,mass_rule={mass_rule}" for mass_rule in ("sort", "midpoint", "interp", "stride")],
    "mce:bins=4,scheme=mass",
    "debiased:bins=10,scheme=width",
    "classwise:bins=10",
    "classwise:bins=4,scheme=mass",
    "classwise:bins=4,scheme=mass,mass_rule=midpoint",
    "sece:h=0.1",
    "sece:leave_one_out=true",
    "sece:form=eq5",
    "mmce:width=0.05",
    "brier:form=top",
    "brier:form=mean_k",
    "refinement:loss=brier,by=isotonic,folds=2",
]
SPECS = any_classes(names()) + VARIANTS  # measures of two classes: test_positive.py
MAY_BE_NAN = {"auroc_correct", "aupr_success", "aupr_error", "fpr95"}
NEEDS_ROWS = {"refinement", "calibration"}  # at least one row per fold
FOLDS = 5
QUICK = {"phases": [Phase.explicit, Phase.generate]}  # do not spend a minute on shrinking a failure of a slow measure


def name_of(spec):
    return spec.partition(":")[0]


def value_of(spec, p):
    """The measure of these rows; NaN where it says that it does not exist on them."""
    try:
        return make(spec)(p)
    except UndefinedMeasureError:
        assert make(spec).undefined_for
        return math.nan


def same(a, b):
    """Equal up to rounding; a root near zero turns 1e-17 into 3e-9, so squares may agree instead."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or abs(a * a - b * b) < 1e-13


some_rows = st.integers(FOLDS, 24)


@st.composite
def logit_data(draw, rows=some_rows):
    """Logits that are multiples of 1/4 in -6..6: softmax of many rows coincides, shifts by integers are exact."""
    n, k = draw(rows), draw(st.integers(2, 4))
    quarters = draw(arrays.arrays(np.int64, (n, k), elements=st.integers(-24, 24)))
    labels = draw(arrays.arrays(np.int64, n, elements=st.integers(0, k - 1)))
    return Predictions.from_logits(quarters / 4, labels)


@st.composite
def prob_data(draw, rows=some_rows):
    """Probabilities that are multiples of 1/20: ties, exact bin edges, exact 0 and 1."""
    n, k = draw(rows), draw(st.integers(2, 4))
    cuts = draw(arrays.arrays(np.int64, (n, k - 1), elements=st.integers(0, 20)))
    ends = np.concatenate([np.zeros((n, 1)), np.sort(cuts, axis=1), np.full((n, 1), 20)], axis=1)
    labels = draw(arrays.arrays(np.int64, n, elements=st.integers(0, k - 1)))
    return Predictions.from_probs(np.diff(ends, axis=1) / 20, labels)


any_data = st.one_of(logit_data(), prob_data())
binnings = st.sampled_from(
    ["", ",closed=left", ",scheme=mass", ",scheme=mass,mass_rule=midpoint", ",scheme=mass,mass_rule=stride"]
)


# -- inequalities ---------------------------------------------------------------------------------


@given(any_data, st.integers(1, 30), binnings)
def test_ece_is_never_below_the_gap(p, bins, binning):
    assert make(f"ece:bins={bins}{binning}")(p) >= abs(make("gap")(p)) - 1e-12


@given(any_data)
def test_ks_is_never_below_the_gap(p):
    assert make("ks")(p) >= abs(make("gap")(p)) - 1e-12


@given(any_data)
def test_smooth_is_never_below_the_gap(p):
    """Reflection keeps the mass, and |integral| <= integral of | |."""
    assert make("smooth")(p) >= abs(make("gap")(p)) - 1e-6


@given(any_data, binnings)
def test_one_bin_is_the_gap(p, binning):
    gap = abs(make("gap")(p))
    for name in ("ece", "mce", "avgce", "rmsce"):
        assert same(make(f"{name}:bins=1{binning}")(p), gap)


@given(any_data, st.integers(1, 12), st.integers(2, 5), st.sampled_from(["right", "left"]))
def test_refining_bins_never_lowers_the_ece(p, bins, factor, closed):
    coarse = make(f"ece:bins={bins},closed={closed}")(p)
    assert make(f"ece:bins={bins * factor},closed={closed}")(p) >= coarse - 1e-12


@given(any_data, st.integers(1, 12), st.integers(2, 5))
def test_refining_bins_never_lowers_the_class_wise_error(p, bins, factor):
    assert make(f"classwise:bins={bins * factor}")(p) >= make(f"classwise:bins={bins}")(p) - 1e-12


@given(any_data, st.integers(1, 20), binnings)
def test_norms_are_ordered(p, bins, binning):
    """Mean <= root mean square <= maximum, and the overconfident part is no more than the whole."""
    ece, rmsce, mce, over = (
        make(f"{name}:bins={bins}{binning}")(p) for name in ("ece", "rmsce", "mce", "overconfidence")
    )
    assert over - 1e-12 <= ece <= rmsce + 1e-12
    assert rmsce <= mce + 1e-12


@pytest.mark.parametrize(
    "spec", ["ece", "ece:bins=7,closed=left", "ece:norm=2", "rmsce", "resolution", "ece:dialect=netcal"]
)
def test_outcomes_drawn_in_bins_are_those_drawn_on_the_curve(spec):
    rng = np.random.default_rng(2)
    scores = np.round(rng.random(400), 2)  # many on the edges of bins
    p, measure = Predictions.binary(scores, rng.random(400) < scores), make(spec)
    ours = measure.draws_if_calibrated(p, Sampling.of(p, seed=5, resamples=20))
    slow, curve = np.random.default_rng(5), measure.curve(p)
    for number in ours:
        assert number == measure.from_curve(curve.with_outcomes((slow.random(400) < curve.scores).astype(np.float64)))


@given(any_data, st.integers(1, 20), binnings)
def test_debiased_is_never_above_the_biased(p, bins, binning):
    assert make(f"debiased:bins={bins}{binning}")(p) <= make(f"rmsce:bins={bins}{binning}")(p) + 1e-9


# -- identities -----------------------------------------------------------------------------------


@given(any_data, st.integers(1, 20))
def test_brier_decomposition_is_exact(p, bins):
    """docs/methods/measures.md#reliability, the terms inside bins from the slow bins."""
    pairs = list(zip(p.confidence.tolist(), p.correct.astype(float).tolist(), strict=True))
    variance = covariance = 0.0
    for members in slow_measures.filled(slow_measures.make_bins(pairs, bins, "width", "right", "sort")):
        conf, acc = slow_measures.confidence(members), slow_measures.accuracy_in(members)
        variance += sum((c - conf) ** 2 for c, _ in members) / p.n
        covariance += 2 * sum((c - conf) * (a - acc) for c, a in members) / p.n
    reliability, resolution = make(f"reliability:bins={bins}")(p), make(f"resolution:bins={bins}")(p)
    whole = reliability - resolution + make("uncertainty")(p) + variance - covariance
    assert make("brier:form=top")(p) == pytest.approx(whole, abs=1e-12)


@given(any_data)
def test_forms_of_one_measure_belong_together(p):
    assert same(make("error")(p), 1 - make("accuracy")(p))
    assert same(make("brier:form=half")(p), make("brier")(p) / 2)
    assert same(make("brier:form=mean_k")(p), make("brier")(p) / p.k)
    assert same(make("rmsce")(p), make("ece:norm=2")(p))
    assert same(make("rmsce")(p) ** 2, make("reliability")(p))
    assert same(make("calibration")(p), make("nll")(p) - make("refinement")(p))


@given(any_data)
def test_tace_with_nothing_below_the_threshold_is_ace(p):
    assume(p.probs.min() > 0)
    assert same(make("tace:bins=4,threshold=0")(p), make("ace_nixon:bins=4")(p))


# -- what a measure must not see ------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=25, **QUICK)
@given(data=st.data())
def test_blind_to_the_order_of_rows(spec, data):
    p = data.draw(any_data)
    order = data.draw(st.permutations(range(p.n)))
    assert same(value_of(spec, p.take(order)), value_of(spec, p))


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=25, **QUICK)
@given(data=st.data())
def test_blind_to_a_constant_added_to_a_row_of_logits(spec, data):
    """The sums are exact, so the softmax is the same: a constant of thousands may not move a value over an edge."""
    p = data.draw(logit_data())
    constants = data.draw(arrays.arrays(np.int64, (p.n, 1), elements=st.integers(-5000, 5000)))
    shifted = Predictions.from_logits(p.values + constants, p.labels)
    assert same(value_of(spec, shifted), value_of(spec, p))


# Not here: debiased, kde and leave_one_out know n; eq5 grows with n; interp's positions depend on n; the chunks of
# tace depend on how many are above the threshold; refinement and calibration deal rows to folds.
DOUBLED = [
    "ece",
    "ece:bins=7,closed=left",
    "ece:bins=4,norm=2",
    *[f"ece:bins=4,scheme=mass,mass_rule={mass_rule}" for mass_rule in ("sort", "midpoint", "stride")],
    *[f"{name}:bins=4,scheme=mass" for name in ("mce", "avgce", "rmsce", "classwise", "ace_nixon", "resolution")],
    *["mce", "avgce", "rmsce", "overconfidence", "classwise", "reliability", "resolution", "tace:scheme=width"],
    *["gap", "ks", "mmce", "smooth", "sece", "sece:h=0.1", "nll", "brier", "entropy", "accuracy", "error"],
    *["auroc_correct", "aupr_success", "aupr_error", "fpr95", "aurc", "eaurc", "uncertainty"],
    *["oe_ratio", "atb", "cutoff"],
]


@pytest.mark.parametrize("spec", DOUBLED)
@settings(max_examples=15, **QUICK)
@given(data=st.data())
def test_every_row_twice_changes_nothing(spec, data):
    """With 4 equal-mass bins and a multiple of 4 rows, so that chunks double exactly."""
    fours = st.sampled_from([8, 12, 16])
    p = data.draw(st.one_of(logit_data(fours), prob_data(fours)))
    twice = p.take(np.repeat(np.arange(p.n), 2))
    assert same(make(spec)(twice), make(spec)(p))


# -- bounds ---------------------------------------------------------------------------------------


def assert_inside_bounds(spec, p):
    measure = make(spec)
    value = value_of(spec, p)
    if math.isnan(value) and measure.undefined_for:
        return
    if math.isnan(value):
        assert name_of(spec) in MAY_BE_NAN
        assert p.correct.all() or not p.correct.any()
        return
    low, high = measure.bounds
    assert math.isfinite(value), spec
    assert low - 1e-12 <= value <= high + 1e-12, spec


@given(any_data)
def test_finite_and_inside_bounds(p):
    for spec in SPECS:
        assert_inside_bounds(spec, p)


@settings(max_examples=30, **QUICK)
@given(st.data())
def test_finite_and_inside_bounds_with_extreme_logits(data):
    n, k = data.draw(st.integers(FOLDS, 12)), data.draw(st.integers(2, 4))
    extreme = st.sampled_from([-1e30, -1e4, -100.0, -1e-9, 0.0, 1e-300, 1.0, 50.0, 1e4, 1e30])
    logits = data.draw(arrays.arrays(np.float64, (n, k), elements=extreme))
    labels = data.draw(arrays.arrays(np.int64, n, elements=st.integers(0, k - 1)))
    p = Predictions.from_logits(logits, labels)
    for spec in SPECS:
        assert_inside_bounds(spec, p)


@pytest.mark.parametrize("spec", [spec for spec in SPECS if name_of(spec) not in NEEDS_ROWS])
def test_two_rows_are_enough(spec):
    for labels in ([0, 0], [0, 1], [1, 1]):
        for probs in ([[0.9, 0.1], [0.6, 0.4]], [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]):
            assert_inside_bounds(spec, Predictions.from_probs(probs, labels))


# -- the same predictions in another form ---------------------------------------------------------

smooth_draws = st.tuples(st.integers(20, 60), st.integers(2, 5), st.integers(0, 10**6))


def gaussian_logits(n, k, seed):
    """No ties and nothing on an edge: here a changed last digit may not matter."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    return logits, (logits + rng.gumbel(size=(n, k))).argmax(axis=1)


@settings(max_examples=10)
@given(smooth_draws)
def test_probabilities_and_their_logarithms_agree(draws):
    logits, labels = gaussian_logits(*draws)
    from_logits = Predictions.from_logits(logits, labels)
    probs = from_logits.probs
    from_probs = Predictions.from_probs(probs, labels)
    from_logs = Predictions.from_logits(np.log(probs), labels)
    for spec in SPECS:
        value = make(spec)(from_logits)
        assert make(spec)(from_probs) == pytest.approx(value, abs=1e-7, nan_ok=True), spec
        assert make(spec)(from_logs) == pytest.approx(value, abs=1e-7, nan_ok=True), spec


@settings(max_examples=10)
@given(smooth_draws)
def test_float32_is_close_to_float64(draws):
    """Rounding to 24 bits moves a probability by 1e-7; the sum of n kernels in eq5 moves n times as far."""
    logits, labels = gaussian_logits(*draws)
    exact = Predictions.from_logits(logits, labels)
    rounded = Predictions.from_logits(logits.astype(np.float32), labels)
    for spec in SPECS:
        assert make(spec)(rounded) == pytest.approx(make(spec)(exact), abs=2e-4, nan_ok=True), spec
