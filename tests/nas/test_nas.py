"""Networks trained and measured as jobs, end to end on a handful of images; the same row again from its own words."""

import bz2
import json
import pickle

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")

import torch
from typer.testing import CliRunner

from calibrant import datasets
from calibrant.cli import app
from calibrant.core.errors import InputError
from calibrant.datasets import Part
from calibrant.measuring.measure_sets import study_columns
from calibrant.models import Shape, build
from calibrant.nas import build_table, columns, spaces
from calibrant.nas.jobs import nas_measure
from calibrant.nas.pictures import cell_svg, cell_text
from calibrant.studying.run_job import do
from calibrant.studying.store import Store
from calibrant.training.batches import Pixels
from calibrant.training.predict import predict

DATA = "fashion_mini:shrink=2"
TIMES = {"seconds", "train_seconds"}


@pytest.fixture(scope="module")
def jobs():
    return build_table.train_jobs("topology", 2, [DATA], scale="smoke", seed=3, extremes=True)


@pytest.fixture(scope="module")
def trained(jobs, tmp_path_factory):
    """Both networks, done in this process as a worker does them."""
    place = tmp_path_factory.mktemp("nas") / "jobs"
    outcomes = [do(job, place) for job in jobs]
    assert [outcome.failed for outcome in outcomes] == ["", ""]
    assert not list(Store(place).folder.glob("*/*"))  # no weights are left behind
    return [outcome.rows[0] for outcome in outcomes]


def test_a_row_has_every_column(trained):
    for row in trained:
        study = [
            f"{state}_{family}_{bins}"
            for state in ("pre", "post")
            for family in ("ECE", "cwCE_em")
            for bins in (5, 500)
        ]
        others = [
            "pre_KSCE",
            "post_KDECE",
            "pre_MMCE",
            "post_NLL",
            "pre_Brier",
            "auc_cifar10c",
            "auc_digits",
            "hcs",
            "T",
        ]
        assert set(study + others) <= set(row)
        assert sum(name.startswith(("pre_", "post_")) for name in row) == 100
        assert len(columns.CORRUPTIONS) == 15
        assert set(columns.CORRUPTIONS) | {"fgsm_1", "fgsm_8", "pgd_1", "square_4"} <= set(row)
        assert all(0 <= row[name] <= 1 for name in (*columns.CORRUPTIONS, "accuracy", "pgd_4", "square_1"))
        assert "auc_fashion" not in row  # the data themselves
    assert [row["constant"] for row in trained] == [True, False]  # all none, then all skip
    assert len({row["arch"] for row in trained}) == 2


def test_a_row_can_be_made_again_bit_for_bit(trained):
    again = build_table.remake(trained[1])
    assert {name for name in again if again[name] != trained[1][name]} <= TIMES
    other = json.loads(trained[1]["configuration"]) | {"seed": 1}
    assert build_table.remake({"configuration": json.dumps(other)})["pre_NLL"] != again["pre_NLL"]


ATTACKS = {
    "data": "./evil.py",
    "space": "./evil.py:width=2",
    "arch": "evil.py",
    "ood": ["digits", "./evil.py"],
    "attacks": ["./evil.py:eps=1/255"],
    "recipe": {"epochs": 1, "loss": "ce + evil.py"},
    "more": {"model": "os:system?command=touch MARK"},
}


@pytest.mark.parametrize("key", ATTACKS)
def test_a_row_of_somebody_else_runs_no_code(jobs, key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "evil.py").write_text('open("MARK", "w").close()\n')
    hostile = dict(jobs[1].options) | {key: ATTACKS[key]}
    with pytest.raises(InputError, match=r"configuration: .*(would (run the Python file|import os)|ood is)"):
        build_table.remake({"configuration": json.dumps(hostile)})
    assert not (tmp_path / "MARK").exists()


@pytest.mark.parametrize(
    "change",
    [{"data": 3}, {"seed": "x"}, {"ood": 5}, {"ood": ["x"]}, {"recipe": {"data": 1}}, {"attacks": [1]}, None],
)
def test_a_damaged_configuration_is_refused(jobs, change):
    text = "{" if change is None else json.dumps(dict(jobs[1].options) | change)
    with pytest.raises(InputError, match="configuration: expected a whole one"):
        build_table.remake({"configuration": text})


