"""Named sets of measures: the standard one, and the 102 columns of the benchmark study (Tao et al., ICLR 2024)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.binning import Binning
from calibrant.core.curves.curve import Bins, Curve
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature
from calibrant.measures import CATALOGUE, BinnedMeasure, BinOptions
from calibrant.measures.auroc_correct import AUROCCorrect
from calibrant.measures.classwise import Classwise
from calibrant.measuring.harmonic_score import harmonic_score
from calibrant.measuring.measure import Measurement, Measurements, measure

SetName = Literal["standard", "benchmark102", "benchmark90"]

BIN_COUNTS = (5, 10, 15, 20, 25, 50, 100, 200, 500)
BIN_FAMILIES = {  # column stem -> spec; equal mass as in verified_calibration, which the study used
    "ECE": "ece:bins={}",
    "ECE_em": "ece:bins={},scheme=mass,mass_rule=midpoint",
    "cwCE": "classwise:bins={}",
    "cwCE_em": "classwise:bins={},scheme=mass,mass_rule=midpoint",
    "MCE": "mce:bins={}",
}
BIN_BASED = {f"{stem}_{m}": spec.format(m) for stem, spec in BIN_FAMILIES.items() for m in BIN_COUNTS}
OTHERS = {"KSCE": "ks", "KDECE": "kde", "MMCE": "mmce", "NLL": "nll", "Brier": "brier"}
STUDY_SEED = 777
FIT_SHARE = 0.2  # the study fits T on 20 % of the test set and measures "post" on the rest


def study_columns(
    p: Predictions, *, ood: Mapping[str, Predictions] | None = None, seed: int = STUDY_SEED
) -> dict[str, float]:
    """The columns of the benchmark study and a few more, as plain numbers: made for many networks.

    All 100 of the set `benchmark102`, one `auc_` per out-of-distribution set, `accuracy`, `T`, the mean confidence of
    correct and of incorrect predictions (NaN where there is none) and the harmonic score of accuracy and ECE.
    """
    T, states = _states(p, seed)
    values = {f"{state}_{name}": value for state, q in states.items() for name, value in _columns(q, True).items()}
    for name, other in (ood or {}).items():
        values[f"auc_{name}"] = _ood_auroc(name, p, other)
    accuracy = float(p.correct.mean())
    return values | {
        "accuracy": accuracy,
        "correct_confidence": _mean(p.confidence[p.correct]),
        "incorrect_confidence": _mean(p.confidence[~p.correct]),
        "T": T,
        "hcs": float(harmonic_score(accuracy, values["pre_ECE_15"])),
    }


def measure_set(
    p: Predictions,
    name: SetName = "standard",
    *,
    ood: Mapping[str, Predictions] | None = None,
    seed: int = STUDY_SEED,
) -> Measurements:
    """A named set of measures, as plain values without intervals.

    - `standard`: the standard measures of the task;
    - `benchmark102`: the columns of the benchmark study. 90 are bin-based, 10 others, and there is one AUROC for each
      out-of-distribution set in `ood`. `pre_` is on all rows; `post_` on a random 80 %, after a temperature fitted on
      the other 20 %;
    - `benchmark90`: the bin-based columns alone.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> [m.measure for m in measure_set(p)][:3]
    ['accuracy', 'nll', 'brier']
    """
    if name not in get_args(SetName):
        raise unknown_name("set of measures", name, get_args(SetName))
    if name == "standard":
        return measure(p, "standard", resamples=0)
    return Measurements(_benchmark(p, ood or {}, seed, others=name == "benchmark102"))


def _benchmark(p: Predictions, ood: Mapping[str, Predictions], seed: int, *, others: bool) -> list[Measurement]:
    T, states = _states(p, seed)
    fitted = f"after temperature scaling (T = {T:.4f}, fitted on {p.n - states['post'].n} held-out rows): "
    measurements = []
    for state, q in states.items():
        for column, value in _columns(q, others).items():
            words = (fitted if state == "post" else "") + CATALOGUE.make((BIN_BASED | OTHERS)[column]).definition
            measurements.append(
                Measurement(
                    measure=f"{state}_{column}", value=value, low=None, high=None, n=q.n, k=q.k, definition=words
                )
            )
    for name, other in ood.items():
        words = f"AUROC of the confidence for telling these {p.n} rows from {other.n} rows of {name}"
        value = _ood_auroc(name, p, other)
        measurements.append(
            Measurement(
                measure=f"auc_{name}", value=value, low=None, high=None, n=p.n + other.n, k=p.k, definition=words
            )
        )
    return measurements


def _states(p: Predictions, seed: int) -> tuple[float, dict[str, Predictions]]:
    """The fitted temperature, all rows before scaling, and the rows it was not fitted on after scaling."""
    fit_on, rest = p.split(FIT_SHARE, seed=seed)
    T = find_temperature(fit_on).T
    return T, {"pre": p, "post": rest.with_temperature(T)}


def _columns(q: Predictions, others: bool) -> dict[str, float]:
    """Every column of one state (before or after scaling); the counts of a family share one search in the curves."""
    _ = q.probs  # one pass for the top label and for all classes
    values: dict[str, float] = {}
    shared: dict[tuple[str, Binning], Sequence[Bins]] = {}
    for stem, spec in BIN_FAMILIES.items():
        family = [CATALOGUE.make(spec.format(count)) for count in BIN_COUNTS]
        like = family[0]
        assert isinstance(like, BinOptions)
        key = ("classes" if isinstance(like, Classwise) else "top", like.binning)
        if key not in shared:
            shared[key] = _class_bins(q, like) if isinstance(like, Classwise) else _top_bins(q, like)
        for count, m, bins in zip(BIN_COUNTS, family, shared[key], strict=True):
            assert isinstance(m, BinOptions)
            values[f"{stem}_{count}"] = m.from_bins(bins)
    return values | ({name: CATALOGUE.make(spec)(q) for name, spec in OTHERS.items()} if others else {})


def _top_bins(q: Predictions, like: BinOptions) -> list[Bins]:
    assert isinstance(like, BinnedMeasure)
    return [replace(like, bins=count, scope="top").score_bins(q) for count in BIN_COUNTS]


def _class_bins(q: Predictions, like: BinOptions) -> list[Bins]:
    """Bins of all classes for each count, from curves that come in blocks of classes."""
    binnings = [replace(like.binning, bins=count) for count in BIN_COUNTS]
    blocks = [curves.many_bins(binnings) for curves in q.class_curves()]
    return [_join(same, q.n) for same in zip(*blocks, strict=True)]


def _join(blocks: Sequence[Bins], n: int) -> Bins:
    count, scores, outcomes = (
        [getattr(block, name) for block in blocks] for name in ("count", "score_sum", "outcome_sum")
    )
    return Bins(np.concatenate(count), np.concatenate(scores), np.concatenate(outcomes), n)


def _ood_auroc(name: str, p: Predictions, other: Predictions) -> float:
    if other.k != p.k:
        raise InputError(f"ood {name}", expected=f"{p.k} classes", got=f"{other.k}", fix="use the same network")
    scores = np.concatenate([p.confidence, other.confidence])
    inside = np.concatenate([np.ones(p.n), np.zeros(other.n)])
    return AUROCCorrect().from_curve(Curve.sort(scores, inside))


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
