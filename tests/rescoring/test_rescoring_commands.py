"""The commands confidnet, trust-score and density-ratio: files, tables, JSON, interrupts, bad input."""

import json
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("torch")
from test_docs import check_keys, documented

import calibrant as cal
from calibrant.cli import main
from calibrant.core.errors import LeakWarning
from calibrant.rescorers import confidnet
from calibrant.rescorers.confidnet import FittedConfidNet
from calibrant.rescorers.density_ratio import DensityRatio
from calibrant.rescorers.trust_score import TrustScore


@pytest.fixture
def folder(small_run):
    return small_run


def run(capsys, *args, code=0):
    """What a command prints, in this process."""
    sys.argv, before, show = ["calibrant", *map(str, args)], sys.argv, warnings.showwarning
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as stop:
                main()
    finally:
        sys.argv, warnings.showwarning = before, show
    out = capsys.readouterr()
    assert (stop.value.code or 0) == code, out.err
    assert "Traceback" not in out.err
    if code:
        assert out.out == ""
        return out.err
    if "--json" not in args:
        lines = [line for line in out.out.splitlines() if "/" not in line]  # a test's folder has a long name
        assert max(map(len, lines)) <= 80
    return out.out


def test_density_ratio_is_what_python_makes(folder, tmp_path, capsys):
    text = run(capsys, "density-ratio", folder, "--out", tmp_path / "dr.npz", "--neighbours", 5)
    val, test = cal.Predictions.load(folder / "val.npz"), cal.Predictions.load(folder / "test.npz")
    predictions = cal.Predictions.load(tmp_path / "dr.npz")
    np.testing.assert_allclose(predictions.confidence, DensityRatio(neighbours=5).fit(val).predict(test).confidence)
    np.testing.assert_array_equal(predictions.predicted, test.predicted)
    np.testing.assert_array_equal(predictions.ids, test.ids)
    assert f"{cal.measures.make('auroc_correct')(test):.4f}" in text
    assert f"{cal.measures.make('auroc_correct')(predictions):.4f}" in text
    assert f"calibrant report {tmp_path / 'dr.npz'}" in text


def test_density_ratio_reads_files_without_a_run(folder, tmp_path, capsys):
    run(capsys, "density-ratio", folder / "test.npz", "--fit", folder / "val.npz", "--out", tmp_path / "a.parquet")
    run(capsys, "density-ratio", folder, "--out", tmp_path / "b.csv")
    one, other = (cal.Predictions.load(tmp_path / name) for name in ("a.parquet", "b.csv"))
    np.testing.assert_allclose(one.confidence, other.confidence)


def test_trust_score_is_what_python_makes(folder, tmp_path, capsys):
    text = run(capsys, "trust-score", folder, "--out", tmp_path / "ts.npz", "--device", "cpu")
    run(capsys, "trust-score", folder, "--out", tmp_path / "raw.npz", "--raw", "--device", "cpu")
    run(capsys, "predict", folder, "--part", "train", "--out", tmp_path / "train.npz", "--device", "cpu")
    val, test = cal.Predictions.load(folder / "val.npz"), cal.Predictions.load(folder / "test.npz")
    known = cal.Predictions.load(tmp_path / "train.npz")
    fitted = TrustScore().fit(known.features, known.labels)
    rescored, raw = cal.Predictions.load(tmp_path / "ts.npz"), cal.Predictions.load(tmp_path / "raw.npz")
    np.testing.assert_allclose(rescored.confidence, fitted.calibrate(val).predict(test).confidence, rtol=1e-6)
    np.testing.assert_allclose(raw.confidence, fitted.predict(test).confidence, rtol=1e-6)
    auroc = cal.measures.make("auroc_correct")
    assert auroc(rescored) == pytest.approx(auroc(raw), abs=1e-9)
    assert "sigmoid(" in text
    words = ("test.npz", "--train", tmp_path / "train.npz", "--fit", folder / "val.npz", "--out", tmp_path / "f.npz")
    run(capsys, "trust-score", folder / words[0], *words[1:])
    np.testing.assert_allclose(cal.Predictions.load(tmp_path / "f.npz").confidence, rescored.confidence, rtol=1e-6)