def test_jobs_are_seeded_and_differ_by_network_and_data(jobs):
    more = build_table.train_jobs("topology", 3, [DATA, "digits"], scale="smoke", seed=3, extremes=True)
    assert len({job.key for job in more}) == 6
    assert [job.key for job in more[:4:2]] == [job.key for job in jobs]  # a larger sample reuses a smaller one
    assert [job.options["data"] for job in more[:3]] == [DATA, "digits", DATA]  # cut short, as many of each
    assert len({job.options["seed"] for job in more}) == 3
    assert jobs[0].options["space"] == "topology:width=2,cells=1"
    mine = build_table.train_jobs("size:width=4", 1, ["digits"], scale="smoke")
    assert mine[0].options["space"] == "size:width=4"
    with pytest.raises(InputError, match="scale: expected one of paper, small, smoke"):
        build_table.train_jobs("topology", 1, [DATA], scale="smal")


def test_out_of_distribution_images_fit_the_network():
    like = datasets.make("fashion_mini:shrink=2").load("test")
    colour = Part(np.zeros((5, 32, 32, 3), dtype=np.uint8) + 200, np.zeros(5, dtype=np.int64), ("a",))
    part = columns._fit_images(colour, like)
    assert part.images.shape == (5, 14, 14, 1)
    assert np.unique(part.images).tolist() == [200]
    assert part.classes == like.classes
    assert "fashion" not in columns.ood_for("fashion_mini:shrink=2")
    assert "fashion" not in columns.ood_for("fashion_mnist")
    assert {"fashion", "digits"} <= set(columns.ood_for("cifar10"))


class Here:
    """An executor without processes, whose start would take longer than the jobs."""

    slots = 1

    def __init__(self, folder):
        self.folder, self.waiting = folder, []

    def start(self, job):
        self.waiting.append(job)

    def wait(self):
        return [do(self.waiting.pop(), self.folder)]

    def close(self):
        pass


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(build_table, "executor_for", lambda on, jobs, store, limit: (Here(store.folder), jobs, on))


# -- published weights ---------------------------------------------------------------------------------------------

SPACE = "topology:width=2,cells=1"


