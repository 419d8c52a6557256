"""The operations of map steps as nodes of an ONNX graph; only operators that every opset from 13 on has."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.maps.export_check import ONNX_INSTALL, require_module
from calibrant.core.maps.map import Map
from calibrant.core.maps.operations import BatchOperations, BatchScores, Scores, Value
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.statistics.error_guarantee import lower_slightly
from calibrant.deciding.decision import Decision


@dataclass
class Nodes:
    """Builder of nodes and constants of a graph."""

    prefix: str
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, values: Any, dtype: Any = np.float64) -> "Node":
        name = f"{self.prefix}c{len(self.constants)}"
        array = np.array(values, dtype=dtype)
        self.constants.append(require_module("onnx.numpy_helper", ONNX_INSTALL).from_array(array, name))
        return Node(self, name)

    def __call__(self, op: str, *inputs: Any, result: str | None = None, **attributes: Any) -> "Node":
        """Add one node; inputs that are numbers or arrays become constants."""
        name = result or f"{self.prefix}n{len(self.nodes)}"
        names = [(value if isinstance(value, Node) else self.constant(value)).name for value in inputs]
        self.nodes.append(
            require_module("onnx.helper", ONNX_INSTALL).make_node(op, names, [name], name=f"{name}_node", **attributes)
        )
        return Node(self, name)

    def whole(self, *values: int) -> "Node":
        return self.constant(values, np.int64)


@dataclass(frozen=True)
class Node:
    """The result of a node, or an input of the graph; arithmetic adds nodes."""

    nodes: Nodes
    name: str

    __array_ufunc__ = None  # array * node is for the node

    def __add__(self, other: Value) -> "Node":
        return self.nodes("Add", self, other)

    def __sub__(self, other: Value) -> "Node":
        return self.nodes("Sub", self, other)

    def __rsub__(self, other: Value) -> "Node":
        return self.nodes("Sub", other, self)

    def __mul__(self, other: Value) -> "Node":
        return self.nodes("Mul", self, other)

    def __truediv__(self, other: Value) -> "Node":
        return self.nodes("Div", self, other)

    def __rtruediv__(self, other: Value) -> "Node":
        return self.nodes("Div", other, self)

    def __pow__(self, two: int) -> "Node":
        return self.nodes("Mul", self, self)

    def __gt__(self, other: Value) -> "Node":
        return self.nodes("Greater", self, other)

    __radd__, __rmul__ = __add__, __mul__


@dataclass
class GraphOperations(BatchOperations):
    """Nodes (n, k) or (n, 1) in float64; the numbers of a step are arrays, which become constants."""

    nodes: Nodes

    def softmax(self, z: Node) -> Node:
        return self.nodes("Softmax", z, axis=-1)

    def log(self, x: Node) -> Node:
        return self.nodes("Log", x)

    def log1m(self, x: Node) -> Node:
        return self.nodes("Log", 1.0 - x)

    def sigmoid(self, x: Node) -> Node:
        return self.nodes("Sigmoid", x)

    def clip(self, x: Node, low: float, high: float) -> Node:
        return self.nodes("Min", self.nodes("Max", x, low), high)

    def floored_log(self, probs: Node) -> Node:
        return self.nodes("Log", self.nodes("Max", probs, PROBABILITY_FLOOR))

    def affine(self, z: Node, weight: Array, bias: Array) -> Node:
        return (self.nodes("MatMul", z, weight.T) if weight.ndim == 2 else z * weight) + bias

    def argmax(self, x: Node) -> Node:
        return self.nodes("ArgMax", x, axis=-1, keepdims=1)

    def gather(self, x: Node, classes: Node) -> Node:
        return self.nodes("GatherElements", x, classes, axis=1)

    def one_hot(self, classes: Node, k: int) -> Node:
        return self.nodes("Equal", classes, self.nodes.whole(*range(k)))

    def where(self, mask: Node, yes: Value, no: Value) -> Node:
        return self.nodes("Where", mask, yes, no)

    def total(self, x: Node) -> Node:
        return self.nodes("ReduceSum", x, self.nodes.whole(1), keepdims=1)

    def as_number(self, mask: Node) -> Node:
        return self.nodes("Cast", mask, to=_type("DOUBLE"))

    def columns(self, table: Array) -> Array:
        return table.T

    def line(self, scores: Node, curves: Any) -> Node:
        tables = _Tables(self.nodes, curves)
        knot = self.nodes("Max", tables.passed(scores, "GreaterOrEqual") - self.nodes.whole(1), self.nodes.whole(0))
        along = self.nodes("Max", scores, curves.x[:, 0]) - tables.look_up(curves.x, knot, np.inf)
        return tables.look_up(curves.y, knot) + tables.look_up(curves.slope, knot) * along

    def stair(self, scores: Node, curves: Any) -> Node:
        tables = _Tables(self.nodes, curves)
        return tables.look_up(curves.y, tables.passed(scores, "Greater"))


class _Tables:
    """Curves as flat tables: the knot below a score is found by halving, and its values are looked up."""

    def __init__(self, nodes: Nodes, curves: Any) -> None:
        self.nodes, self.x = nodes, curves.x
        self.halves = curves.x.shape[1].bit_length()
        self.room = 2**self.halves  # for every curve in every table, so that one place fits all

    def passed(self, scores: Node, comparison: str) -> Node:
        """The number of knots that a score has passed."""
        x, count = self._flat(self.x, np.inf), self.nodes.whole(0)
        for jump in (2**h for h in reversed(range(self.halves))):
            is_passed = self.nodes(comparison, scores, self._at(x, count, jump - 1))
            count = count + self.nodes("Cast", is_passed, to=_type("INT64")) * self.nodes.whole(jump)
        return count

    def look_up(self, values: Array, place: Node, fill: float = 0.0) -> Node:
        return self._at(self._flat(values, fill), place)

    def _flat(self, values: Array, fill: float) -> Node:
        filled = np.full((len(values), self.room), fill)
        filled[:, : values.shape[1]] = values
        return self.nodes.constant(filled.ravel())

    def _at(self, table: Node, place: Node, ahead: int = 0) -> Node:
        starts = self.nodes.whole(*(self.room * c + ahead for c in range(len(self.x))))
        return self.nodes("Gather", table, place + starts, axis=0)


def nodes_of(
    m: Map, prefix: str, scores: str, result: str, *, are_probs: bool = False, rank: int = 2, both: bool = False
) -> Nodes:
    """Build the graph of a map, from scores to calibrated scores of the same type and shape.

    Logits give log-probabilities (of one score: log-odds), probabilities give probabilities. Scores of more than two
    axes are images or volumes (n, k, ...). `both` says that a map of one score gets a column for each of two classes.
    """
    nodes = Nodes(prefix)
    z = nodes("Cast", Node(nodes, scores), to=_type("DOUBLE"))
    last, first = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    if rank > 2 and not m.one_score:
        z = nodes("Transpose", z, perm=last)
        shape = nodes("Shape", z)
        z = nodes("Reshape", z, nodes.whole(-1, m.k))
    if are_probs:
        z = _logits_of_probs(nodes, z, odds=m.one_score and not both)
    if m.one_score:
        odds = np.array([[-1.0], [1.0]])
        z = nodes("MatMul", z, odds) if both else z
        z = nodes("Reshape", nodes("MatMul", _calibrate(_two_classes(nodes, z), m).logits, odds), nodes("Shape", z))
        z = nodes("Sigmoid", z) if are_probs else z
        if both:
            z = nodes("Concat", 1.0 - z if are_probs else z * 0.0, z, axis=1)
    else:
        calibrated = _calibrate(_classes(nodes, z, m), m).logits
        z = nodes("Softmax" if are_probs else "LogSoftmax", calibrated, axis=-1)
        if rank > 2:
            z = nodes("Transpose", nodes("Reshape", z, shape), perm=first)
    nodes("Cast", z, to=_type("FLOAT"), result=result)
    return nodes


def decision_nodes(d: Decision, scores: str, probs: str, decision: str) -> Nodes:
    """Build the graph of a decision: scores as its map takes them, calibrated probabilities and decisions."""
    m, nodes = d.map, Nodes("calibrant_")
    z, are_probs = nodes("Cast", Node(nodes, scores), to=_type("DOUBLE")), m.score_type == "probs"
    start = _two_classes(nodes, z, are_probs) if m.one_score else _classes(nodes, z, m, are_probs)
    result = _calibrate(start, m)
    calibrated = result.probs
    if m.one_score:
        calibrated = nodes("Gather", calibrated, nodes.constant(1, np.int64), axis=1)
    nodes("Cast", calibrated, to=_type("FLOAT"), result=probs)
    nodes("Reshape", _choose(nodes, d, result), nodes.whole(-1), result=decision)
    return nodes


def _calibrate(scores: Scores, m: Map) -> Scores:
    for step in m.steps:
        scores = step.run(scores, SimpleNamespace(**step.numbers()))
    return scores


def _classes(nodes: Nodes, values: Node, m: Map, are_probs: bool = False) -> BatchScores:
    exists = nodes("Not", nodes("IsInf", values)) if m.task == "choice" else None
    return BatchScores(ops=GraphOperations(nodes), values=values, k=m.k, are_probs=are_probs, exists=exists)


def _two_classes(nodes: Nodes, values: Node, are_probs: bool = False) -> BatchScores:
    """One score of any shape as two classes, of which the second is the one that the score is about."""
    column = nodes("Reshape", values, nodes.whole(-1, 1))
    both = nodes("Concat", 1.0 - column if are_probs else column * 0.0, column, axis=1)
    second = nodes("Cast", column * 0.0 + 1.0, to=_type("INT64"))  # (n, 1) of ones
    return BatchScores(ops=GraphOperations(nodes), values=both, k=2, are_probs=are_probs, top=second, one_score=True)


def _choose(nodes: Nodes, d: Decision, scores: Scores) -> Node:
    """The decision of each row, (n, 1), from calibrated scores."""
    policy, probs = d.policy, scores.probs

    def reaches(score: Node, threshold: float | None) -> Node:
        return nodes("GreaterOrEqual", score, np.inf if threshold is None else lower_slightly(threshold))

    if policy.acts == "least_cost":
        least = nodes("ArgMin", nodes("MatMul", probs, policy.matrix), axis=1, keepdims=1)
        return nodes("Where", nodes("Less", least, nodes.whole(d.map.k)), least, nodes.whole(-1))
    if policy.acts == "positive":
        positive, rest = scores.ops.gather(probs, scores.predicted), nodes.whole(0)
        if policy.lower is not None:
            rest = nodes("Where", reaches(positive, policy.lower), nodes.whole(-1), rest)
        return nodes("Where", reaches(positive, policy.threshold), nodes.whole(1), rest)
    answer = scores.ops.argmax(probs) if d.map.task == "binary" else scores.predicted
    sure = scores.ops.gather(probs, answer)
    return nodes("Where", reaches(sure, policy.threshold), answer, nodes.whole(-1))


def _logits_of_probs(nodes: Nodes, probs: Node, *, odds: bool) -> Node:
    """Logarithms of the probabilities of classes, or the log-odds of one probability; 0 and 1 are floored."""
    log = GraphOperations(nodes).floored_log
    return log(probs) - log(1.0 - probs) if odds else log(probs)


def _type(name: str) -> int:
    return int(getattr(require_module("onnx", ONNX_INSTALL).TensorProto, name))
