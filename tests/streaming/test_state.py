"""States of accumulators on disk: what was changed is refused, and no file runs."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.json import write_state
from calibrant.streaming.state import VERSION

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
    "change",
    [
        lambda s: s.update(n=51),
        lambda s: s.update(n=50.0),
        lambda s: s.update(more=1),
        lambda s: s.update(measures=["accuracy"]),
        lambda s: s["sums"].pop("nll"),
        lambda s: s["sums"]["accuracy"].__setitem__(0, s["sums"]["accuracy"][0] + 1e-9),
        lambda s: s["sums"]["histogram"][0].__setitem__(99, "many"),
        lambda s: s.pop("sha256"),
        lambda s: s.update(sha256=[1]),
    ],
)
def test_an_edited_state_is_refused(state, change):
    change(state)
    with pytest.raises(InputError, match="expected a state as it was saved, got a file that was changed or damaged"):
        load(state)


def test_the_order_of_keys_and_space_do_not_matter(state):
    text = json.dumps(dict(reversed(state.items())), indent=1)
    assert json.loads(cal.Accumulator.from_json(text).to_json()) == state


@pytest.mark.parametrize(
    "change",
    [
        {"n": 50.5},
        {"n": True},
        {"n": -1},
        {"n": 0},
        {"n": 10**30},
        {"k": 4},
        {"k": 1},
        {"k": "3"},
        {"total": 0.0},
        {"total": 1e200},
        {"task": "round"},
        {"task": None},
        {"clusters": "?"},
        {"clusters": "AAAA"},
        {"files": {"a.csv": -1}},
        {"open_reason": 1},
        {"measures": "ece"},
        {"measures": [1]},
        {"measures": ["accuracy", "accuracy"]},
        {"measures": ["accuracy"]},
        {"measures": ["auroc_correct"]},
        {"more": 1},
        {"sums": {}},
        {"sums": []},
        {"sums": {"histogram": None}},
        *[{"nll": wrong} for wrong in (None, "1", [1.0], [1.0, 2.0, "3"], [1e200, 1, 1], [[1], 2, 3], {"bins": 1})],
    ],
)
def test_fields_of_another_type_are_refused_whatever_the_checksum(state, change):
    fields = {name: value for name, value in state.items() if name not in ("calibrant_accumulator", "sha256")}
    if "nll" in change:
        fields["sums"] |= change
    else:
        fields |= change
    with pytest.raises(InputError, match="damaged"):
        cal.Accumulator.from_json(write_state("accumulator", VERSION, fields))


@pytest.mark.parametrize("version", [0, 1, 3, "4", True, None, [1]])
def test_another_version_is_refused(state, version):
    with pytest.raises(InputError, match="expected version 4"):
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
