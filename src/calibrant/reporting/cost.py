"""Cost of the decisions that use these probabilities: expected by the model's own confidence, and actual."""

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array
from calibrant.core.curves.weighted import is_whole
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.tasks import task_words
from calibrant.core.text import number_format as fmt
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
    implied: bool = False  # fn and fp follow from the threshold

    @property
    def words(self) -> str:
        if self.matrix is not None:
            return f"cost matrix of {len(self.matrix)} x {len(self.matrix)}; the class of least expected cost is taken"
        bar = f"{100 * (self.threshold or 0.0):.3g} %"  # 1/51 is 1.96 %, not 2.0 %
        if self.implied and self.fn is not None:
            called = f"rows are called positive at P(positive) of {bar} or more"
            return f"{called}, which is right where a missed positive costs {self.fn:.3g} and a false alarm 1"
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
        numbers = {name.strip(): float(number) for name, _, number in parts}
    except ValueError:
        raise _refused(text) from None
    if set(numbers) == {"threshold"} and 0 < numbers["threshold"] <= 1:
        return CostRule(threshold=numbers["threshold"])
    if set(numbers) == {"wrong", "abstain"} and 0 < numbers["abstain"] < numbers["wrong"] < np.inf:
        return CostRule(numbers["wrong"], numbers["abstain"], 1 - numbers["abstain"] / numbers["wrong"])
    if set(numbers) == {"fn", "fp"} and min(numbers.values()) > 0 and max(numbers.values()) < np.inf:
        return _of_errors(numbers["fn"], numbers["fp"])
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


@dataclass
class CostTable:
    """Costs of the same rows, uncalibrated first and then with every calibrator."""

    rule: CostRule
    rows: list[CostRow] = field(default_factory=list)
    total: float = 0.0  # rows, or what they stand for
    uncalibrated: Array | None = None  # (n,) actual cost of each row

    def add(self, calibrator: str, p: Predictions) -> None:
        """Expected and actual cost per row, and how the actual one differs from that of no calibration."""
        d = _decide(p, self.rule)
        if self.uncalibrated is None:
            self.uncalibrated, self.total = d.actual, p.curve.total if is_whole(p.curve.weights) else float(p.n)
        mean, half = _mean_and_half_width(p, d.actual)
        change, change_half = _mean_and_half_width(p, d.actual - self.uncalibrated)
        self.rows.append(
            CostRow(
                calibrator=calibrator,
                accepted=d.accepted,
                error=d.error,
                expected_cost=p.mean(d.expected),
                actual_cost=mean,
                low=mean - half,
                high=mean + half,
                change=change,
                change_low=change - change_half,
                change_high=change + change_half,
                missed=d.missed,
            )
        )

    def summary(self, best: str) -> Cost:
        """All of it, with the cost of the recommended calibrator in one line."""
        return Cost(
            rule=self.rule.words,
            headline=self._headline(best),
            words=_words(self.rule, self.rows, best),
            accepts="accepted" if self.rule.fn is None else "called positive",
            fn=self.rule.fn,
            fp=self.rule.fp,
            threshold=self.rule.threshold,
            rows=tuple(self.rows),
        )

    def _headline(self, best: str) -> str:
        first, row = self.rows[0], next(row for row in self.rows if row.calibrator == best)
        before, after = (_amount(self.total * one.actual_cost) for one in (first, row))
        if row is first:
            return f"Decisions on these {self.total:,.0f} rows cost {before}."
        words = f"Decisions on these {self.total:,.0f} rows cost {after} with {best}, {before} uncalibrated"
        saved, low, high = (-self.total * end for end in (row.change, row.change_high, row.change_low))
        if low <= 0 <= high:
            return f"{words}; the difference is not significant."
        share = "" if not first.actual_cost else f"{100 * abs(row.change) / first.actual_cost:.0f} %; "
        ends = " to ".join(_amount(end) for end in sorted((abs(low), abs(high))))
        return f"{words}: {_amount(abs(saved))} {'saved' if saved > 0 else 'more'} ({share}95 % interval {ends})."


