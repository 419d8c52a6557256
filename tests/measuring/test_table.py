"""Tables of methods over seeds: the numbers, the tests, the formats, and files that run nothing."""

import json

import numpy as np
import pytest
from commands import run
from scipy import stats

import calibrant as cal
from calibrant.measuring.table import Runs


def one(seed, off=0.0, n=300):
    rows, own = np.random.default_rng(0), np.random.default_rng(seed)
    s, u = rows.beta(5, 1.5, n), rows.random(n)
    given = np.clip(s + off + 0.02 * own.normal(size=n), 0.001, 0.999)
    return cal.Predictions.from_confidence(given, u < s)


@pytest.fixture
def runs(tmp_path):
    for loss, off in (("ce", 0.1), ("focal", 0.0), ("ls_x", 0.0)):
        for seed in range(3):
            folder = tmp_path / f"{loss}-{seed}"
            folder.mkdir()
            one(seed + 10 * (loss == "ls_x"), off).save(folder / "test.npz")
            recipe = {"loss": loss, "seed": seed, "data": {"name": "made"}, "model": "./evil.py"}
            (folder / "run.json").write_text(json.dumps({"recipe": recipe}))
    return tmp_path


def test_means_deviations_and_paired_tests():
    methods = {
        name: Runs(tuple(one(s, off) for s in range(4)), (3, 1, 2, 0))
        for name, off in [("a", 0.0), ("b", 0.1), ("c", 0.1)]
    }
    results = cal.table(methods, ["ece", "accuracy", "gap"])
    ece = {name: cells[0] for name, cells in results.lines.items()}
    values = [cal.measure(p, "ece", resamples=0).value for p in methods["b"].predictions]
    assert ece["b"].values == tuple(values)
    assert (ece["b"].mean, ece["b"].sd) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert [cell.best for cell in ece.values()] == [True, False, False]
    p = stats.ttest_rel(ece["a"].values, ece["b"].values).pvalue
    assert ece["b"].p_value == pytest.approx(min(1, 2 * p))  # two methods against the best
    assert ece["a"].p_value is None
    assert "paired t-test over seeds" in results.note
    accuracy = [cells[1] for cells in results.lines.values()]
    assert [(cell.best, cell.p_value) for cell in accuracy] == [(True, None)] * 3  # exactly alike


def test_other_seeds_are_tested_by_welch_and_single_runs_over_rows():
    unpaired = cal.table({"a": [one(0), one(1)], "b": [one(2, 0.1), one(3, 0.1)]}, ["ece"])
    cell = unpaired.lines["b"][0]
    assert cell.p_value == pytest.approx(
        stats.ttest_ind(unpaired.lines["a"][0].values, cell.values, equal_var=False).pvalue
    )
    single = cal.table({"a": [one(0)], "b": [one(1, 0.1)]}, ["brier"])
    assert single.lines["b"][0].p_value == cal.compare(one(0), one(1, 0.1), "brier").p_value
    assert single.lines["b"][0].sd is None
    assert "over 1 run." in single.note
    mixed = cal.table({"a": [one(0)], "b": [one(1, 0.1), one(2, 0.1)]}, ["brier"])
    assert mixed.lines["b"][0].p_value is None


def test_formats(runs):
    files = sorted(runs.glob("*/test.npz"))
    out = run("table", *files, "--by", "loss", "--measure", "ece,nll").stdout
    assert [line.split()[0] for line in out.splitlines()[:4]] == ["loss", "ce", "focal", "ls_x"]
    assert "ece (%)" in out
    assert "Holm-corrected" in " ".join(out.split())
    latex = run("table", *files, "--by", "loss", "--format", "latex").stdout
    assert latex.startswith("\\begin{tabular}{lrrr}\n\\toprule\nloss & ece (\\%) & nll & accuracy (\\%) \\\\")
    assert "ls\\_x & " in latex
    assert latex.count("\\textbf{") == 5  # all three have the same accuracy
    markdown = run("table", *files, "--by", "loss", "--format", "markdown").stdout
    assert markdown.startswith("| loss | ece (%) | nll | accuracy (%) |\n| --- | --: | --: | --: |\n| ce | ")
    lines = run("table", *files, "--by", "loss", "--format", "csv").stdout.splitlines()
    assert lines[0] == "loss,measure,runs,mean,sd,best,p_value"
    assert len(lines) == 10
    document = json.loads(run("table", *files, "--by", "loss", "--json").stdout)
    assert [line["group"] for line in document["lines"]] == ["ce", "focal", "ls_x"]
    html = cal.table({"a<b": [one(0)]}, ["ece"])._repr_html_()
    assert "a&lt;b" in html


def test_groups_by_folder_and_nested_keys(runs):
    files = sorted(runs.glob("*/test.npz"))
    by_folder = json.loads(run("table", *files, "--json", "-m", "ece:bins=5,scheme=mass,nll").stdout)
    assert len(by_folder["lines"]) == 9
    assert list(by_folder["definitions"]) == ["ece:bins=5,scheme=mass", "nll"]
    nested = json.loads(run("table", *files, "--by", "data.name", "--json").stdout)
    assert {line["group"].partition(",")[0] for line in nested["lines"]} == {"made"}
    assert len(nested["lines"]) == 3  # three losses are three methods
    by_parent = json.loads(run("table", *files, "--by", "parent", "--json").stdout)
    assert by_parent["lines"][0]["group"] == f"{runs.name}, loss=ce"


def test_bad_input_is_explained(runs, tmp_path):
    file = runs / "ce-0" / "test.npz"
    assert "a key of its recipe (loss, seed" in run("table", file, "--by", "lost", code=2).stderr
    assert "one format" in run("table", file, "--json", "--format", "csv", code=2).stderr
    (runs / "ce-0" / "run.json").write_text("[]")
    assert "a recipe in it" in run("table", file, "--by", "loss", code=2).stderr
    (runs / "ce-0" / "run.json").unlink()
    assert "--by folder" in run("table", file, "--by", "loss", code=2).stderr
    assert "no such file" in run("table", tmp_path / "none.npz", code=2).stderr
    with pytest.raises(cal.InputError, match="methods with runs"):
        cal.table({"a": []})
    with pytest.raises(cal.InputError, match="one task"):
        cal.table({"a": [one(0)], "b": [cal.Predictions.binary([0.1, 0.9], [0, 1])]})
