"""What the page asks from the library: views, rows of a region, costs, the code that repeats it, the card."""

import gzip
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.app import draw
from calibrant.app.analysis import ALL, View, is_sums, open_example, open_files, report_sums
from calibrant.app.card import card_png, card_svg
from calibrant.app.repeat import repeat
from calibrant.core.errors import DamagedFileError
from calibrant.core.io.column_names import STANDARD_NAMES, Columns
from calibrant.deciding.costs import read_rule
from calibrant.measures import make
from calibrant.measuring.example import write_examples

HOSTILE = '<img src=x onerror=alert(1)>"&'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    write_examples(folder)
    for name in ("small_val", "small_test"):  # reports of few rows take no time
        whole = cal.Predictions.load(folder / f"{name.removeprefix('small_')}.npz")
        whole.take(np.arange(300)).save(folder / f"{name}.npz")
    return folder


@pytest.fixture(scope="module")
def small(folder):
    return open_files([folder / "small_test.npz"], [folder / "small_val.npz"], STANDARD_NAMES)


@pytest.fixture(scope="module")
def built(small):
    return small.build(cost="wrong=5,abstain=1")


@pytest.mark.parametrize("name", ["fashion", "sneakers", "llm_stated"])
def test_bars_and_rows_are_those_of_the_measures(name):
    analysis = open_example(name)
    p = analysis.first
    for calibrator in analysis.calibrators[:2]:
        view = View(name, calibrator, 12, "mass")
        q = analysis.rows_of(view)
        bars = analysis.bars(view)
        assert sum(b["share"] * abs(b["gap"]) for b in bars) == pytest.approx(make("ece:bins=12,scheme=mass")(q))
        rows = analysis.rows_between(view, 0.3, 0.6)
        assert set(rows) == set(np.flatnonzero((q.score >= 0.3) & (q.score <= 0.6)))
        assert (np.diff(q.score[rows]) <= 0).all()
        assert draw.region_csv(analysis, view, 0.3, 0.6).count(b"\n") == len(rows) + 1
    segment = analysis.segments[-1]
    if segment != ALL:
        one = View(name, segment=segment)
        assert set(p.groups[analysis.rows_between(one, 0, 1)].astype(str)) == {segment}


def test_calibrated_rows_are_those_of_the_report(small, built):
    for t in built.models[0].trials[1:3]:
        assert make("nll")(small.rows_of(View("small_test", t.calibrator))) == pytest.approx(t.values["nll"], abs=1e-12)


def test_without_rows_to_fit_on_they_are_cross_fitted(folder):
    analysis = open_files([folder / "small_test.npz"], [], STANDARD_NAMES)
    t = analysis.build().models[0].after("temperature")
    p = analysis.rows_of(View("small_test", "temperature"))
    assert make("ece")(p) == pytest.approx(t.values["ece"], abs=1e-12)


def test_a_view_of_what_is_not_there_becomes_one_that_is(small):
    asked = View("nobody", "./mine.py", 10**9, "odd", "../etc/passwd")
    assert small.check(asked) == View("small_test", "identity", 100, "width", ALL)


def test_costs_are_those_of_the_report(small, built):
    cost = small.cost(View("small_test", "temperature"), read_rule("wrong=5,abstain=1"))
    assert cost.rows[0] == built.models[0].cost.rows[0]
    expected = next(row for row in built.models[0].cost.rows if row.calibrator == "temperature")
    assert cost.rows[1].actual_cost == pytest.approx(expected.actual_cost)


@pytest.mark.parametrize("name", ["test.npz", "preds.csv", "preds.parquet"])
def test_files_of_every_format_say_the_same(folder, name):
    analysis = open_files([folder / name], [folder / "val.npz"], STANDARD_NAMES)
    assert analysis.assess(View(analysis.check(View("")).model)).says == pytest.approx(0.9023, abs=1e-3)


