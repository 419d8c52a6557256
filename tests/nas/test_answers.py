"""Answers and searches over a table: commands, the page, the CSV files of the study's authors, the Pareto front."""

import json
import re
from itertools import groupby

import pytest

pytest.importorskip("html5lib")

import html5lib
import numpy as np
import polars as pl
from networks import networks
from typer.testing import CliRunner

from calibrant.cli import app
from calibrant.core.curves.ranking import kendall
from calibrant.core.errors import InputError
from calibrant.core.nats import cells
from calibrant.figures import CATALOGUE as FIGURES
from calibrant.nas import spaces
from calibrant.nas.answers import answer_all, markdown, read_networks
from calibrant.nas.networks import in_our_columns as columns_of_file
from calibrant.nas.networks import mark_networks
from calibrant.nas.questions import names
from calibrant.nas.search import front, pareto, search_table
from calibrant.reporting.pictures import inline


def in_our_columns(table, name):
    return mark_networks(columns_of_file(table, name))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("nas") / "nas.parquet"
    pl.concat([networks(80), networks(40, space="size")]).write_parquet(path)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["nas", *map(str, arguments)])


# -- asking -------------------------------------------------------------------------------------------


def test_ask_all_writes_a_page_without_script(file, tmp_path):
    out, one = tmp_path / "answers.html", tmp_path / "one.parquet"
    pl.read_parquet(file).filter(pl.col("data") == "cifar10").write_parquet(one)  # half the pictures
    done = run("ask", "all", "--table", one, "--out", out)
    assert done.exit_code == 0, done.output
    text = out.read_text()
    html5lib.HTMLParser(strict=False).parse(text)
    assert "<script" not in text
    assert text.count("<section>") == 7
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "<svg" in text


def test_ask_one_by_either_name(file):
    outputs = [run("ask", name, "--table", file, "--json").stdout for name in ("bin-size", "bin_size")]
    assert outputs[0] == outputs[1]
    [answer] = json.loads(outputs[0])
    assert answer["question"] == "bin_size"
    assert {"value", "low", "high", "published", "verdict", "where", "networks"} <= set(answer["numbers"][0])
    assert "What does the number of bins do?" in run("ask", "bin-size", "--table", file).stdout


def test_a_table_without_a_column_is_refused_before_anything_is_asked(file, tmp_path):
    poor = tmp_path / "poor.parquet"
    pl.read_parquet(file).drop("pre_KSCE").write_parquet(poor)
    out = tmp_path / "answers.html"
    done = run("ask", "all", "--table", poor, "--out", out)
    assert isinstance(done.exception, InputError)
    assert "pre_KSCE" in str(done.exception)
    assert not out.exists()