def test_raw_scores_are_told_to_be_no_probability(folder, tmp_path, capsys):
    text = run(capsys, "trust-score", folder, "--out", tmp_path / "ts.npz", "--raw", "--neighbour", "first")
    assert "not a probability" in text
    assert "first neighbours" in text


def test_confidnet_writes_a_folder(folder, tmp_path, capsys, monkeypatch):
    from calibrant.training.run import open_run

    monkeypatch.setattr(confidnet, "LEAST_ERRORS", 5)
    out = tmp_path / "cn"
    text = run(capsys, "confidnet", folder, "--out", out, "--epochs", 2, "--device", "cpu")
    names = {file.name for file in out.iterdir()}
    assert names == {"confidnet.json", "confidnet.safetensors", "state.safetensors", "test.npz", "val.npz"}
    rescored, test = cal.Predictions.load(out / "test.npz"), cal.Predictions.load(folder / "test.npz")
    np.testing.assert_array_equal(rescored.predicted, test.predicted)
    np.testing.assert_array_equal(rescored.features, test.features)
    again = FittedConfidNet.load(out, open_run(folder).network("cpu"))
    assert again.facts["chosen"]["by"] == "aupr_error"
    assert "AUPR-error on held-out train images" in " ".join(text.split())
    assert "calibrant report" in text
    assert rescored.row_data.seen == cal.Predictions.load(out / "val.npz").row_data.seen == 0


def test_confidnet_that_learned_from_val_says_so(folder, tmp_path, capsys):
    out = tmp_path / "cn"
    options = ("--epochs", 1, "--learn", "val", "--augment", "--stages", 2, "--clone-epochs", 1, "--device", "cpu")
    text = run(capsys, "confidnet", folder, "--out", out, *options)
    assert "held-out val images" in text
    assert cal.Predictions.load(out / "val.npz").row_data.seen == 1
    with pytest.warns(UserWarning, match="fitted on about 100 % of them"):
        cal.measure(cal.Predictions.load(out / "val.npz"), "ece", resamples=0)


def test_an_interrupted_confidnet_goes_on(folder, tmp_path, capsys, monkeypatch):
    options = ("--epochs", 3, "--stages", 2, "--clone-epochs", 2, "--device", "cpu")
    run(capsys, "confidnet", folder, "--out", tmp_path / "whole", *options)
    ended, real = [], confidnet.Fitting.end_epoch

    def stop(self, loss):
        real(self, loss)
        ended.append(loss)
        if len(ended) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(confidnet.Fitting, "end_epoch", stop)
    run(capsys, "confidnet", folder, "--out", tmp_path / "again", *options, code=130)
    assert [file.name for file in (tmp_path / "again").iterdir()] == ["state.safetensors"]
    other = (*options, "--seed", 1)
    assert "seed = 0 then, 1 now" in run(capsys, "confidnet", folder, "--out", tmp_path / "again", *other, code=2)
    run(capsys, "confidnet", folder, "--out", tmp_path / "again", *options)
    assert len(ended) == 5
    for name in ("test.npz", "val.npz"):
        one, other = (cal.Predictions.load(tmp_path / which / name) for which in ("whole", "again"))
        np.testing.assert_array_equal(one.confidence, other.confidence)


def test_json_has_the_documented_keys(folder, tmp_path, capsys):
    commands = {
        "confidnet": ("--out", tmp_path / "cn", "--epochs", 1, "--device", "cpu"),
        "trust-score": ("--out", tmp_path / "ts.npz", "--device", "cpu"),
        "density-ratio": ("--out", tmp_path / "dr.npz"),
    }
    for name, options in commands.items():
        value = json.loads(run(capsys, name, folder, *options, "--json"))
        keys = documented(name)
        inner = {key.removeprefix("measures.*."): keys.pop(key) for key in list(keys) if key.startswith("measures.*.")}
        check_keys(value, keys)
        assert [row["measure"] for row in value["measures"]] == [
            "auroc_correct",
            "aupr_error",
            "aupr_success",
            "ece",
            "nll",
        ]
        for row in value["measures"]:
            check_keys(row, inner)


def test_the_rows_of_the_fit_are_told(folder, tmp_path, capsys):
    value = json.loads(run(capsys, "density-ratio", folder, "--part", "val", "--out", tmp_path / "dr.npz", "--json"))
    assert value["seen"] == 1
    val = cal.Predictions.load(folder / "val.npz")
    with pytest.warns(LeakWarning):
        DensityRatio().fit(val).predict(val)


