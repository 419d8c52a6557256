"""`calibrant decide`, and `apply` with a decision: 80 columns, JSON, exit codes, other columns kept."""

import json

import numpy as np
import polars as pl
import pytest
from commands import run

import calibrant as cal


def rows(n, seed):
    rng = np.random.default_rng(seed)
    s = 1 / (1 + np.exp(-rng.normal(-3, 1.5, n)))
    return {"score": s, "label": (rng.random(n) < s).astype(int), "city": [f"c{i % 7}" for i in range(n)]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("decide")
    for name, seed in (("val", 0), ("test", 1), ("fit", 2)):
        pl.DataFrame(rows(3000, seed)).write_csv(path / f"{name}.csv")
    today = pl.DataFrame(rows(50, 3)).drop("label")
    today.write_csv(path / "today.csv")
    cal.fit(cal.Predictions.load(path / "fit.csv"), "beta").save(path / "map.json")
    return path


def narrow(text):
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split())


def test_decide_by_cost_and_apply_it(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a long path has no place in 80 columns
    val, test = folder / "val.csv", folder / "test.csv"
    args = (val, "--cost", "fn=50,fp=1", "--map", folder / "map.json", "--test", test)
    out = narrow(run("decide", *args, "-o", "d.json").stdout)
    for words in ("P(positive) of 1.96 % or more", "best in hindsight", "always act", "On 3,000 held-out rows"):
        assert words in out
    output = run("apply", tmp_path / "d.json", "today.csv", "-o", tmp_path / "t.csv", cwd=folder).stdout
    scored, d = pl.read_csv(tmp_path / "t.csv"), cal.load_decision(tmp_path / "d.json")
    today = pl.read_csv(folder / "today.csv")
    assert scored.columns == ["score", "city", "calibrated", "decision"]
    assert scored["city"].to_list() == today["city"].to_list()
    assert scored["decision"].to_list() == d(today["score"]).tolist()
    assert f"{(scored['decision'] == 1).sum()} as 1" in output
    facts = json.loads(
        run("apply", tmp_path / "d.json", "today.csv", "-o", tmp_path / "t.csv", "--json", cwd=folder).stdout
    )
    assert sum(facts["decisions"].values()) == facts["n"] == 50


def test_decide_with_a_guarantee_in_json(folder):
    args = ("decide", "val.csv", "--max-error", "0.05", "--confidence", "0.9", "--test", "test.csv", "--json")
    facts = json.loads(run(*args, cwd=folder).stdout)
    assert facts["settings"] == {"max_error": 0.05, "confidence": 0.9}
    assert facts["possible"]
    assert facts["test"]["outcome"] == "holds"
    assert {"map", "fingerprint"}.isdisjoint(facts)
    d = cal.decide(cal.Predictions.load(folder / "val.csv"), max_error=0.05, confidence=0.9)
    assert facts["policy"]["threshold"] == d.threshold


def test_what_is_not_possible_ends_with_1_and_writes_nothing(folder, tmp_path):
    done = run("decide", "val.csv", "--min-precision", "0.99", "-o", tmp_path / "d.json", cwd=folder, code=1)
    assert "Not possible with these 3,000 rows" in narrow(done.stdout)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("val.csv",), "expected one of cost, max_error and min_precision"),
        (("val.csv", "--cost", "fn=-1,fp=1"), "give costs of 0 or more"),
        (("fit.csv", "--max-error", "0.05", "--map", "map.json"), "fitted on about 100 %"),
        (("val.csv", "--max-error", "5"), "use 0.02 for 2 %"),
        (("val.csv", "--max-error", "0.1", "-o", "d.txt"), "ends in .json"),
        (("today.csv", "--max-error", "0.1"), "label"),
    ],
)
def test_bad_input_ends_with_2(folder, args, words):
    before = sorted(folder.iterdir())
    assert words in run("decide", *args, cwd=folder, code=2).stderr
    assert sorted(folder.iterdir()) == before


def test_decisions_go_into_tables_only(folder, tmp_path):
    run("decide", "val.csv", "--cost", "fn=5,fp=1", "-o", tmp_path / "d.json", cwd=folder)
    error = run("apply", tmp_path / "d.json", "today.csv", "-o", tmp_path / "t.npz", cwd=folder, code=2).stderr
    assert "a table for the decisions" in error
