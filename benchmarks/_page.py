"""The page: targets with a verdict computed from the numbers, and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchmarks._clock import Lap


@dataclass(frozen=True)
class Target:
    """What was promised, and what was found; `found` is None where there is nothing to compare with."""

    promise: str
    found: float | None
    at: Literal["most", "least"]
    limit: float
    unit: str = "x"
    note: str = ""

    @property
    def met(self) -> bool:
        return self.found is not None and (self.found <= self.limit if self.at == "most" else self.found >= self.limit)

    @property
    def line(self) -> str:
        note = f" ({self.note})" if self.note else ""
        if self.found is None:
            return f"- {self.promise}: not judged{note}"
        numbers = f"{show(self.found)}{self.unit} of at {self.at} {show(self.limit)}{self.unit}"
        return f"- {self.promise}: **{'met' if self.met else 'NOT met'}**: {numbers}{note}"


@dataclass
class Section:
    """One topic of the page."""

    title: str
    words: str  # what was timed, in a few sentences
    targets: list[Target] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)  # file name -> SVG, written beside the page

    def render(self) -> str:
        pictures = [f"![{self.title}]({name})" for name in self.figures]
        return "\n\n".join([f"## {self.title}", self.words, *pictures, *self.tables])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown; the first column reads left, the others right."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(value: float) -> str:
    """Three figures: 1,234 and 12.3 and 0.0123."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ratio(peer: Lap, ours: Lap) -> float:
    return peer.best / ours.best


def small_print(laps: Mapping[str, Lap], *, numbers: bool = True) -> str:
    """Milliseconds of everyone, and the number each computed."""
    return f"<small>{'; '.join(_one(name, lap, numbers) for name, lap in laps.items())}</small>"


def _one(name: str, lap: Lap, numbers: bool) -> str:
    if not lap.ran:
        return f"{name} {lap.note}"
    number = f" ({lap.number:.4g})" if numbers else ""
    return f"{name} {show(lap.best * 1000)} ms{number}"


def page(sections: Sequence[Section], facts: Sequence[str], *, smoke: bool) -> str:
    """All of it: the verdicts first."""
    targets = [target for section in sections for target in section.targets]
    head = [
        "# Benchmarks",
        "Written by `make bench` (`python -m benchmarks`): calibrant and its peers in one run on one machine, "
        "interleaved, best of several rounds. Ratios are the peer's time over ours: higher is better for us.",
    ]
    if smoke:
        head.append("**A smoke run: tiny sizes, one round. The numbers mean nothing.**")
    verdicts = f"## Targets\n\n{sum(t.met for t in targets)} of {len(targets)} met.\n\n"
    verdicts += "\n".join(target.line for target in targets)
    machine = "## Machine\n\n" + "\n".join(f"- {fact}" for fact in facts)
    return "\n\n".join([*head, verdicts, *(section.render() for section in sections), machine]) + "\n"
