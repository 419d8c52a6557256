"""What a page embeds gives the numbers of the measures back, for every number of bins a reader can choose."""

import base64

import numpy as np
import pytest

from calibrant.core.curves.binning import Binning
from calibrant.core.curves.curve import Curve
from calibrant.measures import make
from calibrant.reporting import curves


def unpack(text):
    """As page.js reads it: confidences, counts and hits of groups of rows."""
    numbers, number, shift = [], 0, 0
    for byte in base64.b64decode(text):
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            number, shift = 0, 0
    value, count, hits, code, at = [], [], [], 0, 0
    while at < len(numbers):
        code += numbers[at]
        single = numbers[at + 1] < 2
        value.append(code / curves.SCALE)
        count.append(1 if single else numbers[at + 1])
        hits.append(numbers[at + 1] if single else numbers[at + 2])
        at += 2 if single else 3
    return np.array(value), np.array(count), np.array(hits)


def again(text):
    """The curve of the rows that a page knows; a group's hits are as good in any order."""
    value, count, hits = unpack(text)
    right = np.concatenate([np.arange(c) < h for c, h in zip(count, hits, strict=True)])
    return Curve.sort(np.repeat(value, count), right.astype(float))


def test_every_data_set_keeps_its_numbers(any_data):
    curve, packed = any_data.top_label, again(curves.pack(any_data.top_label))
    assert packed.n == curve.n
    for bins in (5, 7, 10, 15, 20, 100, 499, 500):
        for scheme in ("width", "mass"):
            for measure in ("ece", "mce"):
                m = make(f"{measure}:bins={bins},scheme={scheme}")
                assert m.from_curve(packed) == pytest.approx(m.from_curve(curve), abs=1e-8), (bins, scheme, measure)


def test_no_row_crosses_an_edge_of_any_binning():
    edges = curves.every_edge()
    scores = np.sort(np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), [0.0, 1.0]]))[:49_000]
    curve = Curve.sort(scores, np.arange(len(scores)) % 2.0)
    packed = again(curves.pack(curve))
    for bins in range(5, 501, 11):
        assert np.array_equal(packed.bins(Binning(bins)).count, curve.bins(Binning(bins)).count)
        assert np.array_equal(packed.bins(Binning(bins)).outcome_sum, curve.bins(Binning(bins)).outcome_sum)


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(1)
    scores = 1 - rng.beta(0.4, 2.0, size=120_000)
    return Curve.sort(scores, (rng.random(len(scores)) < scores**1.3).astype(float))


def test_many_rows_are_pooled_exactly_for_width_and_closely_for_mass(many):
    text = curves.pack(many)
    assert len(text) < 450_000
    packed = again(text)
    assert packed.n == many.n
    for bins in (5, 15, 101, 500):
        width, mass = make(f"ece:bins={bins}"), make(f"ece:bins={bins},scheme=mass")
        assert width.from_curve(packed) == pytest.approx(width.from_curve(many), abs=1e-8)
        assert mass.from_curve(packed) == pytest.approx(mass.from_curve(many), abs=2e-5)


def test_few_rows_are_not_pooled(many):
    few = Curve.sort(many.scores[::6], many.outcomes[::6])
    assert len(unpack(curves.pack(few))[0]) == len(few.group_ends)
