"""Results of decisions on rows, as plain numbers: costs, rows answered, and shares that can be answered."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

from calibrant.core.config.convert import from_json

Choice = Literal["chosen", "hindsight", "always", "never", "answer_all", "hand_over_all", "likeliest", "one_class"]


@dataclass(frozen=True, kw_only=True)
class DecisionResult:
    """A result of numbers that can be written to JSON."""

    @classmethod
    def from_dict(cls, state: Any) -> Self:
        """Read the result from JSON, where undefined numbers are null; else ValueError, KeyError or TypeError."""
        unknown = [f.name for f in fields(cls) if f.type is float and dict(state).get(f.name, 0) is None]
        return replace(from_json(cls, {**state, **dict.fromkeys(unknown, 0.0)}), **dict.fromkeys(unknown, float("nan")))


@dataclass(frozen=True, kw_only=True)
class CostLine(DecisionResult):
    """Cost per row of one way of deciding, on the same rows."""

    choice: Choice
    label: str  # in words
    threshold: float | None  # where it goes by one
    lower: float | None  # rows from here to the threshold are handed over
    acted: float  # share of rows called positive, or answered
    handed_over: float  # share of rows
    expected: float  # by the model's own scores
    cost: float  # by the labels
    low: float  # of its interval
    high: float
    more: float  # cost beyond that of the chosen decision
    more_low: float
    more_high: float


@dataclass(frozen=True, kw_only=True)
class AnsweredSummary(DecisionResult):
    """Rows that are answered, or called positive, and their errors."""

    share: float  # of all rows
    n: float  # rows answered, by weight
    error: float  # share of these that are wrong, or false positives; NaN where there are none
    low: float  # of its interval
    high: float
    recall: float | None = None  # of rows called positive: the share of the positives among them


@dataclass(frozen=True, kw_only=True)
class AnsweredShare(DecisionResult):
    """The share of rows that can be answered with a bound on their error rate, before and after a map."""

    max_error: float
    before: float
    after: float | None = None
