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
    to_input,
    trial_logits,
)
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.error_guarantee import lower_slightly
from calibrant.deciding.decision import Decision
from calibrant.deciding.policy import HAND_OVER, Policy
from calibrant.repairing.export.decision_check import compare_decisions
from calibrant.repairing.export.python_lines import literal, write_lines

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
    if m.one_score:
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
    if p.row_data.option_mask is not None:  # the file counts the options that it is given
        places = [np.append(np.flatnonzero(options), HAND_OVER) for options in p.row_data.option_mask]
        decisions = [int(options[chosen]) for options, chosen in zip(places, decisions, strict=True)]
    compare_decisions(d, p, decisions, "python")
    write_text(path, text)
    return ExportedFile(Path(path), "python", *differences)


def source(m: Map, policy: Policy | None = None) -> str:
    """The text of the file, with `decide` where a policy is given."""
    scores = write_lines(m)
    ops, probs = scores.ops, scores.probs
    frame = ONE_SCORE if m.one_score else OPTIONS if m.task == "choice" else CLASSES
    with_class = policy is not None and policy.acts == "answer" and not m.one_score
    predicted = f", {scores.predicted}" if with_class else ""
    functions = "\n\n".join(text for _, text in sorted(ops.functions.items()))
    constants = "".join(f"{name} = {value}\n" for name, value in ops.constants.items())
    decide = "" if policy is None else _decide_lines(m, policy)
    return frame.format(
        map=ascii(m.calibrator),
        version=version("calibrant"),
        k=m.k,
        of="the positive class" if m.task == "binary" else "being right",
        constants=f"\n{constants}" if constants else "",
        body="\n".join(f"    {line}" for line in ops.lines),
        probs=probs,
        functions=decide + (f"\n\n{functions}" if functions else ""),
        name="calibrate_and_predict" if with_class else "calibrate",
        kind="tuple[list[float], int]" if with_class else "list[float]",
        predicted=predicted,
    )


def _decide_lines(m: Map, policy: Policy) -> str:
    """The function `decide` of a policy."""
    t, lower = (None if bound is None else repr(lower_slightly(bound)) for bound in (policy.threshold, policy.lower))
    take, kind = ("score: float", "float") if m.one_score else ("logits: list[float]", "list[float]")
    lines = [f"def decide({take}) -> tuple[{kind}, int]:"]
    if policy.acts == "positive":
        over = f"-1 if s >= {lower} else 0" if lower else "0"
        lines += [
            '    """The calibrated probability, and 1 for positive, 0 for negative or -1 for handing over."""',
            "    s = calibrate(score)",
            f"    return s, {over if t is None else f'1 if s >= {t} else {over}'}",
        ]
    elif policy.acts == "answer" and m.one_score:
        sure, answer = ("s", "1") if m.task == "confidence" else ("max(s, 1 - s)", "int(s > 0.5)")
        lines += [
            '    """The calibrated probability, and the class (1 of a confidence) or -1 for handing over."""',
            "    s = calibrate(score)",
            "    return s, -1" if t is None else f"    return s, {answer} if {sure} >= {t} else -1",
        ]
    elif policy.acts == "answer":
        answer = "the place of the option among these" if m.task == "choice" else "the class"
        lines += [
            f'    """The calibrated probabilities, and {answer} or -1 for handing over."""',
            "    probs, top = calibrate_and_predict(logits)",
            "    return probs, -1" if t is None else f"    return probs, top if probs[top] >= {t} else -1",
        ]
    else:
        costs = [] if policy.matrix is None else policy.matrix.T.tolist()
        line = "    s = calibrate(score)" if m.one_score else "    probs = calibrate(logits)"
        lines += [
            '    """The calibrated probabilities, and the class of least expected cost or -1 for handing over."""',
            line,
            *(["    probs = [1 - s, s]"] if m.one_score else []),
            f"    costs = [sum(c * v for c, v in zip(row, probs)) for row in {literal(costs, 4)}]",
            "    least = costs.index(min(costs))",
            f"    return {'s' if m.one_score else 'probs'}, least if least < {m.k} else -1",
        ]
    return "\n\n\n" + "\n".join(lines)


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
