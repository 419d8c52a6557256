"""A package with one entry of every catalogue (tests/plugin_package): each is used wherever an entry of ours is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.listing import CATALOGUES

PACKAGE = Path(__file__).parent / "plugin_package"
ENTRIES = {
    "measures": "surprise",
    "calibrators": "halved",
    "figures": "accuracies",
    "losses": "plain",
    "models": "flat",
    "datasets": "dots",
    "corruptions": "dark",
    "rescorers": "typical",
    "spaces": "pair",
    "searches": "in_order",
    "questions": "spread",
}
PLAN = """
title = "Plug-ins"
base = "demo"
[grid]
data = ["dots"]
model = ["flat"]
seed = [1]
[recipe]
epochs = 1
batch = 20
data = { limit = 100, test_limit = 60, split = "4:1", augment = "none" }
[methods]
plain = { recipe.loss = "ce + 0.5*plain" }
[after]
calibrators = ["identity", "halved"]
measures = ["surprise", "ece"]
rescorers = { typical = "typical" }
shifts = { dark = "corrupt dark" }
[entries]
"plain (halved)" = { method = "plain", calibrator = "halved" }
"plain (typical)" = { method = "plain", rescorer = "typical" }
[[table]]
title = "Table"
"""


def test_there_is_an_entry_for_every_catalogue():
    assert set(ENTRIES) == set(CATALOGUES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Predictions of one score and of three classes."""
    folder = tmp_path_factory.mktemp("plugins")
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.5, 1, 200)
    cal.Predictions.from_confidence(scores, rng.random(200) < scores).save(folder / "p.npz")
    labels = rng.integers(0, 3, 600)
    logits = 3 * rng.normal(size=(600, 3)) + 3 * np.eye(3)[labels]
    cal.Predictions.from_logits(logits[:300], labels[:300]).save(folder / "val.npz")
    cal.Predictions.from_logits(logits[300:], labels[300:]).save(folder / "test.npz")
    return folder


def run(folder, code):
    start = "import sys, json\nfrom pathlib import Path\nimport calibrant as cal\nfrom typer.testing import CliRunner\n"
    start += "from calibrant.cli import app\n"
    start += "def command(*arguments):\n    ended = CliRunner().invoke(app, list(map(str, arguments)))\n"
    start += "    assert ended.exit_code == 0, ended.output + repr(ended.exception)\n    return ended.stdout\n"
    path = os.pathsep.join([str(PACKAGE), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-c", start + code],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def test_measures_calibrators_and_figures(folder):
    """Listed with their facts, measured, streamed, explained, printed, fitted, reported, drawn; without torch."""
    output = run(
        folder,
        "facts = {e['name']: e for e in json.loads(command('list', 'measures', '--json'))}['surprise']\n"
        "p, val, test = (cal.Predictions.load(f'{name}.npz') for name in ('p', 'val', 'test'))\n"
        "s = cal.Accumulator(['surprise', 'upper_half'])\nfor rows in (range(100), range(100, 200)):\n"
        "    s.update(p.take(list(rows)))\n"
        "both = [[cal.measure(p, m, resamples=0).value, s.measure(m).value] for m in ('surprise', 'upper_half')]\n"
        "again = cal.Accumulator.from_json(s.to_json()).measure('upper_half').value\n"
        "from calibrant.measures import make\n"
        "from calibrant.measuring import measure_format as fmt\n"
        "words = [fmt.value('surprise', 0.0681), make('surprise').explain('confidence')]\n"
        "table = 'surprise (%)' in str(cal.table({'a': [p], 'b': [p]}, ['surprise']))\n"
        "listed = ['halved' in command('list', 'calibrators'), 'accuracies' in command('list', 'figures')]\n"
        "command('fit', 'val.npz', '--test', 'test.npz', '--with', 'halved', '--out', 'map.json')\n"
        "command('export', 'map.json', '--to', 'python', '--out', 'map.py')\n"
        "command('plot', 'accuracies', 'test.npz', '--out', 'bars.svg')\n"
        "r = cal.report(test, fit_on=val, calibrators=['halved'], resamples=50)\n"
        "trials = [t['calibrator'] for m in r.to_dict()['models'] for t in m['trials']]\n"
        "verdict = r.to_dict()['models'][0]['verdict']['text']\n"
        "print(json.dumps([facts, both, again, words, table, listed, trials, verdict, 'torch' in sys.modules]))\n",
    )
    facts, both, again, words, table, listed, trials, verdict, torch = output
    assert (facts["unit"], facts["streams"], facts["meaning"]) == ("percent", "rows", "How often it is sure and wrong.")
    assert both[0][0] == pytest.approx(both[0][1])
    assert both[1][0] == pytest.approx(both[1][1], abs=0.02)  # from a histogram
    assert again == both[1][1]
    assert words == ["6.81 %", "How often it is sure and wrong."]
    assert (table, listed, torch) == (True, [True, True], False)
    assert trials == ["identity", "halved"]
    assert "Halving the logits, on held-out rows, lowers the loss" in verdict
    assert (folder / "map.py").is_file()
    assert "<svg" in (folder / "bars.svg").read_text()


def test_networks_and_studies(folder):
    """A plan with a data set, network, loss, corruption, calibrator, rescorer and measures of the package."""
    pytest.importorskip("torch")
    (folder / "plan.toml").write_text(PLAN)
    output = run(
        folder,
        f"entries = {ENTRIES!r}\n"
        "listed = {room: name in [e['name'] for e in json.loads(command('list', room, '--json'))]"
        " for room, name in entries.items()}\n"
        "from calibrant.studying.engine import run_jobs\nfrom calibrant.studying.job import Job\n"
        "from calibrant.studying.run_job import do\nfrom calibrant.studying.study import open_plan\n"
        "class Here:\n    slots, ended = 1, []\n"
        "    def start(self, job): self.ended.append(do(job, self.folder))\n"
        "    def wait(self): ended, self.ended = self.ended, []; return ended\n    def close(self): pass\n"
        "study, here = open_plan('plan.toml', 'study'), Here()\nhere.folder = study.store.folder\n"
        "ended = run_jobs(study.jobs, study.store, here)\n"
        "rows = study.rows().select('entry', 'calibrator', 'rescorer', 'set', 'measure').rows()\n"
        "greeting = do(Job('greet', {'name': 'you'}), here.folder).rows\n"
        "command('nas', 'show', 'wide', '--space', 'pair', '--json')\n"
        "answer = json.loads(command('nas', 'ask', 'spread', '--json'))\n"
        "found = json.loads(command('nas', 'search', '--by', 'in_order', '--budget', 5, '--seeds', 2, '--json'))\n"
        "print(json.dumps([listed, [ended.done, ended.failed, study.status().failures], rows, greeting, answer,"
        " [one['search'] for one in found['results']]]))\n",
    )
    listed, ended, rows, greeting, answer, searches = output
    assert all(listed.values()), listed
    assert ended[1] == 0, ended
    assert {(calibrator, rescorer) for _, calibrator, rescorer, _, _ in rows} >= {
        ("halved", ""),
        ("identity", "typical"),
    }
    assert {row[3] for row in rows} == {"test", "dark"}
    assert {row[4] for row in rows} == {"surprise", "ece"}
    assert {"plain", "plain (halved)", "plain (typical)"} <= {row[0] for row in rows}
    assert greeting == [{"greeting": "hello you"}]
    assert "the median ECE is above one percent" in json.dumps(answer)
    assert searches == ["in_order"]
