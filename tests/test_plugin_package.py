"""A measure of an installed package is listed, measured, streamed, explained and printed like one of ours."""

import json
import subprocess
import sys

import numpy as np
import pytest

import calibrant as cal

MEASURE = '''
from dataclasses import dataclass
from typing import ClassVar
from calibrant.measures import RowMeasure, Unit

@dataclass(frozen=True)
class Surprise(RowMeasure):
    """How often a sure prediction was wrong."""
    above: float = 0.9
    title: ClassVar[str] = "Surprise"
    reference: ClassVar[str] = "-"
    unit: ClassVar[Unit] = "percent"
    meaning: ClassVar[str] = "How often it is sure and wrong."
    def rows(self, p):
        return ((p.score > self.above) & ~p.outcome).astype(float)
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with an installed package, and predictions in it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "surprising").mkdir()
    (folder / "surprising" / "__init__.py").write_text("")
    (folder / "surprising" / "measure.py").write_text(MEASURE)
    info = folder / "surprising-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: surprising\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[calibrant.measures]\nsurprise = surprising.measure:Surprise\n")
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.5, 1, 200)
    cal.Predictions.from_confidence(scores, rng.random(200) < scores).save(folder / "p.npz")
    return folder


def run(site, code):
    start = f"import sys; sys.path.insert(0, {str(site)!r})\nimport calibrant as cal\n"
    start += f"p = cal.Predictions.load({str(site / 'p.npz')!r})\n"
    ended = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def command(site, *arguments):
    return run(site, f"from calibrant.cli import main\nsys.argv = {['calibrant', *map(str, arguments)]!r}\nmain()\n")


def test_it_is_listed_with_its_facts(site):
    entries = {entry["name"]: entry for entry in json.loads(command(site, "list", "measures", "--json"))}
    facts = entries["surprise"]
    assert (facts["unit"], facts["streams"]) == ("percent", "rows")
    assert facts["meaning"] == "How often it is sure and wrong."


def test_it_is_measured_and_streamed_alike(site):
    code = "s = cal.Accumulator(['surprise'])\ns.update(p)\n"
    code += "print(cal.measure(p, 'surprise').value, s.measure('surprise').value)"
    at_once, streamed = map(float, run(site, code).split())
    assert at_once == pytest.approx(streamed)


def test_it_is_explained_and_printed_in_its_unit(site):
    code = "from calibrant.measuring import measure_format as fmt\nfrom calibrant.reporting.meanings import meaning\n"
    code += "print(fmt.value('surprise', 0.0681))\nprint(meaning('surprise', 'confidence'))"
    assert run(site, code).splitlines() == ["6.81 %", "How often it is sure and wrong."]


def test_it_takes_part_in_tables_of_methods(site):
    code = "print(cal.table({'a': [p], 'b': [p]}, ['surprise']))"
    assert "surprise (%)" in run(site, code)
