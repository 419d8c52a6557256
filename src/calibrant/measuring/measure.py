"""A measure applied to predictions: the value, its interval, and what it is in words."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, overload

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError, LeakWarning, ReversedScoresWarning, UndefinedMeasureError
from calibrant.core.json import plain
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import KEEP_ELEMENTS
from calibrant.core.statistics.bootstrap import OnDone, check_confidence
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.text.number_format import bracket, number, whole_percent
from calibrant.core.text.table import FrameResult, Table, TableResult
from calibrant.measures import CATALOGUE, Measure, check_predictions
from calibrant.measuring.estimating import check_resamples, estimate
from calibrant.measuring.function_measure import FunctionMeasure
from calibrant.measuring.standard import standard

REVERSED = "If the scores are P(negative), give 1 - scores, or name the other label as positive."

What = str | Measure | Callable[[Predictions], float]


@dataclass(frozen=True, kw_only=True)
class Measurement(FrameResult):
    """The value of a measure with its interval, sample size and definition in words.

    It formats as its value and compares with numbers. Two measurements have no order, as both have noise: `compare`
    tells which is better.

    >>> m = Measurement(measure="ece", value=0.06812, low=0.05, high=0.08, n=100, k=2, definition="top-label ECE")
    >>> f"{m:.4f}", m < 0.1, m.low <= 0.06 <= m.high
    ('0.0681', True, True)
    """

    measure: str
    value: float
    low: float | None
    high: float | None
    n: int
    k: int
    definition: str
    interval: str | None = None  # how the interval was computed
    reason: str | None = None  # why there is none

    @classmethod
    def from_estimate(
        cls, measure: str, e: Estimate, confidence: float = 0.95, *, n: int, k: int, definition: str
    ) -> "Measurement":
        """The value and its ends at one confidence."""
        ends = e.interval(confidence)
        return cls(
            measure=measure,
            value=e.value,
            low=None if ends is None else ends.low,
            high=None if ends is None else ends.high,
            n=n,
            k=k,
            definition=definition,
            interval=None if ends is None else e.method,
            reason=e.why_none(confidence),
        )

    HEAD: ClassVar[tuple[str, ...]] = ("value", "interval", "what it is")

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of one row in a table of measurements."""
        return number(self.value), bracket(self.low, self.high), self.definition

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __lt__(self, limit: float) -> bool:
        if not isinstance(limit, Real):
            return NotImplemented
        return self.value < float(limit)

    def __le__(self, limit: float) -> bool:
        if not isinstance(limit, Real):
            return NotImplemented
        return self.value <= float(limit)

    def __gt__(self, limit: float) -> bool:
        if not isinstance(limit, Real):
            return NotImplemented
        return self.value > float(limit)

    def __ge__(self, limit: float) -> bool:
        if not isinstance(limit, Real):
            return NotImplemented
        return self.value >= float(limit)

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.measure} {self.value:.4f}{interval} ({self.definition}; n = {self.n}, k = {self.k})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = {"value": f"{self.value:.4f}"}
        if self.low is not None:
            rows["interval"] = f"{self.low:.4f} to {self.high:.4f} ({self.interval})"
        rows |= {"definition": self.definition, "rows, classes": f"{self.n:,}, {self.k:,}"}
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table><caption>{escape(self.measure)}</caption>{cells}</table>"

    def to_dict(self) -> dict[str, Any]:
        """The measurement for JSON: undefined numbers become None."""
        fields: dict[str, Any] = plain(self)
        return fields


class Measurements(FrameResult, TableResult, list[Measurement]):
    """A list of measurements that shows itself as a table, in a notebook and in print."""

    def table(self) -> Table:
        rows = [(m.measure, *m.cells) for m in self]
        return f"{self[0].n:,} rows" if self else "no measures", ("measure", *Measurement.HEAD), rows


