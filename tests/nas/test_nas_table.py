"""The table that comes with calibrant: whole, as its card says, asked without torch, and made again bit for bit."""

import hashlib
import json
import re
import subprocess
import sys

import polars as pl
import pytest

from calibrant.data import FOLDER, NAS
from calibrant.measuring.measure_sets import BIN_BASED, OTHERS
from calibrant.nas import spaces
from calibrant.nas.table import open_table

CARD = (FOLDER / "nas.md").read_text()
RUN = """
import json, sys
from typer.testing import CliRunner
from calibrant.cli import app
said = [CliRunner().invoke(app, ["nas", *words, "--json"]) for words in json.loads(sys.argv[1])]
assert all(one.exit_code == 0 for one in said), said
assert "torch" not in sys.modules
print(json.dumps([one.stdout for one in said]))
"""


@pytest.fixture(scope="module")
def table():
    return open_table()


def test_the_card_is_about_this_file(table):
    assert f"`{hashlib.sha256(NAS.read_bytes()).hexdigest()}`" in CARD
    numbers = re.search(r"([\d,]+) rows, one for each of (\d+) topologies and (\d+) sizes", CARD)
    rows, topologies, sizes = (int(text.replace(",", "")) for text in numbers.groups())
    assert (table.height, rows) == (2 * (topologies + sizes),) * 2
    assert f"{table.width} columns" in CARD
    assert NAS.stat().st_size < 3 * 2**20


def test_every_network_is_there_on_both_data_sets_with_every_column(table):
    study = {f"{state}_{name}" for state in ("pre", "post") for name in (*BIN_BASED, *OTHERS)}
    assert len(study) == 100
    assert study | {"auc_cifar10c", "auc_digits", "hcs", "pgd_1", "square_1", "frost"} <= set(table.columns)
    empty = {name for name in table.columns if table[name].null_count()}
    assert empty == {"auc_fashion"}  # not for Fashion-MNIST itself
    assert all(
        table[name].is_finite().all() for name in table.columns if table[name].dtype.is_float() and name not in empty
    )
    for (space,), own in table.group_by("space"):
        first, second = (set(part["arch"]) for part in own.partition_by("data"))
        assert first == second
        entry = spaces.make(space)
        assert first <= set(entry.sample(200 if space == "topology" else 100, seed=0))
        assert own["constant"].to_list() == [entry.is_constant(arch) for arch in own["arch"]]
        assert own["config"].to_list() == [entry.index(arch) for arch in own["arch"]]
    assert table.filter("constant")["accuracy"].max() < 0.15


def test_the_table_is_asked_without_torch():
    sql = "select arch, accuracy, pre_ECE_15 from nas where accuracy > 0.7 order by pre_ECE_15 limit 10"
    constant = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"
    commands = [["query", sql], ["show", constant], ["ask", "bin-size"]]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rows, facts, [answer] = map(json.loads, json.loads(done.stdout))
    assert len(rows) == 10
    assert [row["data"] for row in facts["rows"]] == ["cifar10", "fashion_mini"]
    assert answer["verdict"] in ("agrees", "differs", "inconclusive")


def test_a_row_can_be_made_again_bit_for_bit(table, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("CALIBRANT_NATIVE", "0")  # the table was made before the compiled passes
    from calibrant.nas.build_table import remake
    from calibrant.nas.jobs.nas_train import describe_environment

    small = table.filter((pl.col("data") == "fashion_mini") & ~pl.col("constant")).sort("flops")
    row = small.row(0, named=True)
    here = describe_environment()
    if row["made_with"] != here:
        pytest.skip(f"the table was made with {row['made_with']}; here are {here}, whose last digits may differ")
    again = remake(row)
    scaled = [name for name in row if name == "T" or name.startswith("post_")]  # a temperature by today's steps
    assert {name: again[name] for name in scaled} == pytest.approx({name: row[name] for name in scaled}, abs=1e-9)
    others = [name for name in row if name not in scaled and row[name] is not None]
    assert {name: again[name] for name in others} == {name: row[name] for name in others}
    assert set(again) - set(row) == {"train_seconds"}
