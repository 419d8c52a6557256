"""A report of an accumulator: what sums can answer, and a sentence on what they cannot."""

import hashlib
from collections.abc import Sequence

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.binning import equal_width_edges
from calibrant.core.errors import InputError, visible
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate, Normal
from calibrant.figures import CATALOGUE, PredictionFigure
from calibrant.measuring.measure import Measurement
from calibrant.reporting import sentences, verdict
from calibrant.reporting.calibration_state import rows_of, state_of
from calibrant.reporting.contents_by_task import refinement
from calibrant.reporting.parts import (
    Assessment,
    Bin,
    FigureData,
    Model,
    Noise,
    Segment,
    Segments,
    SourceFile,
)
from calibrant.reporting.provenance import provenance
from calibrant.reporting.report import Report
from calibrant.reporting.segments import summarise
from calibrant.streaming.accumulator import HISTOGRAM, RESIDUALS, Accumulator
from calibrant.streaming.accumulators import Accumulators
from calibrant.streaming.measure_sums import mean_error
from calibrant.streaming.streamable import streamable
from calibrant.streaming.sums import HISTOGRAM_BINS

DRAWS = 2000  # of errors that chance makes
BARS = 20  # of the diagram, where the sums have no ECE
LEFT_OUT = (
    "These numbers come from sums, and the rows are gone: no calibrator was tried, since calibrators are fitted on "
    "rows, and nothing is said of single classes or of groups other than the keys of the sums. Report the rows to "
    "have these."
)
CLUSTERED = "Rows came in clusters: there is no test against chance, which takes rows as independent."


def report_of_sums(
    sums: Accumulator | Accumulators,
    *,
    title: str | None = None,
    seed: int = 0,
    sources: Sequence[SourceFile] | None = None,
    command: str | None = None,
) -> Report:
    """Build the report of an accumulator; accumulators by key are its groups."""
    whole = sums if isinstance(sums, Accumulator) else sums.total()
    if whole.n == 0 or whole.task is None:
        raise InputError("report", expected="sums of at least one batch", got="none", fix="call update first")
    numbers = tuple(whole.measure_all(seed=seed))
    assessment = _assess(whole, numbers, seed)
    model = Model(
        name="all rows",
        task=whole.task,
        n=whole.n,
        k=whole.k,
        says=assessment.says,
        right=assessment.right,
        verdict=sentences.write(verdict.judge(assessment)),
        numbers=numbers,
        noise=None if _is_clustered(whole) else assessment.noise,
        bins=assessment.bins,
        notes=(*((CLUSTERED,) if _is_clustered(whole) else ()), LEFT_OUT),
        groups=None if isinstance(sums, Accumulator) else _by_key(sums),
    )
    return Report(
        title=visible(title or "Calibration of a stream"),
        bins=len(assessment.bins),
        models=(model,),
        ranking=None,
        provenance=provenance(sources or [source_of_sums(sums)], command, seed, None),
        find_figures=lambda: iter((_reliability(whole),)),
    )


def refuse_options(names: Sequence[str]) -> None:
    """Refuse options that need rows."""
    if names:
        fix = "leave them out, or report the rows"
        raise InputError("report of sums", expected="no option that needs rows", got=", ".join(names), fix=fix)


def source_of_sums(sums: Accumulator | Accumulators, name: str = "sums", sha256: str | None = None) -> SourceFile:
    """The fingerprint of a file of sums, or of the sums themselves."""
    whole = sums if isinstance(sums, Accumulator) else sums.total()
    digest = sha256 or hashlib.sha256(whole.to_json().encode()).hexdigest()
    return SourceFile(name=visible(name), role="sums", n=whole.n, k=whole.k, kind="sums", sha256=digest)


