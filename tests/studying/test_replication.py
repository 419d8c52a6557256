"""The page of the replication says what the committed rows say."""

import importlib.util
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calibrant.studying.plan import Claim
from calibrant.studying.plan_files import read_plan

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("replication", ROOT / "tools" / "replication.py")
replication = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replication)

META = read_plan("meta-regularization", scale="small")


@pytest.fixture(scope="module")
def summary():
    return replication.summary(ROOT / "docs" / "replication")


def test_the_page_is_that_of_the_committed_rows(summary):
    text = (ROOT / "docs" / "replication.md").read_text()
    inside = text.partition(replication.MARKERS[0])[2].partition(replication.MARKERS[1])[0]
    assert inside.strip() == summary.strip()


def test_there_are_rows_of_all_four_papers():
    folder = ROOT / "docs" / "replication"
    for name in ("meta-regularization", "dark-side", "neural-clamping", "losses"):
        rows = pl.read_parquet(folder / f"{name}.parquet")
        assert set(rows["data"]) == {"fashion_mini:shrink=2", "cifar10:shrink=2"}
        assert (folder / f"{name}.html").exists()


def test_the_printed_difference_is_the_papers_own():
    claim = Claim(says="c", of="FLgamma-SECE", against="CE", measure="ece", is_="lower")
    assert replication.printed(claim, META).endswith("(3 of 3 cells)")  # ECE of three data sets in table 1
    assert replication.printed(Claim(says="c", of="CE", measure="gap", is_="higher"), META) == "no number"
    against = Claim(
        says="c", of="LS (0.1)", against="CE", measure="mce", is_="higher"
    )  # lower on two of three data sets
    assert replication.printed(against, META).endswith("(1 of 3 cells), **contradicts the claim**")
    second = Claim(says="c", of="Focal", among=["CE", "FLSD-53", "MMCE"], rank=2, measure="ece", is_="lower")
    assert "of 3 cells" in replication.printed(second, META)
    named = Claim(says="c", of="FLSD-53", against="CE", measure="ece", is_="lower")  # printed as FLSD
    assert replication.printed(named, META) != "no number"


def test_directions_are_those_of_numbers_and_else_of_words(summary):
    lines = [line.split(" | ") for line in summary.splitlines() if line.startswith("| ") and "**not run**" not in line]
    for cells in (one for one in lines if len(one) == 8 and one[0] != "| claim"):
        assert cells[3].endswith("by its words" if cells[1] == "no number" else "by its numbers")
        assert bool(cells[7].strip(" |")) == (cells[6] == "**inconclusive**" and "no interval" not in cells[2])
    dark = next(one for one in lines if one[0].startswith("| entropy regularisation lowers the ECE"))
    assert (dark[1].split()[0][0], dark[2][0], dark[3]) == ("-", "-", "yes, by its numbers")


def test_seeds_that_are_not_whole_are_told():
    methods = list(dict.fromkeys(method for method, _ in META.cells()))
    whole = [{"data": "cifar10:shrink=2", "model": "resnet8", "seed": 1, "method": m} for m in methods]
    part = [{"data": "cifar10:shrink=2", "model": "resnet8", "seed": 2, "method": m} for m in methods[:4]]
    lines = replication.seeds(META, pl.DataFrame(whole + part))
    assert lines == [
        "- fashion_mini:shrink=2, resnet8: 0 of 20 seeds",
        "- cifar10:shrink=2, resnet8: 1 of 20 seeds; in part seed 2 with 4 of 19 methods",
    ]


def test_tables_that_a_claim_names_count():
    """ImageNet's cell of table 1 belongs to the claims about "tables 1 and 2"."""
    dark = read_plan("dark-side", scale="small")
    claim = next(one for one in dark.claim if one.says == "focal loss lowers the ECE of the baseline")
    assert "of 7 cells" in replication.printed(claim, dark)


def test_claims_about_the_same_trainings_are_known():
    plans = {name: read_plan(name, scale="small") for name in ("dark-side", "losses", "confidences")}
    again = {own: plans[own].claim[number].says for (own, number) in replication.same_claims(plans)}
    assert again["losses"].startswith("focal loss l")
    assert again["confidences"] == "ConfidNet lowers the ECE"


def test_a_page_without_markers_is_refused(tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="add them"):
        replication.write(tmp_path / "page.md", "text")


# -- what no claim can say --------------------------------------------------------------------------


def test_fiellers_interval_is_where_the_difference_may_be_zero():
    rng = np.random.default_rng(0)
    b = rng.normal(5, 1, 20)
    a = 0.7 * b + rng.normal(0, 0.5, 20)
    for share in replication.fieller(a, b):
        assert stats.ttest_1samp(a - share * b, 0).pvalue == pytest.approx(0.05)
    assert replication.fieller([1.0, 2.0, 3.0], [-1.0, 0.1, 1.0]) == (-np.inf, np.inf)  # a divisor that may be zero


def test_the_interval_of_spreads_is_that_of_pitman_and_morgan():
    """Spreads differ significantly exactly where sums and differences of pairs are correlated."""
    rng = np.random.default_rng(1)
    a = rng.normal(0, 1, 20)
    b = 0.5 * a + rng.normal(0, 2, 20)
    low, high = replication.spread_ratio(a, b, 0.95)
    for ratio in (low, high):
        assert stats.pearsonr(a + ratio * b, a - ratio * b).pvalue == pytest.approx(0.05)
    assert low < np.std(a) / np.std(b) < high
    assert replication.spread_ratio([1.0, 1.0, 1.0], [1.0, 2.0, 4.0], 0.95) == (0.0, 0.0)


def test_figures_of_trainings_that_are_not_here_stay_on_the_page():
    """The curves over epochs and the diagrams are drawn from files that the rows do not hold."""
    text = (ROOT / "docs" / "replication" / "meta-regularization.html").read_text()
    without = text
    for title, figure in replication._drawings(text).items():
        without = without.replace(figure, "") if title.startswith(("Figure 2", "Figure 3")) else without
    assert len(replication._drawings(without)) < len(replication._drawings(text))
    assert list(replication._drawings(replication.keep_drawings(text, without))) == list(replication._drawings(text))


@pytest.mark.parametrize(
    ("classes", "printed"), [(10, "5,632 (0.05 %) for 10"), (100, "51,712 of ResNet-18's 11,220,132 for 100 classes")]
)
def test_the_gamma_network_adds_the_printed_share_of_weights(classes, printed):
    """Meta-regularisation, section 6: "roughly 0.46 %"; this is so for CIFAR-100."""
    pytest.importorskip("torch")
    from calibrant.models import Shape, build
    from calibrant.training.learned_losses import GammaNet

    network = build("resnet:depth=18", Shape(classes, 3, 32))
    own, more = (sum(p.numel() for p in m.parameters()) for m in (network, GammaNet(512, classes)))
    assert f"{more:,}" in printed
    assert f"{own:,}" in printed or f"{more / own:.2%}".replace("%", " %") in printed
    assert printed in (ROOT / "docs" / "replication.md").read_text()
    assert classes == 10 or f"{more / own:.2%}" == "0.46%"


def test_sece_takes_longer_than_dece_on_the_page_of_benchmarks():
    """Meta-regularisation, section 6, says the opposite of its SECE and Bohdal's DECE."""
    lines = (ROOT / "docs" / "benchmarks.md").read_text().splitlines()
    cells = {line.split("|")[1].strip(): line.split("|") for line in lines if line.startswith(("| dece |", "| sece |"))}
    assert float(cells["sece"][2]) > float(cells["dece"][2])
    assert all(float(cell[4].strip(" %")) < 1 for cell in cells.values())
