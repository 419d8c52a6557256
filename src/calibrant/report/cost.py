"""What it costs to decide by these probabilities: as the model believes, and as it turns out."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.report import shown
from calibrant.report.values import Cost, CostRow

FORMS = "wrong=5,abstain=1 or threshold=0.9 or a CSV file with a k x k matrix (row: truth, column: decision)"


@dataclass(frozen=True)
class CostRule:
    """Answer at or above a confidence, else abstain; or take the class of least expected cost."""

    wrong: float = 1.0
    abstain: float | None = None
    threshold: float | None = None
    matrix: Array | None = None  # (k, k): row is the truth, column the decision

    @property
    def words(self) -> str:
        if self.matrix is not None:
            return f"cost matrix of {len(self.matrix)} x {len(self.matrix)}; the class of least expected cost is taken"
        bar = shown.percent(self.threshold, 1)
        if self.abstain is None:
            return f"answer at a confidence of {bar} or more; a wrong answer costs 1"
        costs = f"a wrong answer costs {self.wrong:g}, to abstain costs {self.abstain:g}"
        return f"{costs}: answer at {bar} confidence or more"


def read_rule(text: str) -> CostRule:
    """A rule from the command line: `wrong=5,abstain=1`, `threshold=0.9`, or the name of a CSV file.

    >>> read_rule("wrong=5,abstain=1").threshold
    0.8
    """
    if Path(text).suffix == ".csv":
        return _from_file(Path(text))
    parts = [part.partition("=") for part in text.split(",")]
    try:
        given = {name.strip(): float(number) for name, _, number in parts}
    except ValueError:
        raise _refused(text) from None
    if set(given) == {"threshold"} and 0 < given["threshold"] <= 1:
        return CostRule(threshold=given["threshold"])
    if set(given) == {"wrong", "abstain"} and 0 < given["abstain"] < given["wrong"] < np.inf:
        return CostRule(given["wrong"], given["abstain"], 1 - given["abstain"] / given["wrong"])
    raise _refused(text)


def _refused(text: str) -> InputError:
    return InputError(
        "--cost", expected=FORMS, got=f"'{text}'", fix="give costs above 0, to abstain cheaper than to be wrong"
    )


def _from_file(file: Path) -> CostRule:
    if not file.is_file():
        raise InputError("--cost", expected="a CSV file", got=f"no file {file}", fix="check the path")
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            rows = [[float(cell) for cell in line] for line in csv.reader(stream) if line]
        matrix = np.array(rows, dtype=np.float64)
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(
            f"--cost {file.name}", expected="numbers only, as many in every line", got=str(error), fix="check the file"
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise InputError(
            f"--cost {file.name}",
            expected="k lines of k finite numbers",
            got=f"shape {matrix.shape}",
            fix="one line a true class, one column a decision",
        )
    return CostRule(matrix=matrix)


def cost_row(p: Predictions, rule: CostRule, calibrator: str) -> CostRow:
    """Believed and realised cost per row of one set of predictions."""
    if rule.matrix is None:
        answered = p.confidence >= (rule.threshold or 0.0)
        else_costs = rule.abstain or 0.0
        believed = np.where(answered, (1 - p.confidence) * rule.wrong, else_costs)
        realised = np.where(answered, ~p.correct * rule.wrong, else_costs)
        error = float((~p.correct[answered]).mean()) if answered.any() else float("nan")
        share = float(answered.mean())
    else:
        believed, realised, error = _by_matrix(p, rule.matrix)
        share = 1.0
    mean, half = float(realised.mean()), 1.96 * float(realised.std()) / p.n**0.5
    return CostRow(calibrator, share, error, float(believed.mean()), mean, mean - half, mean + half)


def check_rule(rule: CostRule | None, k: int) -> CostRule | None:
    """The rule, if its matrix has as many classes as the predictions."""
    if rule is not None and rule.matrix is not None and rule.matrix.shape != (k, k):
        size = " x ".join(map(str, rule.matrix.shape))
        raise InputError("--cost", expected=f"a matrix of {k} x {k}", got=size, fix="one line a class")
    return rule


def _by_matrix(p: Predictions, matrix: Array) -> tuple[Array, Array, float]:
    believed, decided = np.empty(p.n), np.empty(p.n, dtype=np.int64)
    for rows, probs in p.prob_rows():
        expected = probs @ matrix  # (rows, k)
        decided[rows] = expected.argmin(axis=1)
        believed[rows] = expected.min(axis=1)
    return believed, matrix[p.labels, decided], float((decided != p.labels).mean())


def cost_of(rule: CostRule, rows: list[CostRow], best: str) -> Cost:
    return Cost(rule.words, _words(rule, rows, best), rule.threshold, tuple(rows))


def _words(rule: CostRule, rows: list[CostRow], best: str) -> str:
    first, last = rows[0], next(row for row in rows if row.calibrator == best)
    words = f"It believes to cost {first.believed:.3f} per row; it costs {first.realised:.3f}"
    if first.believed < first.low:
        words += ", more than it believes."
    elif first.believed > first.high:
        words += ", less than it believes."
    else:
        words += ", which agrees within noise."
    if rule.matrix is None:
        words += f" It answers {shown.percent(first.answered)} of the rows"
        wrong = "" if first.error != first.error else f" and {shown.percent(first.error)} of these answers are wrong"
        words += f"{wrong}."
    if best != "identity":
        words += f" With {last.calibrator} it believes {last.believed:.3f} and costs {last.realised:.3f}"
        words += "." if rule.matrix is not None else f", answering {shown.percent(last.answered)}."
    return words
