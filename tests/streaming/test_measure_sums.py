"""How a measure is streamed: by what it says itself, for a measure of somebody else as for one of ours."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.measures import CATALOGUE
from calibrant.streaming.measure_sums import KINDS, sums_of

HEAD = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from calibrant.core.curves.ranking import area_under_roc
from calibrant.measures import BinnedMeasure, ClassMeasure, CurveMeasure, Measure, RatioMeasure, RowMeasure

@dataclass(frozen=True)
class Mine({base}):
    title: ClassVar[str] = "Mine"
    reference: ClassVar[str] = "-"
    {body}
"""
OWN = {
    "rows": ("RowMeasure", "def rows(self, p): return (p.score > 0.8).astype(float)"),
    "ratio": ("RatioMeasure", "def terms(self, p): return p.outcome.astype(float), p.score"),
    "bins": ("BinnedMeasure", "def from_bins(self, bins): return float(np.abs(bins.gap).max())"),
    "classes": (
        "ClassMeasure",
        'streams: ClassVar[str] = "bins"\n'
        "    def from_bins(self, bins): return float(np.abs(bins.score_sum - bins.outcome_sum).sum() / bins.n)\n"
        "    def __call__(self, p): return self.from_bins(self.class_bins(p))",
    ),
    "ranking_of_curves": (
        "CurveMeasure",
        'streams: ClassVar[str] = "ranking"\n'
        "    def from_curve(self, curve): return area_under_roc(curve.group_blocks())",
    ),
    "ranking_of_rows": ("RowMeasure", "def rows(self, p): return p.score"),  # not a ranking, whatever its name is
}


def draw_predictions(n=600):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, 3)) * 2
    return cal.Predictions.from_logits(logits, (logits + rng.gumbel(size=logits.shape)).argmax(1))


@pytest.mark.parametrize("name", OWN)
def test_a_measure_of_somebody_else_streams_as_ours_do(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base, body = OWN[name]
    spec, p = f"{name}.py", draw_predictions()
    (tmp_path / spec).write_text(HEAD.format(base=base, body=body))
    a = cal.Accumulator([spec])
    for rows in np.array_split(np.arange(p.n), 3):
        a.update(p.take(rows))
    measured = a.measure(spec)
    slack = 1e-3 if name == "ranking_of_curves" else 1e-9  # a histogram does not know the order inside its bins
    assert measured.value == pytest.approx(CATALOGUE.make(spec)(p), abs=slack)
    assert measured.low < measured.high
    assert cal.Accumulator.from_json(a.to_json(), own=[spec]).measure(spec) == measured


def test_a_measure_that_says_rows_and_has_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text(HEAD.format(base="Measure", body='streams: ClassVar[str] = "rows"'))
    with pytest.raises(InputError, match="expected a subclass of RowMeasure or RatioMeasure, by streams = 'rows'"):
        cal.Accumulator(["wrong.py"])


def test_a_share_of_rows_says_so_and_has_limits_where_all_outcomes_are_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = "of_share: ClassVar[bool] = {}\n    def rows(self, p): return p.correct.astype(float)"
    for name, share in (("share", True), ("number", False)):
        (tmp_path / f"{name}.py").write_text(HEAD.format(base="RowMeasure", body=body.format(share)))
    specs = ["accuracy", "share.py", "number.py"]
    a = cal.Accumulator(specs)
    a.update(cal.Predictions.from_confidence(np.linspace(0.5, 0.9, 50), np.ones(50)))
    accuracy, share, number = (a.measure(spec) for spec in specs)
    assert (share.low, share.high, share.interval) == (accuracy.low, accuracy.high, accuracy.interval)
    assert accuracy.low == pytest.approx(0.025 ** (1 / 50))  # Clopper and Pearson, 50 of 50
    assert number.low is None


@pytest.mark.parametrize("name", CATALOGUE.names())
def test_every_measure_has_one_way_or_none(name):
    m = CATALOGUE.make(name)
    fitting = [kind for kind in KINDS if kind.streams == m.streamed_from and isinstance(m, kind.base)]
    stream = sums_of(m, name)
    assert ([] if stream is None else [type(stream)]) == fitting
    assert (stream is None) == (m.streamed_from == "no")
