"""Python files of maps against the maps, run in a Python that has nothing else."""

import json
import subprocess
import sys

import numpy as np
import pytest
from export_maps import BY_TASK, NAMES, K, damaged_map, fresh, group_map, map_of, map_of_task, shaped_rows

from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions
from calibrant.repairing.export import python as to_python_module
from calibrant.repairing.export.python import to_python


def loaded(path):
    room = {}
    exec(compile(path.read_text(), str(path), "exec"), room)
    return room["calibrate"]


@pytest.mark.parametrize("name", NAMES)
def test_python_file_equals_the_map(name, tmp_path):
    m = map_of(name)
    done = to_python(m, tmp_path / "m.py")
    logits, probs = fresh(m)
    calibrate = loaded(done.path)
    np.testing.assert_allclose([calibrate(row) for row in logits.tolist()], probs, atol=1e-10)
    assert done.largest_difference < 1e-9


@pytest.mark.parametrize(("task", "name"), BY_TASK)
def test_other_shapes(task, name, tmp_path):
    m = map_of_task(task, name)
    calibrate = loaded(to_python(m, tmp_path / "m.py").path)
    if task == "choice":
        logits, probs = shaped_rows(m)
        for row, expected in zip(logits, probs, strict=True):
            there = np.isfinite(row)
            np.testing.assert_allclose(calibrate(row[there].tolist()), expected[there], atol=1e-9)
        with pytest.raises(ValueError, match="two or more"):
            calibrate([1.0])
        return
    scores = np.append(np.random.default_rng(0).random(100), [0.0, 0.5, 1.0])
    build = Predictions.binary if task == "binary" else Predictions.from_confidence
    expected = m.apply(build(scores, np.zeros(len(scores), dtype=int))).score
    np.testing.assert_allclose([calibrate(s) for s in scores], expected, atol=1e-9)
    with pytest.raises(ValueError, match="from 0 to 1"):
        calibrate(1.5)


def test_it_needs_nothing_but_python(tmp_path):
    path = to_python(map_of("everything"), tmp_path / "m.py").path
    code = "import json, sys; sys.path.insert(0, sys.argv[1]); import m; print(json.dumps(m.calibrate([1, 2, 3, 4])))"
    process = subprocess.run([sys.executable, "-I", "-S", "-c", code, tmp_path], capture_output=True, check=True)
    assert json.loads(process.stdout) == loaded(path)([1, 2, 3, 4])
    assert "import" not in path.read_text().replace("import math\n", "")


def test_it_refuses_other_rows(tmp_path):
    calibrate = loaded(to_python(map_of("number"), tmp_path / "m.py").path)
    for row in ([1.0] * (K - 1), [float("nan")] * K, [float("inf")] + [0.0] * (K - 1)):
        with pytest.raises(ValueError, match="4 finite logits"):
            calibrate(row)


@pytest.mark.parametrize("name", ['"""\nraise SystemExit', "x'\n1/0 #", "\\", "{k}\r1/0"])
def test_a_name_cannot_run(name, tmp_path):
    to_python(Map(calibrator=name, k=K, steps=()), tmp_path / "m.py")


def test_damaged_input(tmp_path):
    out = tmp_path / "m.py"
    with pytest.raises(InputError, match="one per group"):
        to_python(group_map(), out)
    with pytest.raises(InputError, match="a whole map"):
        to_python(damaged_map(), out)
    assert not out.exists()


def test_a_wrong_export_is_not_written(tmp_path, monkeypatch):
    right = to_python_module.source
    wrong = Map(calibrator="wrong", k=K, steps=(Linear(np.array(0.6), np.array(0.0)),))
    monkeypatch.setattr(to_python_module, "source", lambda m: right(wrong))
    with pytest.raises(InputError, match="report this map"):
        to_python(map_of("number"), tmp_path / "m.py")
    assert list(tmp_path.iterdir()) == []


def test_many_classes(tmp_path):
    weight = np.random.default_rng(0).normal(size=(300, 300)) / 17
    done = to_python(Map(calibrator="matrix", k=300, steps=(Linear(weight, np.zeros(300)),)), tmp_path / "m.py")
    assert done.rows >= 10
