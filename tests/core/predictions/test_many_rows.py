"""Very many rows, part by part: the same numbers as all at once, and at most four times the memory of the input."""

import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.curves import curve
from calibrant.core.curves.binning import Binning
from calibrant.core.predictions import constants, parsing, predictions, validation
from calibrant.core.statistics import sampling
from calibrant.measures import _of_bins, _of_curve
from calibrant.measuring import measure

ITEMS, SIDE, K = 60, 50, 5
N = ITEMS * SIDE * SIDE
MEASURES = ["ece", "ece:scheme=mass", "ece:scheme=mass,mass_rule=interp,closed=left", "nll", "brier", "accuracy", "gap"]


@pytest.fixture
def many(monkeypatch):
    """Call it to make a thousand rows count as very many."""

    def apply(long=1000, block=1024):
        for module in (curve, predictions, parsing, validation, _of_bins, _of_curve):
            monkeypatch.setattr(module, "LONG", long)
        for module in (curve, sampling, _of_bins):
            monkeypatch.setattr(module, "BLOCK", block)
        monkeypatch.setattr(constants, "PART_ROWS", block)
        monkeypatch.setattr(measure, "KEEP_ELEMENTS", long)

    return apply


def images(dtype=np.float32):
    rng = np.random.default_rng(0)
    z = (2 * rng.standard_normal((ITEMS, K, SIDE, SIDE))).astype(dtype)
    return z, (1.3 * rng.gumbel(size=z.shape) + z).argmax(axis=1)


def rows():
    z, y = images()
    return np.ascontiguousarray(np.moveaxis(z, 1, -1)).reshape(-1, K), y.reshape(-1)


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


ENTRANCES = {
    "rows": lambda: cal.Predictions.from_logits(*rows()),
    "rows in clusters": lambda: cal.Predictions.from_logits(*rows(), clusters=np.arange(N) // (SIDE * SIDE)),
    "images": lambda: cal.Predictions.from_logits(*images(), axis=1),
    "probabilities": lambda: cal.Predictions.from_probs(softmax(rows()[0].astype(float)), rows()[1]),
    "weights": lambda: cal.Predictions.from_logits(*rows(), weights=1 + np.arange(N) % 3),
    "binary": lambda: cal.Predictions.binary(rows()[0][:, 0], rows()[1] == 0, logits=True),
    "binary probabilities": lambda: cal.Predictions.binary(softmax(rows()[0])[:, 0], rows()[1] == 0),
    "masks": lambda: cal.Predictions.binary(1 / (1 + np.exp(-images()[0][:, 0])), images()[1] == 0),
    "confidences": lambda: cal.Predictions.from_confidence(softmax(rows()[0]).max(axis=1), rows()[1] < 3),
}


def measured(entrance):
    p = ENTRANCES[entrance]()
    results = [cal.measure(p, what, seed=1) for what in MEASURES]
    return [x for m in results for x in (m.value, m.low, m.high)], p


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_numbers_are_those_of_all_rows_at_once(entrance, many, monkeypatch):
    monkeypatch.setattr(sampling, "MANY_ROWS", 1000)
    whole, p = measured(entrance)
    views = {name: getattr(p, name) for name in ("confidence", "predicted", "correct", "score", "outcome", "labels")}
    views |= {name: getattr(p, name) for name in ("true_prob", "true_log_prob", "squared_probs_sum", "entropy")}
    many()
    parts, q = measured(entrance)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
    for name, expected in views.items():
        assert np.array_equal(getattr(q, name), expected), name
        assert getattr(q, name).dtype == expected.dtype


def test_bins_that_share_equal_scores_are_those_of_the_order(many):
    z = np.round(rows()[0])  # ties at every edge of bins of equal mass
    p = cal.Predictions.from_logits(z, rows()[1], clusters=np.arange(N) // (SIDE * SIDE))
    assert p.curve.bin_starts(Binning(15, "mass")) is None
    whole = cal.measure(p, "ece:scheme=mass")
    many()
    q = cal.Predictions.from_logits(z, rows()[1], clusters=np.arange(N) // (SIDE * SIDE))
    parts = cal.measure(q, "ece:scheme=mass")
    assert parts.value == pytest.approx(whole.value, rel=1e-12)
    assert (parts.low, parts.high) == pytest.approx((whole.low, whole.high), rel=0.02)  # ties have no order


@pytest.mark.parametrize("what", ["ece", "ece:scheme=mass", "nll", "brier", "accuracy"])
@pytest.mark.parametrize("entrance", ["rows", "rows in clusters", "images", "a buffer of rows"])
def test_at_most_four_inputs_of_memory(entrance, what, many):
    cal.measure(ENTRANCES["rows in clusters"](), what)  # what is loaded and kept once
    many()
    z, y = images() if entrance == "images" else rows()
    options = {"axis": 1} if entrance == "images" else {}
    if entrance.startswith("rows"):
        z = z.copy()
        z.flags.writeable = False  # else they are copied, as those of a buffer are
    given = z.nbytes + y.nbytes
    if entrance == "rows in clusters":
        options["clusters"] = np.arange(N) // (SIDE * SIDE)
        given += options["clusters"].nbytes
    tracemalloc.start()
    try:
        p = cal.Predictions.from_logits(z, y, **options)
        cal.measure(p, what)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    copies = 0 if entrance.startswith("rows") else 1
    assert (given + peak) / z.nbytes <= 4.0
    assert (given + kept) / z.nbytes <= copies + given / z.nbytes + 0.6  # labels and clusters; nothing of the rows
