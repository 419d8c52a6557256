"""The commands of repair: fit, apply, export and list, their JSON, their warnings, and bad input with exit code 2."""

import json

import numpy as np
import pytest
from commands import run

import calibrant as cal
from calibrant.repairing.judge import measures_for

FIT_KEYS = {"calibrator", "parameters", "converged", "diagnosis", "gradient", "keeps_argmax", "judged_on", "measures"}
SHOWN = ["nll", "brier", "ece", "classwise", "accuracy", "auroc_correct"]


def fails(*args, cwd=None):
    """The error of a command that must end with exit code 2."""
    return run(*args, cwd=cwd, code=2).stderr


def narrow(text):
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    return " ".join(text.split())


def arrays(n, k, seed, sharpness=2.5):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    return {"logits": sharpness * z, "labels": (z + rng.gumbel(size=(n, k))).argmax(axis=1)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """val and test of three classes, val4 of four, grouped, and map.json fitted on val."""
    path = tmp_path_factory.mktemp("repair")
    np.savez(path / "val.npz", **arrays(400, 3, 1))
    np.savez(path / "test.npz", **arrays(300, 3, 2))
    np.savez(path / "val4.npz", **arrays(200, 4, 3))
    groups = np.where(np.arange(400) % 2, "a", "b")
    np.savez(path / "grouped.npz", **arrays(400, 3, 4), groups=groups)
    cal.fit(cal.Predictions.load(path / "val.npz"), "temperature").save(path / "map.json")
    return path


def listing(path):
    return {f.name: f.read_bytes() for f in path.iterdir()}


# -- fit ------------------------------------------------------------------------------------------


def test_fit_prints_the_temperature_its_interval_the_changes_and_the_certificate(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of the file is printed, and a long path has no place in 80 columns
    out = narrow(run("fit", folder / "val.npz", "--with", "temperature", "--out", "m.json").stdout)
    m = cal.load_map(tmp_path / "m.json")
    for name in ("T", "T_low", "T_high"):
        assert f"{m.parameters[name]:.4f}" in out
    assert "Converged" in out
    assert "gradient" in out
    assert all(f" {name} " in out for name in SHOWN)
    assert "The map was fitted on these rows, so numbers are optimistic" in out
    assert [f.name for f in tmp_path.iterdir()] == ["m.json"]


def test_fit_json(folder, tmp_path):
    done = run("fit", folder / "val.npz", "--with", "temperature", "--test", folder / "test.npz", "--json")
    document = json.loads(done.stdout)
    assert set(document) == FIT_KEYS
    assert document["calibrator"] == "temperature"
    assert document["parameters"] == cal.load_map(folder / "map.json").parameters
    assert document["parameters"]["T_low"] < document["parameters"]["T"] < document["parameters"]["T_high"]
    assert (document["converged"], document["diagnosis"], document["judged_on"]) == (True, "converged", "held_out")
    assert document["gradient"] < 1e-9
    assert [row["measure"] for row in document["measures"]] == SHOWN
    test = cal.Predictions.load(folder / "test.npz")
    after = cal.load_map(folder / "map.json")(test)
    for row in document["measures"]:
        measure = cal.measures.make(row["measure"])
        assert row["before"] == pytest.approx(measure(test))
        assert row["after"] == pytest.approx(measure(after))
        assert row["low"] <= row["difference"] <= row["high"]
    accuracy = document["measures"][SHOWN.index("accuracy")]
    assert (accuracy["difference"], accuracy["low"], accuracy["high"]) == (0, 0, 0)
    assert done.stderr == ""


def test_same_seed_same_numbers(folder):
    command = ("fit", folder / "val.npz", "--with", "svs", "--json", "--seed", 3, "--resamples", 20)
    assert run(*command).stdout == run(*command).stdout


def test_fit_auto(folder, tmp_path):
    done = run("fit", folder / "val.npz", "--with", "auto", "--out", tmp_path / "m.json", "--json")
    document = json.loads(done.stdout)
    assert set(document) == FIT_KEYS | {
        "verdict",
        "chosen",
        "otherwise",
        "keep_argmax",
        "candidates",
        "rival",
        "n",
        "outcomes",
        "absent",
    }
    assert document["verdict"].startswith(f"Use {document['chosen']}: it lowers the loss, NLL ")
    assert document["chosen"] == document["calibrator"]
    names = [c["calibrator"] for c in document["candidates"]]
    assert names[0] == "identity"
    assert document["calibrator"] in names
    assert cal.load_map(tmp_path / "m.json").calibrator == document["calibrator"]
    text = narrow(run("fit", folder / "val.npz", "--with", "auto", "--keep-argmax").stdout)
    assert "svs" not in text
    assert "identity" in text
    assert "it lowers the loss, NLL " in text


def test_fit_all(folder):
    args = ("fit", folder / "val.npz", "--with", "all", "--test", folder / "test.npz")
    rows = json.loads(run(*args, "--json").stdout)
    every = {name for name in cal.calibrators.names() if not cal.calibrators.make(name).binary}
    assert {row["calibrator"] for row in rows} == every
    for row in rows:
        assert set(row["values"]) == set(SHOWN), row
        assert row["seconds"] >= 0
        assert row["diagnosis"]
    losses = [row["values"]["nll"] for row in rows]
    assert losses == sorted(losses)
    text = narrow(run(*args, "--keep-argmax").stdout)
    assert "temperature" in text
    assert "matrix" not in text


def test_cross_fit_judges_honestly(folder):
    rows = [
        json.loads(run("fit", folder / "val.npz", "--with", "matrix", "--json", "--resamples", 5, *more).stdout)
        for more in ([], ["--cross-fit"])
    ]
    assert [row["judged_on"] for row in rows] == ["fitting_rows", "cross_fitted"]
    assert rows[0]["measures"][0]["after"] < rows[1]["measures"][0]["after"]
    assert rows[0]["parameters"] == rows[1]["parameters"]


def test_testing_on_the_fitting_rows_is_noticed(folder):
    document = json.loads(
        run("fit", folder / "val.npz", "--with", "platt", "--test", folder / "val.npz", "--json").stdout
    )
    assert document["judged_on"] == "fitting_rows"


def test_a_chain(folder, tmp_path):
    run("fit", folder / "val.npz", "--with", "temperature+isotonic", "--out", tmp_path / "m.json")
    assert cal.load_map(tmp_path / "m.json").calibrator == "temperature+isotonic"


def test_by_group(folder, tmp_path):
    out = run("fit", folder / "grouped.npz", "--with", "temperature", "--by-group", "--out", tmp_path / "m.json")
    narrow(out.stdout)
    assert set(cal.load_map(tmp_path / "m.json").groups) == {"a", "b"}
    run("apply", tmp_path / "m.json", folder / "grouped.npz", "--out", tmp_path / "q.npz")
    assert cal.Predictions.load(tmp_path / "q.npz").n == 400
    error = fails("apply", tmp_path / "m.json", folder / "val.npz", "--out", tmp_path / "r.npz")
    assert "add a column group" in error
    for more in (["--with", "auto"], ["--with", "temperature", "--cross-fit"]):
        assert "--test FILE" in fails("fit", folder / "grouped.npz", "--by-group", *more)
    assert "add a column group" in fails("fit", folder / "val.npz", "--by-group", "--with", "platt")
    assert not (tmp_path / "r.npz").exists()


def test_degenerate_rows_have_a_diagnosis(tmp_path):
    np.savez(tmp_path / "p.npz", logits=[[2.0, 0.0], [0.0, 2.0], [3.0, 0.0]] * 5, labels=[0, 1, 0] * 5)
    document = json.loads(run("fit", tmp_path / "p.npz", "--with", "temperature", "--json").stdout)
    why = "every prediction is right, so there is nothing to fit"
    assert (document["converged"], document["diagnosis"], document["parameters"]) == (False, why, {})
    assert why[1:] in narrow(run("fit", tmp_path / "p.npz", "--with", "temperature").stdout)


# -- apply, export, list --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv"])
def test_apply(suffix, folder, tmp_path):
    out = tmp_path / f"q.{suffix}"
    done = run("apply", folder / "map.json", folder / "test.npz", "--out", out, "--json")
    assert json.loads(done.stdout) == {"calibrator": "temperature", "n": 300, "k": 3, "seen": 0.0, "out": str(out)}
    assert done.stderr == ""
    expected = cal.load_map(folder / "map.json")(cal.Predictions.load(folder / "test.npz"))
    np.testing.assert_allclose(cal.Predictions.load(out).probs, expected.probs, atol=1e-12)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_apply_needs_no_labels_and_leaves_other_columns_alone(suffix, tmp_path):
    import polars as pl

    rng = np.random.default_rng(0)
    score = rng.random(50).round(6)
    m = cal.fit(cal.Predictions.binary(score, rng.random(50) < score**2), "platt")
    m.save(tmp_path / "m.json")
    today = pl.DataFrame({"customer": [f"c{i}" for i in range(50)], "score": score, "weight": [3.5] * 50})
    writers = {".csv": today.write_csv, ".parquet": today.write_parquet, ".jsonl": today.write_ndjson}
    writers[suffix](tmp_path / f"today{suffix}")
    run("apply", tmp_path / "m.json", tmp_path / f"today{suffix}", "--out", tmp_path / f"scored{suffix}")
    readers = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}
    scored = readers[suffix](tmp_path / f"scored{suffix}")
    assert scored.columns == ["customer", "score", "weight", "calibrated"]
    assert scored.drop("calibrated").equals(today)
    np.testing.assert_allclose(scored["calibrated"], m(score), atol=1e-12)


def test_leaks_are_warned_of_when_applying_and_when_measuring(folder, tmp_path):
    done = run("apply", folder / "map.json", folder / "val.npz", "--out", tmp_path / "q.npz")
    assert "warning: about 100 % of these rows are among those this map was fitted on" in done.stderr
    assert "warning" not in done.stdout
    done = run("measure", tmp_path / "q.npz", "-m", "ece", "--resamples", 0, "--json")
    assert "warning: the map that made these predictions was fitted on about 100 % of them" in done.stderr
    json.loads(done.stdout)


@pytest.mark.parametrize(("to", "name"), [("onnx", "m.onnx"), ("torch", "m.pt"), ("python", "m.py")])
def test_export(to, name, folder, tmp_path):
    pytest.importorskip({"onnx": "onnxruntime", "torch": "torch"}.get(to, "json"))
    document = json.loads(run("export", folder / "map.json", "--to", to, "--out", tmp_path / name, "--json").stdout)
    assert set(document) == {"path", "format", "largest_difference"}
    assert document["format"] == to
    assert document["largest_difference"] < 1e-5
    assert name in listing(tmp_path)


def test_list_calibrators():
    rows = json.loads(run("list", "calibrators", "--json").stdout)
    assert [row["name"] for row in rows] == cal.calibrators.names()
    assert all(row["title"] and row["reference"] for row in rows)
    assert {row["name"] for row in rows if row["binary"]} == {"affine", "quadratic"}
    text = narrow(run("list", "calibrators").stdout)
    assert all(name in text for name in cal.calibrators.names())


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["val.npz", "--with", "temprature"], "did you mean 'temperature'?"),
        (["val.npz", "--with", "histogram:bin=3"], "did you mean 'bins'?"),
        (["val.npz", "--with", "histogram:bins=0"], "bins"),
        (["val.npz", "--with", "temperature+isotonik"], "did you mean 'isotonic'?"),
        (["val.npz", "--with", "affine"], "two classes"),
        (["val.npz", "--with", "./mine.py"], "no such file"),
        (["val.npz", "--with", "vector", "--keep-argmax"], "changes no prediction"),
        (["val.npz", "--with", "all", "--test", "test.npz"], "no --out"),
        (["val.npz", "--with", "temperature", "--test", "val4.npz"], "3 classes"),
        (["val.npz", "--with", "temperature", "--test", "none.npz"], "no such file"),
        (["none.npz", "--with", "temperature"], "no such file"),
        (["map.json", "--with", "temperature"], ".npz, .parquet, .csv"),
    ],
)
def test_bad_fits_write_nothing(args, hint, folder):
    before = listing(folder)
    error = fails("fit", *args, "--out", "out.json", cwd=folder)
    assert error.startswith("error: ")
    assert hint in error
    assert listing(folder) == before


