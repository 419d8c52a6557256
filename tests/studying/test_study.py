"""A whole study, small: jobs that really train, what they found, and everything that can be asked afterwards."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("torch")

from local_jobs import Here
from typer.testing import CliRunner

from calibrant.cli import app
from calibrant.core.curves.binning import Binning
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.text.table import Marked
from calibrant.studying.engine import run_jobs
from calibrant.studying.latex import MARK, _column, latex_table
from calibrant.studying.page import page
from calibrant.studying.page_figures import drawings
from calibrant.studying.plan import Drawing
from calibrant.studying.plan_cost import plan_cost
from calibrant.studying.plan_files import read_plan
from calibrant.studying.study import _check_judged, open_plan, open_study, study
from calibrant.studying.tables import claims_in_words, render_table

PLAN = """
title = "Tiny"
base = "losses"
[grid]
data = ["digits"]
model = ["resnet8:width=4"]
seed = [1, 2]
[recipe]
epochs = 1
batch = 32
data = { limit = 96, test_limit = 200, split = "4:1" }
test_each_epoch = false
[methods]
CE = { choice = "ce" }
focal = { recipe.loss = "focal:gamma=2" }
[after]
measures = ["ece", "accuracy", "gap"]
rescorers = { trust = "trust_score" }
shifts = { noisy = "corrupt gaussian_noise:severity=2" }
[entries]
"CE (TS)" = { method = "CE", calibrator = "temperature" }
"CE (trust)" = { method = "CE", rescorer = "trust" }
[names.data]
digits = "CIFAR-10"
[[table]]
title = "Table 1"
published = "meta-table1"
[[figure]]
title = "Loss over epochs"
over = "epochs"
measure = "train_loss"
[[figure]]
title = "ECE"
over = "seeds"
entries = ["CE", "CE (TS)"]
[[figure]]
title = "ECE in turn"
over = "entries"
[[figure]]
title = "Reliability"
over = "reliability"
entries = ["CE", "CE (trust)"]
bins = 5
[[claim]]
says = "focal is lower"
of = "focal"
against = "CE (TS)"
measure = "ece"
is = "lower"
[[claim]]
says = "noise lowers the accuracy of <CE>"
of = "CE"
measure = "accuracy"
is = "lower"
than = 0.9
set = "noisy"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")
    (place / "plan.toml").write_text(PLAN)
    study = open_plan(place / "plan.toml", place / "tiny")
    ended = run_jobs(study.jobs, study.store, Here(study.store.folder))
    assert (ended.total, ended.done, ended.failed) == (14, 14, 0)
    return study


def test_rows_have_every_entry_set_and_measure(finished):
    rows = finished.rows()
    assert rows.height == 2 * ((2 * 2 + 1) * 3 + 2 * 2 * 3)  # seeds x (CE with a rescorer, focal)
    assert set(rows["set"]) == {"test", "noisy"}
    assert set(rows["entry"]) == {"CE", "focal", "CE (TS)", "CE (trust)", ""}  # focal with a temperature has no name
    assert rows["value"].null_count() == 0
    assert finished.rows("entry = 'CE' AND measure = 'ece' AND \"set\" = 'test'").height == 2


def test_a_condition_that_is_none(finished):
    with pytest.raises(InputError, match="--where: expected a condition in SQL"):
        finished.rows("enty = 'CE'")


