"""The report of an analysis as files. Those of the examples are written once and shared."""

from dataclasses import dataclass
from functools import lru_cache

from calibrant.app.analysis import Analysis, open_example
from calibrant.app.card import card_png
from calibrant.reporting.options import OnStep
from calibrant.reporting.page import page
from calibrant.reporting.report import Report


@dataclass(frozen=True)
class ReportFiles:
    """A report, its page and its picture."""

    report: Report
    html: bytes
    card: bytes


def write_report(analysis: Analysis, cost: str | None = None, on_step: OnStep | None = None) -> ReportFiles:
    if analysis.source.example is not None and cost is None:
        return _of_example(analysis.source.example)
    return _files(analysis.build(cost=cost, on_step=on_step))


@lru_cache
def _of_example(name: str) -> ReportFiles:
    return _files(open_example(name).build())


def _files(report: Report) -> ReportFiles:
    return ReportFiles(report, page(report).encode(), card_png(report))
