"""Searches by training: networks are trained once, searches go on where they stopped, failures are counted."""

import json
import math

import polars as pl
import pytest

pytest.importorskip("torch")

from typer.testing import CliRunner

from calibrant.cli import app
from calibrant.core.errors import InputError
from calibrant.nas import live_search, spaces
from calibrant.studying.job import Outcome
from calibrant.studying.run_job import do

BY = ("random", "evolution:population=2,sample=2")
OPTIONS = {"by": BY, "budget": 4, "data": "digits", "scale": "smoke"}


class Here:
    """An executor without processes; networks whose cell holds a word fail."""

    slots, broken, started = 1, "nothing", 0

    def __init__(self, folder):
        self.folder, self.waiting, self.closed = folder, [], False

    def start(self, job):
        assert not self.closed
        type(self).started += 1
        self.waiting.append(job)

    def wait(self):
        job = self.waiting.pop()
        if self.broken in job.options["arch"]:
            return [Outcome(job.key, job.kind, failed="ValueError: broken")]
        return [do(job, self.folder)]

    def close(self):
        self.closed = True


@pytest.fixture
def here(monkeypatch):
    class Own(Here):
        pass

    monkeypatch.setattr(live_search, "executor_for", lambda on, jobs, store, limit: (Own(store.folder), jobs, on))
    return Own


def test_networks_are_trained_once_and_searches_go_on(here, tmp_path):
    search = live_search.search_live(tmp_path, **OPTIONS)
    tried = {trial.arch for walk in search.walks for trial in walk.trials}
    assert [len(walk.trials) for walk in search.walks] == [4, 4]
    assert here.started == search.trained == len(tried) < 8  # the same seed: the first networks of both are the same
    assert sorted(search.table["arch"]) == sorted(tried)
    by_arch = dict(zip(search.table["arch"], search.table["hcs"], strict=True))
    for walk in search.walks:
        assert all(trial.value == by_arch[trial.arch] for trial in walk.trials)
        assert walk.best("hcs").value == max(trial.value for trial in walk.trials)
    again = live_search.search_live(tmp_path, **OPTIONS)
    assert (again.walks, again.trained) == (search.walks, 0)
    more = live_search.search_live(tmp_path, **{**OPTIONS, "budget": 5})
    assert [walk.trials[:4] for walk in more.walks] == [walk.trials for walk in search.walks]
    assert more.trained == here.started - search.trained <= 2


def test_only_different_networks_are_tried_and_children_differ_in_one_place(here, tmp_path):
    evolved = live_search.search_live(tmp_path, **{**OPTIONS, "by": BY[1:]}).walks[0].trials
    space = spaces.make("topology")
    assert all(space.unique(trial.arch) == trial.arch for trial in evolved)
    near = {space.unique(other) for trial in evolved[:3] for other in space.neighbours(trial.arch)}
    assert evolved[3].arch in near


def test_the_lowest_ece_is_the_best_and_failures_are_worth_nothing(here, tmp_path):
    here.broken = "nor_conv_3x3~0"
    search = live_search.search_live(tmp_path, **{**OPTIONS, "goal": "ece"})
    assert search.failed > 0
    for walk in search.walks:
        values = [trial.value for trial in walk.trials]
        assert walk.best("ece").value == min(values) < math.inf
        assert [math.isinf(v) for v in values] == [here.broken in trial.arch for trial in walk.trials]


def test_command(here, tmp_path):
    options = ["nas", "search", "--live", str(tmp_path / "o"), "--data", "digits", "--scale", "smoke", "--budget", "3"]
    options += ["--by", "random", "--for", "accuracy"]
    output = CliRunner().invoke(app, options)
    assert output.exit_code == 0, output.output
    assert "Pareto front" in output.stdout
    facts = json.loads(CliRunner().invoke(app, [*options, "--json"]).stdout)
    assert (facts["trained"], facts["failed"]) == (0, 0)
    assert pl.read_parquet(facts["table"]).height == 3


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"on": "shard:1/2"}, "cannot be cut into shards"),
        ({"goal": "speed"}, "goal: expected one of"),
        ({"scale": "smal"}, "scale: expected one of"),
        ({"budget": 7000}, "budget: expected 1 to 6466"),
        ({"by": ["evolutoin"]}, "did you mean 'evolution'"),
    ],
)
def test_bad_wishes_are_refused(options, match, tmp_path):
    with pytest.raises(InputError, match=match):
        live_search.search_live(tmp_path, **{**OPTIONS, **options})
