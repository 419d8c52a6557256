"""TOML to dataclasses: what is right is read, what is wrong is refused with its line."""

import re
import tomllib
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from toml_writer import write_toml

from calibrant.core.arrays import Array
from calibrant.core.config.convert import Bounds, Positive, build, check_fields, from_json, read_option
from calibrant.core.config.overrides import read_changes
from calibrant.core.config.toml import MOST_BYTES, Table, read_toml
from calibrant.core.errors import InputError
from calibrant.core.json import whole


@dataclass(frozen=True)
class Claim:
    says: str
    is_: Literal["lower", "higher"] = "lower"
    by: Annotated[float, Bounds(least=0, below=1)] = 0.0


@dataclass(frozen=True)
class Plan:
    """Everything a plan of a study may need."""

    title: str = ""
    size: Annotated[int, Bounds(1, 10)] = 1
    rate: Positive = 0.5
    pair: tuple[int, str] = (1, "a")
    seeds: list[Annotated[int, Bounds(least=0)]] = field(default_factory=list)
    rows: str | list[str] = "method"
    grid: dict[str, list[Any]] = field(default_factory=dict)
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    claim: list[Claim] = field(default_factory=list)
    after: Claim | None = None
    quick: bool = False

    def __post_init__(self):
        check_fields(self)
        if self.quick and self.size > 5:
            raise InputError(
                "size", expected="at most 5 where quick is true", got=str(self.size), fix="make it smaller"
            )


WHOLE = """\
title = "Learned"
size = 3
rate = 1
pair = [2, "b"]
seeds = [
  1,
  2,
]
rows = ["method", "data"]
[grid]
data = ["digits"]
seed = [1, 2.5]
[methods.CE]
[methods."FL gamma"]
meta = { learn = "gamma" }
[[claim]]
says = "one"
[[claim]]
says = "two"
is = "higher"
by = 0.5
[after]
says = "three"
"""


def read(tmp_path, text, cls=Plan):
    (tmp_path / "plan.toml").write_text(text)
    return build(cls, read_toml(tmp_path / "plan.toml"))


def test_a_plan_is_read_whole(tmp_path):
    plan = read(tmp_path, WHOLE)
    assert plan == Plan(
        title="Learned",
        size=3,
        rate=1.0,
        pair=(2, "b"),
        seeds=[1, 2],
        rows=["method", "data"],
        grid={"data": ["digits"], "seed": [1, 2.5]},
        methods={"CE": {}, "FL gamma": {"meta": {"learn": "gamma"}}},
        claim=[Claim("one"), Claim("two", is_="higher", by=0.5)],
        after=Claim("three"),
    )
    assert isinstance(plan.rate, float)


