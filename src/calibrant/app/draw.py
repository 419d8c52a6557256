"""HTML of the page's parts: numbers and sentences of the library, escaped, in the template `parts.html.jinja`."""

import base64
import html
import io
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.app.analysis import ALL, Analysis, View
from calibrant.core.errors import InputError, visible
from calibrant.core.io.preview import Preview
from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.core.text.table import csv_table
from calibrant.measuring import measure_format as mf
from calibrant.reporting import sentences
from calibrant.reporting.contents_by_task import refinement
from calibrant.reporting.excerpts import SHORT, label
from calibrant.reporting.parts import Assessment, Cost
from calibrant.reporting.report import Report
from calibrant.reporting.verdict import judge

if TYPE_CHECKING:
    from calibrant.rescoring.clamp_trials import ClampTry, Pictures

MOST_ROWS = 50  # of the table; the CSV has all
GAP = 0.25  # between bars, of 100


def part(name: str, *arguments: Any) -> str:
    """Render one macro of the template."""
    return str(getattr(_parts(), name)(*arguments))


@cache
def _parts() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.globals |= {"percent": fmt.percent, "at": lambda share: f"{100 * share:.2f}%"}
    return environment.from_string(asset("parts.html.jinja")).module


def escape(text: str) -> str:
    return html.escape(visible(text))


def asset(name: str) -> str:
    return (files("calibrant.app") / name).read_text(encoding="utf-8")


def first_verdict(a: Assessment, analysis: Analysis) -> str:
    """The verdict of `calibrant measure`, shown while the report is being written."""
    v = sentences.write(judge(a))
    cautions = [analysis.left_out] if analysis.left_out else []
    return part("verdict", v, v.headline, cautions, analysis.first.notes, a.says, a.right, analysis.words)


def report_verdict(r: Report) -> str:
    """The verdict of the whole report: of its one model, or the ranking of several."""
    m = r.models[0]
    v, says, right = m.verdict, m.says, m.right
    if r.ranking is not None:
        return part("verdict", v, r.ranking.words, m.cautions, m.notes, None, None, m.vocabulary)
    return part("verdict", v, v.lines[0], m.cautions, m.notes, says, right, m.vocabulary)


def clamp_pictures(pictures: "Pictures", before: Predictions, after: Predictions, strength: float) -> str:
    """The first images with and without delta, the network's prediction for each, and delta itself."""
    names = before.classes
    figures = [
        {
            "plain": png(plain),
            "perturbed": png(perturbed),
            "label": visible(names[before.labels[i]]),
            **{key: f"{visible(names[p.predicted[i]])} {fmt.percent(p.confidence[i])}" for key, p in versions.items()},
        }
        for versions in ({"before": before, "after": after},)
        for i, (plain, perturbed) in enumerate(zip(pictures.plain, pictures.perturbed, strict=True))
    ]
    change = f"changes a pixel by up to {strength * pictures.largest:.1f} of 255 (grey: not at all)"
    return part("pictures", figures, png(pictures.delta), change if pictures.largest else "none yet: fit one first")


def png(image: npt.NDArray[np.uint8]) -> str:
    """An image (h, w, c) as a data URL."""
    from PIL import Image

    data = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def clamp_tries(tries: "Sequence[ClampTry]") -> str:
    rows = [
        (
            t.title,
            "" if t.T is None else f"{t.T:.3g}",
            f"{t.delta_norm:.3g}",
            *(mf.value(name, t.values[name]) for name in ("accuracy", "ece", "nll", "brier")),
        )
        for t in tries
    ]
    return part("tries", rows)


def problem(error: InputError, *, question: bool = False) -> str:
    return part("problem", str(error), question)


def previews(files: dict[str, Preview]) -> str:
    return "".join(part("preview", visible(name), p.head, p.rows) for name, p in files.items())


def diagram(analysis: Analysis, view: View, region: tuple[float, float] | None, sentence: str = "") -> str:
    """The reliability diagram with the region that is chosen, if one can be, and numbers."""
    p, words = analysis.rows_of(view), analysis.words
    bars = analysis.bars(view)
    most = max(bar["share"] for bar in bars)
    return part(
        "diagram",
        [_bar(bar, most, words.over) for bar in bars],
        words,
        numbers(analysis, view),
        sentence or _sentence(view, p.n),
        region,
    )