def test_the_table_and_its_formats(finished, tmp_path):
    table = finished.table("ece")
    assert table["entry"].to_list() == ["CE", "CE (TS)", "CE (trust)", "focal"]
    assert table["runs"].to_list() == [2] * 4
    assert render_table(table, "markdown").startswith("| entry | data | mean |")
    assert render_table(table, "latex").splitlines()[0] == r"\begin{tabular}{llrrr}"
    assert len(render_table(table, "csv").splitlines()) == 5
    assert "Written" in render_table(table, "parquet", tmp_path / "t.parquet")
    with pytest.raises(InputError, match="name a file"):
        render_table(table, "parquet")
    with pytest.raises(InputError, match="name a column"):
        finished.table("ece", by=("dta",))
    with pytest.raises(InputError, match=r"several values of rescorer .* add rescorer"):
        finished.table("ece", by=("data", "method"))
    with pytest.raises(InputError, match=r"several values of calibrator .* --where"):
        finished.table("ece", by=("data", "method", "rescorer"))
    one = finished.table("ece", by=("data", "method"), where="calibrator = 'identity' and rescorer = ''")
    assert one["runs"].to_list() == [2, 2]
    assert one["sd"][0] == pytest.approx(table["sd"][0], rel=1e-12)


def test_claims_have_a_verdict_and_a_number(finished):
    first, second = finished.claims()
    assert first.overall.pairs == second.overall.pairs == 2
    assert first.overall.low < first.overall.difference < first.overall.high
    assert first.overall.detectable > 0
    assert "focal minus CE (TS), ece" in " ".join(claims_in_words(finished).split())


def test_the_page_stands_alone_and_shows_what_was_printed(finished):
    text = page(finished)
    assert "<script" not in text
    assert "http://" not in text
    assert "&lt;CE&gt;" in text  # what a plan says is text, never markup
    assert f"{len(finished.cells)} of {len(finished.cells)} trainings judged" in text
    assert text.count('class="paper"') >= 2
    seen = finished.claims()[0].overall.detectable
    assert f"could see {100 * seen:.2f}<" in text  # in points, as the difference before it


@pytest.mark.parametrize("name", ["page.pdf", "page.svg", "page"])
def test_a_page_is_html_and_nothing_else(finished, tmp_path, name):
    result = CliRunner().invoke(app, ["study", "page", str(finished.folder), "--out", str(tmp_path / name)])
    assert "a file that ends in .html" in str(result.exception)
    assert not (tmp_path / name).exists()


def test_figures_are_drawn_from_rows_logs_and_predictions(finished):
    rows = finished.rows().to_dicts()
    epochs, seeds, entries, reliability = drawings(finished, rows)
    assert epochs.title == "Loss over epochs: digits, resnet8:width=4"
    assert [(line.name, len(line.points)) for line in epochs.lines] == [("CE", 1), ("focal", 1)]
    assert [(line.name, len(line.points)) for line in seeds.lines] == [("CE", 2), ("CE (TS)", 2)]
    assert [label for _, label in entries.ticks] == ["CE", "focal", "CE (TS)", "CE (trust)"]
    assert [line.name for line in reliability.lines] == ["CE", "CE (trust)"]
    p = Predictions.load(finished.store.files(finished.cells[-2].jobs[0].key) / "test.npz", allow_few_rows=True)
    bins = p.top_label.bins(Binning(5, "width"))
    assert reliability.lines[0].points == [
        pytest.approx(pair) for pair in zip(bins.confidence, bins.accuracy, strict=True) if pair[0] > 0
    ]
    assert page(finished).count("<figure>") == 4 + 3  # and a strip for each measure


def test_a_measure_over_bins(finished):
    measures = ["ece:bins=10", "ece:bins=2"]
    plan = replace(finished.plan, after=replace(finished.plan.after, measures=["ece", "accuracy", "gap", *measures]))
    plan = replace(plan, figure=[Drawing(title="Bins", over="bins", entries=["CE"])])
    rows = finished.rows().to_dicts()
    ece = [r for r in rows if r["measure"] == "ece"]
    more = [{**r, "measure": m, "value": r["value"] + i} for r in ece for i, m in enumerate(measures)]
    (drawing,) = drawings(replace(finished, plan=plan), rows + more)
    assert [label for _, label in drawing.ticks] == ["2", "10"]
    assert drawing.lines[0].points[0][1] < drawing.lines[0].points[1][1]  # of 2 bins above: one more


