"""One list of promises, run over every figure in the catalogue."""

import dataclasses
import inspect
import json
import re
import subprocess
import sys
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl
import pytest
from figure_tables import TABLES
from synthetic import two_classes

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.figures import Figure, PredictionFigure, TableFigure, find, make, names
from calibrant.plotting.draw import compute, spec

NAMES = names()
OF_PREDICTIONS = [name for name in NAMES if issubclass(find(name), PredictionFigure)]
OF_TABLES = [name for name in NAMES if issubclass(find(name), TableFigure)]
OF_TWO_CLASSES = {"roc", "precision_recall"}
MAY_BE_ZERO = {"seed"}
EIGHTY_MM = 302.4  # in pixels, of which an inch has 96


def source(name, p):
    if name in OF_TABLES:
        assert name in TABLES, f"add a small table for {name} to tests/figure_tables.py"
        return TABLES[name]()
    p = of(name, p)
    return {"before": p, "after": p.with_temperature(2.0)}


def of(name, p):
    return two_classes(p) if name in OF_TWO_CLASSES else p


def options_of(name):
    hints = get_type_hints(find(name))
    return {field.name: hints[field.name] for field in dataclasses.fields(find(name))}


def check_plain(value):
    """Python's own numbers, words, lists: no numpy, no NaN."""
    if isinstance(value, list):
        for one in value:
            check_plain(one)
    else:
        assert type(value) in (str, int, float, bool, type(None)), type(value)


def check_words(words):
    assert words[0].isupper() or not words[0].isalpha(), words
    assert words.endswith("."), words
    assert len(words) < 1500
    assert not re.search(r"\b(nan|None|inf)\b", words), words


def svg(chart):
    import vl_convert

    return vl_convert.vegalite_to_svg(chart)


# -- what it says about itself --------------------------------------------------------------------


def test_every_figure_is_of_predictions_or_of_a_table():
    assert sorted(OF_PREDICTIONS + OF_TABLES) == NAMES
    assert len(NAMES) >= 16


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    cls = find(name)
    assert cls.title[0].isupper()
    assert isinstance(cls.reference, str)
    doc = inspect.cleandoc(cls.__dict__["__doc__"])
    summary, caution, example = doc.split("\n\n", 2)
    assert summary.endswith(".")
    assert caution.endswith(".")
    assert example.startswith(">>>")


