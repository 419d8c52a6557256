"""Chains of calibrators (`temperature+isotonic`): parse one, fit one."""

from dataclasses import replace
from typing import Any

from calibrant.calibrators import CATALOGUE, Calibrator
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.maps.map import Fit, Map
from calibrant.core.predictions import Predictions

Chain = list[Calibrator]


def parse_chain(spec: str | Calibrator) -> Chain:
    """The calibrators of a name such as "temperature+isotonic", in order."""
    return [spec] if isinstance(spec, Calibrator) else [CATALOGUE.make(name.strip()) for name in spec.split("+")]


def fit_chain(p: Predictions, chain: Chain) -> Map:
    """Fit all calibrators, each on the output of the one before it; the map has a fingerprint of the rows."""
    for calibrator in chain:
        calibrator.check_shape(p)
    return replace(fit_steps(with_weight(p), chain), fingerprint=Fingerprint.of(p))


def fit_steps(p: Predictions, chain: Chain) -> Map:
    """Fit the chain to a map without a fingerprint."""
    if len(chain) == 1:
        return chain[0].fit(p)
    maps: list[Map] = []
    for calibrator in chain:
        maps.append(calibrator.fit(p))
        p = maps[-1].apply(p)
    parameters: dict[str, Any] = {f"{m.calibrator}.{name}": value for m in maps for name, value in m.parameters.items()}
    failed = [m for m in maps if not m.fit.converged]
    return Map(
        calibrator="+".join(m.calibrator for m in maps),
        k=p.k,
        steps=tuple(step for m in maps for step in m.steps),
        parameters=parameters,
        keeps_argmax=all(m.keeps_argmax for m in maps),
        fit=replace(failed[0].fit, diagnosis=f"{failed[0].calibrator}: {failed[0].fit.diagnosis}") if failed else Fit(),
        task=p.task,
        score_type=maps[0].score_type,
    )


def with_weight(p: Predictions) -> Predictions:
    """The rows without those of weight 0, which have no effect on a fit."""
    return p.take(p.weights > 0) if p.weights is not None and (p.weights == 0).any() else p