def test_an_opened_study_is_the_same(finished):
    again = open_study(finished.folder)
    assert again.rows().sort(again.rows().columns).equals(finished.rows().sort(finished.rows().columns))
    status = again.status()
    assert (status.total, status.done, status.failed, status.missing, status.running) == (14, 14, 0, 0, False)


def test_a_study_beside_it_shares_its_jobs(finished, tmp_path):
    (tmp_path / "other.toml").write_text(PLAN.replace('"Tiny"', '"Other"').replace("[1, 2]", "[1, 2, 3]"))
    other = open_plan(tmp_path / "other.toml", finished.folder.parent / "other")
    assert other.status().done == 14
    assert plan_cost(other.plan, other.store.folder).done == 14
    shutil.rmtree(other.folder)


def test_a_changed_plan_says_what_is_computed_anew(finished, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace("gamma=2", "gamma=3"))
    out = finished.folder.parent / "copy"
    shutil.copytree(finished.folder, out)
    assert open_plan(tmp_path / "plan.toml", out).unused == 6  # two trainings, on two sets, judged
    assert open_plan(tmp_path / "plan.toml", tmp_path / "nowhere").unused == 0
    shutil.copytree(finished.folder, out, dirs_exist_ok=True)
    (tmp_path / "plan.toml").write_text(PLAN.replace("seed = [1, 2]", "seed = [1]"))
    ended = CliRunner().invoke(app, ["study", "run", str(tmp_path / "plan.toml"), "--out", str(out)])
    assert "The plan has changed: 7 finished jobs are no longer part of it" in ended.output
    shutil.rmtree(out)


def test_the_folder_of_another_plan_is_refused(finished, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace('"Tiny"', '"Other"'))
    with pytest.raises(InputError, match="got the study 'Tiny' at scale paper"):
        open_plan(tmp_path / "plan.toml", finished.folder)
    with pytest.raises(InputError, match=r"no study\.json in it"):
        open_study(tmp_path)


def test_absent_data_are_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "none"))
    (tmp_path / "plan.toml").write_text(PLAN.replace('["digits"]', '["digits", "cifar100"]'))
    with pytest.raises(InputError, match=r"data set cifar100: .* get it from https://www\.cs\.toronto\.edu"):
        study(tmp_path / "plan.toml", tmp_path / "out")
    (tmp_path / "plan.toml").write_text(PLAN.replace('"corrupt gaussian_noise:severity=2"', '"cifar10_1"'))
    with pytest.raises(InputError, match="data set cifar10_1"):
        study(tmp_path / "plan.toml", tmp_path / "out")
    assert not (tmp_path / "jobs").exists()


def test_shifts_that_do_not_fit_are_refused_before_anything_runs(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace('"corrupt gaussian_noise:severity=2"', '"fashion_mini"'))
    with pytest.raises(InputError, match="shifts of networks for digits: fashion_mini: expected images of 8 x 8 x 1"):
        study(tmp_path / "plan.toml", tmp_path / "out")
    assert not (tmp_path / "jobs").exists()


def test_tables_of_nothing_and_of_unknown_measures_are_refused(finished, tmp_path):
    with pytest.raises(InputError, match="did you mean 'ece'"):
        finished.table("eze")
    with pytest.raises(InputError, match=r"got 'nope'\. To fix it: pick one of these names"):
        finished.table("nope")  # and not slope, which the study does not have
    with pytest.raises(InputError, match=r"one of the plan's measures \(ece, accuracy, gap\), got 'nll'"):
        finished.table("nll")
    study = open_plan(finished.folder.parent / "plan.toml", tmp_path / "new")
    for more in ([], ["--rows"]):
        ended = CliRunner().invoke(app, ["study", "table", str(study.folder), *more])
        assert "nothing is judged yet" in str(ended.exception)
    with pytest.raises(InputError, match="limit: expected 0"):
        study.run(limit=-1)


