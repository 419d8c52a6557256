"""Curve, Bins and ClassCurves: what is counted where."""

import numpy as np
import pytest
import slow_measures

from calibrant.core.curves import curve as curves
from calibrant.core.curves.binning import Binning, equal_width_edges
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import Bins, Curve
from calibrant.core.curves.ranking import area_under_roc
from calibrant.core.predictions import Predictions
from calibrant.measures import CATALOGUE
from calibrant.measures._dialects import MASS_RULES

WAYS = [
    ("width", "right", "sort"),
    ("width", "left", "sort"),
    ("mass", "right", "sort"),
    ("mass", "right", "midpoint"),
    ("mass", "left", "midpoint"),
    ("mass", "right", "interp"),
    ("mass", "right", "stride"),
    ("mass", "left", "stride"),
]


def binning(count, scheme="width", *, closed="right", mass_rule="sort"):
    return Binning(count, scheme, closed, MASS_RULES[mass_rule])


def curve_of(pairs):
    scores, hits = np.array(pairs, dtype=float).T
    return Curve.sort(scores, hits)


def sums(bins):
    return [[float(x) for x in column] for column in (bins.count, bins.score_sum, bins.outcome_sum)]


# -- one curve ------------------------------------------------------------------------------------


def test_sorts_scores_and_keeps_pairs_together(p):
    curve = p.top_label
    assert (np.diff(curve.scores) >= 0).all()
    assert np.array_equal(curve.scores, p.confidence[curve.order])
    assert np.array_equal(curve.outcomes, p.correct[curve.order])
    assert sorted(curve.order) == list(range(p.n))


@pytest.mark.parametrize("digits", [1, 17])
def test_a_long_curve_is_the_same_curve(digits, monkeypatch):
    """Sorted as pairs, with sums from the rows: for scores with many ties and with none, 0 and 1 among them."""
    rng = np.random.default_rng(3)
    scores = np.concatenate([[0.0, -0.0, 1.0, 5e-324], rng.random(996).round(digits)])
    hits = rng.random(1000) < scores
    short = Curve.sort(scores, hits)
    monkeypatch.setattr(curves, "LONG", 100)
    monkeypatch.setattr(curves, "BLOCK", 64)
    long = Curve.sort(scores, hits)
    assert long.outcomes.itemsize == 1
    assert np.array_equal(long.scores, short.scores)
    assert np.array_equal(long.outcomes, hits[long.order])
    assert np.array_equal(long.scores, scores[long.order])
    for scheme, closed, mass_rule in WAYS:
        for count in (1, 7, 15):
            monkeypatch.setattr(curves, "LONG", 10**9)
            expected = short.bins(binning(count, scheme, closed=closed, mass_rule=mass_rule))
            monkeypatch.setattr(curves, "LONG", 100)
            got = long.bins(binning(count, scheme, closed=closed, mass_rule=mass_rule))
            np.testing.assert_allclose(sums(got), sums(expected), atol=1e-12)
    blocks = list(long.group_blocks())
    assert len(blocks) > 5
    for each, whole in zip(zip(*blocks, strict=True), short.groups, strict=True):
        assert np.array_equal(np.concatenate(each), whole)
    assert area_under_roc(long.group_blocks()) == pytest.approx(area_under_roc([short.groups]), abs=1e-15)


def test_edges_belong_to_the_bin_below_or_above():
    curve = curve_of([(0.0, 0), (0.2, 1), (0.4, 0), (0.5, 1), (1.0, 1)])
    assert curve.bins(binning(5)).count.tolist() == [2, 1, 1, 0, 1]  # (0, .2] (.2, .4] (.4, .6] ...
    assert curve.bins(binning(5, closed="left")).count.tolist() == [1, 1, 2, 0, 1]  # [0, .2) [.2, .4) [.4, .6) ...


