"""Python code that repeats what was done on the page."""

from collections.abc import Mapping
from pathlib import Path

from calibrant.app.analysis import Analysis, Source, View
from calibrant.repairing.rule import UNCALIBRATED


def repeat(analysis: Analysis, view: View, cost: str | None) -> str:
    """A script: load, report, and the map of the calibrator that is looked at."""
    source, lines = analysis.source, ["import calibrant as cal"]
    if view.calibrator != UNCALIBRATED:
        lines.append("from calibrant.repairing.choose import fit_candidate")
    lines.append("")
    if source.example is not None:
        lines += [f"val, test = cal.example({source.example!r})", f"models, fit_on = {{{source.example!r}: test}}, "]
        lines[-1] += f"{{{source.example!r}: val}}"
    else:
        lines += [_load_lines("models", source.judged, source), _load_lines("fit_on", source.fitted, source)]
    options = ["models", "fit_on=fit_on or None", f"bins={view.bins}"]
    if source.columns.group is not None and source.columns.group != "none":
        lines.append(f"# Segments are by the column {source.columns.group!r}.")
    if cost is not None:
        options.append(f"cost={cost!r}")
    lines += ["", f"report = cal.report({', '.join(options)})", 'report.save("report.html")', "print(report)"]
    if view.calibrator != UNCALIBRATED:
        name = repr(view.model)
        rows = "fit_on" if analysis.fits else "models"
        lines += [
            "",
            f"calibration = fit_candidate({rows}[{name}], {view.calibrator!r})",
            'calibration.save("map.json")',
        ]
        if analysis.fits:
            lines.append(f"calibrated = calibration(models[{name}])")
    return "\n".join(lines) + "\n"


def _load_lines(name: str, files: Mapping[str, Path], source: Source) -> str:
    options = "".join(f", {key}={value!r}" for key, value in source.chosen_columns.items())
    loads = [f"    {model!r}: cal.Predictions.load({file.name!r}{options}),\n" for model, file in files.items()]
    return f"{name} = {{\n{''.join(loads)}}}" if loads else f"{name} = {{}}"
