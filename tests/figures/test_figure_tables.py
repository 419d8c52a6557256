"""Figures of tables: their numbers, and what they say about wrong tables."""

import numpy as np
import polars as pl
import pytest
from figure_tables import runs, study, sweep, training

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.figures import make
from calibrant.plotting.draw import compute

# -- training curves ------------------------------------------------------------------------------


def test_training_curves_follow_the_log():
    log = training()
    rows = make("training_curves").data(log)
    assert list(dict.fromkeys(row["measure"] for row in rows)) == [
        "loss",
        "nll",
        "ece",
        "error",
        "auroc_correct",
        "gamma",
    ]
    assert "seconds" not in {row["measure"] for row in rows}
    ece = [row["value"] for row in rows if row["measure"] == "ece"]
    assert ece == log["val_ece"].to_list()
    last = [row for row in rows if row["measure"] == "gamma"][-1]
    assert last["high"] - last["value"] == pytest.approx(log["gamma_std"][-1])
    assert last["value"] - last["low"] == pytest.approx(log["gamma_std"][-1])


def test_training_curves_of_several_runs_and_splits():
    log = pl.concat([training().with_columns(model=pl.lit(name)) for name in ("CE", "focal")])
    log = log.with_columns(test_ece=pl.col("val_ece") + 0.01)
    figure = make("training_curves")
    rows = figure.data(log)
    assert {row["split"] for row in rows if row["measure"] == "ece"} == {"val", "test"}
    assert "strokeDash" in str(figure.chart(rows).to_dict())
    assert "of focal" in figure.words(rows)


def test_long_logs_are_thinned():
    log = pl.DataFrame({"epoch": range(20_000), "val_nll": np.linspace(2, 1, 20_000)})
    rows = make("training_curves").data(log)
    assert len(rows) <= 401
    assert (rows[0]["epoch"], rows[-1]["epoch"]) == (0, 19_999)


def test_epochs_may_come_in_any_order():
    log = training().sample(fraction=1.0, shuffle=True, seed=1)
    epochs = [row["epoch"] for row in make("training_curves").data(log) if row["measure"] == "ece"]
    assert epochs == sorted(epochs)


def test_a_log_without_measures_says_what_it_wants():
    with pytest.raises(InputError, match=r"val_ece.*got epoch, seconds"):
        make("training_curves").data(pl.DataFrame({"epoch": [1], "seconds": [2.0]}))


# -- boxes ----------------------------------------------------------------------------------------


def test_boxes_are_numpys_quartiles():
    table = runs()
    rows = make("run_boxes").data(table)
    own = table.filter((pl.col("group") == "random") & (pl.col("measure") == "ece"))["value"].to_numpy()
    box = next(row for row in rows if (row["group"], row["measure"], row["part"]) == ("random", "ece", "box"))
    assert [box["first"], box["median"], box["third"]] == pytest.approx(np.quantile(own, [0.25, 0.5, 0.75]).tolist())
    dots = [r["value"] for r in rows if (r["group"], r["measure"], r["part"]) == ("random", "ece", "dot")]
    assert dots == own.tolist()


def test_large_groups_show_outliers_only():
    values = np.concatenate([np.random.default_rng(0).normal(size=5000), [50.0, -60.0]])
    rows = make("study_boxes").data(pl.DataFrame({"ece": values}))
    box, *dots = rows
    assert box["count"] == 5002
    assert len(dots) <= 40
    assert {50.0, -60.0} <= {row["value"] for row in dots}
    assert all(row["value"] < box["low"] or row["value"] > box["high"] for row in dots)


def test_study_boxes_by_a_column():
    rows = make("study_boxes:of=ece+nll,by=data").data(study())
    boxes = [(row["group"], row["by"]) for row in rows if row["part"] == "box"]
    assert sorted(boxes) == [(g, d) for g in ("ece", "nll") for d in ("cifar10", "cifar100")]
    total = sum(row["count"] for row in rows if row["part"] == "box" and row["group"] == "ece")
    assert total == study().height


def test_too_many_boxes_or_kinds_are_refused():
    with pytest.raises(InputError, match="at most 40"):
        make("run_boxes").data(pl.DataFrame({"group": [str(i) for i in range(50)], "value": [0.1] * 50}))
    with pytest.raises(InputError, match="at most 8"):
        make("study_boxes:by=name").data(pl.DataFrame({"name": [str(i) for i in range(9)], "ece": [0.1] * 9}))
    with pytest.raises(InputError, match="1 to 40 columns"):
        make("study_boxes").data(pl.DataFrame({f"c{i}": [0.1] for i in range(41)}))


# -- sweeps, ranks, scatter -----------------------------------------------------------------------


def test_gamma_sweep_means_and_ranges():
    table = pl.concat([sweep(), sweep().with_columns(pl.col("ece") + 0.01)])
    rows = [row for row in make("gamma_sweep:of=ece").data(table) if row["measure"] == "ece"]
    assert [row["gamma"] for row in rows] == sweep()["gamma"].to_list()
    for row, ece in zip(rows, sweep()["ece"].to_list(), strict=True):
        assert (row["low"], row["high"]) == (ece, ece + 0.01)
        assert row["value"] == pytest.approx(ece + 0.005)
        assert row["count"] == 2


