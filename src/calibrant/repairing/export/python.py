"""A calibration map as one Python file that needs nothing but Python."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.files import write_text
from calibrant.core.maps.export_check import (
    ExportedFile,
    check_exportable,
    compare_outputs,
    has_one_score,
    to_input,
    trial_logits,
    unknown_step,
)
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import SCORE_FLOOR, Curves, Linear, LogProbs, Mix, Sigmoid, Step
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.statistics.error_guarantee import lower_slightly
from calibrant.deciding.decision import Decision
from calibrant.deciding.policy import Policy
from calibrant.repairing.export.decision_check import compare_decisions

TRIAL_WORK = 2_000_000  # multiplications in plain Python that the self-test may cost
LEAST_ROWS = 12  # of the self-test, whatever they cost


def to_python(m: Map, path: str | Path) -> ExportedFile:
    """Write a file with `calibrate(logits) -> probabilities`, for one row; nothing if its numbers differ.

    Of a map of one score it is `calibrate(probability) -> probability`; of one for questions with options, it takes the
    logits of the options that there are.
    """
    check_exportable(m)
    text = source(m)
    room: dict[str, Any] = {"__name__": "calibrant_snippet"}
    exec(compile(text, str(path), "exec"), room)  # our own text: of the map it holds numbers, and its name in a comment
    logits = trial_logits(m)
    step = min(max(1, len(logits) * m.k**2 // TRIAL_WORK), len(logits) // LEAST_ROWS)
    differences = compare_outputs(m, *_try_rows(m, room["calibrate"], logits[::step]), "python")
    write_text(path, text)
    return ExportedFile(Path(path), "python", *differences)


def _try_rows(m: Map, calibrate: Any, logits: Floats) -> tuple[Predictions, Any]:
    """Trial rows, and the output of the file for each."""
    p = to_input(m, logits)
    if has_one_score(m):
        p = p.with_values(p.probs, "probs")
        return p, [[calibrate(s)] for s in p.probs[:, 1].tolist()]
    if m.task != "choice":
        return p, [calibrate(row) for row in logits.tolist()]
    outputs = np.zeros(logits.shape)
    for row, options in enumerate(np.isfinite(logits)):
        outputs[row, options] = calibrate(logits[row, options].tolist())
    return p, outputs


def decision_to_python(d: Decision, path: str | Path) -> ExportedFile:
    """Write a file with `decide`, for one row: what `calibrate` of its map gives, and the decision."""
    check_exportable(d.map)
    text = source(d.map, d.policy)
    room: dict[str, Any] = {"__name__": "calibrant_snippet"}
    exec(compile(text, str(path), "exec"), room)  # our own text, as above
    logits = trial_logits(d.map)[:: max(1, 240 * d.map.k**2 // TRIAL_WORK)]
    decisions: list[int] = []

    def calibrate(row: Any) -> Any:
        calibrated, decision = room["decide"](row)
        decisions.append(decision)
        return calibrated

    p, probs = _try_rows(d.map, calibrate, logits)
    differences = compare_outputs(d.map, p, probs, "python")
    compare_decisions(d, p, decisions, "python")
    write_text(path, text)
    return ExportedFile(Path(path), "python", *differences)


def source(m: Map, policy: Policy | None = None) -> str:
    """The text of the file, with `decide` where a policy is given."""
    writer = PythonLines(m)
    for number, step in enumerate(m.steps, 1):
        writer.step(step, number)
    probs = writer.probs()
    functions = "\n\n".join(FUNCTIONS[name] for name in FUNCTIONS if name in writer.used)
    constants = "".join(f"{name} = {value}\n" for name, value in writer.constants.items())
    frame = ONE_SCORE if has_one_score(m) else OPTIONS if m.task == "choice" else CLASSES
    with_class = policy is not None and policy.acts == "answer" and not has_one_score(m)
    decide = "" if policy is None else _decide_lines(m, policy)
    return frame.format(
        map=ascii(m.calibrator),
        version=version("calibrant"),
        k=m.k,
        of="the positive class" if m.task == "binary" else "being right",
        constants=f"\n{constants}" if constants else "",
        body="\n".join(f"    {line}" for line in writer.lines),
        probs=probs,
        functions=decide + (f"\n\n{functions}" if functions else ""),
        name="calibrate_and_predict" if with_class else "calibrate",
        kind="tuple[list[float], int]" if with_class else "list[float]",
        predicted=f", {writer.predicted()}" if with_class else "",
    )


def _decide_lines(m: Map, policy: Policy) -> str:
    """The function `decide` of a policy."""
    t, lower = (None if bound is None else repr(lower_slightly(bound)) for bound in (policy.threshold, policy.lower))
    take, kind = ("score: float", "float") if has_one_score(m) else ("logits: list[float]", "list[float]")
    lines = [f"def decide({take}) -> tuple[{kind}, int]:"]
    if policy.acts == "positive":
        over = f"-1 if s >= {lower} else 0" if lower else "0"
        lines += [
            '    """The calibrated probability, and 1 for positive, 0 for negative or -1 for handing over."""',
            "    s = calibrate(score)",
            f"    return s, {over if t is None else f'1 if s >= {t} else {over}'}",
        ]
    elif policy.acts == "answer" and has_one_score(m):
        sure, answer = ("s", "1") if m.task == "confidence" else ("max(s, 1 - s)", "int(s > 0.5)")
        lines += [
            '    """The calibrated probability, and the class (1 of a confidence) or -1 for handing over."""',
            "    s = calibrate(score)",
            "    return s, -1" if t is None else f"    return s, {answer} if {sure} >= {t} else -1",
        ]
    elif policy.acts == "answer":
        lines += [
            '    """The calibrated probabilities, and the class or -1 for handing over."""',
            "    probs, top = calibrate_and_predict(logits)",
            "    return probs, -1" if t is None else f"    return probs, top if probs[top] >= {t} else -1",
        ]
    else:
        costs = [] if policy.matrix is None else policy.matrix.T.tolist()
        line = "    s = calibrate(score)" if has_one_score(m) else "    probs = calibrate(logits)"
        lines += [
            '    """The calibrated probabilities, and the class of least expected cost or -1 for handing over."""',
            line,
            *(["    probs = [1 - s, s]"] if has_one_score(m) else []),
            f"    costs = [sum(c * v for c, v in zip(row, probs)) for row in {_literal(costs, 4)}]",
            "    least = costs.index(min(costs))",
            f"    return {'s' if has_one_score(m) else 'probs'}, least if least < {m.k} else -1",
        ]
    return "\n\n\n" + "\n".join(lines)


WIDTH = 110  # of a line of numbers


class PythonLines:
    """The lines of `calibrate`, step by step, with the functions and constants they need."""

    def __init__(self, m: Map) -> None:
        self.k, self.options = m.k, m.task == "choice"
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
                self.rescore(step.scope, step.form, rows, step.on)
            case Sigmoid(on="probs" | "logits" | "scores", scope="top" | "classes" | "shared"):
                table = step.coefficients if step.on == "probs" else step.coefficients[:, [0, 2]]
                rows = self.constant(f"COEFFICIENTS_{number}", table.tolist()[: None if step.scope == "classes" else 1])
                self.use("sigmoid")
                function = {"probs": "of_probability", "logits": "of_logit", "scores": "of_score"}[step.on]
                self.rescore(step.scope, function, rows, "logits" if step.on == "logits" else "probs")
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

    def rescore(self, scope: str, function: str, rows: str, on: str) -> None:
        self.use(function)
        scores = "probs" if on == "probs" else self.logits()
        if on == "log_odds":
            self.use("log_odds")
            scores = f"log_odds({scores})"
        if scope in ("top", "shared") and not self.has_top and self.top == "top":
            values = "probs" if self.are_probs else "z"
            self.lines.append(f"top = {values}.index(max({values}))")
            self.has_top = True
        if not self.are_probs and (on == "probs" or scope == "top"):
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

    def predicted(self) -> str:
        values = "probs" if self.are_probs else "z"
        return "top" if self.has_top else f"{values}.index(max({values}))"

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
    """Format numbers and lists of numbers as Python, a list on one line where it fits."""
    text = repr(value)
    if not isinstance(value, list) or len(text) + indent <= WIDTH:
        return text
    gap = " " * (indent + 4)
    return "[\n" + "".join(f"{gap}{_literal(item, indent + 4)},\n" for item in value) + " " * indent + "]"


CLASSES = '''"""Calibrated probabilities from the logits of a classifier of {k} classes. Needs nothing but Python.

