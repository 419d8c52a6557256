"""Costs of decisions: read from text, turned into a policy, and counted on rows."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.text.vocabulary import describe_task
from calibrant.deciding.policy import HAND_OVER, Policy

FORMS = (
    "wrong=5,abstain=1 or threshold=0.9 or fn=10,fp=1 (of binary scores; with abstain=0.5 rows may be handed over) or "
    "a CSV file with a k x k matrix (row: true class, column: class chosen; one more column: handing over)"
)
FIX = "give costs of 0 or more, not all of them 0, and abstaining cheaper than being wrong"


@dataclass(frozen=True, kw_only=True)
class CostRule:
    """Costs of decisions: accept a prediction at or above a confidence, or take the class of least expected cost.

    With costs of misses (`fn`) and of false alarms (`fp`), rows at or above the threshold are called positive; where
    abstaining costs less than either choice is expected to, rows are handed over.
    """

    wrong: float = 1.0
    abstain: float | None = None
    threshold: float | None = None
    matrix: Array | None = None  # (k, k or k + 1): row is the true class, column the class chosen
    fn: float | None = None
    fp: float | None = None
    implied: bool = False  # fn and fp follow from the threshold
    lower: float | None = None  # rows from here to the threshold are handed over

    @property
    def policy(self) -> Policy:
        """The policy that applies this rule to calibrated scores."""
        if self.matrix is not None:
            return Policy(acts="least_cost", matrix=self.matrix)
        return Policy(acts="answer" if self.fn is None else "positive", threshold=self.threshold, lower=self.lower)

    @property
    def words(self) -> str:
        if self.matrix is not None:
            over = " or the row is handed over" if self.matrix.shape[1] > len(self.matrix) else ""
            size = " x ".join(map(str, self.matrix.shape))
            return f"cost matrix of {size}; the class of least expected cost is taken{over}"
        bar = as_percent(self.threshold or 0.0)
        if self.implied and self.fn is not None:
            called = f"rows are called positive at P(positive) of {bar} or more"
            return f"{called}, which is right where a missed positive costs {self.fn:.3g} and a false alarm 1"
        if self.fn is not None and self.fp is not None:
            costs = f"a missed positive costs {self.fn:g}, a false alarm {self.fp:g}"
            called = f"rows are called positive at P(positive) of {bar} or more"
            if self.abstain is None:
                return f"{costs}: {called}"
            over = (
                "handing over never pays"
                if self.lower is None
                else f"handed over from {as_percent(self.lower)} to there"
            )
            return f"{costs}, handing over {self.abstain:g}: {called}, {over}"
        if self.abstain is None:
            return f"predictions are accepted at a confidence of {bar} or more; a wrong one costs 1"
        costs = f"a wrong prediction costs {self.wrong:g}, abstaining costs {self.abstain:g}"
        return f"{costs}: predictions are accepted at {bar} confidence or more"

    def expected(self, p: Predictions, chosen: Ints) -> Array:
        """Cost of each row by its own scores, (n,)."""
        if self.matrix is not None:
            costs = np.empty(p.n)
            for rows, probs in p.prob_rows():  # the column -1 is that of handing over, where there is one
                costs[rows] = np.take_along_axis(probs @ self.matrix, chosen[rows, None] % self.matrix.shape[1], 1)[
                    :, 0
                ]
            return costs
        over = self.abstain or 0.0
        if self.fn is not None and self.fp is not None:
            acted = np.where(chosen == 1, (1 - p.score) * self.fp, p.score * self.fn)
            return np.where(chosen == HAND_OVER, over, acted)
        return np.where(chosen == HAND_OVER, over, (1 - p.confidence) * self.wrong)

    def actual(self, p: Predictions, chosen: Ints) -> Array:
        """Cost of each row by its label, (n,)."""
        if self.matrix is not None:
            return np.asarray(self.matrix[p.labels, chosen])
        wrong, right = self.possible(chosen)
        return np.asarray(np.where(p.correct if self.fn is None else p.outcome, right, wrong))

    def possible(self, chosen: Ints) -> Array:
        """Possible costs of choices by the true class (k, m), or of negative and positive, or wrong and right rows."""
        if self.matrix is not None:
            return np.asarray(self.matrix[:, chosen])
        over, zero = chosen == HAND_OVER, np.zeros(len(chosen))
        if self.fn is not None and self.fp is not None:
            costs = np.where(chosen == 1, self.fp, zero), np.where(chosen == 1, zero, self.fn)
        else:
            costs = np.full(len(chosen), self.wrong), zero
        return np.where(over, self.abstain or 0.0, np.stack(costs))


def as_percent(threshold: float) -> str:
    """Format a threshold in percent with enough digits: 1/51 is 1.96 %, not 2.0 %."""
    return f"{100 * threshold:.3g} %"


def cost_rule(cost: "str | Mapping[str, float] | npt.ArrayLike | CostRule") -> CostRule:
    """Build a rule from text, from named costs, or from a matrix.

    >>> cost_rule({"fn": 50, "fp": 1}).threshold == cost_rule("fn=50,fp=1").threshold == 1 / 51
    True
    """
    if isinstance(cost, CostRule):
        return cost
    if isinstance(cost, str):
        return read_rule(cost)
    if isinstance(cost, Mapping):
        return _from_numbers({str(name): float(value) for name, value in cost.items()}, str(dict(cost)))
    return _from_matrix(np.asarray(cost, dtype=np.float64), "cost")


def read_rule(text: str) -> CostRule:
    """Read a rule from the command line: `wrong=5,abstain=1`, `threshold=0.9`, or the name of a CSV file.

    >>> read_rule("wrong=5,abstain=1").threshold
    0.8
    """
    if Path(text).suffix == ".csv":
        return _from_file(Path(text))
    parts = [part.partition("=") for part in text.split(",")]
    try:
        numbers = {name.strip(): float(number) for name, _, number in parts}
    except ValueError:
        raise _cost_error(text) from None
    return _from_numbers(numbers, text)


def _from_numbers(numbers: Mapping[str, float], text: str) -> CostRule:
    names = set(numbers)
    if names == {"threshold"} and 0 < numbers["threshold"] <= 1:
        return CostRule(threshold=numbers["threshold"])
    if not all(0 <= value < np.inf for value in numbers.values()):
        raise _cost_error(text)
    if names == {"wrong", "abstain"} and 0 < numbers["abstain"] < numbers["wrong"]:
        return CostRule(
            wrong=numbers["wrong"], abstain=numbers["abstain"], threshold=1 - numbers["abstain"] / numbers["wrong"]
        )
    if names in ({"fn", "fp"}, {"fn", "fp", "abstain"}) and numbers["fn"] + numbers["fp"] > 0:
        return _of_errors(numbers["fn"], numbers["fp"], numbers.get("abstain"))
    raise _cost_error(text)


def _of_errors(fn: float, fp: float, abstain: float | None) -> CostRule:
    """Rule of a binary decision: act where P(positive) times fn is at least P(negative) times fp."""
    rule = CostRule(fn=fn, fp=fp, threshold=fp / (fn + fp), abstain=abstain)
    if abstain is None or abstain * (fn + fp) >= fn * fp:  # at the threshold either choice costs fn fp / (fn + fp)
        return rule
    return replace(rule, threshold=1 - abstain / fp, lower=abstain / fn)


def _cost_error(text: str) -> InputError:
    return InputError("--cost", expected=FORMS, got=f"'{text}'", fix=FIX)


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
    return _from_matrix(matrix, f"--cost {file.name}")


def _from_matrix(matrix: Array, what: str) -> CostRule:
    if matrix.ndim != 2 or matrix.shape[1] - matrix.shape[0] not in (0, 1) or len(matrix) < 2:
        raise InputError(
            what,
            expected="k lines of k finite numbers, or of k + 1 with the cost of handing over last",
            got=f"shape {matrix.shape}",
            fix="one line per true class, one column per class chosen",
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any() or not matrix.any():
        got = "other numbers" if not np.isfinite(matrix).all() else "only 0" if not matrix.any() else "negative ones"
        raise InputError(what, expected="finite costs of 0 or more, not all of them 0", got=got, fix=FIX)
    return CostRule(matrix=matrix)


def check_rule(rule: CostRule, p: Predictions) -> CostRule:
    """The rule, if these predictions can follow it; a threshold of binary scores calls rows positive."""
    if rule.matrix is not None:
        if p.task in ("confidence", "choice"):
            fix = "use wrong=5,abstain=1"
            raise InputError("--cost", expected="a probability for every class", got=describe_task(p.task), fix=fix)
        if len(rule.matrix) != p.k:
            size = " x ".join(map(str, rule.matrix.shape))
            raise InputError("--cost", expected=f"a matrix of {p.k} x {p.k}", got=size, fix="one line per class")
    if rule.fn is not None and p.task != "binary":
        fix = "use wrong=5,abstain=1, or a matrix"
        raise InputError("--cost", expected=describe_task("binary"), got=describe_task(p.task), fix=fix)
    if p.task == "binary" and rule.abstain is None and rule.fn is None and rule.matrix is None:
        threshold = rule.threshold or 1.0
        return replace(rule, fn=1 / threshold - 1, fp=1.0, implied=True)
    return rule