def test_gamma_sweep_says_where_it_is_lowest():
    figure = make("gamma_sweep:of=ece")
    assert "lowest, 0.03, at gamma 0.4" in figure.words(figure.data(sweep()))


def test_gamma_sweep_refuses_what_cannot_be_read():
    with pytest.raises(InputError, match="at most 8 measures"):
        make("gamma_sweep").data(sweep().with_columns(**{f"m{i}": pl.lit(1.0) for i in range(9)}))
    with pytest.raises(InputError, match="at most 500 values"):
        make("gamma_sweep").data(pl.DataFrame({"gamma": np.linspace(0, 1, 600), "ece": np.zeros(600)}))


def test_rank_heatmap_is_scipys():
    from scipy.stats import kendalltau, spearmanr

    table = study()
    for method, theirs in (("kendall", kendalltau), ("spearman", spearmanr)):
        rows = make(f"rank_heatmap:method={method}").data(table)
        results = {(row["x"], row["y"]): row["value"] for row in rows}
        assert len(results) == 9
        for (a, b), value in results.items():
            assert value == pytest.approx(theirs(table[a].to_numpy(), table[b].to_numpy()).statistic, abs=1e-12)


def test_rank_heatmap_drops_pairs_with_a_hole_and_leaves_the_undefined_blank():
    table = pl.DataFrame({"a": [1.0, 2.0, 3.0, None], "b": [1.0, 2.0, float("nan"), 9.0], "c": [5.0] * 4})
    results = {(r["x"], r["y"]): (r["value"], r["count"]) for r in make("rank_heatmap").data(table)}
    assert results["a", "b"] == (pytest.approx(1.0), 2)
    assert results["a", "c"] == (None, 3)
    figure = make("rank_heatmap:of=c")
    assert "no pair" in figure.words(figure.data(table))


def test_scatter_draws_a_seeded_sample_and_counts_all_rows():
    from scipy.stats import kendalltau

    table = study(5000)
    rows = make("study_scatter:most=300,colour=data").data(table)
    assert len(rows) == 300
    assert rows[0]["rows"] == 5000
    assert rows[0]["tau"] == pytest.approx(kendalltau(table["accuracy"], table["ece"]).statistic)
    assert rows == make("study_scatter:colour=data,most=300").data(table)
    assert rows != make("study_scatter:colour=data,most=300,seed=1").data(table)
    figure = make("study_scatter:most=300")
    assert "5,000 rows (300 drawn)" in figure.words(figure.data(table))


def test_scatter_colours_words_and_numbers():
    for column, kind in (("data", "nominal"), ("nll", "quantitative")):
        figure = make(f"study_scatter:colour={column}")
        assert figure.chart(figure.data(study())).to_dict()["encoding"]["color"]["type"] == kind
    table = study().with_columns(name=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(InputError, match="at most 8 different words"):
        make("study_scatter:colour=name").data(table)


# -- parts and measures ---------------------------------------------------------------------------


def test_parts_stack_to_the_score(p):
    terms = cal.decompose(p)["losses"]["nll, temperature"]
    table = pl.DataFrame(
        {
            "model": ["m", "m"],
            "part": ["calibration", "refinement"],
            "value": [terms["calibration"], terms["refinement"]],
        }
    )
    figure = make("decomposition")
    rows = figure.data(table)
    assert rows[-1]["high"] == pytest.approx(terms["loss"])
    assert f"= {terms['loss']:.4g}" in figure.words(rows)


def test_parts_below_zero_go_left_and_uncertainty_is_no_summand():
    table = pl.DataFrame(
        {"model": ["m"] * 3, "part": ["calibration", "refinement", "uncertainty"], "value": [-0.1, 0.5, 0.6]}
    )
    rows = {row["part"]: (row["low"], row["high"]) for row in make("decomposition").data(table)}
    assert rows == {"calibration": (-0.1, 0.0), "refinement": (0.0, 0.5), "uncertainty": (0.0, 0.6)}


def test_before_after_without_intervals():
    table = pl.DataFrame({"model": ["a", "b"], "measure": ["ece"] * 2, "value": [0.1, float("nan")]})
    figure = make("before_after")
    (row,) = figure.data(table)
    assert (row["low"], row["high"], row["better"]) == (None, None, "")
    assert "b" not in {row["model"]}


def test_words_where_numbers_belong_are_refused():
    with pytest.raises(InputError, match=r"column value.*expected numbers"):
        make("before_after").data(pl.DataFrame({"model": ["a"], "measure": ["ece"], "value": ["high"]}))


def test_predictions_are_no_table(p):
    with pytest.raises(InputError, match=r"table with columns epoch.*got predictions"):
        compute("training_curves", {"m": p})
    with pytest.raises(InputError, match="expected predictions"):
        compute("reliability", study())