def numbers(analysis: Analysis, view: View) -> list[tuple[str, str]]:
    """Names and values beside the diagram."""
    p, words = analysis.rows_of(view), analysis.words
    scheme = "" if view.scheme == "width" else ",scheme=mass"
    specs = {"ece": f"ece:bins={view.bins}{scheme}", "nll": "nll", refinement(p.task): refinement(p.task)}
    values = [(SHORT[name], mf.value(spec, analysis.measure(view, spec))) for name, spec in specs.items()]
    says, right = p.mean(p.score), p.mean(p.outcome)
    return [(words.says, fmt.percent(says)), (words.right, fmt.percent(right)), *values]


def _sentence(view: View, n: int) -> str:
    kind = "equal width" if view.scheme == "width" else "equal numbers of rows"
    where = "" if view.segment == ALL else f" of {visible(view.segment)}"
    name = label(view.calibrator)
    return f"{view.model}, {name}: {fmt.count(n, 'row')}{where} in {view.bins} bins of {kind}."


def _bar(bar: dict[str, Any], most: float, over: str) -> dict[str, Any]:
    low, high, says, right = (100 * bar[name] for name in ("low_edge", "high_edge", "confidence", "accuracy"))
    width = max(high - low, 0.6)
    values = {
        "x": low + GAP,
        "width": max(width - 2 * GAP, 0.3),
        "end": low + width - GAP,
        "y": 100 - max(says, right),
        "height": abs(says - right),
        "right": 100 - right,
        "middle": says,
        "top": 100 - 100 * bar["high"],
        "bottom": 100 - 100 * bar["low"],
        "strength": 0.3 + 0.6 * (bar["share"] / most) ** 0.5,
        "count_height": 14 * bar["share"] / most,
    }
    values["count_y"] = 124 - values["count_height"]
    share = f"{fmt.count(bar['count'], 'row')}: {fmt.percent(bar['confidence'])} against {fmt.percent(bar['accuracy'])}"
    side = "over" if bar["side"] == over else "under"
    return {name: f"{value:.2f}" for name, value in values.items()} | {"side": side, "title": share}


def region(analysis: Analysis, view: View, low: float, high: float, address: str) -> str:
    """Mean confidence and accuracy of the rows of a region, and the first of them; all are at the address."""
    words, rows = analysis.words, analysis.rows_between(view, low, high)
    span = f"from {fmt.percent(low)} to {fmt.percent(high)}"
    if not len(rows):
        return part("rows", f"No row has a {words.score} {span}.", [], [], "", "")
    q = analysis.calibrate(view)[1]
    w = np.ones(len(rows)) if q.weights is None else q.weights[rows]
    w = w if w.sum() else np.ones(len(rows))
    says, right = (float(np.average(of[rows], weights=w)) for of in (q.score, q.outcome))
    sentence = f"{fmt.count(len(rows), 'row')} with a {words.score} {span}: {words.says} {fmt.percent(says)}, "
    sentence += f"{words.right} {fmt.percent(right)}."
    head, table = analysis.row_table(view, rows[:MOST_ROWS])
    more = len(rows) - len(table)
    left = f"{more:,} more in the CSV file, the surest first." if more else ""
    return part("rows", sentence, head, [[_cell(value) for value in row] for row in table], address, left)


def region_csv(analysis: Analysis, view: View, low: float, high: float) -> bytes:
    """All rows of a region."""
    text = csv_table(*analysis.row_table(view, analysis.rows_between(view, low, high)))
    return text.encode("utf-8", "backslashreplace")


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return fmt.percent(float(value)) if isinstance(value, float | np.floating) else visible(str(value))


def cost_table(c: Cost) -> str:
    rows = [
        (
            label(row.calibrator),
            fmt.percent(row.accepted),
            fmt.percent(row.error),
            fmt.number(row.expected_cost),
            f"{fmt.number(row.actual_cost)} {fmt.bracket(row.low, row.high)}",
        )
        for row in c.rows
    ]
    return part("cost", c, rows)
