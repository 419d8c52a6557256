"""Board: what is known about several models that answered the same questions, as plain values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.io.missing import MissingPolicy
from calibrant.core.json import plain
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.text.table import FrameResult
from calibrant.measuring.answer_table import ConfidenceCounts
from calibrant.measuring.model_noise import BoardMeasure

State = Literal["before", "after"]  # of the repair
BoardFormat = Literal["markdown", "csv", "html", "json"]
FORMATS: tuple[BoardFormat, ...] = ("markdown", "csv", "html", "json")
SUFFIXES: dict[str, BoardFormat] = {".html": "html", ".md": "markdown", ".csv": "csv", ".json": "json"}


@dataclass(frozen=True, kw_only=True)
class BoardSettings:
    """The options that a board was computed with."""

    calibrator: str = "isotonic"
    bins: int = 15
    max_error: float = 0.05  # of the share answered
    level: float = 0.95
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of one measure over models, such as the mean of several differences."""

    value: float
    low: float
    high: float
    p_value: float

    @classmethod
    def from_estimate(cls, e: Estimate, level: float) -> "Contrast":
        low, high = e.limits(level)
        return cls(value=e.value, low=low, high=high, p_value=e.p_value())


@dataclass(frozen=True, kw_only=True)
class Score:
    """One measure of one model, and its place among the others."""

    value: float
    low: float
    high: float
    first: int  # the best rank it may have
    last: int
    group: int  # models of one group cannot be told apart from the best of it


@dataclass(frozen=True, kw_only=True)
class BoardBin:
    """One bin of the reliability diagram of a model."""

    low: float
    high: float
    rows: int
    says: float
    right: float


@dataclass(frozen=True, kw_only=True)
class BoardModel:
    """One model with one confidence."""

    name: str
    counts: ConfidenceCounts
    says: float  # mean confidence
    scores: Mapping[State, Mapping[BoardMeasure, Score]]
    bins: Mapping[State, tuple[BoardBin, ...]]
    change: Contrast | None  # of the ECE by the repair
    by_group: Mapping[str, Mapping[str, float]]  # group -> measure -> value
    reason: str | None = None  # why it is not ranked


@dataclass(frozen=True, kw_only=True)
class RankingFacts:
    """Facts about one ranking: its models, groups, and the share of pairs that differ significantly."""

    ranked: int
    groups: int
    told_apart: float  # share of pairs that differ significantly
    critical: float  # standard errors that a difference must exceed
    worse: tuple[str, ...] = field(default=(), metadata={"json": False})  # one line a model: 1 where the other is worse


@dataclass(frozen=True, kw_only=True)
class GroupAverage:
    """A group of questions: the mean of each measure over the ranked models, models being fixed."""

    group: str
    questions: int
    means: Mapping[str, Contrast]


@dataclass(frozen=True, kw_only=True)
class ConfidenceBoard:
    """All models with one of the confidences."""

    confidence: str
    models: tuple[BoardModel, ...]
    rankings: Mapping[State, Mapping[BoardMeasure, RankingFacts]]
    groups: tuple[GroupAverage, ...]

    def ordered(self, measure: BoardMeasure = "ece", state: State = "before") -> tuple[BoardModel, ...]:
        """Ranked models, best first."""
        ranked = [m for m in self.models if m.scores[state][measure].group]
        sign = 1 if measure == "ece" else -1
        return tuple(sorted(ranked, key=lambda m: sign * m.scores[state][measure].value))


Verdict = Literal["lower", "higher", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A difference of one measure in the answer to a question, with a p-value corrected for all of them."""

    measure: str  # a measure, or ece_after: the ECE after the repair
    contrast: Contrast
    p_corrected: float
    verdict: Verdict
    same_sign: int  # of the pairs that enter it, how many differ in this direction
    pairs: int


@dataclass(frozen=True, kw_only=True)
class BoardAnswer:
    """A question people ask, answered by pairs of models, or of confidences, on the same questions."""

    question: str
    how: str  # what is subtracted from what
    members: tuple[str, ...]
    effects: tuple[Effect, ...]


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """Effect of a repair that was learned elsewhere: mean ECE over models, and differences with intervals."""

    across: Literal["groups", "models"]
    names: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]  # [learned on][judged on]
    none: float
    own: float
    other: float  # learned on another group, or model
    pooled: float | None  # learned on all groups of the model
    other_minus_none: Contrast
    other_minus_own: Contrast
    helps: float  # share of pairs (learned on, judged on) in which the ECE falls


@dataclass(frozen=True, kw_only=True)
class Board(FrameResult):
    """Several models on the same questions."""

    title: str
    model_column: str
    group_column: str | None
    questions: int
    rows: int
    policy: MissingPolicy
    settings: BoardSettings
    boards: tuple[ConfidenceBoard, ...]
    answers: tuple[BoardAnswer, ...]
    transfers: tuple[Transfer, ...]
    notes: tuple[str, ...]
    definitions: Mapping[str, str]
    command: str | None = None
    source: str | None = None
    sha256: str | None = None
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = plain(self)
        return document

    def records(self) -> list[dict[str, Any]]:
        """One row for each confidence, state and model, with the columns of the CSV."""
        from calibrant.reporting.board.formats import records

        return records(self)

    def text(self, form: BoardFormat) -> str:
        """The board as "markdown", "csv", "html" or "json"."""
        if form == "html":
            from calibrant.reporting.board.page import page  # formats read a board, so they are loaded after it

            return page(self)
        if form == "markdown":
            from calibrant.reporting.board.formats import markdown

            return markdown(self)
        if form == "csv":
            from calibrant.reporting.board.formats import csv

            return csv(self)
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Save to a file, whose suffix says the format."""
        content = self.text(check_board_out(path)).encode()
        write_whole(path, lambda stream: stream.write(content))

    def _repr_html_(self) -> str:
        import html

        return (
            f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.text("html"))}" '
            'sandbox="allow-scripts" style="width:100%;height:80vh;min-height:30rem;border:1px solid #8884"></iframe>'
        )

    def __str__(self) -> str:
        return self.text("markdown").rstrip()


def check_board_out(path: str | Path) -> BoardFormat:
    """The format by the suffix of a file; asked before anything takes long."""
    form = SUFFIXES.get(Path(path).suffix.lower())
    if form is not None and not Path(path).is_dir():
        return form
    raise InputError(
        str(path),
        expected=f"a file name that ends in {', '.join(SUFFIXES)}",
        got="a folder" if Path(path).is_dir() else f"'{Path(path).suffix or Path(path).name}'",
        fix="give the board one of these suffixes",
    )
