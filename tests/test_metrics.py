"""Measures as functions on arrays: equal to `cal.measure`, for one column and for several, typed for editors."""

import ast
import doctest
import inspect
import runpy
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant import metrics
from calibrant.core.errors import InputError

ROOT = Path(__file__).parents[1]
NAMES = cal.measures.names()


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1.0, 1.0, 1.0], size=300)
    labels = (rng.random((300, 1)) > probs.cumsum(1)).sum(1)
    return labels, probs, rng.uniform(0.5, 2, 300)


def tasks_of(name):
    """The tasks of a measure; those of the positive class need two classes."""
    cls = cal.measures.find(name)
    return ("binary",) if issubclass(cls, cal.measures.PositiveMeasure) else cls.tasks


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_function_equals_measure(name, columns, weighted, arrays):
    labels, probs, weights = arrays
    weights = weights if weighted else None
    if columns == 1:
        y_true, y_prob = (labels == 1).astype(int), probs[:, 1]
        p = cal.Predictions.binary(y_prob, y_true, weights=weights)
    else:
        y_true, y_prob = labels, probs
        p = cal.Predictions.from_probs(y_prob, y_true, weights=weights)
    function = getattr(metrics, name)
    if p.task not in tasks_of(name):
        with pytest.raises(InputError):
            function(y_true, y_prob, sample_weight=weights)
        return
    value = function(y_true, y_prob, sample_weight=weights)
    assert type(value) is float
    assert value == pytest.approx(cal.measure(p, name, resamples=0).value, rel=1e-12, abs=1e-15)


def test_options_are_keywords(arrays):
    labels, probs, _ = arrays
    p = cal.Predictions.from_probs(probs, labels)
    assert metrics.ece(labels, probs, n_bins=30, scheme="mass") == cal.measure(p, "ece:bins=30,scheme=mass").value
    assert metrics.brier(labels, probs, form="top") == cal.measure(p, "brier:form=top").value


def test_scores_may_be_logits_one_column_wide_torch_or_lists():
    y, z = [0, 1, 1, 0], np.array([-1.0, 2.0, 0.3, 0.5])
    prob = 1 / (1 + np.exp(-z))
    for scores in (prob, prob[:, None], prob.tolist()):
        assert metrics.nll(y, scores) == pytest.approx(metrics.nll(y, z, logits=True))
    assert metrics.nll(["no", "yes", "yes", "no"], prob, pos_label="yes") == metrics.nll(y, prob)
    assert metrics.roc_auc(y, np.stack([1 - prob, prob], axis=1)) == metrics.roc_auc(y, prob)
    assert metrics.accuracy([0, 2], np.log([[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]), logits=True) == 1


def test_a_batch_of_one_row_is_measured():
    assert metrics.accuracy([1], [0.9]) == 1
    assert metrics.accuracy([3], [[0.1, 0.2, 0.3, 0.4]]) == 1


def test_scikit_learn_agrees(arrays):
    sk = pytest.importorskip("sklearn.metrics")
    labels, probs, weights = arrays
    assert metrics.nll(labels, probs, sample_weight=weights) == pytest.approx(
        sk.log_loss(labels, probs, sample_weight=weights)
    )
    event = labels == 1
    assert metrics.roc_auc(event, probs[:, 1]) == pytest.approx(sk.roc_auc_score(event, probs[:, 1]))
    assert metrics.average_precision(event, probs[:, 1]) == pytest.approx(
        sk.average_precision_score(event, probs[:, 1])
    )


def test_errors_say_what_to_do():
    with pytest.raises(InputError, match=r"keyword of metrics\.ece: .*did you mean 'n_bins'"):
        metrics.ece([0, 1], [0.2, 0.8], bins=3)
    with pytest.raises(InputError, match="pos_label: expected one column of scores"):
        metrics.ece([0, 1], [[0.2, 0.8], [0.3, 0.7]], pos_label=1)
    with pytest.raises(AttributeError, match="did you mean 'roc_auc'"):
        metrics.auc  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '_ece'"):
        metrics._ece  # noqa: B018


def test_every_measure_is_listed_once_and_stays_the_same_object():
    assert dir(metrics) == NAMES
    assert metrics.ece is metrics.ece


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_has_its_parameters_and_an_example_that_runs(name):
    function = getattr(metrics, name)
    for parameter in inspect.signature(function).parameters:
        assert f"    {parameter} : " in function.__doc__
    [test] = doctest.DocTestFinder().find(function, name, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_types_for_editors_are_those_of_the_catalogue():
    tool = runpy.run_path(str(ROOT / "tools" / "make_metrics_stub.py"))
    assert ast.dump(ast.parse(tool["stub"]())) == ast.dump(ast.parse(tool["STUB"].read_text()))