def test_all_needs_other_rows_of_the_same_classes(folder):
    assert "--test FILE" in fails("fit", folder / "val.npz", "--with", "all")
    error = fails("fit", folder / "val.npz", "--with", "all", "--test", folder / "val4.npz")
    assert "3 classes" in error


def test_keep_argmax_refuses_a_map_that_changes_predictions(folder, tmp_path):
    error = fails("fit", folder / "val.npz", "--with", "svs", "--keep-argmax", "--out", tmp_path / "m.json")
    assert "expected a map that changes no prediction" in error
    assert listing(tmp_path) == {}


def test_paths_that_cannot_be_written(folder, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for out in (tmp_path / "file" / "m.json", tmp_path / "folder"):
        assert "error: " in fails("fit", folder / "val.npz", "--with", "temperature", "--out", out)
    for out in (tmp_path / "file" / "q.npz", tmp_path / "q.txt"):
        assert "error: " in fails("apply", folder / "map.json", folder / "test.npz", "--out", out)
    for out in (tmp_path / "file" / "m.py", tmp_path / "folder"):
        assert "error: " in fails("export", folder / "map.json", "--to", "python", "--out", out)
    assert sorted(f.name for f in tmp_path.rglob("*")) == ["file", "folder"]


def test_a_map_for_other_classes(folder, tmp_path):
    error = fails("apply", folder / "map.json", folder / "val4.npz", "--out", tmp_path / "q.npz")
    assert "expected predictions of 3 classes, got 4 classes" in error
    assert listing(tmp_path) == {}


def damaged(folder):
    whole = json.loads((folder / "map.json").read_text())
    wrong_step = [{"step": "linear", "weight": [[1.0, 2.0]], "bias": 0.0}]
    return {
        "cut": (folder / "map.json").read_text()[:100],
        "empty": "",
        "list": "[]",
        "version": json.dumps(whole | {"calibrant_map": 99}),
        "task": json.dumps(whole | {"steps": wrong_step}),
        "nan": json.dumps(whole | {"steps": [{"step": "linear", "weight": float("nan"), "bias": 0.0}]}),
        "unknown": json.dumps(whole | {"steps": [{"step": "os.system"}]}),
        "missing": json.dumps({name: value for name, value in whole.items() if name != "steps"}),
        "k": json.dumps(whole | {"k": "three"}),
    }


@pytest.mark.parametrize("command", ["apply", "export"])
def test_damaged_maps(command, folder, tmp_path):
    for name, text in damaged(folder).items():
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        rest = {"apply": [folder / "test.npz"], "export": ["--to", "python"]}[command]
        error = fails(command, path, *rest, "--out", tmp_path / "out.npz")
        assert f"{name}.json" in error
        assert all(word in error for word in ("expected", "got", "To fix it")), error
        path.unlink()
    assert listing(tmp_path) == {}
    assert "no such file" in fails(command, tmp_path / "no.json", *rest, "--out", tmp_path / "out.npz")


def test_unknown_formats_and_kinds(folder, tmp_path):
    error = fails("export", folder / "map.json", "--to", "onxx", "--out", tmp_path / "m.onnx")
    assert "did you mean 'onnx'?" in error
    assert "did you mean 'calibrators'?" in fails("list", "calibrator")
    assert listing(tmp_path) == {}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_rows_give_no_map(value, tmp_path):
    content = arrays(50, 3, 0)
    content["logits"][7, 1] = value
    np.savez(tmp_path / "p.npz", **content)
    assert "in row 7" in fails("fit", tmp_path / "p.npz", "--with", "auto", "--out", tmp_path / "m.json")
    assert [f.name for f in tmp_path.iterdir()] == ["p.npz"]


# -- other shapes than scores of all classes ------------------------------------------------------


def shaped(task, seed):
    result = arrays(300, 3, seed)
    z, y = result["logits"], result["labels"]
    if task == "choice":
        exists = np.ones(z.shape, dtype=bool)
        exists[y != 2, 2] = False
        return cal.Predictions.from_logits(z, y, mask=exists)
    build = cal.Predictions.binary if task == "binary" else cal.Predictions.from_confidence
    return build(z[:, 0], y == 0, logits=True, weights=1 + np.arange(300) % 3)


@pytest.mark.parametrize("task", ["binary", "confidence", "choice"])
def test_every_shape_is_fitted_applied_and_exported(task, tmp_path):
    shaped(task, 1).save(tmp_path / "val.npz")
    shaped(task, 2).save(tmp_path / "test.npz")
    output = json.loads(
        run(
            "fit", "val.npz", "--with", "isotonic", "--test", "test.npz", "--out", "m.json", "--json", cwd=tmp_path
        ).stdout
    )
    assert [row["measure"] for row in output["measures"]] == measures_for(shaped(task, 1))
    assert output["keeps_argmax"] == (task != "binary")
    run("apply", "m.json", "test.npz", "--out", "out.npz", cwd=tmp_path)
    out, expected = cal.Predictions.load(tmp_path / "out.npz"), cal.load_map(tmp_path / "m.json")(shaped(task, 2))
    assert out.task == task
    np.testing.assert_allclose(out.score, expected.score, atol=1e-9)
    expected.save(tmp_path / "out.parquet")
    np.testing.assert_allclose(cal.Predictions.load(tmp_path / "out.parquet").score, expected.score, atol=1e-9)
    run("export", "m.json", "--to", "python", "--out", "m.py", cwd=tmp_path)
    np.savez(tmp_path / "classes.npz", **arrays(300, 3, 1))
    assert f"the task {task}" in fails("apply", "m.json", "classes.npz", "--out", "no.npz", cwd=tmp_path)
