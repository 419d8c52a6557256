"""`fit`: one calibrator, several in a row (`temperature+isotonic`), or one per group, with a fingerprint."""

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.calibrators import CATALOGUE, Calibrator
from calibrant.core.errors import InputError
from calibrant.core.fingerprint import Fingerprint
from calibrant.core.map import Fit, Map
from calibrant.core.predictions import Predictions

LEAST_ROWS = 2


def fit(p: Predictions, what: str | Calibrator = "temperature", *, by_group: bool = False) -> Map:
    """Learn a map on held-out predictions; `what` may chain calibrators with "+", or be "auto" (see `choose`).

    >>> p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> fit(p, "temperature")
    Map(temperature, k=2, T=1.82, T_low=0.232, T_high=14.28, converged)
    """
    if isinstance(what, type) or not isinstance(what, str | Calibrator):
        given = what.__name__ if isinstance(what, type) else type(what).__name__
        raise InputError(
            "fit",
            expected='a name ("temperature") or a calibrator (Temperature())',
            got=f"the class {given}" if isinstance(what, type) else given,
            fix=f"write {given}()" if isinstance(what, type) else "give one of these",
        )
    if what == "auto":
        return _chosen(p, by_group)
    chain = [what] if isinstance(what, Calibrator) else [CATALOGUE.make(one.strip()) for one in what.split("+")]
    for one in chain:
        one.check_shape(p)
    seen = Fingerprint.of(p)
    if p.weights is not None and (p.weights == 0).any():  # rows that count for nothing teach nothing
        p = p.take(p.weights > 0)
    made = _by_group(p, chain) if by_group else _chained(p, chain)
    return replace(made, fingerprint=seen)


def _chosen(p: Predictions, by_group: bool) -> Map:
    from calibrant.repairing.choose import choose

    if by_group:
        raise InputError(
            "auto", expected="one map for all rows", got="one map per group", fix="name the calibrator to fit per group"
        )
    return choose(p).map


def _chained(p: Predictions, chain: list[Calibrator]) -> Map:
    """Each calibrator learns on what the one before it gives."""
    if len(chain) == 1:
        return chain[0].fit(p)
    maps: list[Map] = []
    for one in chain:
        maps.append(one.fit(p))
        p = maps[-1].apply(p)
    parameters: dict[str, Any] = {f"{m.calibrator}.{name}": value for m in maps for name, value in m.parameters.items()}
    failed = [m for m in maps if not m.fit.converged]
    report = (
        Fit() if not failed else replace(failed[0].fit, diagnosis=f"{failed[0].calibrator}: {failed[0].fit.diagnosis}")
    )
    return Map(
        "+".join(m.calibrator for m in maps),
        p.k,
        tuple(step for m in maps for step in m.steps),
        parameters,
        all(m.keeps_argmax for m in maps),
        report,
        shape=p.shape,
    )


def _by_group(p: Predictions, chain: list[Calibrator]) -> Map:
    """One map per group, and one of all rows for groups nobody has seen."""
    if p.groups is None:
        raise InputError(
            "groups", expected="a group for every row", got="none", fix="add a column group (in npz: groups)"
        )
    names = p.groups.astype(str)
    maps = {}
    for name in np.unique(names):
        rows = np.flatnonzero(names == name)
        if len(rows) < LEAST_ROWS:
            continue
        maps[str(name)] = _chained(p.take(rows), chain)
    made = replace(_chained(p, chain), groups=maps)
    failed = [name for name, one in maps.items() if not one.fit.converged]
    if failed:
        why = f"groups {', '.join(failed[:5])}: {maps[failed[0]].fit.diagnosis}"
        made = replace(made, fit=replace(made.fit, converged=False, diagnosis=why))
    return made