@pytest.mark.parametrize("count", [3, 5, 7, 10, 49, 100])
def test_a_score_on_an_edge_is_on_that_edge_for_any_count(count):
    """m / count as a float is the edge itself, also where floor(c * count) would slip (0.29 * 100 = 28.99...)."""
    scores = np.array([m / count for m in range(1, count + 1)])
    curve = Curve.sort(scores, np.ones(count))
    assert curve.bins(binning(count)).count.tolist() == [1] * count
    assert curve.bins(binning(count, closed="left")).count.tolist() == [0] + [1] * (count - 2) + [2]


def test_edges_of_coarse_bins_are_edges_of_fine_bins():
    for count in range(1, 40):
        for factor in range(2, 6):
            assert np.isin(equal_width_edges(count), equal_width_edges(count * factor)).all()


def test_equal_shares_put_the_rest_in_the_first():
    curve = curve_of([(i / 10, 1) for i in range(8)])
    assert curve.bins(binning(3, "mass")).count.tolist() == [3, 3, 2]
    assert curve.bins(binning(10, "mass")).count.tolist() == [1] * 8 + [0, 0]


def test_a_cut_through_ties_shares_their_hits():
    curve = curve_of([(0.1, 1), (0.5, 1), (0.5, 0), (0.5, 0), (0.5, 0), (0.9, 1)])
    bins = curve.bins(binning(2, "mass"))
    assert bins.count.tolist() == [3, 3]
    assert bins.outcome_sum.tolist() == [1.5, 1.5]


def test_midpoint_keeps_ties_together():
    curve = curve_of([(0.1, 1), (0.5, 1), (0.5, 0), (0.5, 0), (0.5, 0), (0.9, 1)])
    assert curve.bins(binning(2, "mass", mass_rule="midpoint")).count.tolist() == [5, 1]


def test_interp_drops_the_smallest():
    curve = curve_of([(0.1, 1), (0.2, 1), (0.3, 0), (0.4, 0)])
    assert curve.bins(binning(2, "mass", mass_rule="interp")).count.tolist() == [2, 1]  # edges 0.1, 0.3, 0.4
    assert curve.bins(binning(2, "mass", mass_rule="interp")).n == 4


def test_stride_starts_bins_at_every_nth_value():
    curve = curve_of([(i / 10, 1) for i in range(1, 8)])
    assert curve.bins(binning(3, "mass", mass_rule="stride")).count.tolist() == [3, 2, 2]  # edges 0, 0.3, 0.5, 1


@pytest.mark.parametrize("count", [1, 2, 5, 15, 100])
@pytest.mark.parametrize(("scheme", "closed", "mass_rule"), WAYS)
def test_bins_agree_with_the_slow_bins(any_data, count, scheme, closed, mass_rule):
    curve = any_data.top_label
    ours = curve.bins(binning(count, scheme, closed=closed, mass_rule=mass_rule))
    pairs = list(zip(curve.scores.tolist(), curve.outcomes.tolist(), strict=True))
    theirs = slow_measures.filled(slow_measures.make_bins(pairs, count, scheme, closed, mass_rule))
    kept = ours.filled
    assert ours.n == curve.n
    assert len(ours.count) == count
    assert ours.count[kept].tolist() == [len(members) for members in theirs]
    assert ours.confidence[kept] == pytest.approx([slow_measures.confidence(m) for m in theirs], abs=1e-12)
    assert ours.accuracy[kept] == pytest.approx([slow_measures.accuracy_in(m) for m in theirs], abs=1e-12)


def test_empty_bins_have_no_weight_and_no_gap():
    bins = Bins(np.array([0.0, 4.0]), np.array([0.0, 3.0]), np.array([0.0, 2.0]), 4)
    assert bins.share.tolist() == [0, 1]
    assert bins.confidence.tolist() == [0, 0.75]
    assert bins.accuracy.tolist() == [0, 0.5]
    assert bins.gap.tolist() == [0, 0.25]
    assert bins.filled.tolist() == [False, True]


