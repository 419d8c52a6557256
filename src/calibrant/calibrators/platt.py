"""Platt scaling: a sigmoid of the score."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.calibrators._scores import STEP_SCOPE, OfScores, log_odds, reads_log_odds, tied_scores
from calibrant.core.arrays import Array
from calibrant.core.catalogue import spec_of
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import SCORE_FLOOR, Linear, Sigmoid
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.logistic import platt_of, report


@dataclass(frozen=True)
class Platt(OfScores):
    """sigmoid(a s + b), of the logit of the top score (top) or of each class's own logit (ovr), by maximum likelihood.

    Assumes an error of one shape: where that is wrong it can raise the log loss. `ovr` looks at the logits
    themselves, so a constant added to a row changes its result. `smooth` uses Platt's targets, which keep small
    sets from extremes. `of=score` takes the probabilities themselves, with these targets, as scikit-learn does: votes
    of a forest, where scores of 0 and 1 are common and their logits say nothing.

    >>> p = Predictions.from_probs([[0.8, 0.2]] * 4 + [[0.5, 0.5]] * 2, [0, 0, 0, 1, 0, 1])
    >>> fitted = Platt().fit(p)  # 3 in 4 at logit ln 4, 1 in 2 at logit 0: a = ln 3 / ln 4
    >>> round(fitted.parameters["a"], 6), round(fitted.parameters["b"], 6)
    (0.792481, 0.0)
    """

    smooth: bool = False
    of: Literal["logit", "score"] = "logit"

    aliases: ClassVar[tuple[str, ...]] = ("sigmoid",)
    title: ClassVar[str] = "Platt scaling"
    words: ClassVar[str] = "Platt scaling"
    reference: ClassVar[str] = "Platt, Advances in Large Margin Classifiers, 1999"
    complexity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of == "score":  # a fact of this recipe, not of the class
            object.__setattr__(self, "of_raw_score", True)

    @property
    def name_in_text(self) -> str:
        return f"a sigmoid of the score ({spec_of(self)})" if self.of == "score" else super().name_in_text

    def fit(self, p: Predictions) -> Map:
        if self.scope == "top" and self.of == "logit" and reads_log_odds(p):
            fitted = platt_of(log_odds(p), p.outcome.astype(np.float64), p.counts, smooth=self.smooth)
            a, b = float(fitted.slopes[0]), fitted.offset
            return self.build_map(p, Linear(np.array(a), np.array([0.0, b])), fit=report([fitted]), a=a, b=b)
        return self._fit_scores(p)

    def _fit_scores(self, p: Predictions) -> Map:
        if self.scope == "top" or self.of == "score":
            x_of = logit if self.of == "logit" else np.asarray
            smooth = self.smooth or self.of == "score"
            fits = [platt_of(x_of(tied.x), tied.rate, tied.size, smooth=smooth) for tied in tied_scores(p, self.scope)]
        else:
            fits = [
                platt_of(
                    p.logits[:, c].astype(np.float64), (p.labels == c).astype(np.float64), p.counts, smooth=self.smooth
                )
                for c in range(p.k)
            ]
        a, b = np.array([f.slopes[0] for f in fits]), np.array([f.offset for f in fits])
        zero = np.zeros(len(fits))
        top = self.scope == "top"
        step = Sigmoid(
            np.stack([a, a if top and self.of == "logit" else zero, b, zero], axis=1),  # (1 or k, 4)
            "scores" if self.of == "score" else "probs" if top else "logits",
            STEP_SCOPE[self.scope],
        )
        parameters = {"a": float(a[0]), "b": float(b[0])} if top else {"a": a.tolist(), "b": b.tolist()}
        return self.build_map(p, step, fit=report(fits), **parameters)


def logit(scores: Array) -> Array:
    s = np.clip(scores, SCORE_FLOOR, 1 - SCORE_FLOOR)
    return np.asarray(np.log(s) - np.log1p(-s))