def test_several_models_have_names_of_their_own(folder):
    analysis = open_files(
        [folder / "a.npz", folder / "b.npz", folder / "preds.npz", folder / "preds.csv"], [], STANDARD_NAMES
    )
    assert list(analysis.models) == ["a", "b", "preds", "preds (2)"]
    with pytest.raises(cal.InputError, match="as many, or none"):
        open_files([folder / "a.npz", folder / "b.npz"], [folder / "val.npz"], STANDARD_NAMES)


def test_the_state_of_an_accumulator_has_a_report(tmp_path):
    sums = cal.Accumulator()
    sums.update(cal.example("fashion").test)
    sums.save(tmp_path / "sums.json")
    assert is_sums(tmp_path / "sums.json")
    assert report_sums(tmp_path / "sums.json").models[0].n == 4000
    (tmp_path / "odd.json").write_text('{"a": 1}')
    with pytest.raises(cal.InputError, match=r"odd\.json") as refused:
        report_sums(tmp_path / "odd.json")
    assert str(tmp_path) not in str(refused.value)


def test_messages_name_the_file_and_not_the_folder(folder, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(cal.InputError, match=r"^x\.csv: expected") as refused:
        open_files([tmp_path / "x.csv"], [], STANDARD_NAMES)
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.parametrize("name", ["empty.csv", "cut.npz", "cut.parquet", "cut.csv.gz"])
def test_a_file_that_no_choice_of_columns_can_save_is_known_by_its_error(name, tmp_path):
    """The tab asks which column is what only where an answer helps."""
    whole = tmp_path / f"whole.{name.partition('.')[2].removesuffix('.gz')}"
    cal.example("fashion").test.take(range(40)).save(whole)
    content = gzip.compress(whole.read_bytes()) if name.endswith(".gz") else whole.read_bytes()
    (tmp_path / name).write_bytes(b"" if name == "empty.csv" else content[: len(content) // 2])
    with pytest.raises(DamagedFileError, match=rf"^{re.escape(name)}: expected"):
        open_files([tmp_path / name], [], STANDARD_NAMES)


def test_a_table_without_labels_is_not_damaged(tmp_path):
    (tmp_path / "x.csv").write_text("score,truth\n0.5,1\n0.2,0\n")
    with pytest.raises(cal.InputError) as refused:
        open_files([tmp_path / "x.csv"], [], STANDARD_NAMES)
    assert type(refused.value) is cal.InputError


def test_the_code_repeats_what_was_done(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores.csv").write_text("".join((folder / "scores.csv").read_text().splitlines(keepends=True)[:401]))
    columns = Columns(label="y", positive="yes")
    analysis = open_files([tmp_path / "scores.csv"], [], columns)
    view = View("scores", "platt", 10)
    code = repeat(analysis, view, "fn=5,fp=1")
    names = {}
    exec(compile(code, "repeat.py", "exec"), names)
    map_, _ = analysis.calibrate(view)
    assert names["calibration"].to_json() == map_.to_json() == (tmp_path / "map.json").read_text()
    assert names["report"].bins == 10
    assert names["report"].models[0].cost.fn == 5
    assert repeat(open_example("fashion"), View("fashion"), None).count("\n") < 10


def test_names_are_escaped_everywhere(tmp_path):
    p = cal.example("fashion").test.take(np.arange(200))
    groups = np.where(np.arange(200) % 2, HOSTILE, "b")
    file = tmp_path / "hostile.npz"
    cal.Predictions.from_logits(p.values, p.labels, groups=groups, classes=[HOSTILE + str(c) for c in range(10)]).save(
        file
    )
    analysis = open_files([file], [], STANDARD_NAMES)
    view = View("hostile", segment=HOSTILE)
    html = draw.diagram(analysis, view, (0, 1)) + draw.region(analysis, view, 0, 1, "/results/a/rows.csv")
    html += draw.part("code", repeat(analysis, view, None)) + draw.escape(HOSTILE)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "<img" not in html


def test_the_card_is_a_picture_of_the_verdict(built):
    svg = card_svg(built)
    assert "Says " in svg
    assert svg.count("<rect") > 10
    data = card_png(built)
    assert data.startswith(b"\x89PNG")
    assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (1200, 630)
