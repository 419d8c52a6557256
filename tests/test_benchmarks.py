"""The benchmarks run, at tiny sizes, and the page they write has a verdict for every target."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
PEERS = ("torch", "torchmetrics", "netcal", "calibration", "relplot", "sklearn")
VERDICT = re.compile(r"\*\*(met|NOT met)\*\*: ([\d.e-]+)\D* of at (least|most) ([\d.e-]+)")
MEASURES = ("ece", "classwise", "ece:scheme=mass", "mmce", "kde", "smooth", "auroc_correct", "nll", "brier")


@pytest.fixture
def run():
    """`python -m benchmarks` with these arguments, in a process of its own: the peers warn a lot."""

    def run(*arguments, code=0):
        command = [sys.executable, "-m", "benchmarks", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
        assert done.returncode == code, done.stderr
        return done

    return run


def _verdicts(page):
    lines = page.split("## Targets")[1].split("\n## ")[0].splitlines()
    return [line for line in lines if line.startswith("- ")]


@pytest.mark.long
def test_every_measure_has_a_verdict(run, tmp_path):
    for peer in PEERS:
        if find_spec(peer) is None:  # importorskip would load them, warnings and all
            pytest.skip(f"{peer} is not installed")
    out = tmp_path / "deep" / "page.md"
    run("measures", "--smoke", "--out", str(out))
    page = out.read_text()
    verdicts = _verdicts(page)
    for measure in MEASURES:
        assert any(line.startswith(f"- {measure}, times faster") for line in verdicts)
    assert len(verdicts) == len(MEASURES) + 2  # class-wise at 10,000 x 100 and MMCE at n = 50,000
    judged = [VERDICT.search(line) for line in verdicts]
    assert [line.split()[1] for line, verdict in zip(verdicts, judged, strict=True) if not verdict] == ["kde,"]
    for word, value, side, limit in (verdict.groups() for verdict in judged if verdict):
        met = float(value) >= float(limit) if side == "least" else float(value) <= float(limit)
        assert word == ("met" if met else "NOT met")  # speed differs by machine; the word must follow from the numbers
    assert "A smoke run" in page
    assert "CPUs" in page


@pytest.mark.slow
def test_topics_without_peers_run(run):
    """In one process, as `make bench` runs them all."""
    verdicts = {"memory": 17, "start": 4, "battery": 1, "clinical": 10}
    page = run(*verdicts, "--smoke").stdout
    assert len(_verdicts(page)) == sum(verdicts.values())


@pytest.mark.slow
def test_topics_of_networks_and_studies_run(run):
    verdicts = {"clamping": 2, "meta": 3, "networks": 1, "study": 4, "large": 5, "asking": 2, "rare": 3}
    page = run(*verdicts, "--smoke").stdout
    assert len(_verdicts(page)) == sum(verdicts.values())


def test_an_unknown_topic_lists_the_right_ones(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed"])
    from benchmarks.__main__ import main

    with pytest.raises(SystemExit, match="2"):
        main()
    assert "measures, memory" in capsys.readouterr().err


def test_a_topic_that_fails_costs_its_own_results_only(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.__main__ as command
    from benchmarks._page import Section, Target

    def start(topic):
        if topic == "benchmarks.rare":
            raise ZeroDivisionError("of the topic")
        section = Section("Well", "it ran", [Target("it", 18.0, "most", 25.0)], [])
        return SimpleNamespace(run=lambda *, smoke: section)

    monkeypatch.setattr(command, "import_module", start)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "rare", "report", "--out", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit, match="1"):
        command.main()
    printed = capsys.readouterr()
    assert "it: **met**: 18x of at most 25x" in printed.out
    assert "rare: FAILED" in printed.err
    assert "ZeroDivisionError: of the topic" in printed.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("value", "at", "line"),
    [
        (18.0, "most", "- it: **met**: 18x of at most 25x"),
        (31.0, "most", "- it: **NOT met**: 31x of at most 25x"),
        (31.0, "least", "- it: **met**: 31x of at least 25x"),
        (24.9, "least", "- it: **NOT met**: 24.9x of at least 25x"),
        (float("nan"), "least", "- it: **NOT met**: nanx of at least 25x"),
        (None, "least", "- it: not judged"),
    ],
)
def test_a_verdict_comes_from_the_numbers(value, at, line, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks._page import Target

    assert Target("it", value, at, 25.0).line == line


def test_best_of_rounds_counts_and_a_failing_peer_is_a_result(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks._clock import OURS, Effort, fastest, race

    laps = race({OURS: lambda: 1.0, "slow": lambda: sum(range(1000)), "broken": lambda: 1 / 0}, Effort(3, 1.0))
    assert laps[OURS].runs == laps["slow"].runs == 3
    assert laps["broken"].note.startswith("fails: ZeroDivisionError")
    assert fastest(laps) == "slow"


def test_everyone_may_run_several_times_in_a_row(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks._clock import OURS, Effort, race

    order = []
    entries = {OURS: lambda: order.append("ours") or 1.0, "peer": lambda: order.append("peer") or 1.0}
    laps = race(entries, Effort(2, 1.0, in_a_row=3))
    assert order == 2 * (3 * ["ours"] + 3 * ["peer"])
    assert laps["peer"].runs == 6


def test_our_own_failure_is_not_hidden(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks._clock import OURS, Effort, race

    with pytest.raises(ZeroDivisionError):
        race({OURS: lambda: 1 / 0}, Effort(1, 1.0))


def test_data_are_right_three_times_in_four_and_overconfident(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks._data import overconfident, plain_softmax

    data = overconfident(2000, 10)
    probs = plain_softmax(data.logits)
    assert (probs.argmax(axis=1) == data.labels).mean() == pytest.approx(0.75, abs=0.01)
    assert probs.max(axis=1).mean() > 0.8
