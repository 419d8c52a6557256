"""A report: its parts, and the formats it can be saved in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant.core.cached_property import cached_property
from calibrant.core.json import NOT_IN_JSON, plain
from calibrant.reporting.excerpts import facts
from calibrant.reporting.parts import FigureData, Model, Provenance, Ranking

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Report:
    """One page about one model or several. `save` writes it; in a notebook it shows itself."""

    title: str
    bins: int
    models: tuple[Model, ...]
    ranking: Ranking | None
    provenance: Provenance
    find_figures: Callable[[], Iterator[FigureData]] = field(metadata=NOT_IN_JSON, compare=False, repr=False)

    @cached_property
    def figures(self) -> tuple[FigureData, ...]:
        """The static figures: computed for the formats that show them."""
        return tuple(self.find_figures())

    def each_figure(self) -> Iterator[FigureData]:
        """The figures as they are computed, which they are once: one can be drawn while the next is on its way."""
        found = []
        for figure in self.figures if "figures" in vars(self) else self.find_figures():
            found.append(figure)
            yield figure
        vars(self)["figures"] = tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """The report for JSON: undefined numbers are None, and data that only pages draw from are left out."""
        document: dict[str, Any] = {"calibrant_report": VERSION, **plain(self), "figures": plain(self.figures)}
        for m, part in zip(self.models, document["models"], strict=True):
            part["numbers"] = [n.to_dict() | facts(n.measure, m.task) for n in m.numbers]
        return document

    def save(self, path: str | Path) -> None:
        """Save to .html, .pdf, .md or .json, whole or not at all."""
        from calibrant.reporting.write import save  # formats read a report, so they are loaded after it

        save(self, path)

    def __str__(self) -> str:
        return "\n".join(f"{m.name}: {' '.join(m.verdict.lines)} {m.verdict.text}" for m in self.models)

    def _repr_html_(self) -> str:
        from calibrant.reporting.page import frame

        return frame(self)
