"""The steps of a map as lines of plain Python, and the functions and constants that they need."""

from typing import Any

import numpy as np

from calibrant.core.exported import has_one_score, unknown_step
from calibrant.core.map import Map
from calibrant.core.steps import Curves, Linear, LogProbs, Mix, Sigmoid, Step

WIDTH = 110  # of a line of numbers


class PythonLines:
    """The lines of `calibrate`, step by step; which functions and constants they need."""

    def __init__(self, m: Map) -> None:
        self.k, self.options = m.k, m.shape == "choices"
        self.top = "1" if has_one_score(m) else "top"
        self.lines: list[str] = []
        self.constants: dict[str, str] = {}
        self.used: set[str] = set()
        self.are_probs = has_one_score(m)
        self.has_top = False  # whether a step has settled the prediction

    def step(self, step: Step, number: int) -> None:
        self.lines.append(f"# step {number}: {type(step).__name__}")
        match step:
            case Linear():
                self.linear(step, number)
            case LogProbs():
                self.use("logs")
                self.logit_line(f"logs({self.probs()})")
            case Mix():
                self.mix(step)
            case Curves(form="line" | "stair", scope="top" | "classes" | "shared"):
                knots = list(zip(step.x, step.y, strict=True))
                knots = knots if step.scope == "classes" else knots[:1]
                rows = self.constant(f"KNOTS_{number}", [[x.tolist(), y.tolist()] for x, y in knots])
                self.rescore(step.scope, step.form, rows, on_probs=True)
            case Sigmoid(on="probs" | "logits" | "scores", scope="top" | "classes" | "shared"):
                table = step.coefficients if step.on == "probs" else step.coefficients[:, [0, 2]]
                rows = self.constant(f"COEFFICIENTS_{number}", table.tolist()[: None if step.scope == "classes" else 1])
                self.use("sigmoid")
                function = {"probs": "of_probability", "logits": "of_logit", "scores": "of_score"}[step.on]
                self.rescore(step.scope, function, rows, on_probs=step.on != "logits")
            case _:
                raise unknown_step(step)

    def linear(self, step: Linear, number: int) -> None:
        z = self.logits()
        self.has_top = self.has_top and step.keeps_order
        if self.options:  # however many there are: one number for all
            self.logit_line(f"[{float(step.weight)!r} * v for v in {z}]")
            return
        bias = self.constant(f"BIAS_{number}", np.broadcast_to(step.bias, self.k).tolist())
        weight = self.constant(f"WEIGHT_{number}", step.weight.tolist())
        if step.weight.ndim == 2:
            self.logit_line(f"[sum(w * v for w, v in zip(row, {z})) + b for row, b in zip({weight}, {bias})]")
        elif step.weight.ndim == 1 and len(step.weight) > 1:
            self.logit_line(f"[w * v + b for w, v, b in zip({weight}, {z}, {bias})]")
        else:
            scalar = weight if step.weight.ndim == 0 else f"{weight}[0]"
            self.logit_line(f"[{scalar} * v + b for v, b in zip({z}, {bias})]")

    def mix(self, step: Mix) -> None:
        hot, plain, flat = (repr(float(w)) for w in step.weights)
        T = repr(float(step.T) if step.weights[0] else 1.0)
        self.use("softmax")
        tempered = f"softmax([v / {T} for v in {self.logits()}])"
        k = "len(logits)" if self.options else self.k
        self.prob_line(f"[{hot} * h + {plain} * v + {flat} / {k} for h, v in zip({tempered}, {self.probs()})]")

    def rescore(self, scope: str, function: str, rows: str, *, on_probs: bool) -> None:
        self.use(function)
        scores = "probs" if on_probs else self.logits()
        if scope in ("top", "shared") and not self.has_top and self.top == "top":
            values = "probs" if self.are_probs else "z"
            self.lines.append(f"top = {values}.index(max({values}))")
            self.has_top = True
        if not self.are_probs and (on_probs or scope == "top"):
            self.prob_line(self.probs())
        if scope == "top":
            self.use("with_top")
            self.prob_line(f"with_top(probs, {self.top}, {function}({scores}[{self.top}], *{rows}[0]))")
            return
        self.use("normal")
        if scope == "classes":
            self.prob_line(f"normal([{function}(s, *row) for s, row in zip({scores}, {rows})])")
            self.has_top = False
        else:
            self.prob_line(f"normal([{function}(s, *{rows}[0]) for s in {scores}])")

    def logits(self) -> str:
        if not self.are_probs:
            return "z"
        self.use("logs")
        return "logs(probs)"

    def probs(self) -> str:
        if self.are_probs:
            return "probs"
        self.use("softmax")
        return "softmax(z)"

    def logit_line(self, expression: str) -> None:
        self.lines.append(f"z = {expression}")
        self.are_probs = False

    def prob_line(self, expression: str) -> None:
        self.lines.append(f"probs = {expression}")
        self.are_probs = True

    def use(self, *names: str) -> None:
        self.used.update(names)

    def constant(self, name: str, value: Any) -> str:
        self.constants[name] = _literal(value)
        return name


def _literal(value: Any, indent: int = 0) -> str:
    """Numbers and lists of numbers, a list on one line where it fits."""
    text = repr(value)
    if not isinstance(value, list) or len(text) + indent <= WIDTH:
        return text
    gap = " " * (indent + 4)
    return "[\n" + "".join(f"{gap}{_literal(one, indent + 4)},\n" for one in value) + " " * indent + "]"