def test_what_is_read_may_be_changed_without_changing_the_next_reading(tmp_path):
    read(tmp_path, WHOLE).methods["FL gamma"]["meta"]["learn"] = "l2"
    assert read(tmp_path, WHOLE).methods["FL gamma"]["meta"] == {"learn": "gamma"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sise = 3", "plan.toml, line 1 (sise = 3): key: expected one of"),
        ("sise = 3", "did you mean 'size'?"),
        ("\n\nsize = 'many'  # !", "line 3 (size = 'many'  # !): size: expected a whole number, got 'many'"),
        ("size = 2.5", "size: expected a whole number, got 2.5. To fix it: write size = 5."),
        ("size = true", "size: expected a whole number, got True"),
        ("size = 11", "size: expected 1 to 10, got 11"),
        (f"size = {10**400}", "size: expected a whole number"),
        ("rate = inf", "rate: expected a finite number, got inf"),
        ("rate = nan", "rate: expected a finite number, got nan"),
        ("rate = 0", "rate: expected more than 0, got 0.0"),
        ("title = 1979-05-27", "title: expected text, got datetime.date"),
        ('title = "a\\u0000b"', "title: expected text, got 'a\\x00b'"),
        ("quick = 'true'", "quick: expected true or false, got 'true'"),
        ("pair = [1]", "pair: expected 2 values, got 1"),
        ("seeds = 3", "seeds: expected a list, each a whole number, got 3"),
        ("seeds = [\n1,\n-2]", "line 1 (seeds = [): seeds.1: expected 0 or more, got -2"),
        ("rows = 3", "rows: expected text or a list, each text, got 3"),
        ("rows = [3]", "rows.0: expected text, got 3"),
        ("grid = 3", "grid: expected a table, got 3"),
        ("[grid]\ndata = 'x'", "line 2 (data = 'x'): grid.data: expected a list"),
        ("methods.CE = 3", "line 1 (methods.CE = 3): methods.CE: expected a table, got 3"),
        ("claim = {}", "claim: expected a list, each a table, got a table"),
        ("[[claim]]\nsays = 'a'\n[[claim]]\nby = 1", "line 4 (by = 1): claim.1.by: expected 0 or more and less than 1"),
        ("[[claim]]\nsays = 'a'\n[[claim]]\nby = 0", "line 3 ([[claim]]): claim.1.says: expected a value, got none"),
        ("[after]\nsays = 'a'\nis = 'lowest'", "line 3 (is = 'lowest'): after.is: expected one of higher, lower"),
        ("size = 6\nquick = true", "line 1 (size = 6): size: expected at most 5 where quick is true"),
        ("size = ", "line 1 (size =): expected TOML, got Invalid value in column"),
        ("size = 1\nsize = 2", "line 2 (size = 2): expected TOML, got Cannot overwrite a value"),
        ("a = " + "[" * 2000, "tables in each other"),
        (".".join("a" * 40) + " = 1", "expected at most 16 tables in each other"),
        (f"size = {'9' * 5000}", "expected TOML"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path, text, says):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert says in str(error.value)


def test_files_that_are_no_toml(tmp_path):
    for content, says in (
        (b"title = '\xff'", "expected text in UTF-8, got the byte 0xff in line 1"),
        (b"#" * (MOST_BYTES + 1), "more than 256 KB"),
    ):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(InputError, match=says):
            read_toml(tmp_path / "bad.toml")
    with pytest.raises(InputError, match="no such file"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(InputError, match="got something else"):
        read_toml(tmp_path)
    (tmp_path / "bom.toml").write_bytes("\ufeffsize = 3\r\nrate = 2\r\n".encode())
    assert read_toml(tmp_path / "bom.toml").values == {"size": 3, "rate": 2}


def test_a_value_over_very_many_lines_does_not_make_reading_slow(tmp_path):
    table = tmp_path / "long.toml"
    table.write_text("seeds = [\n" + "1, #]\n" * 10_000 + "]\nsise = 3")
    with pytest.raises(InputError, match=r"long\.toml: key: expected"):  # the line is not looked for beyond a budget
        build(Plan, read_toml(table))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["size"], "--override: expected key=value, got 'size'"),
        (["=3"], "--override: expected key=value"),
        (["a b=3"], "--override: expected key=value"),
        (["size=abc"], "--override size=abc: size: expected a whole number, got 'abc'"),
        (["size=-1"], "--override size=-1: size: expected 1 to 10, got -1"),
        (["rate=inf"], "--override rate=inf: rate: expected a finite number, got inf"),
        (["size.x=3"], "--override size.x=3: size: expected a whole number, got a table"),
        (["grid=3"], "--override grid=3: grid: expected a table, got 3"),
        (["sise=3"], "did you mean 'size'?"),
        (["quick=yes"], "--override quick=yes: quick: expected true or false, got 'yes'"),
    ],
)
def test_wrong_changes_are_refused(changes, says):
    with pytest.raises(InputError) as error:
        build(Plan, read_changes(Plan, changes))
    assert says in str(error.value)