def test_tie_groups():
    curve = curve_of([(0.5, 1), (0.7, 0), (0.5, 0), (0.5, 1), (0.9, 1)])
    hits, misses = curve.groups
    assert curve.group_ends.tolist() == [3, 4, 5]
    assert hits.tolist() == [2, 0, 1]
    assert misses.tolist() == [1, 1, 0]


def test_repeat_is_the_curve_of_the_repeated_rows(tied):
    counts = np.random.default_rng(0).integers(0, 4, size=tied.n)
    repeated = tied.top_label.repeat(counts)
    fresh = tied.take(np.repeat(np.arange(tied.n), counts)).top_label
    assert np.array_equal(repeated.scores, fresh.scores)
    assert np.array_equal(repeated.groups, fresh.groups)
    assert sums(repeated.bins(binning(10))) == sums(fresh.bins(binning(10)))


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("levels", [None, 7], ids=["distinct", "ties"])
def test_tie_groups_of_a_resample_are_those_of_its_rows(levels, long, monkeypatch):
    if long:  # outcomes of one byte
        monkeypatch.setattr(curves, "LONG", 50)
    rng = np.random.default_rng(4)
    scores = rng.random(60) if levels is None else rng.integers(levels, size=60) / levels
    curve = Curve.sort(scores, (rng.random(60) < scores).astype(np.float64))
    for _ in range(5):
        counts = np.bincount(rng.integers(60, size=60), minlength=60)
        resample = curve.repeat(counts)
        plain = Curve(resample.scores, resample.outcomes, resample.order)
        for ours, slow in zip(resample.groups, plain.groups, strict=True):
            np.testing.assert_array_equal(ours, slow)
            assert ours.dtype == np.float64
        assert resample.n == plain.n == 60


def test_with_hits_keeps_the_scores(p):
    curve = p.top_label.with_outcomes(np.ones(p.n))
    assert curve.outcome_sum[-1] == p.n
    assert np.array_equal(curve.scores, p.top_label.scores)


# -- one curve per class --------------------------------------------------------------------------


def class_bins(p, *way, **options):
    """Bins of every class, all blocks together."""
    parts = [curves.bins(binning(*way, **options)) for curves in p.class_curves()]
    return [np.concatenate([getattr(b, name) for b in parts]) for name in ("count", "score_sum", "outcome_sum")]


@pytest.mark.parametrize("count", [1, 4, 15])
@pytest.mark.parametrize(("scheme", "closed", "mass_rule"), WAYS)
def test_class_curves_are_the_curves_of_the_classes(any_data, count, scheme, closed, mass_rule):
    ours = class_bins(any_data, count, scheme, closed=closed, mass_rule=mass_rule)
    for c in range(any_data.k):
        one = Curve.sort(any_data.probs[:, c], (any_data.labels == c).astype(float))
        bins = one.bins(binning(count, scheme, closed=closed, mass_rule=mass_rule))
        for got, wanted in zip(ours, (bins.count, bins.score_sum, bins.outcome_sum), strict=True):
            assert got[c] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize(("keep", "chunk"), [(1, 1), (100, 7), (330, 64), (440, 1)])
def test_blocks_of_classes_hold_the_same_numbers(monkeypatch, kind, keep, chunk):
    rng = np.random.default_rng(1)
    logits, labels = rng.normal(size=(110, 12)), rng.integers(0, 12, size=110)
    values = logits if kind == "logits" else Predictions.from_logits(logits, labels).probs

    def build():
        return Predictions.from_logits(values, labels) if kind == "logits" else Predictions.from_probs(values, labels)

    whole = build()
    assert len(list(whole.class_curves())) == 1
    monkeypatch.setattr("calibrant.core.predictions.constants.KEEP_ELEMENTS", keep)
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", chunk)
    blocks = build()
    assert len(list(blocks.class_curves())) > 1
    for way in WAYS:
        for a, b in zip(class_bins(blocks, 6, way[0], closed=way[1], mass_rule=way[2]),
                        class_bins(whole, 6, way[0], closed=way[1], mass_rule=way[2]), strict=True):  # fmt: skip
            assert np.array_equal(a, b)
    assert np.array_equal(blocks.probs, whole.probs)
    assert np.array_equal(blocks.confidence, whole.confidence)
    assert np.array_equal(blocks.log_probs, whole.log_probs)


