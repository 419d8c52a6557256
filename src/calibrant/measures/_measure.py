"""A measure applied to predictions: the value, its interval, and what it is in words."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import LeakWarning
from calibrant.core.intervals import Progress, check_confidence, draw
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Measure
from calibrant.measures._catalogue import CATALOGUE


@dataclass(frozen=True)
class Measurement:
    """A number that says what it is."""

    measure: str
    value: float
    low: float | None
    high: float | None
    n: int
    k: int
    definition: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.measure} {self.value:.4f}{interval} ({self.definition}; n = {self.n}, k = {self.k})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = {"value": f"{self.value:.4f}"}
        if self.low is not None:
            rows["interval"] = f"{self.low:.4f} to {self.high:.4f}"
        rows |= {"definition": self.definition, "rows, classes": f"{self.n:,}, {self.k:,}"}
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table><caption>{escape(self.measure)}</caption>{cells}</table>"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: undefined numbers become None."""
        return {key: _no_nan(value) for key, value in asdict(self).items()}


def measure(
    p: Predictions,
    what: str | Measure = "ece",
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Measurement:
    """One measure with its bootstrap interval; `resamples=0` for the value alone.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> print(measure(p, "ece:bins=2", resamples=0))
    ece:bins=2 0.2500 (top-label ECE, 2 equal-width right-closed bins, L1; n = 2, k = 2)
    """
    check_confidence(confidence)
    warn_of_leak(p)
    chosen, name = resolve(what)
    value = chosen(p)
    size = chosen.resamples if resamples is None else resamples
    low = high = None
    if size > 0:
        draws = draw(lambda counts: chosen.resampled(p, counts), p.n, size, seed, progress)
        each = (1 + confidence) / 2
        low, high = chosen.lower_bound(p, draws, each, seed), chosen.upper_bound(p, draws, each)
    return Measurement(name, value, low, high, p.n, p.k, chosen.definition)


def measure_all(p: Predictions, what: Sequence[str | Measure], **options: Any) -> list[Measurement]:
    """Several measures of the same predictions, which share the sorted views; options as for `measure`."""
    return [measure(p, one, **options) for one in what]


def warn_of_leak(p: Predictions) -> None:
    if p.extras.seen:
        warnings.warn(
            f"the map that made these predictions was fitted on them (about {p.extras.seen:.0%} of its rows are here): "
            "these numbers flatter it. Measure on other rows, or fit with --cross-fit.",
            LeakWarning,
            stacklevel=3,
        )


def resolve(what: str | Measure) -> tuple[Measure, str]:
    """The measure and the name it was asked by."""
    if isinstance(what, Measure):
        return what, spec_of(what)
    return CATALOGUE.make(what), what


def _no_nan(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
