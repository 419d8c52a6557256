"""Costs: read from text, files and arrays; the policy of least expected cost; bad ones refused."""

import numpy as np
import pytest

from calibrant import InputError, Predictions
from calibrant.deciding.costs import CostRule, check_rule, cost_rule, read_rule
from calibrant.deciding.policy import HAND_OVER


@pytest.mark.parametrize(
    "text",
    [
        *("", "wrong", "wrong=5", "wrong=1,abstain=2", "abstain=0,wrong=1", "threshold=2", "wrong=x,abstain=1", "a=1"),
        *("fn=-1,fp=1", "fn=0,fp=0", "fn=1,fp=inf", "fn=nan,fp=1", "fn=1", "fn=1,fp=1,abstain=-1"),
    ],
)
def test_bad_costs_are_refused(text):
    with pytest.raises(InputError, match="--cost"):
        read_rule(text)


@pytest.mark.parametrize(
    "content",
    ["1,2\n3\n", "a,b\nc,d\n", "1,2,3,4\n4,5,6,7\n", "nan,1\n1,0\n", "", "0,-1\n1,0\n", "0,0\n0,0\n", "1\n"],
)
def test_bad_matrices_are_refused(tmp_path, content):
    (tmp_path / "m.csv").write_text(content)
    with pytest.raises(InputError, match=r"m\.csv"):
        read_rule(str(tmp_path / "m.csv"))


def test_one_free_error_means_always_or_never():
    p = Predictions.binary([0.1, 0.9], [0, 1])
    assert read_rule("fn=1,fp=0").policy(p).tolist() == [1, 1]
    assert read_rule("fn=0,fp=1").policy(p).tolist() == [0, 0]


@pytest.mark.parametrize("abstain", [None, 0.05, 0.3, 0.9, 5.0])
def test_thresholds_are_those_of_least_expected_cost(abstain):
    """Against the expected cost of each action, row by row."""
    s = np.linspace(0.001, 0.999, 500) + 1e-5  # no ties
    p = Predictions.binary(s, np.arange(500) % 2)
    rule = cost_rule({"fn": 4.0, "fp": 1.5} | ({} if abstain is None else {"abstain": abstain}))
    actions = [4.0 * s, 1.5 * (1 - s)] + ([] if abstain is None else [np.full(500, abstain)])
    chosen = rule.policy(p)
    assert chosen.tolist() == [[0, 1, HAND_OVER][i] for i in np.argmin(actions, axis=0)]
    assert rule.expected(p, chosen) == pytest.approx(np.min(actions, axis=0))
    matrix = np.array([[0, 1.5, abstain or 9], [4, 0, abstain or 9]])
    assert CostRule(matrix=matrix).policy(p).tolist() == chosen.tolist()


def test_a_matrix_with_a_column_for_handing_over():
    p = Predictions.from_probs([[0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.1, 0.1, 0.8]], [0, 1, 1])
    rule = cost_rule([[0, 5, 5, 1], [5, 0, 5, 1], [5, 5, 0, 1]])  # the same as wrong=5,abstain=1
    assert rule.policy(p).tolist() == [0, HAND_OVER, 2]
    assert rule.actual(p, rule.policy(p)).tolist() == [0, 1, 5]
    assert rule.expected(p, rule.policy(p)) == pytest.approx([0.5, 1, 1])
    other = read_rule("wrong=5,abstain=1")
    assert other.policy(p).tolist() == rule.policy(p).tolist()
    assert other.expected(p, other.policy(p)) == pytest.approx([0.5, 1, 1])


def test_a_rule_for_another_task_is_refused():
    p = Predictions.from_confidence([0.9, 0.6], [1, 0])
    with pytest.raises(InputError, match="probability for every class"):
        check_rule(cost_rule(np.eye(2)), p)
    with pytest.raises(InputError, match="scores of the positive class"):
        check_rule(read_rule("fn=1,fp=2"), p)
    with pytest.raises(InputError, match="a matrix of 3 x 3"):
        check_rule(cost_rule(np.eye(2)), Predictions.from_probs([[0.2, 0.3, 0.5]], [0]))