def test_answers_stand_between_the_markers_of_a_page(file, tmp_path):
    answers, page = answer_all(pl.read_parquet(file)), tmp_path / "page.md"
    markdown(answers, page)
    page.write_text(f"before\n{page.read_text()}after\n")
    markdown(answers, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count("| **") == len(names())
    page.write_text("no markers")
    with pytest.raises(InputError, match="end of answers"):
        markdown(answers, page)


# -- other people's columns ---------------------------------------------------------------------------


def test_the_authors_columns_become_ours():
    theirs = pl.DataFrame(
        {
            "config": [105, 4],
            "arch": [cells()[105], cells()[4]],
            "acc": [84.27, 90.0],
            "pre_ECE_15": [0.05, 0.1],
            "pgd@Linf": ["[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]", None],
            "frost": ["[0.9, 0.8, 0.75, 0.6, 0.5]", "[0.9, 0.8, 0.65, 0.6, 0.5]"],
        }
    )
    ours = in_our_columns(theirs, "tss_cifar100")
    assert ours["space"].to_list() == ["topology"] * 2
    assert ours["data"].to_list() == ["cifar100"] * 2
    assert ours["accuracy"].to_list() == pytest.approx([0.8427, 0.9])
    assert ours["pgd_1.0"].to_list() == [0.7, None]
    assert ours["corrupt_frost"].to_list() == [0.75, 0.65]
    assert ours["hcs"][1] == pytest.approx(0.9)
    assert ours["constant"].to_list() == [True, False]
    assert ours["unique"].to_list() == [True, True]
    assert in_our_columns(theirs.drop("arch"), "tss_cifar100")["arch"].to_list() == theirs["arch"].to_list()
    with pytest.raises(InputError, match=r"cell: expected three nodes"):
        in_our_columns(theirs.with_columns(arch=pl.lit("a")), "tss_cifar100")
    with pytest.raises(InputError, match="a file name that says it"):
        in_our_columns(theirs, "results")
    with pytest.raises(InputError, match="frost: expected lists of numbers"):
        in_our_columns(theirs.with_columns(pl.lit("0.9 0.8").alias("frost")), "tss_cifar10")


def test_what_the_architecture_says_need_not_be_in_the_table():
    """The whole space, as the authors' files have it: its different networks and its constant ones are counted."""
    space = spaces.make("topology")
    theirs = pl.DataFrame({"config": range(len(space)), "acc": 90.0, "pre_ECE_15": 0.1})
    ours = in_our_columns(theirs, "tss_cifar10.csv")
    assert (ours["unique"].sum(), ours["constant"].sum()) == (6466, 341)
    sizes = in_our_columns(theirs.head(50), "sss_cifar10.csv")
    assert (sizes["unique"].sum(), sizes["constant"].sum()) == (50, 0)


def test_classes_become_marks_of_the_first_network_of_each():
    table = pl.DataFrame({"space": ["topology"] * 3, "data": ["d"] * 3, "unique": [7, 7, 8], "pgd_1": [0.1, 0.2, 0.3]})
    ours = in_our_columns(table, "x")
    assert ours["unique"].to_list() == [True, False, True]
    assert "pgd_1.0" in ours.columns


def test_a_network_without_its_copies_stands_for_all_of_them():
    space = spaces.make("topology")
    archs = space.sample(60, seed=1)
    ours = in_our_columns(
        networks(60).with_columns(arch=pl.Series(archs * 2), unique=pl.lit(True), index=pl.lit(0)), "x"
    )
    counts = {key: len(list(group)) for key, group in groupby(sorted(map(space.key, space.archs())))}
    extremes = len(space.extremes)  # in every sample: they stand for no others
    factor = [1] * extremes + [(6466 - extremes) / (60 - extremes)] * (60 - extremes)
    stands = [round(counts[space.key(arch)] * f) for arch, f in zip(archs, factor, strict=True)]
    assert ours["copies"].to_list() == stands * 2
    whole = in_our_columns(
        networks(1)
        .select("space", "data")
        .head(1)
        .join(pl.DataFrame({"arch": space.uniques(), "unique": True}), how="cross"),
        "x",
    )
    assert whole["copies"].sum() == 15_625
    own = ours.filter(pl.col("data") == "cifar10")
    repeated = [own[c].to_numpy().repeat(own["copies"].to_numpy()) for c in ("accuracy", "pre_ECE_15")]
    [answer] = answer_all(ours, ["accuracy"])
    [number] = [
        n for n in answer.numbers if n.where == "cifar10, all with copies" and n.name == "tau of accuracy and ECE"
    ]
    assert number.value == pytest.approx(kendall(*repeated))
    assert number.networks == own["copies"].sum() > 60
    assert {p.networks for p in answer.populations} == {60}
    table = in_our_columns(networks(60), "x")  # half of them are no firsts: the table has its copies itself
    assert table["copies"].to_list() == [1] * 120
    [tasks] = answer_all(ours, ["across_tasks"])
    assert {n.networks for n in tasks.numbers if "copies" in n.where} == {own["copies"].sum()}


# -- searching ----------------------------------------------------------------------------------------


def test_the_pareto_front_is_what_nobody_beats():
    rng = np.random.default_rng(2)
    accuracy, ece = rng.integers(20, size=(2, 60)) / 20
    chosen = {(accuracy[i], ece[i]) for i in pareto(accuracy, ece)}
    beaten = lambda i: any(  # noqa: E731
        accuracy[j] >= accuracy[i] and ece[j] <= ece[i] and (accuracy[j], ece[j]) != (accuracy[i], ece[i])
        for j in range(60)
    )
    assert chosen == {(accuracy[i], ece[i]) for i in range(60) if not beaten(i)}


def test_searches_of_a_whole_space_find_what_is_there():
    table = networks(15_625, data=("cifar10",)).with_columns(
        unique=pl.lit(True), hcs=pl.col("arch").str.count_matches("nor_conv_3x3") / 6
    )
    results = {one.search: one for one in search_table(table, budget=60, seeds=30)}
    assert results["evolution"].low > results["random"].high
    assert results["local"].low > results["random"].high
    for one in results.values():
        assert len(one.curve) == 60
        assert one.curve[-1] == pytest.approx(one.mean)
        assert one.low <= one.mean <= one.high


def test_the_lowest_ece_is_the_best(file):
    table = pl.read_parquet(file)
    own = table.filter((pl.col("space") == "size") & (pl.col("data") == "cifar100"))
    [search] = search_table(table, by=["random"], goal="ece", budget=40, seeds=2, space="size", data="cifar100")
    assert search.mean == pytest.approx(own["pre_ECE_15"].min())


def test_networks_that_ignore_the_image_are_marked():
    cell = "|{0}~0|+|none~0|none~1|+|{0}~0|none~1|none~2|"
    arch = [cell.format("none"), cell.format("nor_conv_3x3")]
    facts = {"space": "topology", "data": "digits", "unique": True}
    table = pl.DataFrame({**facts, "arch": arch, "accuracy": [0.1, 0.9], "pre_ECE_15": [0.01, 0.02]})
    [search] = search_table(table, by=["random"], goal="ece", budget=2, seeds=3)
    assert (search.best.arch, search.constant) == (arch[0], 3)
    assert [row["constant"] for row in front(table)] == [False, True]


def test_a_table_in_which_no_row_is_left_is_refused(tmp_path):
    empty = pl.DataFrame(schema={"space": pl.String, "arch": pl.String, "data": pl.String, "accuracy": pl.Float64})
    empty.write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="table: expected networks of a space that calibrant has, got no row is left"):
        read_networks([tmp_path / "empty.parquet"])


