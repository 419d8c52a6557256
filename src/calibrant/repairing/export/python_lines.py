"""The operations of map steps as lines of Python for one row, with the functions and constants that they need."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.operations import Numbers, Operations, ScoreKind, Scores, Value
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions.constants import PROBABILITY_FLOOR

WIDTH = 110  # of a line of numbers


@dataclass(frozen=True)
class Number:
    """The text of one number; arithmetic writes a longer one."""

    text: str
    is_sum: bool = False

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: "Number") -> "Number":
        return Number(f"{self} + {other}", is_sum=True)

    def __sub__(self, other: "Number") -> "Number":
        return Number(f"{self} - {other.factor}", is_sum=True)

    def __mul__(self, other: "Number") -> "Number":
        return Number(f"{self.factor} * {other.factor}")

    def __pow__(self, power: int) -> "Number":
        return Number(f"{self.factor} ** {power}")

    @property
    def factor(self) -> str:
        return f"({self.text})" if self.is_sum else self.text


@dataclass(kw_only=True)
class LineOperations(Operations):
    """Texts of the lists `z` and `probs` of a row, or of one `Number`; the numbers of a step become constants."""

    k: int
    options: bool  # rows have as many scores as the question has options
    step: int = 0  # the number of the step that is written
    lines: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)  # of the function that is written

    def softmax(self, z: str) -> str:
        return self.call("softmax", z)

    def floored_log(self, probs: str) -> str:
        return self.call("logs", probs)

    def log(self, x: Number) -> Number:
        return Number(f"math.log({x})")

    def log1m(self, x: Number) -> Number:
        return Number(f"math.log1p(-{x.factor})")

    def clip(self, x: Number, low: float, high: float) -> Number:
        self.body.append(f"s = min(max({x}, {low!r}), {high!r})")
        return Number("s")

    def affine(self, z: str, weight: Array, bias: Array) -> str:
        if self.options:  # however many there are: one number for all
            return f"[{float(weight)!r} * v for v in {z}]"
        biases = self._constant("BIAS", np.broadcast_to(bias, self.k).tolist())
        weights = self._constant("WEIGHT", weight.tolist())
        if weight.ndim == 2:
            return f"[sum(w * v for w, v in zip(row, {z})) + b for row, b in zip({weights}, {biases})]"
        if weight.ndim == 1 and len(weight) > 1:
            return f"[w * v + b for w, v, b in zip({weights}, {z}, {biases})]"
        return f"[{weights if weight.ndim == 0 else f'{weights}[0]'} * v + b for v, b in zip({z}, {biases})]"

    def divide(self, z: str, T: float) -> str:
        return f"[v / {float(T)!r} for v in {z}]"

    def mix(self, weights: Array, tempered: str, probs: str, uniform: str) -> str:
        hot, plain, flat = weights.tolist()
        return f"[{hot!r} * h + {plain!r} * v + {flat!r} * {uniform} for h, v in zip({tempered}, {probs})]"

    def argmax(self, x: str) -> str:
        self.lines.append(f"top = {x}.index(max({x}))")
        return "top"

    def gather(self, x: str, classes: str) -> Number:
        return Number(f"{x}[{classes}]")

    def line(self, scores: str | Number, curves: Curves) -> str:
        return self._each("line", scores, "KNOTS", _knots(curves))

    def stair(self, scores: str | Number, curves: Curves) -> str:
        return self._each("stair", scores, "KNOTS", _knots(curves))

    def sigmoid_of(self, margin: Callable[..., Value], scores: str | Number, table: Array) -> str:
        """A function of the step, of those of its four coefficients that count."""
        self.body = []
        text, name = str(margin(Number("score"), *map(Number, "abcd"))), f"of_score_{self.step}"
        used = [place for place, letter in enumerate("abcd") if re.search(rf"\b{letter}\b", text)]
        head = f"def {name}(score, {', '.join('abcd'[place] for place in used)}):"
        result = f"return {self.call('sigmoid', text)}"
        self.functions[name] = "\n" + "\n    ".join((head, *self.body, result))
        return self._each(name, scores, "COEFFICIENTS", table[:, used].tolist())

    def call(self, function: str, values: str) -> str:
        """A call of one of the functions, which the file then has."""
        self.functions[function] = FUNCTIONS[function]
        return f"{function}({values})"

    def _each(self, function: str, scores: str | Number, name: str, rows: list[Any]) -> str:
        """The function of each score and the row of its class, or the only one."""
        if function in FUNCTIONS:
            self.functions[function] = FUNCTIONS[function]
        table = self._constant(name, rows)
        if isinstance(scores, Number):
            return f"{function}({scores}, *{table}[0])"
        if len(rows) > 1:
            return f"[{function}(s, *row) for s, row in zip({scores}, {table})]"
        return f"[{function}(s, *{table}[0]) for s in {scores}]"

    def _constant(self, name: str, value: Any) -> str:
        self.constants[f"{name}_{self.step}"] = literal(value)
        return f"{name}_{self.step}"


@dataclass(kw_only=True)
class LineScores(Scores):
    """The variable `z` or `probs` of a row between two steps."""

    ops: LineOperations

    @property
    def uniform(self) -> str:
        return f"1 / {'len(logits)' if self.ops.options else self.k}"

    def tempered(self, c: Numbers) -> str:
        return str(super().tempered(c)) if c.weights[0] else str(self.probs)  # which then weigh nothing

    def next(self, values: str, are_probs: bool, top: str | None = None) -> Self:
        name = "probs" if are_probs else "z"
        if values != name:
            self.ops.lines.append(f"{name} = {values}")
        return super().next(name, are_probs, top)

    @property
    def odds(self) -> str:
        return self.ops.call("log_odds", self.logits)

    def rescore_top(self, on: ScoreKind, value: Callable[[Value], Value]) -> Self:
        top, z = self.predicted, "" if on == "probs" else self.of_kind(on)
        scores = self.next(self.probs, True, top)
        q = value(self.ops.gather(z or scores.values, top))
        return scores.next(self.ops.call("with_top", f"probs, {top}, {q}"), True, top)

    def rescore_all(self, on: ScoreKind, value: Callable[[Value], Value], keeps_order: bool) -> Self:
        top = self.predicted if keeps_order else None
        values = self.logits if on == "logits" else self.next(self.probs, True, top).values
        return self.next(self.ops.call("normal", value(values)), True, top)


def write_lines(m: Map) -> LineScores:
    """The lines of `calibrate`, step by step, and the scores that they end with."""
    ops = LineOperations(k=m.k, options=m.task == "choice")
    start, top = ("probs", "1") if m.one_score else ("z", None)
    scores = LineScores(ops=ops, values=start, k=m.k, are_probs=m.one_score, top=top, one_score=m.one_score)
    for ops.step, step in enumerate(m.steps, 1):
        ops.lines.append(f"# step {ops.step}: {type(step).__name__}")
        scores = step.run(scores, step)
    return scores


def literal(value: Any, indent: int = 0) -> str:
    """Format numbers and lists of numbers as Python, a list on one line where it fits."""
    text = repr(value)
    if not isinstance(value, list) or len(text) + indent <= WIDTH:
        return text
    gap = " " * (indent + 4)
    return "[\n" + "".join(f"{gap}{literal(item, indent + 4)},\n" for item in value) + " " * indent + "]"


def _knots(curves: Curves) -> list[Any]:
    return [[x.tolist(), y.tolist()] for x, y in zip(curves.x, curves.y, strict=True)]


FUNCTIONS = {
    "softmax": """
