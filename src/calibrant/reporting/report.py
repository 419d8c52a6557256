"""A report: its parts, and the formats it can be saved in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.core.json import plain
from calibrant.reporting.parts import FigureData, Model, Provenance, Ranking

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Report:
    """One page about one model or several. `save` writes it; in a notebook it shows itself."""

    title: str
    bins: int
    models: tuple[Model, ...]
    ranking: Ranking | None
    figures: tuple[FigureData, ...]
    provenance: Provenance

    def to_dict(self) -> dict[str, Any]:
        """The report for JSON: undefined numbers are None, and data that only pages draw from are left out."""
        document: dict[str, Any] = {"calibrant_report": VERSION, **plain(self)}
        return document

    def save(self, path: str | Path) -> None:
        """Save to .html, .pdf, .md or .json, whole or not at all."""
        from calibrant.reporting.write import save  # formats read a report, so they are loaded after it

        save(self, path)

    def __str__(self) -> str:
        return "\n".join(f"{m.name}: {m.verdict.headline} {m.verdict.text}" for m in self.models)

    def _repr_html_(self) -> str:
        from calibrant.reporting.page import frame

        return frame(self)
