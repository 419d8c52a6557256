"""What a report holds: plain values, frozen, ready for JSON. `build` makes them; pages and tables only read them."""

import math
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from calibrant.core.curve import Curve
from calibrant.measures._compare import Comparison

VERSION = 1

State = Literal["honest", "close", "unsure", "leaning over", "leaning under", "over", "under", "mixed"]
Outcome = Literal["as it is", "helped", "no difference shown", "made it worse", "failed"]

_PAGE_ONLY = {"page_only": True}  # fields that pages draw from and JSON leaves out


@dataclass(frozen=True)
class Number:
    """One measure with its interval, what exactly it is, and what it means to somebody who never saw it."""

    measure: str
    title: str
    value: float
    low: float | None
    high: float | None
    better: str
    definition: str
    meaning: str


@dataclass(frozen=True)
class Noise:
    """What chance alone does: ECE and gap of a perfectly calibrated model on as many rows."""

    observed: float
    expected: float
    upper: float  # 95 of 100 perfectly calibrated models stay below
    p_value: float  # how often chance alone makes an ECE as large
    gap_p_value: float  # how often it makes a gap as large


@dataclass(frozen=True)
class Verdict:
    """The page in one line and one paragraph."""

    state: State
    headline: str
    text: str


@dataclass(frozen=True)
class Tried:
    """One calibrator: what it learned, and what it changed on the rows it is judged on."""

    calibrator: str
    outcome: Outcome
    words: str
    learned: str
    parameters: dict[str, float]
    keeps_argmax: bool
    decisions_changed: int
    values: dict[str, float]
    changes: tuple[Comparison, ...]  # a is before, b is after
    curve: Curve | None = field(default=None, metadata=_PAGE_ONLY, compare=False)


@dataclass(frozen=True)
class Bin:
    """One bar of the reliability diagram."""

    low: float
    high: float
    n: int
    says: float
    right: float


@dataclass(frozen=True)
class Segment:
    """Some of the rows: what the model says there and how often it is right."""

    name: str
    n: int
    says: float
    right: float
    gap: float
    low: float
    high: float
    p_value: float
    beyond_noise: bool
    gap_after: float | None  # with the repair, where there is one


@dataclass(frozen=True)
class Segments:
    """All segments of one kind, the worst first."""

    by: str
    words: str
    beyond_noise: int
    rows: tuple[Segment, ...]


@dataclass(frozen=True)
class CostRow:
    """What deciding by these probabilities costs per row: as the model believes, and as it is."""

    calibrator: str
    answered: float  # share of rows that get an answer
    error: float  # share of the answers that are wrong; NaN without answers
    believed: float
    realised: float
    low: float
    high: float


@dataclass(frozen=True)
class Cost:
    rule: str
    words: str
    threshold: float | None
    rows: tuple[CostRow, ...]


@dataclass(frozen=True)
class Certainty:
    """How sure the numbers are, and how many rows would settle what is open."""

    half_width: float  # of the interval of the gap
    rows_wanted: int | None  # in all, to settle the open question or to sharpen the answer
    words: tuple[str, ...]


@dataclass(frozen=True)
class Drawn:
    """A figure that stands still: its rows, and what it shows in words."""

    figure: str
    title: str
    words: str
    rows: list[dict[str, Any]] = field(metadata=_PAGE_ONLY, compare=False)


@dataclass(frozen=True)
class Model:
    """Everything about the predictions of one model."""

    name: str
    n: int
    k: int
    says: float
    right: float
    verdict: Verdict
    numbers: tuple[Number, ...]
    noise: Noise
    judged_on: str
    tried: tuple[Tried, ...]  # "identity" first
    best: str  # the calibrator to use; "identity" is to leave it alone
    bins: tuple[Bin, ...]
    classes: Segments
    groups: Segments | None
    cost: Cost | None
    certainty: Certainty
    cautions: tuple[str, ...]

    def after(self, calibrator: str) -> Tried:
        return next(t for t in self.tried if t.calibrator == calibrator)


@dataclass(frozen=True)
class Pair:
    """Two models on the same rows, one comparison a measure."""

    a: str
    b: str
    changes: tuple[Comparison, ...]


@dataclass(frozen=True)
class Ranking:
    """Models from the best down by their loss, and which differences are more than noise."""

    measure: str
    order: tuple[str, ...]
    pairs: tuple[Pair, ...]
    words: str


@dataclass(frozen=True)
class Source:
    """A set of rows that went in. `sha256` is of the file, or of the numbers where there was none."""

    name: str
    role: str
    n: int
    k: int
    kind: str
    sha256: str


@dataclass(frozen=True)
class Made:
    """How the report came about: enough to make it again and to see that it is the same."""

    date: str
    command: str | None
    seed: int
    resamples: str
    versions: dict[str, str]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Report:
    """One page about one model or several. `save` writes it; in a notebook it shows itself."""

    title: str
    bins: int
    models: tuple[Model, ...]
    ranking: Ranking | None
    figures: tuple[Drawn, ...]
    made: Made

    def to_dict(self) -> dict[str, Any]:
        """For JSON: undefined numbers are None, and what only pages draw from is left out."""
        made: dict[str, Any] = {"calibrant_report": VERSION, **plain(self)}
        return made

    def save(self, path: str | Path) -> None:
        """To .html, .pdf, .md or .json, whole or not at all."""
        from calibrant.report.write import save

        save(self, path)

    def __str__(self) -> str:
        return "\n".join(f"{m.name}: {m.verdict.headline} {m.verdict.text}" for m in self.models)

    def _repr_html_(self) -> str:
        from calibrant.report.page import frame

        return frame(self)


def plain(value: Any) -> Any:
    """Numbers, words, lists and dicts only."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = [f.name for f in fields(value) if not f.metadata.get("page_only")]
        return {name: plain(getattr(value, name)) for name in shown}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
