"""Charts drawn by a process of their own are those that this process draws."""

import subprocess
import sys

import pytest

from calibrant.plotting import engine

CHART = {
    "data": {"values": [{"x": 1, "y": "é"}, {"x": 2, "y": "b"}]},
    "mark": "bar",
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "nominal"}},
}


@pytest.fixture
def process():
    engine.start()
    yield engine._process
    engine._stop()


def test_a_process_draws_the_same(process):
    drawn = engine._ask([CHART, engine.vega_lite_version()])
    assert drawn is not None
    assert drawn == engine.to_svg(CHART)
    engine._stop()
    assert engine._process is None
    assert engine.to_svg(CHART) == drawn


def test_starting_twice_starts_one_process(process):
    engine.start()
    assert engine._process is process


def test_a_refused_chart_is_the_converters_error_and_the_next_one_is_drawn(process):
    with pytest.raises(ValueError, match="Vega"):
        engine.to_svg({"mark": {"type": "no such mark"}, "layer": 3})
    assert "<svg" in engine.to_svg(CHART)
    assert engine._process is process


def test_when_the_process_has_ended_this_one_draws(process):
    process.kill()
    process.wait()
    assert "<svg" in engine.to_svg(CHART)
    assert engine._process is None


def test_nothing_is_loaded_from_the_folder_of_the_predictions(tmp_path):
    for name in ("vl_convert", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('loaded from here')")
    code = (
        "from calibrant.plotting import engine\n"
        "engine.start()\n"
        f"assert '<svg' in engine._ask([{CHART!r}, '6.1'])\n"
        "assert engine._process is not None\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