def test_two_threads_give_what_one_gives(monkeypatch):
    rng = np.random.default_rng(2)
    logits, labels = rng.normal(size=(300, 40)), rng.integers(0, 40, size=300)
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", 64)
    results = []
    for worth in (10**12, 1):
        monkeypatch.setattr("calibrant.core.parallel.WORTH_A_THREAD", worth)
        results.append(class_bins(Predictions.from_logits(logits, labels), 10))
    assert all(np.array_equal(one, two) for one, two in zip(*results, strict=True))


def test_a_class_without_rows_has_no_hits():
    curves = ClassCurves(np.array([[0.1, 0.2, 0.7]]), [np.array([])])
    for scheme, closed, mass_rule in WAYS:
        assert curves.bins(binning(3, scheme, closed=closed, mass_rule=mass_rule)).outcome_sum.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize(("scheme", "closed", "mass_rule"), WAYS)
def test_bins_of_many_counts_are_those_of_each_alone(scheme, closed, mass_rule):
    rng = np.random.default_rng(0)
    scores = np.sort(np.round(rng.random((3, 60)), 2), axis=1)  # with ties
    scores[2] = np.sort(rng.random(60))
    curves = ClassCurves(scores, [row[:: i + 2] for i, row in enumerate(scores)])
    counts = (5, 15, 7, 50)
    binnings = [binning(count, scheme, closed=closed, mass_rule=mass_rule) for count in counts]
    for count, bins in zip(counts, curves.many_bins(binnings), strict=True):
        for row in range(3):
            hits = np.zeros(60)
            hits[:: row + 2] = 1.0
            alone = Curve(scores[row], hits, np.arange(60)).bins(
                binning(count, scheme, closed=closed, mass_rule=mass_rule)
            )
            np.testing.assert_array_equal(bins.count[row], alone.count)
            np.testing.assert_allclose(bins.score_sum[row], alone.score_sum, atol=1e-12)
            if row == 2:  # a group of ties does not say which of its members are hits
                np.testing.assert_array_equal(bins.outcome_sum[row], alone.outcome_sum)


@pytest.mark.parametrize("levels", [1, 7, 5000])
def test_groups_of_a_long_curve_come_in_blocks(levels, monkeypatch):
    rng = np.random.default_rng(levels)
    scores, outcomes = rng.integers(0, levels, 3000) / levels, rng.random(3000) < 0.5
    wanted = Curve.sort(scores, outcomes).groups
    monkeypatch.setattr(curves, "LONG", 1000)
    monkeypatch.setattr(curves, "BLOCK", 64)
    for one, other in zip(Curve.sort(scores, outcomes).groups, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_outcomes_that_are_no_events_keep_their_values():
    curve = Curve.sort(np.array([0.9, 0.1]), np.array([0.25, 0.75]))
    assert curve.outcomes.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("name", ["ks", "atb", "average_precision", "aupr_error", "ici", "ece:scheme=mass"])
def test_long_curves_in_blocks_give_the_numbers_of_short_ones(monkeypatch, name):
    rng = np.random.default_rng(3)
    scores = np.round(rng.random(3000) ** 2, 3)  # with ties, which no block may split
    outcomes, measure = rng.random(3000) < scores, CATALOGUE.make(name)
    expected = measure.from_curve(Curve.sort(scores, outcomes))
    monkeypatch.setattr(curves, "LONG", 1000)
    monkeypatch.setattr(curves, "BLOCK", 100)
    curve = Curve.sort(scores, outcomes)
    assert measure.from_curve(curve) == pytest.approx(expected, abs=1e-12)
    kept = sum(view.nbytes for view in vars(curve).values() if isinstance(view, np.ndarray) and view.strides != (0,))
    assert kept == curve.scores.nbytes + curve.outcomes.nbytes  # no sums and no groups as long as the curve
