"""An analysis of predictions for the page: what it shows, computed by the library."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.curves.binning import Scheme
from calibrant.core.errors import InputError, visible
from calibrant.core.io.column_names import STANDARD_NAMES, Columns
from calibrant.core.io.formats import file_format
from calibrant.core.io.inspect_logs import is_inspect_log
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.load import load_predictions
from calibrant.core.text.vocabulary import Vocabulary, vocabulary_of
from calibrant.deciding.costs import CostRule, check_rule, read_rule
from calibrant.figures.reliability import Reliability
from calibrant.measures import make
from calibrant.measuring.example import EXAMPLES, Example, example
from calibrant.repairing.rule import UNCALIBRATED
from calibrant.reporting.build import build
from calibrant.reporting.calibration_state import assess
from calibrant.reporting.calibrator_trials import apply_candidate, calibrators_for
from calibrant.reporting.cost import CostTable
from calibrant.reporting.options import OnStep, check_class_names, check_fit_on, check_models
from calibrant.reporting.parts import Assessment, Cost, SourceFile
from calibrant.reporting.provenance import source_of
from calibrant.reporting.report import Report
from calibrant.streaming.accumulator import Accumulator
from calibrant.streaming.accumulators import Accumulators

ALL = "all rows"  # no segment
MOST_VALUES = 1000
MOST_KEPT = 12  # calibrated sets that a tab keeps
READING = threading.Lock()  # reading Parquet redirects the error output of the whole process
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Source:
    """Source of predictions: an example, or files and how they are read, so that code can name it."""

    example: str | None = None
    judged: Mapping[str, Path] = field(default_factory=dict)  # model -> file
    fitted: Mapping[str, Path] = field(default_factory=dict)
    columns: Columns = STANDARD_NAMES

    @property
    def chosen_columns(self) -> dict[str, Any]:
        """Options of `Predictions.load` that differ from the standard ones."""
        values = {field.name: getattr(self.columns, field.name) for field in fields(Columns)}
        return {name: value for name, value in values.items() if value != getattr(STANDARD_NAMES, name)}


@dataclass(frozen=True)
class View:
    """The current selection: one model, with one calibrator, in bins, in one segment."""

    model: str
    calibrator: str = UNCALIBRATED
    bins: int = 15
    scheme: Scheme = "width"
    segment: str = ALL


@dataclass(kw_only=True)
class Analysis:
    """Models on the same rows, what they are fitted on, and sets of rows that were calibrated already."""

    source: Source
    models: dict[str, Predictions]
    fits: dict[str, Predictions]
    left_out: str = ""
    values: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    cache: dict[tuple[str, str], tuple[Map | None, Predictions]] = field(default_factory=dict)

    @property
    def first(self) -> Predictions:
        return next(iter(self.models.values()))

    @property
    def words(self) -> Vocabulary:
        return vocabulary_of(self.first.task)

    @property
    def calibrators(self) -> list[str]:
        """Calibrators to choose from: those that the report tries, "identity" first."""
        fitting = next(iter(self.fits.values()), None)
        return [UNCALIBRATED, *calibrators_for(self.first, fitting, len(self.models))]

    @property
    def segments(self) -> list[str]:
        groups = self.first.groups
        names = [] if groups is None else np.unique(groups.astype(str)).tolist()
        return [ALL, *names[:200]]

    def check(self, view: View) -> View:
        """The view with values that these predictions do not have replaced by the first that they have."""
        return View(
            view.model if view.model in self.models else next(iter(self.models)),
            view.calibrator if view.calibrator in self.calibrators else UNCALIBRATED,
            min(max(int(view.bins), 5), 100),
            "mass" if view.scheme == "mass" else "width",
            view.segment if view.segment in self.segments else ALL,
        )

    def calibrate(self, view: View) -> tuple[Map | None, Predictions]:
        """The map fitted on the fitting rows, and the calibrated rows; without fitting rows, cross-fitted."""
        p = self.models[view.model]
        if view.calibrator == UNCALIBRATED:
            return None, p
        key = view.model, view.calibrator
        if key not in self.cache:
            while len(self.cache) >= MOST_KEPT:
                self.cache.pop(next(iter(self.cache)))
            self.cache[key] = apply_candidate(p, self.fits.get(view.model), view.calibrator, SEED)
        return self.cache[key]

    def rows_of(self, view: View) -> Predictions:
        """The rows of the segment, calibrated."""
        p = self.calibrate(view)[1]
        return p if view.segment == ALL else p.take(self._members(view))

    def _members(self, view: View) -> Ints:
        groups = self.first.groups
        assert groups is not None
        return np.flatnonzero(groups.astype(str) == view.segment)

    def measure(self, view: View, spec: str) -> float:
        """A measure of the rows of a view; remembered, as most do not change with the bins."""
        key = view.model, view.calibrator, view.segment, spec
        if key not in self.values:
            if len(self.values) >= MOST_VALUES:
                self.values.clear()
            self.values[key] = make(spec)(self.rows_of(view))
        return self.values[key]

    def bars(self, view: View) -> list[dict[str, Any]]:
        """The filled bins of the reliability diagram."""
        return Reliability(bins=view.bins, scheme=view.scheme).data({view.model: self.rows_of(view)})

    def rows_between(self, view: View, low: float, high: float) -> Ints:
        """Numbers of the rows with a score from low to high, the surest first."""
        p = self.calibrate(view)[1]
        inside = (p.score >= low) & (p.score <= high)
        if view.segment != ALL:
            outside = np.ones(p.n, dtype=bool)
            outside[self._members(view)] = False
            inside &= ~outside
        rows = np.flatnonzero(inside)
        return rows[np.argsort(-p.score[rows], kind="stable")]

    def row_table(self, view: View, rows: Ints) -> tuple[list[str], list[list[Any]]]:
        """Column names and values of some rows."""
        p, raw = self.calibrate(view)[1], self.models[view.model]
        names = check_class_names(None, p)
        columns: dict[str, Any] = {"row": rows}
        if p.ids is not None:
            columns["id"] = p.ids[rows]
        if p.groups is not None:
            columns["group"] = p.groups[rows]
        if p.task == "multiclass":
            columns |= {"predicted": [names[c] for c in p.predicted[rows]], "label": [names[c] for c in p.labels[rows]]}
        elif p.task == "choice":
            columns |= {"predicted": p.predicted[rows], "label": p.labels[rows]}
        columns["positive" if p.task == "binary" else "right"] = p.outcome[rows]
        columns[self.words.score] = p.score[rows]
        if view.calibrator != UNCALIBRATED:
            columns["uncalibrated"] = raw.score[rows]
        if p.weights is not None:
            columns["weight"] = p.weights[rows]
        return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]

    def cost(self, view: View, rule: CostRule) -> Cost:
        """Costs of decisions by a rule, uncalibrated and with the calibrator of the view."""
        table = CostTable(check_rule(rule, self.first))
        table.add(UNCALIBRATED, self.models[view.model])
        if view.calibrator != UNCALIBRATED:
            table.add(view.calibrator, self.calibrate(view)[1])
        return table.summary(view.calibrator)

    def assess(self, view: View) -> Assessment:
        return assess(self.rows_of(view), seed=SEED)

    def build(self, *, bins: int = 15, cost: str | None = None, on_step: OnStep | None = None) -> Report:
        """Build the whole report."""
        judged = {name: self.source.judged.get(name) for name in self.models}
        fitted = {name: self.source.fitted.get(name) for name in self.fits}
        return build(
            self.models,
            fit_on=self.fits or None,
            group_name=self.source.columns.group or "group",
            cost=None if cost is None else read_rule(cost),
            bins=bins,
            title=None if self.source.judged else f"Calibration of the example {self.source.example}",
            seed=SEED,
            sources=_sources(self.models, judged, "judged on") + _sources(self.fits, fitted, "fitted on"),
            on_step=on_step,
        )


def open_example(name: str) -> Analysis:
    """Open one of the examples that come with the package, fitted on its validation rows."""
    val, test = _example(name)
    return Analysis(source=Source(example=name), models={name: test}, fits={name: val})


@lru_cache
def _example(name: str) -> Example:
    return example(name)


def open_files(judged: Sequence[Path], fitted: Sequence[Path], columns: Columns) -> Analysis:
    """Open files of one model or of several on the same rows, and as many to fit on, or none."""
    names = _names(judged)
    if fitted and len(fitted) != len(judged):
        expected = f"{len(judged)} files to fit on, one a model and in the same order"
        raise InputError("files", expected=expected, got=str(len(fitted)), fix="drop as many, or none to cross-fit")
    source = Source(
        judged=dict(zip(names, judged, strict=True)),
        fitted=dict(zip(names, fitted, strict=True)) if fitted else {},
        columns=columns,
    )
    models, left_out = check_models({name: _load(file, columns) for name, file in source.judged.items()})
    fits = check_fit_on({name: _load(file, columns) for name, file in source.fitted.items()}, models)
    return Analysis(source=source, models=models, fits=fits, left_out=left_out)


def is_sums(file: Path) -> bool:
    """Whether this is the saved state of an accumulator, of which there is a report and nothing else."""
    return file.suffix == ".json" and not is_inspect_log(file)


def report_sums(file: Path) -> Report:
    """The report of a saved state of an accumulator."""
    try:
        try:
            sums: Accumulator | Accumulators = Accumulator.load(file)
        except InputError:
            sums = Accumulators.load(file)
        return build(sums, title=f"Calibration of {visible(file.stem)}")
    except InputError as error:
        raise InputError.with_name(error, str(file), file.name) from None


def _load(file: Path, columns: Columns) -> Predictions:
    """Load an uploaded file; messages use the name that its owner gave it."""
    try:
        with READING if file_format(file) == ".parquet" else nullcontext():
            return load_predictions(file, columns)
    except InputError as error:
        raise InputError.with_name(error, str(file), file.name) from None


def _names(files: Sequence[Path]) -> list[str]:
    """A unique name for each model: that of its file."""
    names: list[str] = []
    for file in files:
        name, more = visible(file.name.partition(".")[0] or "model"), 2
        while name in names:
            name, more = f"{visible(file.name.partition('.')[0])} ({more})", more + 1
        names.append(name)
    return names


def _sources(models: Mapping[str, Predictions], files: Mapping[str, Path | None], role: str) -> list[SourceFile]:
    return [
        source_of(p, file.name if file else name, role, file)
        for (name, p), file in zip(models.items(), files.values(), strict=True)
    ]


__all__ = ["ALL", "EXAMPLES", "Analysis", "Source", "View", "is_sums", "open_example", "open_files", "report_sums"]