def test_replaced_confidences_are_measured(folder, tmp_path, capsys):
    run(capsys, "density-ratio", folder, "--out", tmp_path / "dr.npz")
    [row] = json.loads(run(capsys, "measure", tmp_path / "dr.npz", "-m", "auroc_correct", "--resamples", 0, "--json"))
    assert row["value"] == cal.measures.make("auroc_correct")(cal.Predictions.load(tmp_path / "dr.npz"))


def test_bad_input_ends_with_one_line(folder, tmp_path, capsys):
    out = tmp_path / "x.npz"
    test = cal.Predictions.load(folder / "test.npz")
    cal.Predictions.from_logits(test.logits, test.labels).save(tmp_path / "bare.npz")
    bare, val = tmp_path / "bare.npz", folder / "val.npz"
    assert "predict with features" in run(capsys, "density-ratio", bare, "--fit", val, "--out", out, code=2)
    assert "predict with features" in run(capsys, "density-ratio", folder, "--fit", bare, "--out", out, code=2)
    assert "predict with features" in run(capsys, "trust-score", folder, "--train", bare, "--out", out, code=2)
    assert "--train FILE" in run(capsys, "trust-score", folder / "test.npz", "--out", out, code=2)
    assert "--fit FILE" in run(capsys, "density-ratio", folder / "test.npz", "--out", out, code=2)
    assert "no run.json" in run(capsys, "trust-score", tmp_path, "--out", out, code=2)
    assert "did you mean 'test'" in run(capsys, "density-ratio", folder, "--part", "tst", "--out", out, code=2)
    assert "second" in run(capsys, "trust-score", folder, "--neighbour", "third", "--out", out, code=2)
    assert "a folder" in run(capsys, "confidnet", folder, "--out", out, code=2)
    assert "train, val" in run(capsys, "confidnet", folder, "--learn", "test", "--out", tmp_path / "cn", code=2)
    assert "ends in .npz" in run(capsys, "density-ratio", folder, "--out", tmp_path / "x.txt", code=2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bare.npz"]


def test_confidnet_reads_the_predictions_before_it_fits(folder, tmp_path):
    """A run whose test.npz is of other images is refused before anything is written."""
    import shutil

    import calibrant as cal
    from calibrant.rescoring.confidnet import rescore_by_confidnet

    shutil.copytree(folder, tmp_path / "run")
    p = cal.Predictions.load(tmp_path / "run" / "test.npz")
    cal.Predictions.from_logits(p.logits[:50], p.labels[:50]).save(tmp_path / "run" / "test.npz")
    with pytest.raises(cal.InputError, match=r"test.npz of the run: expected predictions of the"):
        rescore_by_confidnet(tmp_path / "run", cal.rescorers.ConfidNet(epochs=1), tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_predictions_go_into_the_folder_of_the_run(folder, tmp_path, monkeypatch):
    import shutil
    import sys

    from calibrant.cli import main

    shutil.copytree(folder, tmp_path / "run")
    for words, code in ((["density-ratio", str(tmp_path / "run")], 0), (["density-ratio", str(tmp_path / "x.npz")], 2)):
        monkeypatch.setattr(sys, "argv", ["calibrant", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert (end.value.code or 0) == code
    assert (tmp_path / "run" / "density-ratio.npz").is_file()


@pytest.mark.parametrize("refused_by", ["confidences that are no numbers", "a folder in the place of a file"])
def test_a_confidnet_that_is_refused_leaves_nothing(folder, tmp_path, refused_by):
    """A real training: one at an absurd rate ends with NaN, the results of another cannot be written."""
    from calibrant.rescoring.confidnet import rescore_by_confidnet

    lr, out = (1e20, tmp_path / "out") if "numbers" in refused_by else (1e-4, tmp_path / "out")
    names = [] if "numbers" in refused_by else ["test.npz"]
    for name in names:
        (out / name).mkdir(parents=True)
    with pytest.raises(cal.InputError, match="numbers" if not names else r"test\.npz: expected"):
        rescore_by_confidnet(folder, cal.rescorers.ConfidNet(epochs=1, lr=lr), out, device="cpu")
    assert sorted(file.name for file in out.glob("*")) == names
