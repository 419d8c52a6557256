"""A figure in one call: in a notebook, in a file, and what is refused."""

import re

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.plotting.draw import draw


def test_it_saves_itself_as_the_command_does(p, tmp_path):
    plot = cal.plot("reliability", {"CE": p, "focal": p.with_temperature(2.0)}).save(tmp_path / "a.svg")
    words = draw("reliability", {"CE": p, "focal": p.with_temperature(2.0)}, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert plot.words == str(plot) == words


def test_it_shows_itself_without_a_network(p):
    bundle = cal.plot("reliability", {"<b>": p})._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/html"].startswith("<figure><svg ")
    assert "<script" not in bundle["text/html"]
    assert "<b>" not in bundle["text/html"]
    assert not re.search(r"(?:src|href)=.https?:", bundle["text/html"])
    assert cal.plot("roc", cal.Predictions.binary([0.9, 0.2], [1, 0])).chart.to_dict()["layer"]


def test_the_list_and_the_name():
    assert {"reliability", "roc", "precision_recall"} <= set(cal.plot("list"))
    assert "plot" in dir(cal)


def test_tables_that_can_be_measured_are(p):
    assert {row["measure"] for row in cal.plot("before_after", {"before": p}).rows} == {
        "ece", "nll", "brier", "auroc_correct",
    }  # fmt: skip
    assert cal.plot("decomposition", p).rows


def test_plot_refuses_bad_input(p):
    with pytest.raises(InputError, match="predictions, or several by name"):
        cal.plot("reliability")
    with pytest.raises(InputError, match="did you mean"):
        cal.plot("reliabilty", p)
    with pytest.raises(InputError, match="theme"):
        cal.plot("reliability", p, theme="drak")
