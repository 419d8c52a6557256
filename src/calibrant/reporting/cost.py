"""Cost of the decisions that use these probabilities: expected by the model's own confidence, and actual."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.deciding.cost_lines import cost_lines, mean_cost
from calibrant.deciding.costs import CostRule, as_percent
from calibrant.deciding.policy import HAND_OVER
from calibrant.deciding.results import CostLine
from calibrant.reporting.parts import Cost, CostRow, Money


@dataclass
class CostTable:
    """Costs of the same rows, uncalibrated first and then with every calibrator."""

    rule: CostRule
    rows: list[CostRow] = field(default_factory=list)
    total: float = 0.0  # rows, or what they stand for
    uncalibrated: Ints | None = None  # (n,) what is decided without calibration
    rivals: dict[str, tuple[CostLine, ...]] = field(default_factory=dict)  # other decisions, by calibrator

    def add(self, calibrator: str, p: Predictions) -> None:
        """Add the expected and actual cost per row of a calibrator, and its difference from no calibration."""
        d = _decide(p, self.rule)
        if self.uncalibrated is None:
            self.uncalibrated, self.total = d.chosen, p.curve.total if is_whole(p.curve.weights) else float(p.n)
        if self.rule.fn is not None:
            self.rivals[calibrator] = cost_lines(self.rule, p)
        cost = mean_cost(self.rule, p, d.chosen)
        change = mean_cost(self.rule, p, d.chosen, less=self.uncalibrated)
        (low, high), (change_low, change_high) = cost.limits(), change.limits()
        self.rows.append(
            CostRow(
                calibrator=calibrator,
                accepted=d.accepted,
                error=d.error,
                expected_cost=p.mean(d.expected),
                actual_cost=cost.value,
                low=low,
                high=high,
                change=change.value,
                change_low=change_low,
                change_high=change_high,
                decisions_changed=int((d.chosen != self.uncalibrated).sum()),
                missed=d.missed,
                **_against_trivial(self.rivals.get(calibrator, ())),
            )
        )

    def summary(self, best: str) -> Cost:
        """The whole table, with the cost of the recommended calibrator in one line."""
        return Cost(
            rule=self.rule.words,
            headline=self._headline(best),
            words=_words(self.rule, self.rows, best) + _rival_words(self.rivals.get(best, ())),
            accepts="accepted" if self.rule.fn is None else "called positive",
            fn=self.rule.fn,
            fp=self.rule.fp,
            threshold=self.rule.threshold,
            rows=tuple(self.rows),
        )

    def _headline(self, best: str) -> str:
        first, row = self.rows[0], next(row for row in self.rows if row.calibrator == best)
        before, after = (_amount(self.total * line.actual_cost) for line in (first, row))
        if row is first:
            return f"Decisions on these {self.total:,.0f} rows cost {before}."
        words = f"Decisions on these {self.total:,.0f} rows cost {after} with {best}, {before} uncalibrated"
        saved, low, high = (-self.total * end for end in (row.change, row.change_high, row.change_low))
        if low <= 0 <= high:
            return f"{words}; the difference is not significant."
        share = "" if not first.actual_cost else f"{100 * abs(row.change) / first.actual_cost:.0f} %; "
        ends = " to ".join(_amount(end) for end in sorted((abs(low), abs(high))))
        return f"{words}: {_amount(abs(saved))} {'saved' if saved > 0 else 'more'} ({share}95 % interval {ends})."


def _against_trivial(lines: tuple[CostLine, ...]) -> dict[str, Any]:
    """Costs of always and never acting, and whether the rule is cheaper than the cheaper of them."""
    trivial = {line.choice: line for line in lines if line.choice in ("always", "never")}
    if not trivial:
        return {}
    best = min(trivial.values(), key=lambda line: line.cost)
    money: Money = "pays" if best.more_low > 0 else "loses" if best.more_high < 0 else "inconclusive"
    return {"against_trivial": money, "always": trivial["always"].cost, "never": trivial["never"].cost}


@dataclass(frozen=True, kw_only=True)
class _Decisions:
    """The decisions of a rule on every row, with their costs."""

    chosen: Ints  # (n,)
    expected: Array  # (n,) cost by the model's own scores
    accepted: float
    error: float
    missed: float | None = None


def _decide(p: Predictions, rule: CostRule) -> _Decisions:
    chosen = rule.policy(p)
    answered = chosen != HAND_OVER
    decisions = _Decisions(chosen=chosen, expected=rule.expected(p, chosen), accepted=p.mean(answered), error=0.0)
    if rule.fn is not None:
        called, y = chosen == 1, p.outcome
        missed = _part(p, y & (chosen == 0), y)
        return replace(decisions, accepted=p.mean(called), error=_part(p, called & ~y, called), missed=missed)
    right = p.correct if rule.matrix is None else chosen == p.labels
    return replace(decisions, error=_part(p, answered & ~right, answered))


def _amount(cost: float) -> str:
    """Format an amount with three figures, or all digits before the point.

    >>> _amount(12345.6), _amount(1.23456), _amount(0.0)
    ('12,346', '1.23', '0')
    """
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"


def _part(p: Predictions, selected: npt.NDArray[np.bool_], of: npt.NDArray[np.bool_]) -> float:
    whole = p.mean(of)
    return p.mean(selected) / whole if whole else float("nan")


def _rival_words(lines: tuple[CostLine, ...]) -> str:
    """A sentence on the cost of the best threshold in hindsight and of decisions without a model."""
    costs = {line.choice: fmt.number(line.cost) for line in lines}
    if not lines:
        return ""
    best = next(line for line in lines if line.choice == "hindsight")
    at = "never acting" if best.threshold is None else f"a threshold of {as_percent(best.threshold)}"
    return (
        f" Best in hindsight is {at}, at {costs['hindsight']} per row on these rows; calling every row positive costs "
        f"{costs['always']}, calling none {costs['never']}."
    )


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
