"""The steps of a map as nodes of an ONNX graph; only operators that every opset from 13 on has."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.core.maps.export_check import ONNX_INSTALL, Knots, has_one_score, require_module, unknown_step
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import SCORE_FLOOR, Curves, Linear, LogProbs, Mix, Sigmoid, Step
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.statistics.error_guarantee import lower_slightly
from calibrant.deciding.decision import Decision


@dataclass
class Nodes:
    """Builder of nodes and constants of a graph; every result is a name."""

    prefix: str
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        array = np.array(values, dtype=dtype)
        self.constants.append(require_module("onnx.numpy_helper", ONNX_INSTALL).from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: Any, result: str | None = None, **attributes: Any) -> str:
        """Add one node; inputs that are numbers or arrays become constants."""
        name = result or f"{self.prefix}n{len(self.nodes)}"
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(
            require_module("onnx.helper", ONNX_INSTALL).make_node(op, names, [name], name=f"{name}_node", **attributes)
        )
        return name

    def whole(self, *values: int) -> str:
        return self.constant(values, np.int64)


@dataclass
class StepOutput:
    """Output of one step: logits or probabilities, and the prediction where a step has fixed it."""

    nodes: Nodes
    values: str  # (n, k)
    are_probs: bool = False
    top: str | None = None  # (n, 1)
    exists: str | None = None  # (n, k) the options there are, where that differs

    def logits(self) -> str:
        if not self.are_probs:
            return self.values
        logs = self.nodes("Log", self.nodes("Max", self.values, PROBABILITY_FLOOR))
        return logs if self.exists is None else self.nodes("Where", self.exists, logs, -np.inf)

    def uniform(self, k: int) -> "str | float":
        if self.exists is None:
            return 1 / k
        there = self.nodes("Cast", self.exists, to=require_module("onnx", ONNX_INSTALL).TensorProto.DOUBLE)
        return self.nodes("Div", there, self.nodes("ReduceSum", there, self.nodes.whole(1), keepdims=1))

    def probs(self) -> str:
        return self.values if self.are_probs else self.nodes("Softmax", self.values, axis=-1)

    def predicted(self) -> str:
        return self.top or self.nodes("ArgMax", self.values, axis=-1, keepdims=1)


def nodes_of(
    m: Map, prefix: str, scores: str, result: str, *, are_probs: bool = False, rank: int = 2, both: bool = False
) -> Nodes:
    """Build the graph of a map, from scores to calibrated scores of the same type and shape.

    Logits give log-probabilities (of one score: log-odds), probabilities give probabilities. Scores of `rank` 4 are
    images (n, k, height, width). `both` says that a map of one score gets a column for each of the two classes.
    """
    nodes, types = Nodes(prefix), require_module("onnx", ONNX_INSTALL).TensorProto
    z = nodes("Cast", scores, to=types.DOUBLE)
    last, first = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    if rank > 2 and not has_one_score(m):
        z = nodes("Transpose", z, perm=last)
        shape = nodes("Shape", z)
        z = nodes("Reshape", z, nodes.whole(-1, m.k))
    if are_probs:
        z = _logits_of_probs(nodes, z, odds=has_one_score(m) and not both)
    if has_one_score(m):
        if both:
            z = nodes("MatMul", z, np.array([[-1.0], [1.0]]))
        z = _of_one_score(nodes, m, z)
        z = nodes("Sigmoid", z) if are_probs else z
        if both:
            other = nodes("Sub", 1.0, z) if are_probs else nodes("Mul", z, 0.0)
            z = nodes("Concat", other, z, axis=1)
        nodes("Cast", z, to=types.FLOAT, result=result)
        return nodes
    exists = nodes("Not", nodes("IsInf", z)) if m.task == "choice" else None
    state = StepOutput(nodes, z, exists=exists)
    for step in m.steps:
        state = replace(_step(state, step, m.k), exists=exists)
    z = nodes("Softmax" if are_probs else "LogSoftmax", state.logits(), axis=-1)
    if rank > 2:
        z = nodes("Transpose", nodes("Reshape", z, shape), perm=first)
    nodes("Cast", z, to=types.FLOAT, result=result)
    return nodes


def decision_nodes(d: Decision, scores: str, probs: str, decision: str) -> Nodes:
    """Build the graph of a decision: scores as its map takes them, calibrated probabilities and decisions."""
    m, nodes, types = d.map, Nodes("calibrant_"), require_module("onnx", ONNX_INSTALL).TensorProto
    z, are_probs, second, exists = nodes("Cast", scores, to=types.DOUBLE), m.score_type == "probs", None, None
    if has_one_score(m):
        column = nodes("Reshape", z, nodes.whole(-1, 1))
        first = nodes("Sub", 1.0, column) if are_probs else nodes("Mul", column, 0.0)
        second = nodes("Cast", nodes("Add", nodes("Mul", column, 0.0), 1.0), to=types.INT64)  # (n, 1) of ones
        z = nodes("Concat", first, column, axis=1)
    elif m.task == "choice":
        exists = nodes("Not", nodes("IsInf", z))
    state = StepOutput(nodes, z, are_probs, top=second, exists=exists)
    for step in m.steps:
        state = replace(_step(state, step, m.k), exists=exists)
        state = state if second is None else replace(state, top=second)
    both, top = state.probs(), None if second is not None else state.predicted()
    calibrated = both if second is None else nodes("Gather", both, nodes.constant(1, np.int64), axis=1)
    nodes("Cast", calibrated, to=types.FLOAT, result=probs)
    chosen = _choose(nodes, d, both, top)  # (n, 1)
    nodes("Reshape", chosen, nodes.whole(-1), result=decision)
    return nodes


def _choose(nodes: Nodes, d: Decision, probs: str, top: str | None) -> str:
    """The decision of each row, (n, 1), from probabilities (n, k) and the prediction, where it is not the likelier."""
    policy = d.policy
    second = "" if top is not None else nodes("Gather", probs, nodes.whole(1), axis=1)

    def reaches(score: str, threshold: float | None) -> str:
        return nodes("GreaterOrEqual", score, np.inf if threshold is None else lower_slightly(threshold))

    if policy.acts == "positive":
        rest = nodes.whole(0)
        if policy.lower is not None:
            rest = nodes("Where", reaches(second, policy.lower), nodes.whole(-1), rest)
        return nodes("Where", reaches(second, policy.threshold), nodes.whole(1), rest)
    if policy.acts == "answer":
        if d.map.task == "confidence":
            sure, answer = second, nodes.whole(1)
        elif top is None:
            sure = nodes("ReduceMax", probs, axes=[1], keepdims=1)
            answer = nodes("Cast", nodes("Greater", second, 0.5), to=_int64())
        else:
            sure, answer = nodes("GatherElements", probs, top, axis=1), top
        return nodes("Where", reaches(sure, policy.threshold), answer, nodes.whole(-1))
    least = nodes("ArgMin", nodes("MatMul", probs, policy.matrix), axis=1, keepdims=1)
    return nodes("Where", nodes("Less", least, nodes.whole(d.map.k)), least, nodes.whole(-1))


def _logits_of_probs(nodes: Nodes, probs: str, *, odds: bool) -> str:
    """Logarithms of the probabilities of classes, or the log-odds of one probability; 0 and 1 are floored."""
    logs = nodes("Log", nodes("Max", probs, PROBABILITY_FLOOR))
    if not odds:
        return logs
    return nodes("Sub", logs, nodes("Log", nodes("Max", nodes("Sub", 1.0, probs), PROBABILITY_FLOOR)))


def _of_one_score(nodes: Nodes, m: Map, z: str) -> str:
    """Log-odds of any shape, as two classes of which the second is the one that the score is about."""
    types = require_module("onnx", ONNX_INSTALL).TensorProto
    column = nodes("Reshape", z, nodes.whole(-1, 1))
    second = nodes("Cast", nodes("Add", nodes("Mul", column, 0.0), 1.0), to=types.INT64)  # (n, 1) of ones
    state = StepOutput(nodes, nodes("Concat", nodes("Mul", column, 0.0), column, axis=1), top=second)
    for step in m.steps:
        state = replace(_step(state, step, m.k), top=second)
    odds = nodes("MatMul", state.logits(), np.array([[-1.0], [1.0]]))
    return nodes("Reshape", odds, nodes("Shape", z))


def _step(s: StepOutput, step: Step, k: int) -> StepOutput:
    nodes = s.nodes
    match step:
        case Linear():
            z = s.logits()
            scaled = nodes("MatMul", z, step.weight.T) if step.weight.ndim == 2 else nodes("Mul", z, step.weight)
            return StepOutput(nodes, nodes("Add", scaled, step.bias), False, s.top if step.keeps_order else None)
        case LogProbs():
            logs = s.logits() if s.are_probs else nodes("LogSoftmax", s.values, axis=-1)
            return StepOutput(nodes, nodes("Max", logs, np.log(PROBABILITY_FLOOR)), False, s.top)
        case Mix():
            return _mix(s, step, k)
        case Curves(form="line" | "stair", scope="top" | "classes" | "shared"):
            odds = np.array([[1.0, -1.0], [-1.0, 1.0]])
            return _rescore(s, step, nodes("MatMul", s.logits(), odds) if step.on == "log_odds" else s.probs(), k)
        case Sigmoid(on="probs" | "logits" | "scores", scope="top" | "classes" | "shared"):
            return _rescore(s, step, s.logits() if step.on == "logits" else s.probs(), k)
    raise unknown_step(step)


def _mix(s: StepOutput, step: Mix, k: int) -> StepOutput:
    nodes = s.nodes
    hot, plain, flat = step.weights
    tempered = nodes("Softmax", nodes("Div", s.logits(), step.T if hot else 1.0), axis=-1)
    mixed = nodes("Add", nodes("Mul", tempered, hot), nodes("Mul", s.probs(), plain))
    uniform = s.uniform(k)
    share = flat * uniform if isinstance(uniform, float) else nodes("Mul", uniform, flat)
    return StepOutput(nodes, nodes("Add", mixed, share), True, s.top)


def _rescore(s: StepOutput, step: Curves | Sigmoid, scores: str, k: int) -> StepOutput:
    """New probabilities from a function of one score: of the predicted class, or of every class and renormalised."""
    nodes = s.nodes
    if step.scope != "top":
        values = _value(nodes, step, scores, k)
        total, is_positive = _total(nodes, values)
        probs = nodes("Where", is_positive, nodes("Div", values, total), 1 / k)
        return StepOutput(nodes, probs, True, s.predicted() if step.scope == "shared" else None)
    top = s.predicted()
    value = _value(nodes, step, nodes("GatherElements", scores, top, axis=1), 1)
    q = nodes("Min", nodes("Max", value, 0.0), 1.0)  # (n, 1)
    left = nodes("Sub", 1.0, q)
    is_top = nodes("Equal", top, nodes.whole(*range(k)))
    others = nodes("Where", is_top, 0.0, s.probs())
    rest, is_positive = _total(nodes, others)
    uniform = s.uniform(k)
    alike = nodes("Div", uniform, nodes("Sub", 1.0, uniform))  # 1 / (k - 1) each
    shared = nodes("Where", is_positive, nodes("Mul", others, nodes("Div", left, rest)), nodes("Mul", left, alike))
    return StepOutput(nodes, nodes("Where", is_top, q, shared), True, top)


def _total(nodes: Nodes, values: str) -> tuple[str, str]:
    """The sum of a row (1 where it is 0), and a mask of the rows where it is above 0."""
    total = nodes("ReduceSum", values, nodes.whole(1), keepdims=1)
    is_positive = nodes("Greater", total, 0.0)
    return nodes("Where", is_positive, total, 1.0), is_positive


def _value(nodes: Nodes, step: Curves | Sigmoid, scores: str, columns: int) -> str:
    if isinstance(step, Curves):
        return _curve(nodes, step, scores, columns)
    rows = step.coefficients if step.scope == "classes" else step.coefficients[:1]
    a, b, constant, square = rows.T  # (k,) or (1,)
    if step.on != "probs":
        return nodes("Sigmoid", nodes("Add", nodes("Mul", scores, a), constant))
    s = nodes("Min", nodes("Max", scores, SCORE_FLOOR), 1 - SCORE_FLOOR)
    log, log_other = nodes("Log", s), nodes("Log", nodes("Sub", 1.0, s))
    logit = nodes("Sub", log, log_other)
    line = nodes("Sub", nodes("Mul", log, a), nodes("Mul", log_other, b))
    curve = nodes("Mul", nodes("Mul", logit, logit), square)
    return nodes("Sigmoid", nodes("Add", nodes("Add", line, curve), constant))


def _curve(nodes: Nodes, step: Curves, scores: str, columns: int) -> str:
    """Evaluate a curve: the knot below a score is found by halving, and its values are looked up."""
    knots, line = Knots.of(step), step.form == "line"
    curves, width = knots.x.shape
    halves = width.bit_length()
    room = 2**halves  # for every table, so that one place fits all

    def table(values: Any, fill: float) -> str:
        filled = np.full((curves, room), fill)
        filled[:, : values.shape[1]] = values
        return nodes.constant(filled.ravel())

    def look_up(name: str, count: str, ahead: int = 0) -> str:
        starts = [room * c + ahead for c in range(columns if curves > 1 else 1)]
        return nodes("Gather", name, nodes("Add", count, nodes.whole(*starts)), axis=0)

    x, y = table(knots.x, np.inf), table(knots.y, 0.0)
    count = nodes.whole(0)  # knots that a score has passed
    for jump in (2**h for h in reversed(range(halves))):
        passed = nodes("GreaterOrEqual" if line else "Greater", scores, look_up(x, count, jump - 1))
        count = nodes("Add", count, nodes("Mul", nodes("Cast", passed, to=_int64()), nodes.whole(jump)))  # (n, k)
    if not line:
        return look_up(y, count)
    knot = nodes("Max", nodes("Sub", count, nodes.whole(1)), nodes.whole(0))
    along = nodes("Sub", nodes("Max", scores, knots.x[:, 0]), look_up(x, knot))
    return nodes("Add", look_up(y, knot), nodes("Mul", look_up(table(knots.slope, 0.0), knot), along))


def _int64() -> int:
    return int(require_module("onnx", ONNX_INSTALL).TensorProto.INT64)