{name}(logits) takes one row of logits and gives one row of probabilities.
"""

# Written by calibrant {version} from the map {map}, and compared with it before it was written.

import math
{constants}

def {name}(logits: list[float]) -> {kind}:
    """The calibrated probability of every class."""
    z = [float(v) for v in logits]
    if len(z) != {k} or not all(map(math.isfinite, z)):
        raise ValueError("expected {k} finite logits")
{body}
    return {probs}{predicted}{functions}
'''

ONE_SCORE = '''"""A calibrated probability of {of} from a probability of it. Needs nothing but Python."""

# Written by calibrant {version} from the map {map}, and compared with it before it was written.

import math
{constants}

def calibrate(score: float) -> float:
    """The calibrated probability of {of}."""
    s = float(score)
    if not 0 <= s <= 1:
        raise ValueError("expected a probability from 0 to 1")
    probs = [1 - s, s]
{body}
    return {probs}[1]{functions}
'''

OPTIONS = '''"""Calibrated probabilities of the options of a question from their logits. Needs nothing but Python.

{name}(logits) takes the logits of the options that a question has, two or more, and gives their probabilities.
"""

# Written by calibrant {version} from the map {map}, and compared with it before it was written.

import math
{constants}

def {name}(logits: list[float]) -> {kind}:
    """The calibrated probability of every option."""
    z = [float(v) for v in logits]
    if len(z) < 2 or not all(map(math.isfinite, z)):
        raise ValueError("expected two or more finite logits")
{body}
    return {probs}{predicted}{functions}
'''

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
    "of_probability": f"""
def of_probability(score, a, b, c, d):
    s = min(max(score, {SCORE_FLOOR!r}), 1 - {SCORE_FLOOR!r})
    return sigmoid(a * math.log(s) - b * math.log1p(-s) + c + d * math.log(s / (1 - s)) ** 2)""",
    "of_logit": """
def of_logit(logit, a, c):
    return sigmoid(a * logit + c)""",
    "of_score": """
def of_score(score, a, c):
    return sigmoid(a * score + c)""",
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
