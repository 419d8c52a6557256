"""Every measure against its slow twin, on data chosen to hurt: ties, edges, saturation, absent classes."""

import math

import numpy as np
import pytest
import slow_measures
from slow_measures import kde_bandwidth, smooth_error, softmax

from calibrant.core.predictions import Predictions
from calibrant.measures import make, names

GRID_STEP = 2.2 / (2**14 - 1)  # of the KDE

BINNED = [
    {},
    {"bins": 1},
    {"bins": 2},
    {"bins": 10},
    {"bins": 20, "closed": "left"},
    {"bins": 7, "closed": "left"},
    {"bins": 100},
    {"bins": 5, "scheme": "mass"},
    {"bins": 5, "scheme": "width"},
    {"bins": 8, "scheme": "mass", "em": "sort"},
    {"bins": 8, "scheme": "mass", "em": "midpoint"},
    {"bins": 8, "scheme": "mass", "em": "stride"},
    {"bins": 6, "scheme": "mass", "em": "midpoint", "closed": "left"},
    {"bins": 6, "scheme": "mass", "em": "stride", "closed": "left"},
    {"bins": 30, "scheme": "mass", "em": "midpoint"},
    {"bins": 30, "scheme": "mass", "em": "stride"},
]
INTERP = [{"bins": bins, "scheme": "mass", "em": "interp"} for bins in (4, 15)]
NORMS = [{"bins": 10, "norm": 2.0}, {"bins": 5, "scheme": "mass", "norm": 2.0}, {"bins": 10, "norm": 3.5}]

OPTIONS = {
    "ece": BINNED + INTERP + NORMS,
    "mce": BINNED + INTERP + [{"bins": 10, "min_count": 3}, {"bins": 10, "min_count": 1000}],
    "avgce": BINNED + INTERP,
    "rmsce": BINNED + INTERP,
    "debiased": BINNED + INTERP,
    "overconfidence": BINNED + INTERP,
    "reliability": BINNED + INTERP,
    "resolution": BINNED + INTERP,
    "classwise": BINNED + INTERP + NORMS,
    "ace_nixon": BINNED + INTERP,
    "tace": BINNED + INTERP + [{"threshold": 0.0}, {"threshold": 0.3}, {"bins": 3, "threshold": 0.9}],
    "mmce": [{}, {"width": 0.05}, {"width": 2.0}, {"width": 0.002}],
    "sece": [{}, {"h": 0.1}, {"h": 0.5}, {"h": 2.0}, {"h": 0.001}, {"form": "eq5"}, {"leave_one_out": True}],
    "brier": [{}, {"form": "mean_k"}, {"form": "half"}, {"form": "top"}],
    "nll": [{}, {"floor": 0.01}],
    "fpr95": [{}, {"tpr": 0.5}, {"tpr": 0.8}, {"tpr": 1.0}],
    **{name: [{}] for name in ("gap", "ks", "entropy", "accuracy", "error", "uncertainty")},
    **{name: [{}] for name in ("auroc", "aupr_success", "aupr_error", "aurc", "eaurc")},
}
ELSEWHERE = {"kde", "smooth", "refinement", "calibration"}  # compared below
ROOTS = {"debiased", "rmsce", "mmce"}  # a root near zero turns a rounding error of 1e-17 into 3e-9


def spec_of(name, options):
    text = ",".join(f"{key}={str(value).lower()}" for key, value in options.items())
    return f"{name}:{text}" if text else name


CASES = [pytest.param(name, options, id=spec_of(name, options)) for name, many in OPTIONS.items() for options in many]


def slow_input(p):
    probs = softmax(p.values) if p.kind == "logits" else p.values.tolist()
    return probs, p.labels.tolist()


def assert_close(ours, theirs, name, options):
    if name in ROOTS or options.get("norm", 1.0) != 1.0:
        assert abs(ours - theirs) < 1e-9 or abs(ours**2 - theirs**2) < 1e-14
    else:
        assert ours == pytest.approx(theirs, abs=1e-9, rel=1e-12, nan_ok=True)


def test_every_measure_has_a_slow_twin():
    assert set(names()) == set(OPTIONS) | ELSEWHERE


@pytest.mark.parametrize(("name", "options"), CASES)
def test_agrees_on_every_data_set(any_data, name, options):
    if name in ("avgce", "resolution") and options.get("em") == "interp" and len(set(any_data.confidence)) == 1:
        pytest.skip("the interp rule drops every sample: see test_all_samples_dropped")
    theirs = getattr(slow_measures, name)(*slow_input(any_data), **options)
    assert_close(make(spec_of(name, options))(any_data), theirs, name, options)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_kde_agrees_to_the_error_of_linear_binning(any_data, norm):
    """Our docstring: relative error about (step / bandwidth)^2, from putting every sample on a grid."""
    probs, labels = slow_input(any_data)
    allowed = (GRID_STEP / kde_bandwidth(probs, labels)) ** 2
    theirs = slow_measures.kde(probs, labels, norm=norm)
    assert make(f"kde:norm={norm}")(any_data) == pytest.approx(theirs, abs=1e-5 + allowed)


