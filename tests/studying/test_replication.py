"""The page of the replication says what the committed rows say."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest

from calibrant.studying.plan import Claim
from calibrant.studying.plan_files import read_plan

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("replication", ROOT / "tools" / "replication.py")
replication = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replication)

META = read_plan("meta-regularization", scale="small")


def test_the_page_is_that_of_the_committed_rows():
    text = (ROOT / "docs" / "replication.md").read_text()
    inside = text.partition(replication.MARKERS[0])[2].partition(replication.MARKERS[1])[0]
    assert inside.strip() == replication.summary(ROOT / "docs" / "replication").strip()


def test_there_are_rows_of_all_four_papers():
    folder = ROOT / "docs" / "replication"
    for name in ("meta-regularization", "dark-side", "neural-clamping", "losses"):
        rows = pl.read_parquet(folder / f"{name}.parquet")
        assert set(rows["data"]) == {"fashion_mini:shrink=2", "cifar10:shrink=2"}
        assert (folder / f"{name}.html").exists()


def test_the_printed_difference_is_the_papers_own():
    claim = Claim("c", of="FLgamma-SECE", against="CE", measure="ece", is_="lower")
    assert replication.printed(claim, META).endswith("(3 of 3 cells)")  # ECE of three data sets in table 1
    assert replication.printed(Claim("c", of="CE", measure="gap", is_="higher"), META) == "no number"
    named = Claim("c", of="FLSD-53", against="CE", measure="ece", is_="lower")  # printed as FLSD
    assert replication.printed(named, META) != "no number"


def test_seeds_that_are_not_whole_are_told():
    methods = list(dict.fromkeys(method for method, _ in META.cells()))  # the others are for the paper's scale
    whole = [{"data": "cifar10:shrink=2", "model": "resnet8", "seed": 1, "method": m} for m in methods]
    part = [{"data": "cifar10:shrink=2", "model": "resnet8", "seed": 2, "method": m} for m in methods[:4]]
    lines = replication.seeds(META, pl.DataFrame(whole + part))
    assert lines == [
        "- fashion_mini:shrink=2, resnet8: 0 of 5 seeds",
        "- cifar10:shrink=2, resnet8: 1 of 5 seeds; in part seed 2 with 4 of 15 methods",
    ]


def test_a_page_without_markers_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="add them"):
        replication.write(tmp_path / "page.md", "text")
