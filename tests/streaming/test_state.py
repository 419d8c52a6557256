"""States of accumulators on disk: sums that no predictions have are refused, and no file runs."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError

MEASURES = ("accuracy", "nll", "gap", "ece:bins=5", "classwise:bins=4")
MINE = """
from dataclasses import dataclass
from typing import ClassVar
from calibrant.measures import RowMeasure

open("it ran", "w").close()


@dataclass(frozen=True)
class Mine(RowMeasure):
    title: ClassVar[str] = "Mine"
    reference: ClassVar[str] = "-"

    def rows(self, p):
        return p.confidence
"""


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(50, 3))
    sums = cal.Accumulator(MEASURES)
    sums.update(cal.Predictions.from_logits(z, np.where(rng.random(50) < 0.7, z.argmax(axis=1), 0)))
    return json.loads(sums.to_json())


def load(state):
    return cal.Accumulator.from_json(json.dumps(state))


def test_state_round_trip(state):
    again = load(state)
    assert json.loads(again.to_json()) == state
    assert [m.value for m in again.measure_all()] == [m.value for m in load(state).measure_all()]
    empty = cal.Accumulator(MEASURES)
    assert cal.Accumulator.from_json(empty.to_json()).n == 0


@pytest.mark.parametrize(
    ("name", "place", "value", "says"),
    [
        ("accuracy", (0,), 166250.0, "accuracy would be 3325"),
        ("accuracy", (0,), -1.0, "accuracy would be -0.02"),
        ("accuracy", (1,), 0.0, "squares of accuracy"),
        ("nll", (0,), -5.0, "nll would be -0.1"),
        ("gap", (0,), 60.0, "gap would be 1.2"),
        ("histogram", (0, 99), 1e6, "counts of histogram do not add up to 50 rows"),
        ("histogram", (0, 3), -1.0, "counts of histogram"),
        ("score, 5 bins, right", (2, 4), 1e6, "counts of score"),
        ("score, 5 bins, right", (2, 4), 1.5, "counts of score"),
        ("score, 5 bins, right", (1, 4), 1e3, "scores of score, 5 bins, right lie outside their bins"),
        ("score, 5 bins, right", (1, 4), 0.0, "scores of score"),
        ("score, 5 bins, right", (3, 4), 1e3, "squares of score"),
        ("score, 5 bins, right", (2, 4), 0.0, "residuals of score"),
        ("classes, 4 bins, right", (0, 1, 2), 7.0, "counts of classes"),
        ("classes, 4 bins, right", (1, 1, 2), 99.0, "scores of classes"),
    ],
)
def test_sums_that_no_predictions_have_are_refused(state, name, place, value, says):
    inner = state["sums"][name]
    for at in place[:-1]:
        inner = inner[at]
    inner[place[-1]] = value
    with pytest.raises(InputError, match=rf"accumulator: expected a whole one, got a damaged one \(({says})"):
        load(state)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 51},
        {"n": 50.0},
        {"n": True},
        {"n": -1},
        {"n": 0},
        {"n": 10**30},
        {"k": 4},
        {"k": 1},
        {"k": "3"},
        {"measures": "ece"},
        {"measures": [1]},
        {"measures": ["accuracy", "accuracy"]},
        {"measures": ["accuracy"]},
        {"measures": ["auroc_correct"]},
        {"sums": {}},
        {"sums": []},
        {"sums": {"histogram": None}},
    ],
)
def test_fields_that_do_not_fit_are_refused(state, change):
    with pytest.raises(InputError, match="damaged"):
        load(state | change)


@pytest.mark.parametrize("version", [0, 1, 2, "3", True, None, [1]])
def test_another_version_is_refused(state, version):
    with pytest.raises(InputError, match="expected version 3"):
        load(state | {"calibrant_accumulator": version})


def test_what_is_no_number_is_refused(state, tmp_path):
    text = json.dumps(state).replace('"n": 50', '"n": NaN')
    for wrong in (text, "[" * 5000, "{", "\x00", '{"calibrant_accumulator": ' + "1" * 5000 + "}"):
        with pytest.raises(InputError, match="JSON written by Accumulator"):
            cal.Accumulator.from_json(wrong)
    (tmp_path / "state.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InputError, match=r"state\.json: accumulator"):
        cal.Accumulator.load(tmp_path / "state.json")


@pytest.mark.parametrize("spec", ["./mine.py", "mine.py"])
def test_a_state_runs_no_file_that_it_names(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    sums = cal.Accumulator([spec])
    sums.update(cal.Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 1]))
    sums.save(tmp_path / "state.json")
    (tmp_path / "it ran").unlink()
    with pytest.raises(InputError, match=r"would have run the Python code in .*mine\.py"):
        cal.Accumulator.load(tmp_path / "state.json")
    assert not (tmp_path / "it ran").exists()
    own = cal.Accumulator.load(tmp_path / "state.json", own=[spec])  # the user says so
    assert own.measure(spec).value == pytest.approx(0.75)
