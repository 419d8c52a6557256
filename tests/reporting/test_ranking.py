"""Sentences about several models say no more than their intervals do."""

from types import SimpleNamespace

import pytest

from calibrant.reporting.ranking import cheapest


def model(name, cost, half):
    row = SimpleNamespace(calibrator="identity", actual_cost=cost, low=cost - half, high=cost + half)
    return SimpleNamespace(name=name, best="identity", cost=SimpleNamespace(rows=[row]))


@pytest.mark.parametrize(("half", "inconclusive"), [(0.01, False), (0.1, True)])
def test_the_cheapest_model_is_called_cheaper_only_where_intervals_do_not_meet(half, inconclusive):
    words = cheapest([model("a", 0.8, half), model("b", 0.7, half)])
    assert words.startswith("The lowest cost is that of b")
    assert ("inconclusive" in words) == inconclusive
    assert ("% less than the next, a" in words) == (not inconclusive)


def test_without_costs_nothing_is_said():
    assert cheapest([SimpleNamespace(name="a", cost=None)]) == ""
