"""Figures of a study's page: a measure over bins, epochs, entries or seeds, and reliability diagrams."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from calibrant.core.curves.binning import Binning
from calibrant.core.predictions import Predictions
from calibrant.measuring import measure_format as mf
from calibrant.studying.expand_plan import StudyCell
from calibrant.studying.plan import Drawing, Label
from calibrant.studying.study import Study

COLOURS = 8  # of the page: as many lines a figure may have
WIDTH, HEIGHT = 420, 200  # pixels inside the axes
TICKS = 8  # labels below a figure

Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A line of a figure: points in pixels, and their description in words."""

    name: str
    points: list[tuple[float, float]]
    words: str


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """A figure with everything in pixels, ready for the page."""

    title: str
    lines: list[Line]
    ticks: list[tuple[float, str]] = field(default_factory=list)
    low: str = ""
    high: str = ""
    joined: bool = True  # points of a line belong together
    bars: bool = False  # a reliability diagram for each line: confidence and accuracy of its bins, between 0 and 1


def drawings(study: Study, rows: list[Row]) -> list[PageFigure]:
    """All figures of the plan for which there are rows or files."""
    return [drawing for figure in study.plan.figure for drawing in _of_places(study, figure, rows)]


def _of_places(study: Study, figure: Drawing, rows: list[Row]) -> Iterator[PageFigure]:
    axes = [axis for axis in study.plan.grid if axis != "seed"]
    if figure.over == "epochs":
        rows = _logs(study, figure.measure)
    for place in dict.fromkeys(tuple(cell.place[axis] for axis in axes) for cell in study.cells):
        where = dict(zip(axes, place, strict=True))
        title = f"{figure.title}: {', '.join(map(str, place))}"
        if figure.over == "reliability":
            chart = _reliability(study, figure, where, title)
        else:
            own = [r for r in rows if all(r[axis] == value for axis, value in where.items())]
            chart = _curves(title, figure, _values(study, figure, own))
        if chart.lines:
            yield chart


def _values(study: Study, figure: Drawing, rows: list[Row]) -> dict[str, dict[str, list[float]]]:
    """Values over seeds, by line and by place on the axis."""
    entries = (figure.entries or list(study.plan.rows))[:COLOURS]
    if figure.over == "epochs":
        return _group(rows, [e for e in entries if e in study.plan.methods], "method", "epoch")
    rows = [r for r in rows if r["set"] == figure.set]
    if figure.over == "bins":
        counts = {name: str(count) for count, name in sorted(study.plan.over_bins(figure.measure).items())}
        binned = [{**r, "bins": counts[r["measure"]]} for r in rows if r["measure"] in counts]
        groups = _group(binned, entries, "entry", "bins")
        return {entry: {n: at[n] for n in counts.values() if n in at} for entry, at in groups.items()}
    rows = [r for r in rows if r["measure"] == figure.measure]
    if figure.over == "seeds":
        return {e: {e: values} for e in entries if (values := [r["value"] for r in rows if r["entry"] == e])}
    by_entry = {e: [r["value"] for r in rows if r["entry"] == e] for e in entries}
    return {figure.measure: {e: values for e, values in by_entry.items() if values}} if any(by_entry.values()) else {}


def _group(rows: list[Row], lines: list[str], line: str, at: str) -> dict[str, dict[str, list[float]]]:
    groups: dict[str, dict[str, list[float]]] = {}
    for name in lines:
        for row in rows:
            if row[line] == name:
                groups.setdefault(name, {}).setdefault(str(row[at]), []).append(row["value"])
    return groups


def _curves(title: str, figure: Drawing, values: dict[str, dict[str, list[float]]]) -> PageFigure:
    """Means over seeds as lines; over seeds themselves, every value as a dot."""
    places = list(dict.fromkeys(place for line in values.values() for place in line))
    numbers = [v for line in values.values() for seed_values in line.values() for v in seed_values]
    if not numbers:
        return PageFigure(title=title, lines=[])
    low, high = min(0.0, *numbers), max(numbers)
    x = {place: WIDTH * (i + 0.5) / len(places) for i, place in enumerate(places)}

    def y(value: float) -> float:
        return HEIGHT * (1 - (value - low) / ((high - low) or 1.0))

    dots, measure = figure.over == "seeds", figure.measure.removeprefix("val_").removeprefix("test_")
    lines = []
    for name, line in values.items():
        points = [
            (x[at], y(v)) for at, seed_values in line.items() for v in (seed_values if dots else [fmean(seed_values)])
        ]
        last = fmean(list(line.values())[-1])
        words = f"{name}: {mf.value(measure, last)}{' on average' if dots else f' at {list(line)[-1]}'}"
        lines.append(Line(name, points, words))
    step = -(-len(places) // TICKS)
    ticks = [(x[place], place) for place in places[::step]]
    return PageFigure(
        title=title, lines=lines, ticks=ticks, low=mf.value(measure, low), high=mf.value(measure, high), joined=not dots
    )


def _logs(study: Study, column: str) -> list[Row]:
    """A row for each epoch of each training that has this column in its log."""
    cells: dict[str, list[StudyCell]] = {}  # several cells may be one training
    for cell in study.cells:
        cells.setdefault(cell.jobs[0].key, []).append(cell)
    rows = study.store.rows("train", cells)
    if column not in rows.columns:
        return []
    epochs = rows.select("job", "epoch", column).drop_nulls().sort("epoch").rows()
    return [
        {**cell.place, "method": cell.method, "epoch": epoch, "value": value}
        for job, epoch, value in epochs
        for cell in cells[job]
    ]


def _reliability(study: Study, figure: Drawing, where: dict[str, Label], title: str) -> PageFigure:
    """Confidence and accuracy in the bins of one training each, from the predictions that its job left."""
    plan, lines = study.plan, []
    for name in (figure.entries or list(plan.methods))[:COLOURS]:
        entry = plan.rows[name]
        cells = [c for c in study.cells if c.method == entry.method and where.items() <= c.place.items()]
        file = _predictions(study, cells[-1], entry.rescorer) if cells and entry.calibrator == "identity" else None
        if file is not None and file.exists():
            bins = Predictions.load(file, allow_few_rows=True).top_label.bins(Binning(figure.bins))
            pairs = zip(bins.share, bins.confidence, bins.accuracy, strict=True)
            points = [(float(confidence), float(accuracy)) for share, confidence, accuracy in pairs if share > 0]
            lines.append(Line(name, points, name))
    return PageFigure(title=title, lines=lines, bars=True)


def _predictions(study: Study, cell: StudyCell, rescorer: str) -> Path:
    rescored = [job for job in cell.jobs if job.kind == "rescore"]
    job = rescored[cell.judge.options["rescorers"].index(rescorer)] if rescorer else cell.jobs[0]
    return study.store.files(job.key) / "test.npz"
