"""What it costs to use these probabilities: expected by the model's own confidence, and in fact."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from calibrant.core import wording
from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.core.weighted import is_whole
from calibrant.reporting.report import Cost, CostRow

FORMS = (
    "wrong=5,abstain=1 or threshold=0.9 or fn=10,fp=1 (of binary scores) or a CSV file with a k x k matrix (row: true "
    "class, column: class chosen)"
)


@dataclass(frozen=True)
class CostRule:
    """Accept a prediction at or above a confidence, else abstain; or take the class of least expected cost.

    With costs of misses (`fn`) and of false alarms (`fp`), rows at or above the threshold are called positive.
    """

    wrong: float = 1.0
    abstain: float | None = None
    threshold: float | None = None
    matrix: Array | None = None  # (k, k): row is the true class, column the class chosen
    fn: float | None = None
    fp: float | None = None

    @property
    def words(self) -> str:
        if self.matrix is not None:
            return f"cost matrix of {len(self.matrix)} x {len(self.matrix)}; the class of least expected cost is taken"
        bar = wording.percent(self.threshold, 1)
        if self.fn is not None and self.fp is not None:
            costs = f"a missed positive costs {self.fn:g}, a false alarm {self.fp:g}"
            return f"{costs}: rows are called positive at P(positive) of {bar} or more"
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
    if set(given) == {"fn", "fp"} and min(given.values()) > 0 and max(given.values()) < np.inf:
        return _of_errors(given["fn"], given["fp"])
    raise _refused(text)


def _of_errors(fn: float, fp: float) -> CostRule:
    """Calling a row positive pays where P(positive) times fn is at least P(negative) times fp."""
    return CostRule(fn=fn, fp=fp, threshold=fp / (fn + fp))


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
    missed = None
    if rule.fn is not None and rule.fp is not None:
        called, s, y = p.score >= (rule.threshold or 0.0), p.score, p.hit
        believed = np.where(called, (1 - s) * rule.fp, s * rule.fn)
        realised = np.where(called, ~y * rule.fp, y * rule.fn)
        share, error = p.mean(called), _part(p, called & ~y, called)
        missed = _part(p, y & ~called, y)
    elif rule.matrix is None:
        accepted = p.confidence >= (rule.threshold or 0.0)
        else_costs = rule.abstain or 0.0
        believed = np.where(accepted, (1 - p.confidence) * rule.wrong, else_costs)
        realised = np.where(accepted, ~p.correct * rule.wrong, else_costs)
        share, error = p.mean(accepted), _part(p, accepted & ~p.correct, accepted)
    else:
        believed, realised, error = _by_matrix(p, rule.matrix)
        share = 1.0
    mean = p.mean(realised)
    half = 1.96 * _standard_error(p, realised - mean)
    return CostRow(calibrator, share, error, p.mean(believed), mean, mean - half, mean + half, missed)


def _part(p: Predictions, some: npt.NDArray[np.bool_], of: npt.NDArray[np.bool_]) -> float:
    whole = p.mean(of)
    return p.mean(some) / whole if whole else float("nan")


def _standard_error(p: Predictions, apart: Array) -> float:
    """Of a weighted mean; of whole clusters, where rows came together."""
    w = np.ones(p.n) if p.weights is None else p.weights
    if p.clusters is not None:
        return float(np.sqrt((np.bincount(p.clusters, w * apart) ** 2).sum()) / w.sum())
    counts = p.weights is None or is_whole(w)
    return float(np.sqrt((w if counts else w * w) @ apart**2) / w.sum())


def check_rule(rule: CostRule | None, p: Predictions) -> CostRule | None:
    """The rule, if these predictions can follow it; a threshold of binary scores calls rows positive."""
    if rule is None:
        return None
    if rule.matrix is not None:
        if p.shape in ("confidence", "choices"):
            fix = "use wrong=5,abstain=1"
            raise InputError("--cost", expected="a probability for every class", got=shape_words(p.shape), fix=fix)
        if rule.matrix.shape != (p.k, p.k):
            size = " x ".join(map(str, rule.matrix.shape))
            raise InputError("--cost", expected=f"a matrix of {p.k} x {p.k}", got=size, fix="one line per class")
    if rule.fn is not None and p.shape != "binary":
        fix = "use wrong=5,abstain=1, or a matrix"
        raise InputError("--cost", expected=shape_words("binary"), got=shape_words(p.shape), fix=fix)
    if p.shape == "binary" and rule.abstain is None and rule.fn is None and rule.matrix is None:
        return replace(rule, fn=1.0, fp=1.0)
    return rule


def _by_matrix(p: Predictions, matrix: Array) -> tuple[Array, Array, float]:
    believed, decided = np.empty(p.n), np.empty(p.n, dtype=np.int64)
    for rows, probs in p.prob_rows():
        expected = probs @ matrix  # (rows, k)
        decided[rows] = expected.argmin(axis=1)
        believed[rows] = expected.min(axis=1)
    return believed, matrix[p.labels, decided], float((decided != p.labels).mean())


def cost_of(rule: CostRule, rows: list[CostRow], best: str) -> Cost:
    accepts = "accepted" if rule.fn is None else "called positive"
    return Cost(rule.words, _words(rule, rows, best), accepts, rule.fn, rule.fp, rule.threshold, tuple(rows))


def _words(rule: CostRule, rows: list[CostRow], best: str) -> str:
    first, last = rows[0], next(row for row in rows if row.calibrator == best)
    believed = "confidence" if rule.fn is None else "scores"
    words = f"By its own {believed} it would cost {first.expected_cost:.3f} per row; it costs {first.actual_cost:.3f}"
    if first.expected_cost < first.low:
        words += ", more than expected."
    elif first.expected_cost > first.high:
        words += ", less than expected."
    else:
        words += ", which agrees within noise."
    if rule.fn is not None:
        words += f" It calls {wording.percent(first.accepted)} of the rows positive"
        found = first.missed is not None and first.missed == first.missed
        words += f" and misses {wording.percent(first.missed)} of the positive ones." if found else "."
    elif rule.matrix is None:
        words += f" It accepts {wording.percent(first.accepted)} of the predictions"
        wrong = "" if first.error != first.error else f", and {wording.percent(first.error)} of these are wrong"
        words += f"{wrong}."
    if best != "identity":
        words += f" With {last.calibrator}, {last.expected_cost:.3f} is expected and {last.actual_cost:.3f} is paid"
        doing = "accepting" if rule.fn is None else "calling positive"
        words += "." if rule.matrix is not None else f", {doing} {wording.percent(last.accepted)}."
    return words