def test_what_it_would_cost_is_told_without_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "none"))
    (tmp_path / "plan.toml").write_text(PLAN.replace('["digits"]', '["cifar100:shrink=2"]').replace("limit = 96, ", ""))
    plan = read_plan(tmp_path / "plan.toml")
    output = plan_cost(plan)
    assert output.jobs == {"train": 4, "shift": 4, "rescore": 2, "judge": 4}
    assert output.seconds > 0
    assert len(output.missing) == 1
    assert "of one core" in output.words()


def test_commands(finished):
    run = CliRunner()
    folder = str(finished.folder)
    assert json.loads(run.invoke(app, ["study", "status", folder, "--json"]).output)["done"] == 14
    assert "14 of 14 jobs done" in run.invoke(app, ["study", "status", folder]).output
    assert len(json.loads(run.invoke(app, ["study", "claims", folder, "--json"]).output)) == 2
    assert "CE (TS)" in run.invoke(app, ["study", "table", folder, "-m", "gap"]).output
    out = finished.folder / "page.html"
    assert run.invoke(app, ["study", "page", folder, "--out", str(out)]).exit_code == 0
    assert out.read_text().startswith("<!DOCTYPE html>")
    plan = str(finished.folder.parent / "plan.toml")
    ended = run.invoke(app, ["study", "run", plan, "--out", folder, "--json"])
    assert json.loads(ended.output)["reused"] == 14
    both = run.invoke(app, ["study", "run", plan, "--out", folder, "--shard", "1/2", "--on", "ray"])
    assert "leave one of them out" in str(both.exception)
    assert "neural-clamping-imagenet" in run.invoke(app, ["study", "plans"]).output


def test_what_is_printed_is_80_columns_wide(finished, tmp_path):
    run = CliRunner()
    folder = str(finished.folder)
    for command in (["plans"], ["table", folder, "--rows"], ["plan", "meta-regularization", "--scale", "small"]):
        ended = run.invoke(app, ["study", *command])
        assert ended.exit_code == 0, ended.output
        assert max(map(len, ended.output.splitlines())) <= 80
    assert "neural-clamping-imagenet  Neural" in run.invoke(app, ["study", "plans"]).output
    rows = run.invoke(app, ["study", "table", folder, "--rows"]).output
    assert rows.startswith("data: digits\n")  # the same in all rows: said once


def test_our_own_plans_need_no_permission_to_be_counted(monkeypatch):
    monkeypatch.setattr("calibrant.studying.plan_cost._time_step", lambda *_: 1.0)  # large networks take half a minute
    ended = CliRunner().invoke(app, ["study", "plan", "neural-clamping-imagenet"])
    assert ended.exit_code == 0, ended.output
    assert "hours of one core" in ended.output


def test_a_plan_says_what_one_seed_cannot_tell_and_which_shifted_data_are_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "none"))
    text = PLAN.replace('"corrupt gaussian_noise:severity=2"', '"cifar10_1"').replace("seed = [1, 2]", "seed = [1]")
    (tmp_path / "plan.toml").write_text(text)
    cost = plan_cost(read_plan(tmp_path / "plan.toml"))
    assert (cost.unsure, len(cost.missing)) == (2, 1)
    assert "2 claims rest on one seed" in cost.words()
    assert "missing: data set cifar10_1" in cost.words()
    assert "about 0.0" not in cost.words()


def test_what_a_job_takes_is_for_ray(finished):
    plan = str(finished.folder.parent / "plan.toml")
    ended = CliRunner().invoke(app, ["study", "run", plan, "--out", str(finished.folder), "--gpus", "1"])
    assert "expected --on ray" in str(ended.exception)


@pytest.mark.slow
@pytest.mark.parametrize("places", [["local:2"], ["shard:1/3", "shard:2/3", "shard:3/3"], ["ray"]])
def test_processes_shards_and_ray_give_the_same_bits(finished, tmp_path, places):
    if places == ["ray"]:
        pytest.importorskip("ray")
    study = open_plan(finished.folder.parent / "plan.toml", tmp_path / "tiny")
    for on in places:
        assert study.run(on).failed == 0
    assert _values(study) == _values(finished)


