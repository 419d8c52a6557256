"""The seven questions: against slow second implementations, and on tables whose answers are known."""

import inspect
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from networks import networks

from calibrant.core.curves.ranking import kendall
from calibrant.core.errors import InputError
from calibrant.core.statistics.bootstrap import resample_counts
from calibrant.figures import CATALOGUE as FIGURES
from calibrant.nas.questions import Number, make, names
from calibrant.nas.questions._resamples import NetworkResamples, Pairs, tau_draws


@pytest.fixture(scope="module")
def table():
    return pl.concat([networks(150), networks(60, space="size")])


def slow_tau(a, b):
    """Kendall's tau-b, every pair by itself."""
    score, x, y = 0, 0, 0
    for i, j in combinations(range(len(a)), 2):
        u, v = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        score, x, y = score + u * v, x + abs(u), y + abs(v)
    return score / np.sqrt(x * y)


def value(answer, name, where):
    [number] = [n for n in answer.numbers if n.name == name and n.where == where]
    return number


# -- rank correlations and intervals ------------------------------------------------------------------


@pytest.mark.parametrize("levels", [4, 1000], ids=["ties", "no ties"])
def test_tau_of_every_resample_equals_the_slow_one(levels):
    rng = np.random.default_rng(3)
    a, b = rng.integers(levels, size=(2, 30)).astype(float)
    b = b + a
    assert kendall(a, b) == pytest.approx(slow_tau(a, b))
    counts = next(resample_counts(30, 5, 0))
    draws = tau_draws(Pairs.of(a, counts), Pairs.of(b, counts), counts)
    for draw, count in zip(draws, counts, strict=True):
        rows = np.repeat(np.arange(30), count)
        assert draw == pytest.approx(slow_tau(a[rows], b[rows]), abs=1e-6)


def test_a_part_of_a_large_population_gives_about_the_same_interval():
    rng = np.random.default_rng(5)
    a = rng.normal(size=1600)
    columns = {"a": a, "b": a + rng.normal(size=1600)}
    whole, part = (NetworkResamples(columns, 1600, 300, most) for most in (1600, 400))
    assert whole.tau("a", "b").value == part.tau("a", "b").value
    wide, scaled = (np.ptp(r.tau("a", "b").limits()) for r in (whole, part))
    assert scaled == pytest.approx(wide, rel=0.25)


def test_intervals_hold_the_tau_of_the_population_about_as_often_as_they_say():
    """tau of a normal pair with correlation r is 2 / pi arcsin(r)."""
    truth, covered = 2 / np.pi * np.arcsin(0.6), 0
    for seed in range(100):
        a, noise = np.random.default_rng(seed).normal(size=(2, 80))
        low, high = NetworkResamples({"a": a, "b": 0.6 * a + 0.8 * noise}, 80, 200).tau("a", "b").limits()
        covered += low <= truth <= high
    assert 88 <= covered <= 100


# -- every question -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_every_question_keeps_its_promises(name, table):
    question = make(name)
    answer = question(table)
    assert answer.question == name
    assert answer.sentence.endswith(".")
    assert answer.claims
    assert answer.numbers
    assert answer.verdict in ("agrees", "differs", "inconclusive")
    assert [p.data for p in answer.populations if p.space == "topology"] == ["cifar10", "cifar100"]
    for n in answer.numbers:
        assert n.low is None or n.value is None or n.low <= n.value <= n.high
    for picture in answer.pictures:
        figure = FIGURES.make(picture.figure)
        assert figure.words(figure.data(picture.table))
    assert ">>> " in inspect.getdoc(type(question))
    again = question(table)
    assert (again.claims, again.numbers) == (answer.claims, answer.numbers)


@pytest.mark.parametrize("name", names())
def test_five_networks_tell_nothing(name):
    table = pl.concat([networks(5), networks(5, space="size")])
    answer = make(name)(table)
    assert answer.verdict == "inconclusive"
    assert "do not tell" in answer.sentence
    assert all(n.low is None for n in answer.numbers)


@pytest.mark.parametrize("name", names())
def test_a_table_of_another_space_only_tells_nothing(name):
    answer = make(name)(networks(60, space="size").filter(pl.col("space") == "none"))
    assert answer.verdict == "inconclusive"


@pytest.mark.parametrize("name", names())
def test_a_missing_column_is_named_with_its_question(name, table):
    column = make(name).needs[-1]
    with pytest.raises(InputError, match=rf"question {name}: .*no {column}"):
        make(name)(table.drop(column))


def test_a_column_of_words_is_refused(table):
    with pytest.raises(InputError, match="pre_ECE_15: expected numbers"):
        make("accuracy")(table.with_columns(pl.lit("x").alias("pre_ECE_15")))


def test_unique_networks_and_constant_ones_are_counted(table):
    [first, *_] = make("accuracy")(table).populations
    own = table.filter((pl.col("space") == "topology") & (pl.col("data") == "cifar10"))
    unique = own.filter("unique")
    assert (first.networks, first.unique) == (150, unique.height)
    assert first.constant == unique["constant"].sum()


