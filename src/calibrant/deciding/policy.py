"""Policies: act on a row, leave it, choose a class, or hand it over, given its scores."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.error_guarantee import at_least

HAND_OVER = -1  # beside the classes 0, 1, ...: the row goes to a person, or to a better model

Acts = Literal["positive", "answer", "least_cost"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Policy:
    """A rule from scores to a class, or to -1 for handing over.

    - `positive`: call rows positive (1) from `threshold` on, else negative (0); rows from `lower` to the threshold are
      handed over.
    - `answer`: keep the predicted class where the confidence reaches `threshold`, and hand over the rest. A bare
      confidence has no class: 1 says that the row is answered.
    - `least_cost`: the column of `matrix` with the least expected cost; a column after those of the classes is the cost
      of handing over.

    A threshold of None is reached by no row. Scores a billionth below a threshold reach it, so that every export
    decides alike.
    """

    acts: Acts
    threshold: float | None = None
    lower: float | None = None
    matrix: Array | None = None  # (k, k or k + 1): row is the true class, column the class chosen

    def __call__(self, p: Predictions) -> Ints:
        """The class that is chosen for every row, or -1."""
        if self.acts == "positive":
            chosen = at_least(p.score, self.threshold).astype(np.int64)
            if self.lower is not None:
                chosen[at_least(p.score, self.lower) & (chosen == 0)] = HAND_OVER
            return chosen
        if self.acts == "answer":
            answer = np.ones(p.n, dtype=np.int64) if p.task == "confidence" else p.predicted
            return np.where(at_least(p.confidence, self.threshold), answer, HAND_OVER)
        chosen, costs = np.empty(p.n, dtype=np.int64), np.asarray(self.matrix)
        for rows, probs in p.prob_rows():
            chosen[rows] = (probs @ costs).argmin(axis=1)
        return np.where(chosen == p.k, HAND_OVER, chosen)

    def to_dict(self) -> dict[str, Any]:
        matrix = None if self.matrix is None else self.matrix.tolist()
        return {"acts": self.acts, "threshold": self.threshold, "lower": self.lower, "matrix": matrix}

    @classmethod
    def from_dict(cls, state: Any, k: int) -> "Policy":
        """Read what `to_dict` wrote; a ValueError, KeyError or TypeError for anything else."""
        acts: Acts | None = next(
            (known for known in ("positive", "answer", "least_cost") if known == state["acts"]), None
        )
        threshold, lower = (_share_or_none(name, state[name]) for name in ("threshold", "lower"))
        matrix = None if state["matrix"] is None else np.array(state["matrix"], dtype=np.float64)
        if acts is None or (acts == "least_cost") != (matrix is not None):
            raise ValueError(f"acts is {state['acts']!r:.40}")
        if matrix is not None and (matrix.shape not in ((k, k), (k, k + 1)) or not np.isfinite(matrix).all()):
            raise ValueError("the matrix of costs does not suit the classes")
        if lower is not None and (acts != "positive" or threshold is None or lower > threshold):
            raise ValueError(f"lower is {lower!r:.40}")
        return cls(acts=acts, threshold=threshold, lower=lower, matrix=matrix)


def _share_or_none(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"{name} is {value!r:.40}")
    return float(value)
