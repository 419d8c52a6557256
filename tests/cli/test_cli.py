"""The command line: every command, its JSON, its exit codes, and errors without a traceback."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from commands import run

import calibrant as cal
from calibrant.data import DEMO_TEST, DEMO_VAL

KEYS = {"measure", "value", "low", "high", "n", "k", "definition", "interval", "reason"}


@pytest.fixture
def small(tmp_path):
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(60, 3))
    np.savez(tmp_path / "p.npz", logits=logits, labels=rng.integers(0, 3, 60))
    return tmp_path / "p.npz"


def test_measure_prints_a_table_that_fits_80_columns_and_a_verdict():
    out = run("measure", DEMO_TEST).stdout
    assert max(map(len, out.splitlines())) <= 80
    assert "top-label ECE, 15 equal-width right-closed bins, L1" in " ".join(out.split())
    assert "Says 90.2 %, is right 83.4 %: overconfident by 6.8 points." in out
    assert "\x1b" not in out  # no colour codes in a pipe


def test_measure_json_has_the_documented_keys_and_the_values_of_the_library():
    specs = ["ece:bins=15", "classwise:bins=15,scheme=mass"]
    rows = json.loads(run("measure", DEMO_TEST, "-m", specs[0], "-m", specs[1], "--json").stdout)
    p = cal.Predictions.load(DEMO_TEST)
    assert [row["measure"] for row in rows] == specs
    for row in rows:
        assert set(row) == KEYS
        assert row == cal.measure(p, row["measure"]).to_dict()
        assert row["low"] <= row["value"] <= row["high"]


def test_same_seed_same_numbers_and_other_seed_other_interval(small):
    first, again = (run("measure", small, "--json", "--seed", 4).stdout for _ in range(2))
    other = run("measure", small, "--json", "--seed", 5).stdout
    assert first == again != other


def test_benchmark102_has_100_columns_and_one_more_per_ood_file(small, tmp_path):
    np.savez(tmp_path / "svhn.npz", logits=np.zeros((40, 3)))  # no labels needed
    rows = json.loads(run("measure", small, "--set", "benchmark102", "--ood", tmp_path / "svhn.npz", "--json").stdout)
    names = [row["measure"] for row in rows]
    assert len(names) == len(set(names)) == 101
    assert sum(name.startswith("pre_") for name in names) == sum(name.startswith("post_") for name in names) == 50
    assert {"pre_ECE_5", "post_cwCE_em_500", "post_KDECE", "auc_svhn"} <= set(names)
    assert all(set(row) == KEYS for row in rows)
    assert "pre_" in run("measure", small, "--set", "benchmark102").stdout


def test_stream_says_how_it_was_read(tmp_path):
    cal.Predictions.load(DEMO_TEST).save(tmp_path / "p.csv")
    assert "read in one batch" in run("measure", tmp_path / "p.csv", "--stream").stdout
    assert (
        "read in 6 batches of at most 700"
        in run("measure", tmp_path / "p.csv", "--stream", "--override", "batch_rows=700").stdout
    )


def test_stream_gives_the_same_values_as_the_whole_file(tmp_path):
    p = cal.Predictions.load(DEMO_TEST)
    for name in ("big.parquet", "big.csv"):
        p.save(tmp_path / name)
        rows = json.loads(run("measure", tmp_path / name, "--stream", "--override", "batch_rows=700", "--json").stdout)
        assert len(rows) >= 10
        for row in rows:
            assert set(row) == KEYS
            assert row["n"] == p.n
            exact, near = cal.measure(p, row["measure"], resamples=0).value, 1e-12
            if row["measure"] in ("auroc_correct", "aurc"):  # from a histogram
                near = 2e-4
            assert row["value"] == pytest.approx(exact, abs=near)


def test_compare_finds_the_repaired_model_better(tmp_path):
    p = cal.Predictions.load(DEMO_TEST)
    p.with_temperature(1.8).save(tmp_path / "repaired.npz")
    (row,) = json.loads(run("compare", DEMO_TEST, tmp_path / "repaired.npz", "-m", "ece", "--json").stdout)
    assert row["better"] == "b"
    assert row["high"] < 0
    assert row["p_value"] < 0.01
    assert row["difference"] == pytest.approx(row["b"] - row["a"])
    table = run("compare", DEMO_TEST, tmp_path / "repaired.npz").stdout
    assert "repaired" in table
    assert max(map(len, table.splitlines())) <= 80


def test_compare_shows_whole_intervals_whatever_the_names(tmp_path):
    rng = np.random.default_rng(0)
    names = ["a_model_with_a_very_long_name.csv", "another_model_with_a_long_name.csv"]
    for name in names:
        rows = zip(rng.uniform(0.5, 1, 60).round(3), rng.integers(0, 2, 60), strict=True)
        (tmp_path / name).write_text("confidence,correct\n" + "".join(f"{c},{y}\n" for c, y in rows))
    output = run("compare", *(tmp_path / name for name in names), "-m", "ece", "-m", "ece:scheme=mass")
    table = output.stdout
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("]") == 2
    assert table.count("inconclusive") == 2
    assert "a: a_model_with_a_very_long_name" in table
    assert "paired by their order" in table


def test_compare_refuses_other_rows():
    assert "labels: expected the same in both" in run("compare", DEMO_TEST, DEMO_VAL, code=2).stderr


@pytest.mark.parametrize(
    ("limits", "code", "states"),
    [
        (["--max", "ece=0.03"], 1, ["violated"]),
        (["--max", "ece=0.2"], 0, ["holds"]),
        (["--max", "ece=0.068"], 0, ["inconclusive"]),  # the value is above, the evidence is not
        (["--max", "ece=0.068", "--strict"], 1, ["inconclusive"]),
        (["--min", "auroc_correct=0.9"], 1, ["violated"]),
        (["--max", "ece:bins=30=0.2", "--min", "accuracy=0.8"], 0, ["holds", "holds"]),
    ],
)
def test_check_is_a_gate(limits, code, states):
    document = json.loads(run("check", DEMO_TEST, *limits, "--json", code=code).stdout)
    assert [row["state"] for row in document["checks"]] == states
    assert document["passed"] is (code == 0)
    assert ("fail" if code else "pass") in run("check", DEMO_TEST, *limits, code=code).stdout


def test_check_does_not_fail_a_calibrated_model_on_noise(tmp_path):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(300, 5))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probs.cumsum(1) < rng.random((300, 1))).sum(1)
    np.savez(tmp_path / "p.npz", logits=logits, labels=labels)
    value = cal.measure(cal.Predictions.load(tmp_path / "p.npz"), "ece", resamples=0).value
    assert value > 0.03  # noise alone shows more than the limit
    run("check", tmp_path / "p.npz", "--max", "ece=0.03")


def test_list_measures():
    listed = json.loads(run("list", "measures", "--json").stdout)
    assert [row["name"] for row in listed] == cal.measures.names()
    assert all(row["reference"] and row["definition"] for row in listed)
    assert max(map(len, run("list", "measures").stdout.splitlines())) <= 80


def test_decompose_and_the_demo_without_training(tmp_path):
    parts = json.loads(run("decompose", DEMO_TEST, "--json").stdout)
    assert set(parts) == {"losses", "brier", "ece"}
    assert "not an identity" in run("decompose", DEMO_TEST).stdout
    assert "overconfident by" in run("demo", "--no-train", cwd=tmp_path).stdout
    assert cal.__version__ in run("--version").stdout


def bad_files(folder):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)

    def spoiled(array, value):
        copy = array.copy()
        copy[7, 1] = value
        return copy

    arrays = {
        "nan": {"logits": spoiled(z, np.nan), "labels": y},
        "inf": {"logits": spoiled(z, np.inf), "labels": y},
        "range": {"logits": z, "labels": y + 1},
        "fraction": {"logits": z, "labels": y + 0.5},
        "onehot": {"logits": z, "labels": np.eye(3)[y]},
        "negative": {"probs": spoiled(p, -0.1), "labels": y},
        "sums": {"probs": p * 0.9, "labels": y},
        "scores1d": {"probs": p[:, 0], "labels": y},
        "n0": {"logits": z[:0], "labels": y[:0]},
        "n1": {"logits": z[:1], "labels": y[:1]},
        "k1": {"logits": z[:, :1], "labels": y * 0},
        "transposed": {"logits": z.T, "labels": y[:3]},
        "objects": {"logits": np.array([{}] * 3, dtype=object), "labels": y},
        "nolabels": {"logits": z},
        "both": {"logits": z, "probs": p, "labels": y},
    }
    for name, content in arrays.items():
        np.savez(folder / f"{name}.npz", **content)
    whole = (folder / "nan.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[:300])
    (folder / "empty.npz").write_bytes(b"")
    (folder / "text.npz").write_text("hello")
    (folder / "image.png").write_bytes(b"x")
    frame = pl.DataFrame({"label": y, "prob_0": p[:, 0], "prob_2": p[:, 2]})
    frame.write_csv(folder / "gap.csv")
    frame.write_parquet(folder / "gap.parquet")
    (folder / "cut.parquet").write_bytes((folder / "gap.parquet").read_bytes()[:100])
    (folder / "words.csv").write_text("label,prob_0,prob_1\n0,a,b\n1,c,d\n")
    return [f.name for f in sorted(folder.iterdir())]


def test_bad_files_get_a_clear_error_and_exit_code_2(tmp_path):
    for name in [*bad_files(tmp_path), "absent.npz", "."]:
        error = run("measure", name, "--measure", "ece", cwd=tmp_path, code=2).stderr
        assert all(word in error for word in ("error: ", "expected", "got", "To fix it")), (name, error)
        assert name in error


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["--measure", "eec"], "did you mean 'ece'?"),
        (["--measure", "ece:bin=3"], "did you mean 'bins'?"),
        (["--measure", "ece:bins=many"], "expected a whole number"),
        (["--measure", "ece:bins=0"], "1 to 100,000"),
        (["--measure", "ece:scheme=mas"], "did you mean 'mass'?"),
        (["--measure", "ece:dialect=torchmetric"], "did you mean 'torchmetrics'?"),
        (["--measure", "./mine.py"], "no such file"),
        (["--set", "benchmark"], "did you mean 'benchmark102'?"),
        (["--confidence", "95"], "strictly between 0 and 1"),
        (["--set", "benchmark102", "--measure", "ece"], "fixed list"),
        (["--ood", "x.npz"], "--set benchmark102"),
        (["--stream"], "without --stream"),
        (["--nonsense"], "No such option"),
    ],
)
def test_bad_options_get_a_hint_and_exit_code_2(args, hint):
    assert hint in run("measure", DEMO_TEST, *args, code=2).stderr


def test_a_measure_of_the_users_own_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        '''"""My measure."""
from dataclasses import dataclass
from calibrant.measures import Measure

@dataclass(frozen=True)
class Mine(Measure):
    """Always 0.25 times a factor."""
    factor: float = 1.0
    title = "Mine"
    reference = "me"
    def __call__(self, p):
        return 0.25 * self.factor
'''
    )
    (row,) = json.loads(run("measure", DEMO_TEST, "-m", "./mine.py:factor=2", "--json", cwd=tmp_path).stdout)
    assert row["value"] == 0.5


COMMAND = f"unset PYTHONUNBUFFERED; {sys.executable} -m calibrant"  # buffered, as people start it


@pytest.mark.parametrize("command", ["list measures", f"check {DEMO_TEST} --min accuracy=1 --resamples 5"])
def test_output_may_be_cut_by_the_reader(command):
    """Not with code 1, which is a verdict of `check`."""
    cut = f"( sleep 0.2; {COMMAND} {command}; echo $? >&2 ) | true"
    assert subprocess.run(cut, shell=True, capture_output=True, text=True).stderr == "141\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("command", ["list measures", f"measure {DEMO_TEST} -m accuracy --resamples 5 --json"])
def test_output_on_a_full_disk_is_an_error(command):
    done = subprocess.run(f"{COMMAND} {command} >/dev/full", shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def test_closed_standard_streams(tmp_path, small):
    """The number of a closed one goes to the next file: what was printed went into it."""
    closed = f"{COMMAND} report {small} <&- >&- 2>&-"
    assert subprocess.run(closed, shell=True, cwd=tmp_path).returncode == 0


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="there are no signals of pipes")
def test_a_pipe_that_another_process_has_left_does_not_end_the_command():
    """Else a browser that closes its connection ends the app, and a drawing process that has ended ends the report."""
    run("list", "measures")
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN


def test_in_a_process_of_its_own_as_a_user_starts_it(tmp_path):
    """Bad input: one line, exit code 2, no traceback; a gate that is broken: exit code 1."""
    command = [sys.executable, "-m", "calibrant"]
    done = subprocess.run([*command, "measure", "absent.npz"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: absent.npz: expected")
    assert done.stderr.count("\n") == 1
    done = subprocess.run([*command, "check", DEMO_TEST, "--max", "ece=0.03"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")


def test_every_catalogue_can_be_listed():
    listed = run("list", "nothing", code=2).stderr
    for kind in ("measures", "calibrators", "questions", "searches", "spaces", "recipes"):
        assert kind in listed
    assert "topology" in run("list", "spaces").stdout