def _values(study):
    return sorted(study.rows().drop("job").rows())


def test_a_failed_training_is_said_by_its_name(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace('recipe.loss = "focal:gamma=2"', "recipe.optimizer.lr = 1e30"))
    study = open_plan(tmp_path / "plan.toml", tmp_path / "out")
    ended = run_jobs([u for u in study.jobs if u.kind != "rescore"][:6], study.store, Here(study.store.folder))
    assert ended.failed >= 1
    status = study.status()
    assert "train of focal (data digits, model resnet8:width=4, seed 1)" in status.failures
    assert "expected a finite number" in next(iter(status.failures.values()))
    assert Path(study.folder / "plan.toml").exists()


def test_single_values_keep_to_a_measure_and_columns(finished):
    """`study table --rows` ignored -m and --by."""
    assert set(finished.values("ece")["measure"]) == {"ece"}
    columns = finished.values("ece", ("method",)).columns
    assert (columns[0], columns[-1]) == ("method", "value")
    assert {"calibrator", "seed", "measure", "set"} < set(columns)
    assert not {"job", "data", "model", "n", "k"} & set(columns)  # the same everywhere, or of no use
    for by in ("method", "seed"):
        values = finished.values(None, (by,)).drop("value")
        assert values.n_unique() == values.height  # no two rows look alike
    assert finished.values().height == finished.rows().height
    arguments = ["study", "table", str(finished.folder), "--rows", "-m", "gap", "--by", "method", "--json"]
    ended = CliRunner().invoke(app, arguments)
    assert {row["measure"] for row in json.loads(ended.output)} == {"gap"}


def test_a_latex_table_has_deviations_the_best_in_bold_and_marks(finished):
    text = latex_table(finished, "ece")
    assert text.count(r"\textbf{") == 1
    assert text.count(r"$\pm$") == 4  # of every entry
    assert CliRunner().invoke(app, ["study", "table", str(finished.folder), "--format", "latex"]).output.strip() == text


def test_significance_in_a_latex_table():
    best, worse, near = {1: 0.10, 2: 0.11, 3: 0.10}, {1: 0.30, 2: 0.31, 3: 0.305}, {1: 0.10, 2: 0.12, 3: 0.11}
    column = _column("ece", {"best": best, "worse": worse, "near": near})
    assert column["best"] == Marked("10.33 ± 0.58", bold=True)
    assert [name for name, cell in column.items() if cell.sign == MARK] == ["worse"]
    tied = _column("ece", {"one": best, "another": {1: 0.10, 2: 0.10, 3: 0.11}, "worse": worse})
    assert [name for name, cell in tied.items() if cell.bold] == ["one", "another"]


def test_values_that_no_measure_gives_are_refused(finished):
    """A page of a store with values of 1e308 ended in an OverflowError."""
    huge = finished.store.rows("judge").with_columns(value=pl.lit(1e308))
    with pytest.raises(InputError, match="column value"):
        _check_judged(huge, finished.store.folder)


def test_commands_on_a_store_of_huge_values_say_which_part_is_damaged(finished, tmp_path):
    shutil.copytree(finished.folder.parent, tmp_path / "all")
    folder, store = tmp_path / "all" / finished.folder.name, tmp_path / "all" / finished.store.folder.name
    parts = sorted(store.glob("rows/judge/part-*.parquet"))
    pl.read_parquet(parts[0]).with_columns(value=pl.lit(1e308)).write_parquet(parts[0])
    page_file = tmp_path / "page.html"
    for command in (["table"], ["table", "--rows"], ["claims"], ["page", "--out", str(page_file)]):
        ended = CliRunner().invoke(app, ["study", command[0], str(folder), *command[1:]])
        assert isinstance(ended.exception, InputError), command
        assert "numbers in the column value" in str(ended.exception)
    assert not page_file.exists()
