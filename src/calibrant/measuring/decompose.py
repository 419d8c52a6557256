"""Decompositions of the loss: exact for the Brier score, never an identity for the ECE."""

from typing import Any

import numpy as np

from calibrant.core.curves.binning import Binning, Scheme, check_bins
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import number
from calibrant.core.text.table import Table, TableResult
from calibrant.measures import check_predictions
from calibrant.measures.brier import Brier
from calibrant.measures.nll import NLL
from calibrant.measures.refinement import Refinement


def brier_terms(curve: Curve, bins: int = 15, scheme: Scheme = "width") -> dict[str, float]:
    """mean (c - a)^2 = reliability - resolution + uncertainty + within_variance - within_covariance, exactly.

    Reliability is the calibration part; refinement = uncertainty - resolution is what bins see of the ranking.
    """
    check_bins(bins)
    bin_of, w = curve.bin_of(Binning(bins, scheme)), curve.weights / curve.total
    c, a, rate = curve.scores, curve.outcomes, w @ curve.outcomes
    share = np.bincount(bin_of, w, bins)
    confidence, accuracy = (np.bincount(bin_of, w * v, bins) / np.where(share > 0, share, 1.0) for v in (c, a))
    from_mean = c - confidence[bin_of]
    uncertainty, resolution = rate * (1 - rate), share @ (accuracy - rate) ** 2
    return {
        "brier_top": float(w @ (c - a) ** 2),
        "reliability": float(share @ (confidence - accuracy) ** 2),
        "resolution": float(resolution),
        "uncertainty": float(uncertainty),
        "within_variance": float(w @ from_mean**2),
        "within_covariance": float(2 * w @ (from_mean * (a - accuracy[bin_of]))),
        "refinement": float(uncertainty - resolution),
    }


def ece_terms(p: Predictions, bins: int = 15) -> dict[str, float]:
    """The terms of "ECE = alpha - beta - gamma" (Singh et al. 2021, Eq. 9) beside what the ECE really is.

    Not an identity: Eq. 9 equates the accuracy of a detector with the accuracy of the model. Only if every
    non-empty bin is overconfident is the ECE mean confidence minus accuracy.
    """
    from calibrant.measures.auroc_correct import AUROCCorrect

    right = p.mean(p.outcome)
    wrong = 1 - right
    b = p.curve.bins(Binning(bins))
    alpha = p.mean(p.score)
    beta = 2 * AUROCCorrect()(p) * right * wrong if 0 < right < 1 else 0.0
    gamma = (right**2 + wrong**2) / 2
    return {
        "alpha": alpha,
        "beta": beta,
        "gamma": gamma,
        "alpha_minus_beta_minus_gamma": alpha - beta - gamma,
        "gap": alpha - right,
        "ece": b.ece,
        "overconfident_bins": float((b.gap[b.filled] >= 0).mean()),
    }


def loss_terms(p: Predictions) -> dict[str, dict[str, float]]:
    """Each proper loss as calibration + refinement, by temperature and by isotonic recalibration."""
    terms = {}
    for loss, whole in (("nll", NLL()(p)), ("brier", Brier()(p))):
        for by in ("temperature", "isotonic"):
            left = Refinement(loss=loss, by=by)(p)  # type: ignore[arg-type]
            terms[f"{loss}, {by}"] = {"loss": whole, "calibration": whole - left, "refinement": left}
    return terms


class Decomposition(TableResult, dict[str, Any]):
    """The terms by name, as plain dicts; shown as a table."""

    def table(self) -> Table:
        parts = {**self["losses"], "Brier score of the curve": self["brier"], "ECE (no identity)": self["ece"]}
        rows = [(name, term.replace("_", " "), number(v)) for name, terms in parts.items() for term, v in terms.items()]
        return "calibration and refinement", ("of", "term", "value"), rows


def decompose(p: Predictions, *, bins: int = 15) -> Decomposition:
    """Compute all decompositions: of the proper losses, of the Brier score of the curve, and the terms of the ECE.

    The curve is confidence against correctness, or P(positive) against positive of binary predictions.
    """
    check_predictions(p)
    return Decomposition(losses=loss_terms(p), brier=brier_terms(p.curve, bins), ece=ece_terms(p, bins))
