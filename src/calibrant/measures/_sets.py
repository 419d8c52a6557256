"""Named sets of measures: the standard one, and the 102 of the benchmark study."""

from collections.abc import Mapping

import numpy as np

from calibrant.core.curve import Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.temperature import find_temperature
from calibrant.measures._catalogue import CATALOGUE
from calibrant.measures._measure import Measurement
from calibrant.measures.auroc import AUROC
from calibrant.measures.classwise import Classwise

STANDARD = (
    "accuracy",
    "nll",
    "brier",
    "gap",
    "ece",
    "ece:scheme=mass",
    "classwise",
    "mce",
    "ks",
    "smooth",
    "auroc",
    "aupr_error",
    "aurc",
)

BIN_COUNTS = (5, 10, 15, 20, 25, 50, 100, 200, 500)
BIN_FAMILIES = {  # column stem -> spec; equal mass as in verified_calibration, which the study used
    "ECE": "ece:bins={}",
    "ECE_em": "ece:bins={},scheme=mass,em=midpoint",
    "cwCE": "classwise:bins={}",
    "cwCE_em": "classwise:bins={},scheme=mass,em=midpoint",
    "MCE": "mce:bins={}",
}
BIN_BASED = {f"{stem}_{m}": spec.format(m) for stem, spec in BIN_FAMILIES.items() for m in BIN_COUNTS}
OTHERS = {"KSCE": "ks", "KDECE": "kde", "MMCE": "mmce", "NLL": "nll", "Brier": "brier"}
STUDY_SEED = 777
FIT_SHARE = 0.2  # the study fits T on 20 % of the test set and measures "post" on the rest


def benchmark102(
    p: Predictions,
    *,
    ood: Mapping[str, Predictions] | None = None,
    seed: int = STUDY_SEED,
    others: bool = True,
) -> list[Measurement]:
    """The columns of the benchmark study: 90 bin-based, 10 others, and one AUROC per out-of-distribution set.

    `pre_` on all rows; `post_` on a random 80 %, after a temperature fitted on the other 20 %.
    """
    columns = BIN_BASED | (OTHERS if others else {})
    fit_on, rest = p.split(FIT_SHARE, seed=seed)
    T = find_temperature(fit_on).T
    states = {"pre": p, "post": rest.tempered(T)}
    words = {
        "pre": "",
        "post": f"after temperature scaling (T = {T:.4f}, fitted on {fit_on.n} other rows): ",
    }
    made = []
    for state, q in states.items():
        _ = q.probs  # one pass for the top label and for all classes
        for column, spec in columns.items():
            m = CATALOGUE.make(spec)
            value = m.on_curves(q) if isinstance(m, Classwise) else m(q)
            made.append(Measurement(f"{state}_{column}", value, None, None, q.n, q.k, words[state] + m.definition))
    return made + [_ood_auroc(name, p, other) for name, other in (ood or {}).items()]


def _ood_auroc(name: str, p: Predictions, other: Predictions) -> Measurement:
    if other.k != p.k:
        raise InputError(f"ood {name}", expected=f"{p.k} classes", got=f"{other.k}", fix="use the same network")
    scores = np.concatenate([p.confidence, other.confidence])
    inside = np.concatenate([np.ones(p.n), np.zeros(other.n)])
    return Measurement(
        f"auc_{name}",
        AUROC().on(Curve.sort(scores, inside)),
        None,
        None,
        p.n + other.n,
        p.k,
        f"AUROC of the confidence for telling these {p.n} rows from {other.n} rows of {name}",
    )