# -- known answers ------------------------------------------------------------------------------------


def test_accuracy_where_ece_falls_everywhere(table):
    answer = make("accuracy")(table)
    assert [claim.verdict for claim in answer.claims] == ["agrees", "differs"]
    own = table.filter((pl.col("space") == "topology") & (pl.col("data") == "cifar10") & pl.col("unique"))
    whole = value(answer, "tau of accuracy and ECE", "cifar10, unique topologies")
    assert whole.value == pytest.approx(slow_tau(own["accuracy"].to_numpy(), own["pre_ECE_15"].to_numpy()))


def test_a_good_quarter_stands_in_only_where_few_are_above_90_percent():
    many, few = networks(800, data=("cifar10",)), networks(100, data=("cifar10",))
    wheres = [[n.where for n in make("accuracy")(t).numbers] for t in (many, few)]
    assert "cifar10, above 90 % accuracy" in wheres[0]
    assert any("quarter" in where for where in wheres[1])


def test_measures_finds_the_one_that_orders_at_random(table):
    answer = make("measures")(table)
    assert [claim.verdict for claim in answer.claims] == ["agrees", "agrees"]
    assert value(answer, "tau of ECE and ECE_em", "cifar10, unique topologies").published == 0.98


def test_bin_size_knows_how_ece_was_made_to_grow(table):
    answer = make("bin_size")(table)
    grown = value(answer, "growth after / growth before", "cifar10, unique topologies")
    by_hand = (1 + 0.8 * np.log(100)) / (1 + 0.05 * np.log(100))
    assert grown.value == pytest.approx(by_hand, rel=0.02)
    assert answer.verdict == "agrees"


def test_across_tasks_where_data_sets_share_everything():
    one = networks(150, data=("cifar10",))
    both = pl.concat([one, one.with_columns(pl.lit("cifar100").alias("data"))])
    answer = make("across_tasks")(both)
    assert answer.verdict == "differs"
    assert all(n.value == pytest.approx(1) for n in answer.numbers)


def test_post_hoc_where_scaling_changes_nothing(table):
    same = table.with_columns(**{f"post_ECE_{m}": f"pre_ECE_{m}" for m in (5, 10, 15, 20, 25, 50, 100, 200, 500)})
    assert make("post_hoc")(same).verdict == "differs"
    assert make("post_hoc")(table).verdict == "agrees"


def test_robustness_reports_both_orders(table):
    """Robust accuracy rises with ECE among the least accurate half, and falls with it among the others."""
    turned = table.with_columns(
        pl.when(pl.col("accuracy") > 0.72).then(-pl.col(c)).otherwise(pl.col(c)).alias(c)
        for c in ("pgd_1.0", "square_1.0", *(f"corrupt_{x}" for x in ("shot_noise", "frost", "glass_blur", "snow")))
    )
    answer = make("robustness")(turned)
    verdicts = {claim.says.split()[-3]: claim.verdict for claim in answer.claims if "networks" in claim.says}
    assert (verdicts["most"], verdicts["least"]) == ("differs", "agrees")


def test_robustness_without_corruptions_of_one_data_set(table):
    """ImageNet16-120 has none."""
    gone = pl.when(pl.col("data") == "cifar10").then(pl.col("corrupt_frost")).alias("corrupt_frost")
    answer = make("robustness")(table.with_columns(gone))
    assert not [n for n in answer.numbers if n.name == "tau of ECE and frost" and n.where.startswith("cifar100")]


def test_architecture_reads_cells_and_widths(table):
    answer = make("architecture")(table)
    own = table.filter((pl.col("space") == "topology") & (pl.col("data") == "cifar10") & pl.col("unique"))
    best = own.sort("hcs", descending=True).head(20)["arch"].to_list()
    share = sum(arch.split("+")[2].startswith("|skip_connect~0") for arch in best) / 20
    assert value(answer, "skip on 0→3", "cifar10, 20 best by HCS").value == pytest.approx(share)
    counts = [9 * arch.count("nor_conv_3x3") + arch.count("nor_conv_1x1") for arch in own["arch"]]
    tau = value(answer, "tau of kernel parameters and ECE", "cifar10, unique topologies").value
    assert tau == pytest.approx(slow_tau(np.array(counts), own["pre_ECE_15"].to_numpy()))
    wide = table.filter((pl.col("space") == "size") & (pl.col("data") == "cifar10"))
    sums = np.array([sum(map(int, arch.split(":"))) for arch in wide["arch"]])
    inside = wide.filter((sums >= 160) & (sums < 200))
    median = value(answer, "median ECE", "cifar10, widths 160 to 200")
    assert (median.networks, median.value) == (inside.height, pytest.approx(inside["pre_ECE_15"].median()))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.2, "differs"), (0.3, 0.5, "agrees"), (-0.5, 0.9, "inconclusive"), (None, None, "inconclusive")],
)
def test_a_published_number_is_judged_by_the_interval(low, high, verdict):
    assert Number(name="tau", where="", networks=50, value=0.3, low=low, high=high, published=0.4).verdict == verdict