@dataclass(frozen=True, kw_only=True)
class _Decisions:
    """What a rule makes of every row."""

    expected: Array  # (n,) cost by the model's own scores
    actual: Array  # (n,) cost by the labels
    accepted: float
    error: float
    missed: float | None = None


def _decide(p: Predictions, rule: CostRule) -> _Decisions:
    if rule.fn is not None and rule.fp is not None:
        called, s, y = p.score >= (rule.threshold or 0.0), p.score, p.outcome
        return _Decisions(
            expected=np.where(called, (1 - s) * rule.fp, s * rule.fn),
            actual=np.where(called, ~y * rule.fp, y * rule.fn),
            accepted=p.mean(called),
            error=_part(p, called & ~y, called),
            missed=_part(p, y & ~called, y),
        )
    if rule.matrix is not None:
        expected, actual, error = _by_matrix(p, rule.matrix)
        return _Decisions(expected=expected, actual=actual, accepted=1.0, error=error)
    accepted, otherwise = p.confidence >= (rule.threshold or 0.0), rule.abstain or 0.0
    return _Decisions(
        expected=np.where(accepted, (1 - p.confidence) * rule.wrong, otherwise),
        actual=np.where(accepted, ~p.correct * rule.wrong, otherwise),
        accepted=p.mean(accepted),
        error=_part(p, accepted & ~p.correct, accepted),
    )


def _mean_and_half_width(p: Predictions, costs: Array) -> tuple[float, float]:
    mean = p.mean(costs)
    return mean, 1.96 * _standard_error(p, costs - mean)


def _amount(cost: float) -> str:
    """Three figures, or all digits before the point.

    >>> _amount(12345.6), _amount(1.23456), _amount(0.0)
    ('12,346', '1.23', '0')
    """
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"


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
        if p.task in ("confidence", "choice"):
            fix = "use wrong=5,abstain=1"
            raise InputError("--cost", expected="a probability for every class", got=task_words(p.task), fix=fix)
        if rule.matrix.shape != (p.k, p.k):
            size = " x ".join(map(str, rule.matrix.shape))
            raise InputError("--cost", expected=f"a matrix of {p.k} x {p.k}", got=size, fix="one line per class")
    if rule.fn is not None and p.task != "binary":
        fix = "use wrong=5,abstain=1, or a matrix"
        raise InputError("--cost", expected=task_words("binary"), got=task_words(p.task), fix=fix)
    if p.task == "binary" and rule.abstain is None and rule.fn is None and rule.matrix is None:
        threshold = rule.threshold or 1.0
        return replace(rule, fn=1 / threshold - 1, fp=1.0, implied=True)
    return rule


def _by_matrix(p: Predictions, matrix: Array) -> tuple[Array, Array, float]:
    believed, decided = np.empty(p.n), np.empty(p.n, dtype=np.int64)
    for rows, probs in p.prob_rows():
        expected = probs @ matrix  # (rows, k)
        decided[rows] = expected.argmin(axis=1)
        believed[rows] = expected.min(axis=1)
    return believed, matrix[p.labels, decided], float((decided != p.labels).mean())


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
        words += f" It calls {fmt.percent(first.accepted)} of the rows positive"
        known = first.missed is not None and first.missed == first.missed
        words += f" and misses {fmt.percent(first.missed)} of the positive ones." if known else "."
    elif rule.matrix is None:
        words += f" It accepts {fmt.percent(first.accepted)} of the predictions"
        wrong = "" if first.error != first.error else f", and {fmt.percent(first.error)} of these are wrong"
        words += f"{wrong}."
    if best != "identity":
        words += f" With {last.calibrator}, {last.expected_cost:.3f} is expected and {last.actual_cost:.3f} is paid"
        doing = "accepting" if rule.fn is None else "calling positive"
        words += "." if rule.matrix is not None else f", {doing} {fmt.percent(last.accepted)}."
    return words