def softmax(z):
    most = max(z)
    e = [math.exp(v - most) for v in z]
    total = sum(e)
    return [v / total for v in e]""",
    "logs": f"""
def logs(probs):
    return [math.log(max(v, {PROBABILITY_FLOOR!r})) for v in probs]""",
    "log_odds": """
def log_odds(z):
    return [z[0] - z[1], z[1] - z[0]]""",
    "stair": '''
def stair(score, x, y):
    """y[j] where x[j - 1] < score <= x[j]."""
    return y[sum(score > knot for knot in x)]''',
    "line": '''
def line(score, x, y):
    """Straight lines from knot to knot, level outside."""
    j = sum(score >= knot for knot in x) - 1
    if j < 0:
        return y[0]
    if j == len(x) - 1 or x[j + 1] - x[j] < 1e-300:
        return y[j]
    return y[j] + (y[j + 1] - y[j]) / (x[j + 1] - x[j]) * (score - x[j])''',
    "sigmoid": """
def sigmoid(v):
    e = math.exp(-abs(v))
    return 1 / (1 + e) if v >= 0 else e / (1 + e)""",
    "normal": '''
def normal(values):
    """Divided by their sum."""
    total = sum(values)
    return [v / total if total > 0 else 1 / len(values) for v in values]''',
    "with_top": '''
def with_top(probs, top, confidence):
    """The prediction gets this confidence; the other classes share what is left as before."""
    q = min(max(confidence, 0.0), 1.0)
    rest = sum(v for c, v in enumerate(probs) if c != top)
    shared = [v * ((1 - q) / rest) if rest > 0 else (1 - q) / (len(probs) - 1) for v in probs]
    shared[top] = q
    return shared''',
}