def test_changes_are_read_as_the_types_of_their_fields():
    changes = ["size=4", "title=4", "rate=1e-3", "quick=True", "seeds=3, 4", "rows=a", 'methods."FL x".loss=focal']
    report = build(Plan, read_changes(Plan, [*changes, "methods.CE.epochs=3", "grid.seed=[1, 2]"]))
    assert (report.size, report.title, report.rate, report.quick, report.seeds, report.rows) == (
        4,
        "4",
        1e-3,
        True,
        [3, 4],
        "a",
    )
    assert report.methods == {"FL x": {"loss": "focal"}, "CE": {"epochs": 3}}
    assert report.grid == {"seed": [1, 2]}


def test_values_made_in_python_are_checked_too():
    for wrong in ({"size": 0}, {"size": "3"}, {"rate": float("nan")}, {"rows": 3}):
        with pytest.raises(InputError):
            Plan(**wrong)


def test_written_toml_is_read_as_the_same_values():
    values = {
        "text": 'a "quoted" \\ line\nand another',
        "numbers": [1, 2.5, 1e-05, -3],
        "yes": True,
        "empty": {},
        "odd key": {"ß.x": [[1], []]},
        "rows": [{"a": 1, "inner": {"b": 2}}, {"a": 2, "more": [{"c": 3}]}],
    }
    assert tomllib.loads(write_toml(values)) == values


def test_tables_inside_remember_their_lines(tmp_path):
    (tmp_path / "t.toml").write_text("[a.b]\nc = 1\n[[d]]\n[d.e]\nf = 2\n")
    table = read_toml(tmp_path / "t.toml")
    assert table.at("a", "b").place(("c",)).endswith("t.toml, line 2 (c = 1)")
    assert table.place(("d", 0, "e", "f")).endswith("line 5 (f = 2)")
    assert table.place(("a", "b", "new")).endswith("line 1 ([a.b])")
    assert table.at("nothing", "here") == Table()
    with pytest.raises(InputError, match=r"line 2 \(c = 1\): c: expected a table, got 1"):
        table.at("a", "b", "c")


@dataclass(frozen=True)
class Document:
    """What a JSON document holds."""

    name: str
    weights: Array
    parts: list[Array]
    score_type: Literal["logits", "probs"] = "logits"
    rows: int | None = None


def test_a_document_of_json_becomes_a_dataclass():
    read = from_json(Document, {"name": "a\x00b", "weights": [[1, 2.5]], "parts": [[1], []], "rows": 3})
    assert read.name == "a\x00b"  # names of files and groups may hold anything
    assert read.weights.dtype == np.float64
    assert read.weights.tolist() == [[1.0, 2.5]]
    assert [part.tolist() for part in read.parts] == [[1.0], []]
    assert (read.score_type, read.rows) == ("logits", 3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": 3}, "name: expected text, got 3"),
        ({"weights": "12"}, "weights: expected numbers, got '12'"),
        ({"weights": [True]}, "weights: expected numbers, got [True]"),
        ({"weights": [[1], [1, 2]]}, "weights: expected numbers, got [[1], [1, 2]]"),
        ({"parts": [[1], ["a"]]}, "parts.1: expected numbers, got ['a']"),
        ({"score_type": "logit"}, "score_type: expected one of logits, probs, got 'logit'"),
        ({"rows": True}, "rows: expected a whole number, got True"),
        ({"more": 1}, "key: expected one of name, parts, rows, score_type, weights, got 'more'"),
    ],
)
def test_a_damaged_document_is_refused_without_what_to_write(wrong, says):
    right = {"name": "a", "weights": [1], "parts": []}
    damaged = re.escape(f"state: expected a whole one, got a damaged one ({says}). To fix it: refit.")
    with pytest.raises(InputError, match=damaged), whole("state", fix="refit"):
        from_json(Document, right | wrong)


def test_options_as_text():
    assert read_option(float, "1/4", "x:a") == 0.25
    assert read_option(tuple[float, ...] | None, "1,2", "x:a") == (1.0, 2.0)
    assert read_option(bool | None, "none", "x:a") is None
    with pytest.raises(
        InputError, match=r"ece:bins: expected a whole number, got 'many'. To fix it: write ece:bins=5\."
    ):
        read_option(int, "many", "ece:bins")