def test_titles_are_unique():
    assert len({find(name).title for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_is_a_frozen_dataclass_that_its_name_makes(name):
    figure = make(name)
    assert isinstance(figure, Figure)
    assert spec_of(figure) == name
    assert hash(figure) == hash(find(name)())
    assert isinstance(figure.for_page(), find(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        figure.something = 1


@pytest.mark.parametrize("name", NAMES)
def test_wrong_options_are_refused(name):
    with pytest.raises(InputError):
        make(f"{name}:colours=5")
    for option, hint in options_of(name).items():
        if hint in (int, float):
            for text in ("abc", "", "nan", "-1", "-inf", *([] if option in MAY_BE_ZERO else ["0"])):
                with pytest.raises(InputError):
                    make(f"{name}:{option}={text}")
        if get_origin(hint) is Literal:
            with pytest.raises(InputError, match=f"did you mean '{get_args(hint)[0]}'"):
                make(f"{name}:{option}={get_args(hint)[0]}x")


# -- the numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_data_are_plain_small_and_the_same_again(name, p):
    of, figure = source(name, p), make(name)
    rows = compute(figure, of)
    assert rows
    for row in rows:
        assert list(row) == list(rows[0])
        for value in row.values():
            check_plain(value)
    assert len(json.dumps(rows, allow_nan=False)) < 250_000
    assert compute(find(name)(), of) == rows


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_data_and_words_on_any_data(name, any_data):
    figure = make(name)
    rows = figure.data({"CE, seed 1": of(name, any_data)})
    json.dumps(rows, allow_nan=False)
    check_words(figure.words(rows))


@pytest.mark.parametrize("data", ["all correct", "certain and wrong", "fewer rows than bins"])
@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_hard_data_can_be_drawn(name, data, make_data):
    assert "NaN" not in svg(spec(name, compute(name, of(name, make_data(data)))))


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_data_do_not_depend_on_the_order_of_rows(name, p):
    p = of(name, p)
    shuffled = p.take(np.random.default_rng(0).permutation(p.n))
    one, other = (make(name).data({"m": q}) for q in (p, shuffled))
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for key, value in a.items():
            assert value == pytest.approx(b[key], abs=1e-9) if isinstance(value, float) else value == b[key]


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_data_stay_small_for_many_rows(name):
    rng = np.random.default_rng(3)
    logits = 3 * rng.normal(size=(100_000, 3))
    p = Predictions.from_logits(logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
    rows = make(name).data({"m": of(name, p)})
    assert len(rows) <= 512
    assert len(json.dumps(rows)) < 120_000


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_predictions_are_not_changed(name, p):
    p = of(name, p)
    before = p.values.copy()
    make(name).data({"m": p})
    assert np.array_equal(p.values, before)


@pytest.mark.parametrize("name", sorted(set(OF_PREDICTIONS) - OF_TWO_CLASSES))
def test_blocks_of_classes_give_the_same(name, p, monkeypatch):
    whole = make(name).data({"m": p})
    monkeypatch.setattr("calibrant.core.predictions.constants.KEEP_ELEMENTS", 150)
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", 40)
    blocks = make(name).data({"m": Predictions.from_logits(p.values, p.labels)})
    for a, b in zip(whole, blocks, strict=True):
        for key, value in a.items():
            assert value == pytest.approx(b[key], abs=1e-12) if isinstance(value, float) else value == b[key]


@pytest.mark.parametrize("name", OF_TABLES)
def test_a_wrong_table_is_refused_by_the_names_of_its_columns(name):
    columns = find(name).columns
    with pytest.raises(InputError) as error:
        make(name).data(pl.DataFrame({"something": ["else"]}))
    for column in columns:
        assert column in str(error.value)
    assert "something" in str(error.value) or not columns
    good = TABLES[name]()
    with pytest.raises(InputError):
        make(name).data(good.clear())
    for column in columns:
        with pytest.raises(InputError, match=column):
            make(name).data(good.drop(column))


@pytest.mark.parametrize("name", OF_TABLES)
def test_missing_values_are_left_out(name):
    """NaN and empty cells alike: the rows stay plain, the words and the chart do not mention them."""
    table = TABLES[name]()
    numeric = [s.name for s in table if s.dtype.is_float()]
    half = pl.int_range(pl.len()) % 2 == 1
    for missing in (None, float("nan")):
        holes = table.with_columns(pl.when(half).then(pl.lit(missing)).otherwise(pl.col(c)).alias(c) for c in numeric)
        rows = make(name).data(holes)
        json.dumps(rows, allow_nan=False)
        check_words(make(name).words(rows))
        assert "<svg" in svg(spec(name, rows))
    none = table.with_columns(pl.lit(None, dtype=pl.Float64).alias(c) for c in numeric)
    if name == "rank_heatmap":  # a correlation that is undefined is a fact about the table
        return check_words(make(name).words(make(name).data(none)))
    with pytest.raises(InputError, match="missing values"):
        make(name).data(none)


# -- the words and the drawing --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_words_are_a_sentence(name, p):
    figure = make(name)
    check_words(figure.words(compute(figure, source(name, p))))


@pytest.mark.parametrize("name", NAMES)
def test_chart_becomes_a_picture_the_same_each_time(name, p):
    figure = make(name)
    rows = compute(figure, source(name, p))
    light = spec(figure, rows)
    assert light == spec(figure, rows)
    assert light["description"] == figure.words(rows)
    figure.chart(rows).to_dict()  # as Altair checks it, part by part: a drawing leaves that out
    dark = spec(figure, rows, theme="dark")
    assert {key for key in light if light[key] != dark[key]} == {"config"}
    text = json.dumps(light, allow_nan=False)
    assert '"tooltip"' in text
    assert "http" not in text.replace(light["$schema"], "")
    bare = json.dumps({key: value for key, value in light.items() if key != "config"})
    assert not re.search(r"#[0-9a-fA-F]{6}\b", bare)  # colours are the config's, so that a page can switch the theme
    picture = svg(dark)
    assert picture.startswith("<svg")
    assert "NaN" not in picture
    assert "undefined" not in picture


@pytest.mark.parametrize("name", OF_PREDICTIONS)
def test_one_model_fits_80_mm(name, p):
    picture = svg(spec(name, compute(name, {"CE": of(name, p)})))
    assert float(re.search(r'width="([\d.]+)"', picture).group(1)) <= EIGHTY_MM


def test_data_need_no_altair():
    code = (
        "import sys, numpy as np\n"
        "from calibrant import figures\n"
        "from calibrant.core.predictions.predictions import Predictions\n"
        "p = Predictions.from_probs(np.array([[0.9, 0.1], [0.6, 0.4]] * 20), [0, 1] * 20)\n"
        "for name in figures.names():\n"
        "    figure = figures.make(name)\n"
        "    if isinstance(figure, figures.PredictionFigure):\n"
        "        figure.words(figure.data({'m': p}))\n"
        "print(sorted({'altair', 'polars', 'vl_convert', 'torch', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