@overload
def measure(  # type: ignore[overload-overlap]  # a text is a sequence of texts
    p: Predictions,
    what: Literal["standard"],
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Measurements: ...


@overload
def measure(  # type: ignore[overload-overlap]  # a text is a sequence of texts
    p: Predictions,
    what: What = "ece",
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Measurement: ...


@overload
def measure(
    p: Predictions,
    what: Sequence[What],
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Measurements: ...


def measure(
    p: Predictions,
    what: What | Sequence[What] = "ece",
    *,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Measurement | Measurements:
    """Compute one measure, or several, each with its interval.

    Parameters
    ----------
    p : Predictions
        The rows to measure.
    what : str, Measure, function, or sequence of these, default "ece"
        The name of a measure with its options (`"ece:bins=30"`), a measure (`measures.ECE(bins=30)`), or a function of
        predictions. "standard" gives the standard measures of the task.
    confidence : float, default 0.95
        How often the interval should hold the true value.
    resamples : int, optional
        How many resamples an interval by bootstrap takes, by default as many as the measure asks for; 0 computes the
        value alone.
    seed : int, default 0
        The seed of all random numbers.
    progress : function of two numbers, optional
        It is called with the number of steps done and of all.

    Returns
    -------
    Measurement or Measurements
        The value with `low`, `high` and its definition; a list of them where `what` names several.

    Examples
    --------
    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> print(measure(p, "ece:bins=2", resamples=0))
    ece:bins=2 0.2500 (top-label ECE, 2 equal-width right-closed bins, L1; n = 2, k = 2)
    >>> [f"{m:.2f}" for m in measure(p, ["accuracy", "brier"], resamples=0)]
    ['0.50', '0.37']
    """
    options: dict[str, Any] = {"confidence": confidence, "resamples": resamples, "seed": seed, "progress": progress}
    check_predictions(p)
    if what == "standard":
        return Measurements(measure_if_defined(p, name, **options) for name in standard(p))
    if isinstance(what, Sequence) and not isinstance(what, str):
        return Measurements(measure(p, one, **options) for one in what)
    check_confidence(confidence)
    check_resamples(resamples)
    chosen, name = resolve(what)
    chosen.check_shape(p)
    warn_of_leak(p)
    definition = definition_of(chosen, p)
    found = estimate(chosen, p, Sampling.of(p, seed=seed, resamples=resamples, progress=progress))
    measurement = Measurement.from_estimate(name, found, confidence, n=p.n, k=p.k, definition=definition)
    if p.n > KEEP_ELEMENTS:
        p.release()
    warn_if_reversed(measurement)
    return measurement


def measure_if_defined(p: Predictions, what: What, **options: Any) -> Measurement:
    """One of the standard measures: where it does not exist on these rows, an undefined value and the reason.

    Who names a measure gets the error instead.
    """
    try:
        return measure(p, what, **options)
    except UndefinedMeasureError as error:
        chosen, name = resolve(what)
        undefined = Estimate(value=float("nan"), reason=str(error))
        return Measurement.from_estimate(name, undefined, n=p.n, k=p.k, definition=definition_of(chosen, p))


def definition_of(chosen: Measure, p: Predictions) -> str:
    """The definition of a measure for these predictions, with the notes on how their scores were made."""
    return chosen.definition_for(p) + how_read(p)


def how_read(p: Predictions) -> str:
    """The notes on how a file was read, as the end of every definition."""
    return "".join(f"; {note[:1].lower()}{note[1:].rstrip('.')}" for note in p.row_data.notes)


def warn_if_reversed(m: Measurement) -> None:
    """Warn when scores of two classes rank positives significantly below negatives: P(negative) by mistake, perhaps."""
    if m.measure == "roc_auc" and m.high is not None and m.high < 0.5:
        warnings.warn(
            f"positive rows have significantly lower scores than negative ones (ROC AUC {m.value:.2f}). {REVERSED}",
            ReversedScoresWarning,
            stacklevel=3,
        )


def warn_of_leak(p: Predictions) -> None:
    if p.row_data.seen:
        warnings.warn(
            f"the map that made these predictions was fitted on about {whole_percent(p.row_data.seen)} of them: "
            "these numbers are optimistic. Measure on held-out rows, or fit with --cross-fit.",
            LeakWarning,
            stacklevel=3,
        )


def resolve(what: What) -> tuple[Measure, str]:
    """The measure and the name of its results."""
    if isinstance(what, str):
        name, colon, options = what.partition(":")
        known = name if name.endswith(".py") else CATALOGUE.find_name(name.strip())
        return CATALOGUE.make(what), f"{known}{colon}{options}"
    if isinstance(what, FunctionMeasure):
        return what, what.name
    if isinstance(what, Measure):
        return what, spec_of(what)
    if isinstance(what, type) or not callable(what):
        is_measure = isinstance(what, type) and issubclass(what, Measure)
        raise InputError(
            "measure",
            expected='a name ("ece:bins=30"), a measure (calibrant.measures.ECE(bins=30)) or a function of predictions',
            got=f"the class {what.__name__}" if isinstance(what, type) else type(what).__name__,
            fix=f"write {what.__name__}()" if is_measure else "give one of these, or a list of them",
        )
    return resolve(FunctionMeasure(what))
