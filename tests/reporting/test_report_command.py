"""`calibrant report`: what it prints and writes, and bad input with exit code 2 and nothing half-written."""

import json
import subprocess
import sys

import numpy as np
import pytest
from commands import run

import calibrant as cal

QUICK = ("--override", "resamples=40", "--with", "temperature")


def arrays(n=200, k=3, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    return {"logits": 2.5 * z, "labels": (z + rng.gumbel(size=z.shape)).argmax(axis=1)}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predictions")
    a = arrays()
    site, row = np.where(np.arange(200) % 2, "<b>north</b>", "south"), np.arange(200)
    np.savez(folder / "a.npz", **a, site=site, row=row)
    np.savez(folder / "b.npz", logits=a["logits"] / 2, labels=a["labels"])
    np.savez(folder / "val.npz", **arrays(seed=1))
    np.savez(folder / "other.npz", **arrays(seed=2))
    np.savez(folder / "short.npz", **arrays(n=100))
    np.savez(folder / "four.npz", **arrays(k=4))
    np.savez(folder / "<img src=x>.npz", **a)
    cal.Predictions.load(folder / "a.npz").save(folder / "a.csv")
    (folder / "names.txt").write_text("cat\n<i>dog</i>\nowl\n")
    (folder / "matrix.csv").write_text("0,1,1\n1,0,1\n5,5,0\n")
    (folder / "broken.npz").write_bytes(b"PK nothing")
    return folder


def test_it_writes_a_page_and_says_where(data, tmp_path):
    options = (
        "--fit-on",
        "val.npz",
        "--group-column",
        "site",
        "--cost",
        "matrix.csv",
        "--override",
        "class_names=names.txt",
    )
    out = tmp_path / "report.html"
    done = run("report", "a.npz", *options, *QUICK, "--override", "class_names=names.txt", "--out", out, cwd=data)
    assert done.stderr == ""  # no warning either
    assert done.stdout.startswith("Says ")
    assert done.stdout.endswith("report.html.\n")
    page = out.read_text()
    assert "&lt;i&gt;dog&lt;/i&gt;" in page
    assert "&lt;b&gt;north&lt;/b&gt;" in page
    assert "calibrant report a.npz --fit-on val.npz" in page
    assert str(tmp_path) not in page
    assert [f.name for f in tmp_path.iterdir()] == ["report.html"]


def test_the_same_seed_gives_the_same_bytes(data, tmp_path):
    pages = []
    for _ in range(2):
        options = (*QUICK, "--seed", 4, "--out", "r.html")
        run("report", data / "a.npz", *options, cwd=tmp_path, SOURCE_DATE_EPOCH="0")
        pages.append((tmp_path / "r.html").read_bytes())
    assert pages[0] == pages[1]
    assert str(data).encode() not in pages[0]


def test_without_out_it_prints_the_report(data):
    output = run("report", "a.npz", *QUICK, cwd=data).stdout
    assert "What helps, and what does not" in output
    assert "cross-fitting" in output
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 80
    assert not any(line != line.rstrip() for line in output.splitlines())


def test_json(data):
    document = json.loads(run("report", data / "a.csv", "--fit-on", data / "val.npz", *QUICK, "--json").stdout)
    p = cal.Predictions.load(data / "a.csv")
    ece = next(n for n in document["models"][0]["numbers"] if n["measure"] == "ece")
    assert ece["value"] == cal.measure(p, "ece", resamples=0).value
    assert document["provenance"]["sources"][1]["role"] == "fitted on"
    import hashlib

    assert document["provenance"]["sources"][0]["sha256"] == hashlib.sha256((data / "a.csv").read_bytes()).hexdigest()


def test_several_models(data, tmp_path):
    files = (data / "a.npz", data / "b.npz")
    out = run("report", *files, "--names", "CE,focal", *QUICK, "--out", tmp_path / "r.md").stdout
    assert "CE: Says" in out
    assert "focal: Says" in out
    assert "against" in (tmp_path / "r.md").read_text()


def test_a_file_name_with_markup(data, tmp_path):
    run("report", data / "<img src=x>.npz", *QUICK, "--out", tmp_path / "r.html")
    assert "<img" not in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.npz",), "no such file"),
        (("broken.npz",), "damaged"),
        (("names.txt",), ".npz, .parquet, .csv"),
        (("a.npz", "other.npz"), "a and other: labels"),
        (("a.npz", "short.npz"), "a and short"),
        (("a.npz", "four.npz"), "a and four"),
        (("a.npz", "a.csv"), "'a' twice"),
        (("a.npz", "b.npz", "--names", "CE"), "2 names"),
        (("a.npz", "b.npz", "--names", "CE,CE"), "'CE' twice"),
        (("a.npz", "b.npz", "--names", "CE,"), "2 names"),
        (("a.npz", "b.npz", "--fit-on", "val.npz"), "one for each model"),
        (("a.npz", "--fit-on", "four.npz"), "3 classes"),
        (("a.npz", "--fit-on", "nothing.npz"), "no such file"),
        (("a.npz", "--group-column", "row"), "at most 50 different values, got 200"),
        (("a.npz", "--group-column", "sight"), "did you mean 'site'"),
        (("a.npz", "--group-column", "logits"), "integers or strings"),
        (("a.npz", "--cost", "cheap"), "wrong=5,abstain=1"),
        (("a.npz", "--cost", "nothing.csv"), "no file"),
        (("four.npz", "--cost", "matrix.csv"), "4 x 4"),
        (("a.npz", "--override", "class_names=cat,dog"), "3 names"),
        (("a.npz", "--override", "class_names=nothing.txt"), "a file, or names"),
        (("a.npz", "--override", "class_names=broken.npz"), "names"),
        (("a.npz", "--override", "bins=4"), "5 to 500"),
        (("a.npz", "--override", "resamples=10"), "at least 40"),
        (("a.npz", "--with", "temprature"), "did you mean"),
        (("a.npz", "--override", "binz=4"), "did you mean"),
        (("a.npz", "--override", "bins"), "key=value"),
        (("a.npz", "--out", "r.docx"), "ends in .html"),
    ],
)
def test_bad_input_is_refused(data, arguments, words):
    before = sorted(f.name for f in data.iterdir())
    given = () if "--out" in arguments else ("--out", "r.html")
    assert words in run("report", *arguments, *given, cwd=data, code=2).stderr
    assert sorted(f.name for f in data.iterdir()) == before


def test_report_never_loads_torch(data):
    ending = "try:\n    main()\nexcept SystemExit:\n    pass\nassert 'torch' not in sys.modules"
    code = f"import sys\nfrom calibrant.cli import main\n{ending}"
    command = [
        sys.executable,
        "-c",
        code,
        "report",
        "a.npz",
        "--override",
        "resamples=40",
        "--with",
        "temperature",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=data)
    assert done.returncode == 0, done.stderr
