"""Every measure against its slow twin, on data chosen to hurt: ties, edges, saturation, absent classes."""

import inspect
import math

import numpy as np
import pytest
import slow_measures
from entry_options import options_of, values_of
from pairwise import pairwise
from slow_measures import kde_bandwidth, smooth_error, softmax
from synthetic import DATA, suited

from calibrant.core.predictions import Predictions
from calibrant.measures import RankingMeasure, find, make, names

GRID_STEP = 2.2 / (2**14 - 1)  # of the KDE

VALUES = {  # of an option, where more than the class itself suggests is worth a try
    "bins": [15, 1, 2, 5, 7, 10, 20, 100],
    "norm": [1.0, 2.0, 3.5],
    "min_count": [1, 3, 1000],
    "threshold": [0.01, 0.0, 0.3, 0.9],
    "width": [0.4, 0.05, 2.0, 0.002],
    "h": [0.01, 0.1, 0.5, 2.0, 0.001],
    "floor": [1e-12, 0.01],  # none is exact from logits, which the slow one never sees
    "tpr": [0.95, 0.5, 0.8, 1.0],
}
INTEGRATED = {"kde", "smooth", "refinement", "calibration"}  # numerical: compared below, each to its own accuracy
ROOTS = {"debiased", "rmsce", "mmce"}  # a root near zero turns a rounding error of 1e-17 into 3e-9


def twin_of(name):
    """The slow function of the same name, if there is one. A measure without a twin has its example to prove it."""
    twin = getattr(slow_measures, name, None)
    return twin if twin and list(inspect.signature(twin).parameters)[:2] == ["probs", "labels"] else None


TWINS = [name for name in names() if twin_of(name) and name not in INTEGRATED]


def spec_of(name, options):
    text = ",".join(f"{key}={str(value).lower()}" for key, value in options.items())
    return f"{name}:{text}" if text else name


def slow_input(p):
    probs = softmax(p.values) if p.score_type == "logits" else p.values.tolist()
    return probs, p.labels.tolist()


def agree(ours, theirs, name, options):
    if math.isnan(theirs):
        return math.isnan(ours)
    close = math.isclose(ours, theirs, abs_tol=1e-9, rel_tol=1e-12)
    roots = name in ROOTS or options.get("norm", 1.0) != 1.0
    return close or (roots and abs(ours**2 - theirs**2) < 1e-14)


def nothing_left(p, name, options):
    """With one confidence for all, the interp rule drops every sample: see test_all_samples_dropped."""
    return name in ("avgce", "resolution") and options.get("mass_rule") == "interp" and len(set(p.confidence)) == 1


def test_nearly_every_measure_has_a_slow_twin():
    assert len(TWINS) + len(INTEGRATED) >= 31
    assert set(names()) >= INTEGRATED


@pytest.mark.parametrize("name", TWINS)
def test_agrees_on_every_data_set(make_data, name):
    """Every value of every option meets every data set and every value of every other option."""
    known = [option for option in options_of(find(name)) if option in inspect.signature(twin_of(name)).parameters]
    factors = {option: VALUES.get(option) or values_of(find(name), option) for option in known}
    cases = pairwise(data=list(DATA), **factors) if factors else [{"data": data} for data in DATA]
    wrong = []
    for case in cases:
        options = {option: case[option] for option in known}
        p = suited(make(name), make_data(case["data"]))
        if isinstance(make(name), RankingMeasure):  # with logits they tell more rows apart: test_large_logits.py
            p = Predictions.from_probs(p.probs, p.labels)
        if nothing_left(p, name, options):
            continue
        theirs = twin_of(name)(*slow_input(p), **options)
        ours = make(spec_of(name, options))(p)
        if not agree(ours, theirs, name, options):
            wrong.append((case["data"], spec_of(name, options), ours, theirs))
    assert wrong == []


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
    assert make(f"{name}:scheme=mass,mass_rule=interp")(p) == 0.0


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
    ("ece", {"scheme": "mass", "mass_rule": "midpoint"}),
    ("ece", {"scheme": "mass", "mass_rule": "interp"}),
    ("ece", {"scheme": "mass", "mass_rule": "stride"}),
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
    *[(name, {}) for name in ("gap", "ks", "auroc_correct", "aurc", "eaurc", "entropy", "accuracy", "error")],
]


@pytest.fixture
def real(real_file):
    return Predictions.load(real_file).take(np.arange(1000))


def test_agrees_on_real_files(real):
    probs, labels = slow_input(real)
    for name, options in REAL:
        theirs = getattr(slow_measures, name)(probs, labels, **options)
        assert agree(make(spec_of(name, options))(real), theirs, name, options), (name, options)


def test_kde_and_smooth_agree_on_real_files(real):
    """smooth is the sigma at which the directly integrated error equals sigma: one integral instead of thirty."""
    few = real.take(np.arange(400))
    probs, labels = slow_input(few)
    allowed = (GRID_STEP / kde_bandwidth(probs, labels)) ** 2
    assert make("kde")(few) == pytest.approx(slow_measures.kde(probs, labels), abs=1e-5 + allowed)
    value = make("smooth")(few)
    assert smooth_error(probs, labels, value) == pytest.approx(value, abs=1e-6)


def test_precision_recall_agrees_on_real_files(real):
    """The slow one recounts at every threshold: 500 rows are enough."""
    few = real.take(np.arange(500))
    for name in ("aupr_success", "aupr_error"):
        theirs = getattr(slow_measures, name)(*slow_input(few))
        assert make(name)(few) == pytest.approx(theirs, abs=1e-9)
        assert not math.isnan(theirs)
