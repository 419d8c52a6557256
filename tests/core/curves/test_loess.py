"""Local quadratic regression: against a slow version, with ties and weights, and its approximation."""

import numpy as np
import pytest

from calibrant.core.curves import loess
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.loess import gather_points, loess_gaps, neighbourhoods, smoother
from calibrant.core.curves.weighted import WeightedCurve
from calibrant.core.predictions import Predictions
from calibrant.measures import make

SHAPES = [(1, 9), (2, 2), (0.3, 30), (5, 1.2)]


def rows(shape, n, seed=0, *, rounded=False):
    rng = np.random.default_rng(seed)
    scores = rng.beta(*shape, n)
    scores = np.round(scores, 2) if rounded else scores
    return scores, (rng.random(n) < scores**1.2).astype(float)


def slow(scores, outcomes, weights, span=0.75):
    """One weighted least-squares fit for each row, by the definition."""
    total = weights.sum()
    gaps = []
    for s in scores:
        distance = np.abs(scores - s)
        order = np.argsort(distance, kind="stable")
        reach = distance[order][np.searchsorted(weights[order].cumsum(), max(np.floor(span * total + 1e-5), 1))]
        u = np.minimum(distance / max(reach, 1e-300), 1)
        root = np.sqrt(weights * (1 - u**3) ** 3)
        design = np.vander(scores - s, 3, increasing=True) * root[:, None]
        gaps.append(np.linalg.lstsq(design, root * outcomes, rcond=1e-7)[0][0] - s)
    return np.array(gaps)


@pytest.mark.parametrize("rounded", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("shape", [(1, 9), (2, 2), (5, 1.2)])
def test_is_the_regression_of_its_definition(shape, rounded):
    scores, outcomes = rows(shape, 90, rounded=rounded)
    curve = Curve.sort(scores, outcomes)
    expected = slow(curve.scores, curve.outcomes, np.ones(90))
    assert loess_gaps(curve, 0.75) == pytest.approx(expected, abs=1e-7)


def test_weights_that_count_rows_are_repeated_rows():
    scores, outcomes = rows((2, 2), 60, rounded=True)
    counts = np.random.default_rng(1).integers(0, 4, 60)
    weighted = WeightedCurve.weigh(scores, outcomes, counts.astype(float))
    repeated = Curve.sort(np.repeat(scores, counts), np.repeat(outcomes, counts))
    at = dict(zip(repeated.scores, loess_gaps(repeated, 0.75), strict=True))
    assert loess_gaps(weighted, 0.75) == pytest.approx([at[s] for s in weighted.scores], abs=1e-12)


@pytest.mark.parametrize("shape", [(1, 9), (0.05, 5), (0.02, 0.02)])
def test_blocks_agree_with_the_whole_matrix(shape):
    """Sums of powers against weights of single rows, where neighbourhoods differ in width a thousandfold."""
    curve = Curve.sort(*rows(shape, 1500))
    points = gather_points(curve, 10**6, 1)
    matrix = smoother(points, points.at, neighbourhoods(curve, points.at, 0.75))
    assert loess_gaps(curve, 0.75) == pytest.approx((matrix @ points.residual)[points.point_of], abs=1e-9)


def test_a_straight_line_is_reproduced():
    scores = np.linspace(0.05, 0.95, 40)
    curve = Curve.sort(scores, 0.2 + 0.5 * scores)
    assert loess_gaps(curve, 0.75) == pytest.approx(0.2 - 0.5 * curve.scores, abs=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_cells_change_little(shape, monkeypatch):
    """What docs/methods/measures.md#ici says of more than 20,000 distinct scores."""
    monkeypatch.setattr(loess, "DIRECT", 3000)
    scores, outcomes = rows(shape, 6000)
    cells = loess_gaps(Curve.sort(scores, outcomes), 0.75)
    monkeypatch.setattr(loess, "DIRECT", 20_000)
    direct = loess_gaps(Curve.sort(scores, outcomes), 0.75)
    of_cells, of_rows = np.abs(cells), np.abs(direct)
    assert of_cells.mean() == pytest.approx(of_rows.mean(), abs=1e-5)
    assert np.quantile(of_cells, [0.5, 0.9]) == pytest.approx(np.quantile(of_rows, [0.5, 0.9]), abs=1e-4)
    assert of_cells.max() == pytest.approx(of_rows.max(), abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", SHAPES)
def test_cells_change_little_at_the_size_where_they_begin(shape, seed, monkeypatch):
    scores, outcomes = rows(shape, 20_000, seed)
    of_rows = np.abs(loess_gaps(Curve.sort(scores, outcomes), 0.75))
    monkeypatch.setattr(loess, "DIRECT", 19_000)
    of_cells = np.abs(loess_gaps(Curve.sort(scores, outcomes), 0.75))
    assert of_cells.mean() == pytest.approx(of_rows.mean(), abs=1e-5)
    assert np.quantile(of_cells, [0.5, 0.9]) == pytest.approx(np.quantile(of_rows, [0.5, 0.9]), abs=5e-5)
    assert of_cells.max() == pytest.approx(of_rows.max(), abs=5e-4)


def test_weights_of_any_size_give_a_number():
    """A weight that is lost in the total beside others divided by zero."""
    rng = np.random.default_rng(0)
    s = rng.random(300)
    p = Predictions.binary(s, rng.random(300) < s, weights=10.0 ** rng.uniform(-300, 300, 300))
    for name in ("ici", "e50", "e90", "emax"):
        assert np.isfinite(make(name)(p))
