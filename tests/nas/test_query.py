"""SQL that looks at a table answers; SQL that writes, reads files or is no SQL is refused in words."""

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from calibrant.cli import app
from calibrant.core.errors import InputError
from calibrant.nas.query import query

TABLE = pl.DataFrame({"arch": ["a", "b", "c"], "accuracy": [0.9, 0.7, 0.8], "pre_ECE_15": [0.1, 0.05, 0.2]})


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select corr(accuracy, pre_ECE_15) from nas", ["corr(accuracy, pre_ECE_15)"]),
        (
            "SELECT max(accuracy), min(accuracy), arch FROM nas GROUP BY arch",
            ["max(accuracy)", "min(accuracy)", "arch"],
        ),
        ("select max(accuracy) as top, count(*) n from nas", ["top", "n"]),
        ("select distinct arch from nas", ["arch"]),
        ("select * from nas", ["arch", "accuracy", "pre_ECE_15"]),
        ("select max(accuracy) from (select * from nas)", ["accuracy"]),  # not plain: as polars names it
    ],
)
def test_a_computed_column_is_called_what_it_is(sql, columns):
    assert query(TABLE, sql).columns == columns


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select arch from nas where accuracy > 0.75 order by pre_ECE_15", [("a",), ("c",)]),
        ("SELECT count(*) AS n FROM nas;", [(3,)]),
        (
            "with good as (select * from nas where accuracy > 0.75) select arch from good order by arch",
            [("a",), ("c",)],
        ),
        ("-- which\n/* ones */ (select arch from nas order by accuracy limit 1)", [("b",)]),
        ("select arch from nas where arch in (select arch from nas where accuracy > 0.85)", [("a",)]),
        ("select n.arch from nas n join nas m on n.arch = m.arch where m.accuracy = 0.7", [("b",)]),
    ],
)
def test_select_returns_rows(sql, rows):
    assert query(TABLE, sql).rows() == rows


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('{}')",
        "SELECT * FROM Read_CSV ('{}')",
        "select * from \"read_csv\"('{}')",
        "select * from /* */ read_csv/* */('{}')",
        "with x as (select * from read_csv('{}')) select * from x",
        "select arch from nas union all select * from read_csv('{}')",
        "select arch from nas where arch in (select * from read_csv('{}'))",
        "select * from read_parquet('{}')",
        "select * from read_ipc('{}')",
        "select * from read_json('{}')",
        "select * from scan_csv('{}')",
        "select 'a\\'' from read_csv('{}')",
        "select $$ from read_csv('{}')$$",
    ],
)
def test_no_file_is_read(tmp_path, sql):
    secret = tmp_path / "secret.csv"
    secret.write_text("arch\nsecret\n")
    with pytest.raises(InputError, match="query: expected no function that reads a file"):
        query(TABLE, sql.format(secret))


@pytest.mark.parametrize(
    "sql",
    [
        "create table x as select * from nas",
        "drop table nas",
        "delete from nas",
        "truncate table nas",
        "insert into nas values ('d', 1, 1)",
        "update nas set accuracy = 1",
        "copy nas to '{}'",
        "/* select */ copy nas to '{}'",
        "-- select\nexplain select * from nas",
        "attach '{}'",
        "",
        "  ;",
        "-- select * from nas",
    ],
)
def test_only_selects(tmp_path, sql):
    with pytest.raises(InputError, match="query: expected a SELECT, got"):
        query(TABLE, sql.format(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
    assert TABLE.height == 3


@pytest.mark.parametrize(
    "sql",
    [
        "select * from nas; drop table nas",
        "select * into '{}' from nas",
        "select * from nas into outfile '{}'",
        "select * from '{}'",
        "select * from other",
        "select from where",
        "select unknown_function(arch) from nas",
        "select cast(arch as int) from nas",
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(tmp_path, sql):
    with pytest.raises(InputError, match="query: expected a SELECT that the table can answer") as error:
        query(TABLE, sql.format(tmp_path / "out"))
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_unknown_columns_have_a_suggestion():
    with pytest.raises(InputError, match=r"column: expected one of the 3 columns of nas, got 'acuracy'.*'accuracy'"):
        query(TABLE, "select acuracy from nas")


def test_a_query_of_a_megabyte():
    with pytest.raises(InputError, match="at most 100,000 characters"):
        query(TABLE, "select 1" + " " * 1_000_000)


def test_a_query_reads_all_tables_and_writes_instead_of_printing(tmp_path):
    for name, numbers in (("a", [1, 2]), ("b", [2, 3])):
        pl.DataFrame({"arch": [str(n) for n in numbers], "n": numbers}).write_parquet(tmp_path / f"{name}.parquet")
    tables = ["--table", str(tmp_path / "a.parquet"), "--table", str(tmp_path / "b.parquet")]
    ended = CliRunner().invoke(app, ["nas", "query", "select sum(n) as total from nas", *tables, "--json"])
    assert json.loads(ended.output) == [{"total": 6}]
    out = tmp_path / "rows.csv"
    ended = CliRunner().invoke(app, ["nas", "query", "select * from nas", *tables, "--out", str(out)])
    assert ended.output.split()[:3] == ["3", "rows", "written"]
    assert pl.read_csv(out).height == 3


@pytest.mark.parametrize("sql", ["select interval '1 day' as d from nas", "select interval '3 months' from nas"])
def test_an_interval_is_refused(sql):
    """It ended in a traceback of JSON, or of CSV."""
    with pytest.raises(InputError, match="query: expected"):
        query(pl.DataFrame({"a": [1]}), sql)
