"""A report from sums: what an accumulator can still answer, and a sentence on what it cannot."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core import wording
from calibrant.core.arrays import Array
from calibrant.core.curve import equal_width_edges
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError, visible
from calibrant.core.extras import Shape
from calibrant.core.plain import plain
from calibrant.core.predictions import Predictions
from calibrant.core.spoken import Spoken, spoken
from calibrant.figures import CATALOGUE, PredictionFigure
from calibrant.measures import make
from calibrant.measuring.accumulate import Accumulator
from calibrant.measuring.accumulators import Accumulators
from calibrant.measuring.streamable import HISTOGRAM, state_name
from calibrant.reporting import meanings, verdict
from calibrant.reporting.finding import Finding, rows_of, state_of
from calibrant.reporting.provenance import how_made
from calibrant.reporting.report import Bin, Drawn, Made, Noise, Number, SourceFile, Verdict
from calibrant.reporting.tables import ARROWS

VERSION = 1
DRAWS = 2000  # of errors that chance makes
BARS = 20  # of the diagram, where the sums have no ECE
LEFT_OUT = (
    "These numbers come from sums, and the rows are gone: no calibrator was tried, since repairs are fitted on rows, "
    "and nothing is said of single classes or of groups other than the keys of the sums. Report the rows to have these."
)
CLUSTERED = "Rows came in clusters, whose shared errors sums do not keep: there are no intervals and no test."


@dataclass(frozen=True)
class Part:
    """One key of accumulators: what it says and how often it is right."""

    name: str
    n: int
    says: float
    right: float


@dataclass(frozen=True)
class SumsReport:
    """One page about a stream. `save` writes it; what it holds is plain."""

    title: str
    shape: Shape
    n: int
    k: int
    says: float
    right: float
    verdict: Verdict
    numbers: tuple[Number, ...]
    noise: Noise | None  # where rows came one by one
    bins: tuple[Bin, ...]
    by: str
    parts: tuple[Part, ...]
    figure: Drawn
    notes: tuple[str, ...]
    made: Made

    @property
    def spoken(self) -> Spoken:
        return spoken(self.shape)

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"calibrant_sums_report": VERSION, **plain(self)}
        return made

    def save(self, path: str | Path) -> None:
        """To .html, .pdf, .md or .json, whole or not at all."""
        from calibrant.reporting.write import check_out

        file = check_out(path)
        content = _content(self, file.suffix.lower())
        write_whole(file, lambda stream: stream.write(content))

    def __str__(self) -> str:
        return f"{self.verdict.headline} {self.verdict.text}"

    def _repr_html_(self) -> str:
        from calibrant.reporting.sums_page import frame

        return frame(self)


def sums_report(
    sums: Accumulator | Accumulators,
    *,
    title: str | None = None,
    seed: int = 0,
    file: Path | None = None,
    command: str | None = None,
) -> SumsReport:
    """A report of everything that was added up; accumulators by key are told apart in a table."""
    whole = sums if isinstance(sums, Accumulator) else sums.total()
    if whole.n == 0 or whole.shape is None:
        raise InputError("report", expected="sums of at least one batch", got="none", fix="call update first")
    found = _find(whole, seed)
    said = verdict.of_predictions(found) if found.noise.p_value == found.noise.p_value else _untested(found)
    each = {} if isinstance(sums, Accumulator) else {", ".join(key): one for key, one in sums.items()}
    name = file.name if file is not None else "sums"
    digest = hashlib.sha256(file.read_bytes() if file is not None else whole.to_json().encode()).hexdigest()
    source = SourceFile(visible(name), "sums", whole.n, whole.k, "sums", digest)
    return SumsReport(
        visible(title or f"Calibration of {file.stem if file is not None else 'a stream'}"),
        whole.shape,
        whole.n,
        whole.k,
        found.says,
        found.right,
        said,
        _numbers(whole, seed),
        None if whole.clustered else found.noise,
        found.bins,
        "" if isinstance(sums, Accumulator) else visible(", ".join(sums.by)),
        _parts(each),
        _figure(whole),
        (*((CLUSTERED,) if whole.clustered else ()), LEFT_OUT),
        how_made([source], command, seed, None),
    )


def _find(a: Accumulator, seed: int) -> Finding:
    sums, edges = _error_bins(a)
    count, score, hits = sums[:3]
    says, right = float(score.sum() / a.total), float(hits.sum() / a.total)
    noise = _noise(a, sums, seed)
    filled = np.maximum(count, 1e-300)
    bins = tuple(
        Bin(float(edges[i]), float(edges[i + 1]), rows_of(float(count[i])), float(s), float(h))
        for i, (s, h) in enumerate(zip(score / filled, hits / filled, strict=True))
    )
    return Finding(state_of(a.n, says - right, noise), a.n, says, right, noise, bins, a.shape or "classes")


def _error_bins(a: Accumulator) -> tuple[Array, Array]:
    """The bins of the ECE, or coarser ones of the histogram; and their edges."""
    ece = make("ece")
    name = state_name(ece, "ece")
    if name in a.sums:
        return a.sums[name], equal_width_edges(a.sums[name].shape[1])
    coarse = a.sums["histogram"].reshape(-1, BARS, HISTOGRAM // BARS).sum(axis=2)
    return coarse, equal_width_edges(BARS)


def _noise(a: Accumulator, sums: Array, seed: int) -> Noise:
    """The error against what chance makes: hits drawn from the mean score of each bin.

    Scores that differ inside a bin vary a little less than that, so the test errs on the side of chance.
    """
    count, score, hits, square, cross = sums
    observed = float(np.abs(score - hits).sum() / a.total)
    if a.clustered:
        return Noise(observed, float("nan"), float("nan"), float("nan"), float("nan"))
    mean = np.divide(score, count, out=np.zeros_like(score), where=count > 0)
    spread = np.sqrt(count * mean * (1 - mean) * (a.square / a.total))
    draws = np.abs(np.random.default_rng(seed).standard_normal((DRAWS, len(count))) * spread).sum(axis=1) / a.total
    reached = int((draws >= observed - 1e-12).sum())
    gap = float((score - hits).sum() / a.total)
    error = float(np.sqrt(max(square.sum() - 2 * gap * cross.sum() + gap**2 * a.square, 0.0)) / a.total)
    chance = (1 + reached) / (1 + DRAWS)
    return Noise(observed, float(draws.mean()), float(np.quantile(draws, 0.95)), chance, _two_sided(gap, error))


def _two_sided(gap: float, error: float) -> float:
    from scipy.special import erfc

    return float(erfc(abs(gap) / error / 2**0.5)) if error > 0 else float(gap == 0)


def _untested(found: Finding) -> Verdict:
    words = spoken(found.shape)
    says, right, error = (wording.percent(share) for share in (found.says, found.right, found.noise.observed))
    headline = f"{words.says_on_average} {says}; {words.rate_on_average} {right}."
    text = f"Its calibration error (ECE) is {error}; how much of it is chance, sums of rows in clusters do not tell."
    return Verdict("unsure", headline, text)


def _numbers(a: Accumulator, seed: int) -> tuple[Number, ...]:
    made = []
    for m in a.measure_all(seed=seed):
        chosen = make(m.measure)
        try:
            meaning = meanings.meaning(m.measure, a.shape or "classes")
        except KeyError:  # measures that no other report shows
            meaning = ""
        better = ARROWS[chosen.direction]
        made.append(Number(m.measure, chosen.title, m.value, m.low, m.high, better, m.definition, meaning))
    return tuple(made)


def _parts(each: Mapping[str, Accumulator]) -> tuple[Part, ...]:
    made = []
    for name, one in each.items():
        _, score, hits, *_ = one.sums["histogram"]
        made.append(Part(visible(name), one.n, float(score.sum() / one.total), float(hits.sum() / one.total)))
    return tuple(sorted(made, key=lambda part: -abs(part.says - part.right)))


def _figure(a: Accumulator) -> Drawn:
    """The diagram of the same bins: two rows for each, one for its hits and one for its misses, at its mean score."""
    sums, edges = _error_bins(a)
    count, score, hits = sums[:3]
    mean = np.divide(score, count, out=edges[1:].copy(), where=count > 0)
    mean = np.clip(mean, np.nextafter(edges[:-1], 1), edges[1:])  # a sum of many may stray over an edge
    weights = np.concatenate([hits, count - hits])
    kept = weights > 0
    rows = np.tile(mean, 2)[kept], np.repeat([1, 0], len(mean))[kept]
    make_rows = Predictions.binary if a.shape == "binary" else Predictions.from_confidence
    figure = CATALOGUE.make(f"reliability:bins={len(mean)}")
    assert isinstance(figure, PredictionFigure)
    drawn = figure.data({"all rows": make_rows(*rows, weights=weights[kept])})
    return Drawn(f"reliability:bins={len(mean)}", figure.title, figure.words(drawn), drawn)


def _content(r: SumsReport, suffix: str) -> bytes:
    from calibrant.reporting import sums_page

    if suffix == ".json":
        return (json.dumps(r.to_dict(), indent=2, allow_nan=False) + "\n").encode()
    if suffix == ".md":
        return sums_page.markdown(r).encode()
    if suffix == ".html":
        return sums_page.page(r).encode()
    from calibrant.reporting.pdf import print_page

    return print_page(sums_page.page(r))