def test_search_commands_print_and_draw(file, tmp_path):
    out = tmp_path / "front.svg"
    options = ("--for", "hcs", "--budget", "10", "--by", "evolution", "--seeds", "5", "--table", file)
    done = run("search", *options, "--out", out)
    assert done.exit_code == 0, done.output
    assert "evolution" in done.stdout
    assert out.stat().st_size > 1000
    [one] = json.loads(run("search", *options, "--json").stdout)["results"]
    assert one["seeds"] == 5
    assert run("search", *options, "--json").stdout == run("search", *options, "--json").stdout


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--for", "speed"), "goal: expected one of"),
        (("--budget", "9999"), "budget: expected at most"),
        (("--data", "cifar11"), "did you mean 'cifar10'"),
        (("--space", "depth"), "networks of the space depth"),
        (("--by", "evolutoin", "--budget", "9"), "did you mean 'evolution'"),
    ],
)
def test_bad_wishes_are_refused(options, match, file):
    with pytest.raises(InputError, match=match):
        raise run("search", "--table", file, *options).exception


def test_the_front_holds_the_most_accurate_and_the_best_calibrated(file):
    table = pl.read_parquet(file).filter(
        (pl.col("space") == "topology") & (pl.col("data") == "cifar10") & pl.col("unique")
    )
    best = front(table)
    assert best[0]["accuracy"] == table["accuracy"].max()
    assert best[-1]["ece"] == pytest.approx(table["pre_ECE_15"].min())


def test_numbers_on_light_cells_stay_black_on_a_dark_page():
    figure, table = "rank_heatmap", pl.DataFrame({"ece": [1, 2, 3], "nll": [1.0, 3.0, 2.0]})
    svg = inline(figure, FIGURES.make(figure).data(table), "words", name="one")
    weak = re.findall(r'<text[^>]*fill="([^"]+)"[^>]*>0\.33<', svg)
    assert weak == ["#000000"] * 2


def test_the_same_rows_in_two_files_are_one_network(tmp_path):
    """A table twice gives the numbers of the table; another seed of a network is a row, but no other network."""
    whole = networks(60)
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "c.parquet"]
    whole.write_parquet(files[0])
    whole.head(40).write_parquet(files[1])
    once, twice = read_networks(files[:1]), read_networks(files[:2])
    assert twice.height == once.height == whole.height
    assert twice["unique"].sum() == once["unique"].sum()
    whole.with_columns(seed=pl.lit(9), accuracy=pl.col("accuracy") * 0.9).write_parquet(files[2])
    again = read_networks([files[0], files[2]])
    assert again.height == 2 * whole.height
    assert again["unique"].sum() == once["unique"].sum()


@pytest.mark.parametrize(
    "arch", [pl.lit(3), pl.lit(None), pl.lit(None, dtype=pl.String)], ids=["number", "null", "text"]
)
def test_networks_without_a_name_are_refused(tmp_path, arch):
    networks(30).with_columns(arch=arch).write_parquet(tmp_path / "nas.parquet")
    with pytest.raises(InputError, match="column arch"):
        read_networks([tmp_path / "nas.parquet"])


def test_the_best_of_a_sample_are_not_the_best_of_the_space(tmp_path):
    networks(200).write_parquet(tmp_path / "nas.parquet")
    [answer] = answer_all(read_networks([tmp_path / "nas.parquet"]), ["architecture:resamples=10"])
    [claim] = [one for one in answer.claims if one.says.startswith("the 20 best")]
    assert claim.verdict == "inconclusive"
    assert "of 6,466 in the study" in claim.because
