"""calibrant plot: files, words and numbers, and bad input with exit code 2."""

import json
import sys

import numpy as np
import polars as pl
import pytest
from figure_tables import measured, study, training

import calibrant as cal
import calibrant.cli.plotting  # adds the command, whether or not the command line lists it yet
from calibrant.cli import main
from calibrant.data import DEMO_TEST, DEMO_VAL


@pytest.fixture
def plot(capsys, monkeypatch):
    """Run the command in this process; returns what it printed."""

    def run(*args, code=0):
        monkeypatch.setattr(sys, "argv", ["calibrant", "plot", *map(str, args)])
        monkeypatch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        assert (stop.value.code or 0) == code, printed.err
        assert "Traceback" not in printed.err
        assert not (code and printed.out)
        return printed.err if code else printed.out

    return run


@pytest.fixture(autouse=True)
def keep_the_process(monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *_: None)
    import warnings

    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)


def test_plot_writes_a_file_and_says_what_it_shows(plot, tmp_path):
    out = plot("reliability:bins=15", DEMO_TEST, "--out", tmp_path / "fig.svg")
    assert (tmp_path / "fig.svg").read_text().startswith("<svg")
    ece = cal.measures.make("ece")(cal.Predictions.load(DEMO_TEST))
    assert f"ECE {ece:.4f}" in out
    assert f"Written to {tmp_path / 'fig.svg'}." in out


def test_without_a_file_the_words_and_a_table_are_printed(plot):
    out = plot("reliability:bins=10", DEMO_TEST)
    assert "test says" in out
    assert "confidence accuracy" in out
    assert max(map(len, out.splitlines())) <= 80
    long = plot("risk_coverage", DEMO_TEST)
    assert "380 more rows" in long
    assert len(long.splitlines()) < 40


def test_json_has_the_rows(plot, tmp_path):
    value = json.loads(plot("reliability:bins=20", DEMO_TEST, "--json"))
    assert set(value) == {"figure", "title", "words", "out", "rows"}
    assert (value["figure"], value["out"]) == ("reliability:bins=20", None)
    total = sum(row["share"] * abs(row["gap"]) for row in value["rows"])
    assert total == pytest.approx(cal.measures.make("ece:bins=20")(cal.Predictions.load(DEMO_TEST)), abs=1e-12)
    both = json.loads(plot("reliability", DEMO_TEST, "--json", "--out", tmp_path / "fig.svg"))
    assert both["out"] == str(tmp_path / "fig.svg")
    assert (tmp_path / "fig.svg").exists()


def test_json_of_what_is_undefined_is_null(plot, tmp_path):
    np.savez(tmp_path / "p.npz", probs=np.eye(3), labels=[0, 1, 2])
    value = json.loads(plot("correctness_roc", tmp_path / "p.npz", "--json"))
    assert value["rows"][0]["auroc"] is None


def test_several_files_and_their_names(plot, tmp_path):
    rows = json.loads(plot("bins_sweep", DEMO_VAL, DEMO_TEST, "--json"))["rows"]
    assert {row["model"] for row in rows} == {"demo_val", "demo_test"}
    rows = json.loads(plot("bins_sweep", DEMO_VAL, DEMO_TEST, "--names", "CE, focal", "--json"))["rows"]
    assert {row["model"] for row in rows} == {"CE", "focal"}
    (tmp_path / "other").mkdir()
    cal.Predictions.load(DEMO_TEST).save(tmp_path / "other" / "demo_test.npz")
    rows = json.loads(plot("bins_sweep", DEMO_TEST, tmp_path / "other" / "demo_test.npz", "--json"))["rows"]
    assert {row["model"] for row in rows} == {str(DEMO_TEST.with_suffix("")), str(tmp_path / "other" / "demo_test")}


def test_names_with_markup_are_printed_as_they_are(plot):
    assert "[red]x[/red] says" in plot("reliability", DEMO_TEST, "--names", "[red]x[/red]")


def test_tables(plot, tmp_path):
    training().write_parquet(tmp_path / "log.parquet")
    training().write_csv(tmp_path / "other.csv")
    assert "val ECE 0.024 to 0.068" in " ".join(plot("training_curves", tmp_path / "log.parquet").split())
    out = plot("training_curves", tmp_path / "log.parquet", tmp_path / "other.csv", "--names", "CE,focal", "--json")
    assert {row["model"] for row in json.loads(out)["rows"]} == {"CE", "focal"}
    study().write_csv(tmp_path / "study.csv")
    plot(
        "study_scatter:x=accuracy,y=nll,colour=data",
        tmp_path / "study.csv",
        "--out",
        tmp_path / "s.png",
        "--theme",
        "dark",
    )
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_decomposition_and_before_after_measure_predictions(plot):
    rows = json.loads(plot("decomposition", DEMO_TEST, "--json"))["rows"]
    terms = cal.decompose(cal.Predictions.load(DEMO_TEST))["losses"]["nll, temperature"]
    assert rows[1]["high"] == pytest.approx(terms["loss"])
    rows = json.loads(plot("before_after", DEMO_VAL, DEMO_TEST, "--resamples", 30, "--json"))["rows"]
    assert [row["measure"] for row in rows[::2]] == ["ece", "nll", "brier", "auroc_correct"]
    assert {row["better"] for row in rows} == {"lower", "higher"}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


def test_before_after_of_a_table(plot, tmp_path):
    measured().write_csv(tmp_path / "measured.csv")
    rows = json.loads(plot("before_after", tmp_path / "measured.csv", "--json"))["rows"]
    assert len(rows) == measured().height


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["reliabilty", DEMO_TEST], "did you mean 'reliability'"),
        (
            ["reliability", DEMO_TEST, "--out", "fig.gif"],
            "expected a name that ends in .svg, .png, .pdf, .html, got '.gif'",
        ),
        (["reliability", DEMO_TEST, "--theme", "blue"], "theme: expected one of dark, light"),
        (["reliability:bins=3,bins=4", DEMO_TEST], "expected one value, got two"),
        (["risk_coverage:bins=4", DEMO_TEST], "option of risk_coverage: expected one of coverage, got 'bins'"),
        (["reliability:bins=0", DEMO_TEST], "bins: expected at least 1"),
        (["reliability:level=2", DEMO_TEST], "level: expected a share"),
        (["reliability", "none.npz"], "no such file"),
        (["reliability", DEMO_TEST, DEMO_VAL, "--names", "a"], "--names: expected 2, one for each file, got 1"),
        (["reliability", DEMO_TEST, DEMO_VAL, "--names", "a,a"], "a name of its own for each file"),
        (["reliability", DEMO_TEST, "--names", ""], "a name of its own for each file"),
        (["gamma_sweep", DEMO_TEST], "expected a table (.parquet or .csv), got .npz"),
        (["reliability", DEMO_TEST, DEMO_TEST], "a name of its own for each file"),
    ],
)
def test_bad_input_ends_with_one_line_and_code_2(plot, args, message):
    error = plot(*args, code=2)
    assert message in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_bad_tables_end_with_code_2(plot, tmp_path):
    pl.DataFrame({"a": [1]}).write_csv(tmp_path / "a.csv")
    assert "expected columns epoch, got no epoch among a" in plot("training_curves", tmp_path / "a.csv", code=2)
    (tmp_path / "b.parquet").write_bytes(b"not a parquet file")
    assert "expected a readable .parquet file" in plot("training_curves", tmp_path / "b.parquet", code=2)
    measured().write_csv(tmp_path / "c.csv")
    assert "no column named model" in plot("before_after", tmp_path / "c.csv", tmp_path / "a.csv", code=2)
