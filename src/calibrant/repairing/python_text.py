"""What stands in every exported Python file: its frame, and the functions that steps call."""

from calibrant.core.steps import SCORE_FLOOR
from calibrant.core.views import PROBABILITY_FLOOR

CLASSES = '''"""Calibrated probabilities from the logits of a classifier of {k} classes. Needs nothing but Python.

calibrate(logits) takes one row of logits and gives one row of probabilities.
"""

# Written by calibrant {version} from the map {map}, and compared with it before it was written.

import math
{constants}

def calibrate(logits: list[float]) -> list[float]:
    """The calibrated probability of every class."""
    z = [float(v) for v in logits]
    if len(z) != {k} or not all(map(math.isfinite, z)):
        raise ValueError("expected {k} finite logits")
{body}
    return {probs}{functions}
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

calibrate(logits) takes the logits of the options that a question has, two or more, and gives their probabilities.
"""

# Written by calibrant {version} from the map {map}, and compared with it before it was written.

import math
{constants}

def calibrate(logits: list[float]) -> list[float]:
    """The calibrated probability of every option."""
    z = [float(v) for v in logits]
    if len(z) < 2 or not all(map(math.isfinite, z)):
        raise ValueError("expected two or more finite logits")
{body}
    return {probs}{functions}
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