def _assess(a: Accumulator, numbers: tuple[Measurement, ...], seed: int) -> Assessment:
    sums, edges = _error_bins(a)
    count, score, outcomes = sums[:3]
    says, right = float(score.sum() / a.total), float(outcomes.sum() / a.total)
    noise = _noise(a, sums, seed)
    filled = np.maximum(count, 1e-300)
    bins = tuple(
        Bin(float(edges[i]), float(edges[i + 1]), rows_of(float(count[i])), float(s), float(h))
        for i, (s, h) in enumerate(zip(score / filled, outcomes / filled, strict=True))
    )
    total = float(a.total) if float(a.total).is_integer() else None
    auc = next((m for m in numbers if m.measure == refinement(a.task or "multiclass")), None)
    gap = _gap(a)
    gap_low, gap_high = gap.limits()
    return Assessment(
        state=state_of(a.n, says - right, noise),
        n=a.n,
        says=says,
        right=right,
        noise=noise,
        bins=bins,
        task=a.task or "multiclass",
        total=total,
        gap_low=gap_low,
        gap_high=gap_high,
        refinement=auc,
    )


def _error_bins(a: Accumulator) -> tuple[Array, Array]:
    """The bins of the ECE, or coarser ones of the histogram; and their edges."""
    name = streamable("ece").name
    if name in a.sums:
        return a.sums[name], equal_width_edges(a.sums[name].shape[1])
    coarse = a.sums[HISTOGRAM].reshape(-1, BARS, HISTOGRAM_BINS // BARS).sum(axis=2)
    return coarse, equal_width_edges(BARS)


def _noise(a: Accumulator, sums: Array, seed: int) -> Noise:
    """The error that chance alone makes: outcomes drawn from the mean score of each bin.

    Scores that differ inside a bin vary a little less than that, so the test errs on the side of chance.
    """
    count, score, outcomes, *_ = sums
    observed = float(np.abs(score - outcomes).sum() / a.total)
    if _is_clustered(a):
        return Noise(observed, float("nan"), float("nan"), float("nan"), float("nan"))
    mean = np.divide(score, count, out=np.zeros_like(score), where=count > 0)
    spread = np.sqrt(count * mean * (1 - mean) * (a.square / a.total))
    draws = np.abs(np.random.default_rng(seed).standard_normal((DRAWS, len(count))) * spread).sum(axis=1) / a.total
    reached = int((draws >= observed - 1e-12).sum())
    chance = (1 + reached) / (1 + DRAWS)
    return Noise(observed, float(draws.mean()), float(np.quantile(draws, 0.95)), chance, _gap(a).p_value())


def _is_clustered(a: Accumulator) -> bool:
    return a.clustered or a.open_reason is not None


def _gap(a: Accumulator) -> Estimate:
    """Mean score minus mean outcome; without noise where clusters may have come in parts."""
    residuals = a.sums[RESIDUALS]
    noise = None if a.open_reason else Normal(error=mean_error(residuals, a))
    return Estimate(value=float(residuals[0] / a.total), noise=noise, reason=a.open_reason)


def _by_key(sums: Accumulators) -> Segments:
    """One segment for each key."""
    rows = []
    for key, key_sums in sums.items():
        _, score, outcomes = key_sums.sums[HISTOGRAM]
        gap = _gap(key_sums)
        low, high = gap.limits()
        rows.append(
            Segment(
                name=visible(", ".join(key)),
                n=key_sums.n,
                says=float(score.sum() / key_sums.total),
                right=float(outcomes.sum() / key_sums.total),
                gap=gap.value,
                low=low,
                high=high,
                p_value=gap.p_value(),
                beyond_noise=False,
                gap_after=None,
            )
        )
    return summarise(visible(", ".join(sums.by)), rows, sums.total().task or "multiclass")


def _reliability(a: Accumulator) -> FigureData:
    """The reliability diagram of the bins, from two rows each: positive and negative outcomes at the mean score."""
    sums, edges = _error_bins(a)
    count, score, positives = sums[:3]
    mean = np.divide(score, count, out=edges[1:].copy(), where=count > 0)
    mean = np.clip(mean, np.nextafter(edges[:-1], 1), edges[1:])  # a sum of many may stray over an edge
    weights = np.concatenate([positives, count - positives])
    filled = weights > 0
    rows = np.tile(mean, 2)[filled], np.repeat([1, 0], len(mean))[filled]
    make_rows = Predictions.binary if a.task == "binary" else Predictions.from_confidence
    figure = CATALOGUE.make(f"reliability:bins={len(mean)}")
    assert isinstance(figure, PredictionFigure)
    data = figure.data({"all rows": make_rows(*rows, weights=weights[filled])})
    return FigureData(f"reliability:bins={len(mean)}", figure.title, figure.words(data), data)