def test_smooth_agrees_to_the_error_of_integration(any_data):
    """Ours and the slow one both integrate |.| on a grid of a few thousand points: 1e-6 covers both."""
    assert make("smooth")(any_data) == pytest.approx(slow_measures.smooth(*slow_input(any_data)), abs=1e-6)


@pytest.mark.parametrize("name", ["refinement", "calibration"])
@pytest.mark.parametrize(
    "options", [{}, {"loss": "brier", "folds": 3}, {"by": "isotonic"}, {"loss": "brier", "by": "isotonic"}], ids=str
)
@pytest.mark.parametrize("data", ["three classes", "ten classes", "underconfident", "absent class"])
def test_recalibrated_losses_agree(make_data, name, options, data):
    """Where a finite temperature exists and no probability is below 1e-12: the slow one starts from probabilities."""
    p = make_data(data)
    theirs = getattr(slow_measures, name)(*slow_input(p), **options)
    assert make(spec_of(name, options))(p) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("name", ["ece", "mce", "rmsce", "debiased", "avgce", "overconfidence", "resolution"])
def test_all_samples_dropped(name):
    """With one confidence for all, the interp rule (lower < c <= upper) leaves nothing: the error is 0."""
    p = Predictions.from_probs([[0.8, 0.2]] * 4, [0, 0, 1, 0])
    assert make(f"{name}:scheme=mass,em=interp")(p) == 0.0


def test_leave_one_out_with_one_far_neighbour():
    """The neighbour 6.8 bandwidths away has weight 1e-10: above the floor of 1e-12, so it alone is the accuracy."""
    p = Predictions.from_probs([[0.6, 0.4], [0.668, 0.332]], [0, 1])
    theirs = slow_measures.sece(*slow_input(p), leave_one_out=True)
    assert theirs == pytest.approx((abs(0 - 0.6) + abs(1 - 0.668)) / 2, abs=1e-9)
    assert make("sece:leave_one_out=true")(p) == pytest.approx(theirs, abs=1e-9)


def test_split_ties_share_their_hits_evenly():
    """Four samples at 0.8, one wrong, cut into two chunks: each chunk gets 1.5 hits, in whatever order they come."""
    for labels in ([0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]):
        p = Predictions.from_probs([[0.8, 0.2]] * 4, labels)
        assert make("ece:bins=2,scheme=mass")(p) == pytest.approx(0.05, abs=1e-12)
        assert make("classwise:bins=2,scheme=mass")(p) == pytest.approx(0.05, abs=1e-12)


def test_equal_mass_without_ties_is_the_plain_split(p):
    order = np.argsort(p.confidence, kind="stable")
    pieces = np.array_split(order, 7)
    assert len(set(p.confidence)) == p.n
    plain = sum(abs(p.confidence[part].sum() - p.correct[part].sum()) for part in pieces) / p.n
    assert make("ece:bins=7,scheme=mass")(p) == pytest.approx(plain, abs=1e-12)


# -- real files -----------------------------------------------------------------------------------

REAL = [
    ("ece", {}),
    ("ece", {"bins": 100, "closed": "left"}),
    ("ece", {"scheme": "mass"}),
    ("ece", {"scheme": "mass", "em": "midpoint"}),
    ("ece", {"scheme": "mass", "em": "interp"}),
    ("ece", {"scheme": "mass", "em": "stride"}),
    ("mce", {"min_count": 5}),
    ("avgce", {}),
    ("rmsce", {}),
    ("debiased", {}),
    ("classwise", {}),
    ("classwise", {"scheme": "mass", "norm": 2.0}),
    ("ace_nixon", {}),
    ("tace", {}),
    ("overconfidence", {}),
    ("mmce", {}),
    ("sece", {}),
    ("sece", {"form": "eq5"}),
    ("fpr95", {}),
    ("nll", {}),
    ("brier", {}),
    *[(name, {}) for name in ("gap", "ks", "auroc", "aurc", "eaurc", "entropy", "accuracy", "error")],
]


@pytest.fixture
def real(real_file):
    return Predictions.load(real_file).take(np.arange(2000))


def test_agrees_on_real_files(real):
    probs, labels = slow_input(real)
    for name, options in REAL:
        theirs = getattr(slow_measures, name)(probs, labels, **options)
        assert_close(make(spec_of(name, options))(real), theirs, name, options)


def test_kde_and_smooth_agree_on_real_files(real):
    """smooth is the sigma at which the directly integrated error equals sigma: one integral instead of thirty."""
    probs, labels = slow_input(real)
    allowed = (GRID_STEP / kde_bandwidth(probs, labels)) ** 2
    assert make("kde")(real) == pytest.approx(slow_measures.kde(probs, labels), abs=1e-5 + allowed)
    value = make("smooth")(real)
    assert smooth_error(probs, labels, value) == pytest.approx(value, abs=1e-6)


def test_precision_recall_agrees_on_real_files(real):
    """The slow one recounts at every threshold: 500 rows are enough."""
    few = real.take(np.arange(500))
    for name in ("aupr_success", "aupr_error"):
        theirs = getattr(slow_measures, name)(*slow_input(few))
        assert make(name)(few) == pytest.approx(theirs, abs=1e-9)
        assert not math.isnan(theirs)
