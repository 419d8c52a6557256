"""What it costs to use these probabilities: expected by the model's own confidence, and in fact."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.core import wording
from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.reporting.report import Cost, CostRow

FORMS = "wrong=5,abstain=1 or threshold=0.9 or a CSV file with a k x k matrix (row: true class, column: class chosen)"


@dataclass(frozen=True)
class CostRule:
    """Accept a prediction at or above a confidence, else abstain; or take the class of least expected cost."""

    wrong: float = 1.0
    abstain: float | None = None
    threshold: float | None = None
    matrix: Array | None = None  # (k, k): row is the true class, column the class chosen

    @property
    def words(self) -> str:
        if self.matrix is not None:
            return f"cost matrix of {len(self.matrix)} x {len(self.matrix)}; the class of least expected cost is taken"
        bar = wording.percent(self.threshold, 1)
        if self.abstain is None:
            return f"predictions are accepted at a confidence of {bar} or more; a wrong one costs 1"
        costs = f"a wrong prediction costs {self.wrong:g}, abstaining costs {self.abstain:g}"
        return f"{costs}: predictions are accepted at {bar} confidence or more"


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
        "--cost", expected=FORMS, got=f"'{text}'", fix="give costs above 0, abstaining cheaper than being wrong"
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
            fix="one line per true class, one column per class chosen",
        )
    return CostRule(matrix=matrix)


def cost_row(p: Predictions, rule: CostRule, calibrator: str) -> CostRow:
    """Expected and actual cost per row of one set of predictions."""
    if rule.matrix is None:
        accepted = p.confidence >= (rule.threshold or 0.0)
        else_costs = rule.abstain or 0.0
        believed = np.where(accepted, (1 - p.confidence) * rule.wrong, else_costs)
        realised = np.where(accepted, ~p.correct * rule.wrong, else_costs)
        error = float((~p.correct[accepted]).mean()) if accepted.any() else float("nan")
        share = float(accepted.mean())
    else:
        believed, realised, error = _by_matrix(p, rule.matrix)
        share = 1.0
    mean, half = float(realised.mean()), 1.96 * float(realised.std()) / p.n**0.5
    return CostRow(calibrator, share, error, float(believed.mean()), mean, mean - half, mean + half)


def check_rule(rule: CostRule | None, k: int) -> CostRule | None:
    """The rule, if its matrix has as many classes as the predictions."""
    if rule is not None and rule.matrix is not None and rule.matrix.shape != (k, k):
        size = " x ".join(map(str, rule.matrix.shape))
        raise InputError("--cost", expected=f"a matrix of {k} x {k}", got=size, fix="one line per class")
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
    words = f"By its own confidence it would cost {first.expected_cost:.3f} per row; it costs {first.actual_cost:.3f}"
    if first.expected_cost < first.low:
        words += ", more than expected."
    elif first.expected_cost > first.high:
        words += ", less than expected."
    else:
        words += ", which agrees within noise."
    if rule.matrix is None:
        words += f" It accepts {wording.percent(first.accepted)} of the predictions"
        wrong = "" if first.error != first.error else f", and {wording.percent(first.error)} of these are wrong"
        words += f"{wrong}."
    if best != "identity":
        words += f" With {last.calibrator}, {last.expected_cost:.3f} is expected and {last.actual_cost:.3f} is paid"
        words += "." if rule.matrix is not None else f", accepting {wording.percent(last.accepted)}."
    return words