def full_file(folder, index, network):
    arch = spaces.make("topology").find(str(index))
    one = {
        "train_acc1es": {0: 30.0},
        "train_losses": {0: 1.5},
        "params": 0.1,
        "flop": 1.0,
        "epochs": 1,
        "eval_names": ["ori-test"],
        "eval_acc1es": {"ori-test@0": 12.5},
        "eval_losses": {"ori-test@0": 2.0},
        "net_state_dict": None if network is None else network.state_dict(),
    }
    results = {"01": {"arch_index": index, "arch_str": arch, "all_results": {("fashion_mini", 777): one}}}
    (folder / f"{index:06d}.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(results, 4)))


@pytest.fixture
def networks(tmp_path):
    """A folder with weights of two networks, and a file that is cut short."""
    folder = tmp_path / "full"
    folder.mkdir()
    results = {}
    for index in (0, 11):
        torch.manual_seed(index)
        results[index] = build(spaces.make(SPACE).model(str(index)), Shape(10, 1, 14)).eval()
        full_file(folder, index, results[index])
    whole = (folder / "000011.pickle.pbz2").read_bytes()
    (folder / "000003.pickle.pbz2").write_bytes(whole[: len(whole) // 2])
    return folder, results


def test_weights_give_the_columns_of_the_network_that_has_them(networks):
    folder, by_number = networks
    job = build_table.measure_jobs(folder, DATA, space=SPACE)[2]
    assert job.options["file"].endswith("000011.pickle.pbz2")
    row = nas_measure.run({**job.options, "test": 200}, [], folder / "work")[0]
    data = datasets.make(DATA)
    part = columns.few(data.load("test"), 200)
    pixels = Pixels(data.mean, data.std, torch.device("cpu"))
    expected = study_columns(predict(by_number[11], part, pixels, batch=500))
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert (row["config"], row["published_accuracy"], row["seed"], row["epochs"]) == (11, 0.125, 777, 1)
    assert "fog" not in row  # only where images for it were asked for


def test_damaged_weights_are_skipped_recorded_and_counted(networks, tmp_path, here):
    folder, _ = networks
    options = ["nas", "measure", "--weights", str(folder), "--data", DATA, "--space", SPACE]
    done = CliRunner().invoke(app, [*options, "--out", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 1
    facts = json.loads(done.stdout)
    assert (facts["total"], facts["done"], facts["failed"], facts["rows"]) == (3, 2, 1, 2)
    assert list(facts["failures"]) == ["000003.pickle.pbz2"]
    assert "InputError" in facts["failures"]["000003.pickle.pbz2"]
    assert sorted(pl.read_parquet(facts["table"])["config"]) == [0, 11]
    again = json.loads(CliRunner().invoke(app, [*options, "--out", str(tmp_path / "out"), "--json"]).stdout)
    assert (again["reused"], again["failed"]) == (2, 1)


def test_folders_without_weights_say_which_download_has_them(tmp_path):
    full_file(tmp_path, 0, None)
    with pytest.raises(InputError, match="NATS-tss-v1_0-3ffb9-full"):
        build_table.measure_jobs(tmp_path, "cifar10")
    (tmp_path / "000000.pickle.pbz2").write_bytes(b"no")
    with pytest.raises(InputError, match="expected a whole file"):
        build_table.measure_jobs(tmp_path, "cifar10")


def test_weights_of_another_network_are_refused(networks):
    folder, _ = networks
    job = build_table.measure_jobs(folder, DATA)[0]  # the space at its full size
    with pytest.raises(InputError, match="expected weights that fit CellNetwork"):
        nas_measure.run({**job.options, "test": 50}, [], folder / "work")


def test_the_benchmarks_own_normalisation(tmp_path, networks):
    folder, _ = networks
    assert build_table.measure_jobs(folder, "cifar10:root=/x")[0].options["data"] == "cifar10:normalise=nats,root=/x"
    assert datasets.make("cifar100:normalise=nats").mean == pytest.approx((129.3 / 255, 124.1 / 255, 112.4 / 255))


# -- commands ------------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, ["nas", *map(str, arguments)])


def test_spaces():
    facts = json.loads(run("spaces", "--json").stdout)
    assert facts["pairs"] == 117_702
    by_name = {space["name"]: space for space in facts["spaces"]}
    assert [by_name["topology"][key] for key in ("networks", "unique", "constant")] == [15_625, 6466, 341]
    assert by_name["size"]["networks"] == by_name["size"]["unique"] == 32_768
    assert "117,702 pairs" in run("spaces").stdout


def test_show_prints_the_network_and_its_numbers(tmp_path):
    table = tmp_path / "nas.parquet"
    arch = spaces.make("topology").find("11")
    pl.DataFrame({"arch": [arch, "x"], "data": "cifar10", "accuracy": [0.5, 0.6]}).write_parquet(table)
    output = run("show", 11, "--table", table, "--svg", tmp_path / "cell.svg").stdout
    for words in (arch, "802,426 (10 classes)", "113.95137 million", "accuracy 0.5", "the first of its class"):
        assert words in output
    assert max(len(line) for line in cell_text(arch).splitlines()) <= 80
    assert (tmp_path / "cell.svg").read_text() == cell_svg(arch)
    facts = json.loads(run("show", "8:8:8:16:32", "--classes", 120, "--size", 16, "--json").stdout)
    assert (facts["index"], facts["params"], facts["flops"]) == (11, 52_832, 1.71404)
    assert facts["model"] == "nats_size:channels=8:8:8:16:32,width=8"
    constant = run("show", "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|").stdout
    assert "ignores the image" in constant
    assert json.loads(run("show", 11, "--space", "size", "--json").stdout)["arch"] == "8:8:8:16:32"


def test_svg_is_whole_xml_without_edges_of_none():
    from xml.etree import ElementTree

    for cell in spaces.make("topology").sample(20):
        svg = ElementTree.fromstring(cell_svg(cell))
        names = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
        assert len(names) == 4 + sum(
            name != "none" for name in cell.replace("|", " ").replace("~", " ").split() if "_" in name
        )


def test_query(tmp_path):
    table = tmp_path / "nas.parquet"
    pl.DataFrame({"arch": ["a", "b"], "accuracy": [0.5, 0.6]}).write_parquet(table)
    sql = "select arch from nas where accuracy > 0.55"
    assert json.loads(run("query", sql, "--table", table, "--json").stdout) == [{"arch": "b"}]
    assert "A row is one training" in run("query", sql, "--table", table).stdout
    written = run("query", sql, "--table", table, "--out", tmp_path / "found.csv").stdout
    assert written.startswith("1 rows written to")
    assert (tmp_path / "found.csv").read_text() == "arch\nb\n"
    (tmp_path / "own.csv").write_text("arch,accuracy\nc,0.9\n")
    assert json.loads(run("query", sql, "--table", tmp_path / "own.csv", "--json").stdout) == [{"arch": "c"}]
    refused = run("query", "copy nas to 'x'", "--table", table)
    assert isinstance(refused.exception, InputError)
    missing = run("query", sql, "--table", tmp_path / "no.parquet")
    assert "nas train" in str(missing.exception)
    (tmp_path / "bad.parquet").write_text("no")
    assert "expected a table" in str(run("query", sql, "--table", tmp_path / "bad.parquet").exception)


def test_accuracy(tmp_path):
    full_file(tmp_path, 5, None)
    (tmp_path / "000006.pickle.pbz2").write_bytes(b"cut")
    output = run("accuracy", tmp_path, "--out", tmp_path / "out.parquet", "--json")
    facts = json.loads(output.stdout)
    assert (facts["files"], facts["rows"], list(facts["skipped"])) == (2, 1, ["000006.pickle.pbz2"])
    row = pl.read_parquet(tmp_path / "out.parquet").row(0, named=True)
    assert (row["config"], row["accuracy"], row["constant"]) == (5, 0.125, False)
    output = run("accuracy", tmp_path, "--out", tmp_path / "out.parquet")
    assert "1 of 2 files were skipped" in output.output
    (tmp_path / "000005.pickle.pbz2").unlink()
    assert isinstance(run("accuracy", tmp_path, "--out", tmp_path / "none.parquet").exception, InputError)
    assert not (tmp_path / "none.parquet").exists()


def test_train_resumes(tmp_path, here):
    options = (
        "train",
        "--sample",
        1,
        "--data",
        "digits",
        "--scale",
        "smoke",
        "--out",
        tmp_path / "o",
    )
    first = json.loads(run(*options, "--json").stdout)
    assert (first["done"], first["reused"], first["rows"]) == (1, 0, 1)
    more = json.loads(run(*options[:2], 2, *options[3:], "--json").stdout)
    assert (more["done"], more["reused"], more["rows"]) == (2, 1, 2)
    table = pl.read_parquet(tmp_path / "o" / "nas.parquet")
    assert table.select("data").to_series().to_list() == ["digits"] * 2


def test_a_data_set_that_nobody_knows_is_refused_before_anything_runs():
    with pytest.raises(InputError, match="did you mean 'fashion_mini'"):
        build_table.train_jobs("topology", 3, ["fashion_min"], scale="smoke")


def test_a_small_sample_is_random_and_names_can_be_given():
    """`nas train --sample 5` once trained the same five cells of one operation, whatever the seed."""

    def archs(**options):
        return [job.options["arch"] for job in build_table.train_jobs("topology", 5, [DATA], scale="smoke", **options)]

    one, other = archs(seed=1), archs(seed=2)
    assert len(set(one)) == 5
    assert not set(one) & set(other)
    assert archs(seed=1) == one
    named = archs(archs=["7", one[0], "7"])
    assert named == [build_table.spaces.make("topology").find("7"), one[0]]
