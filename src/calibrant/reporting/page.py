"""The report as one HTML file: interactive without a server, with no request to any network."""

import base64
import hashlib
import html
from importlib.resources import files
from typing import Any

from calibrant.core.catalogue import name_of
from calibrant.core.json import in_script
from calibrant.core.text import number_format as fmt
from calibrant.measuring import measure_format as mf
from calibrant.measuring.measure import Measurement
from calibrant.reporting import contents_by_task, pictures, sentences
from calibrant.reporting.curves import EXACT_ROWS, SCALE, pack, unit
from calibrant.reporting.excerpts import SHORT, facts, label, mini, order_trials, side_by_side
from calibrant.reporting.parts import CalibratorTrial, Model
from calibrant.reporting.report import Report

BUDGET = 2_000_000  # characters of curves; the whole page stays below 3 MB
BROAD = 420  # pixels: figures of two panels get the whole width
BESIDE_THRESHOLD = ("roc", "precision_recall")


def page(r: Report) -> str:
    """The whole file as text."""
    drawings = pictures.draw(r.each_figure())
    script = _asset("page.js")
    first = r.models[0]
    data = page_data(r) if first.trials else None
    template = _environment().get_template("page")
    figures = [(figure, _safe(svg.result())) for figure, svg in drawings]
    diagram, others = (figures, []) if data is None else ([], figures)
    beside_bins = (contents_by_task.BESIDE_BINS,)
    beside_costs = (contents_by_task.BESIDE_COSTS,) if len(r.models) == 1 else ()
    return str(
        template.render(
            r=r,
            ece=contents_by_task.ece_spec(r.bins),
            data=data,
            json=_safe(in_script(data)),
            css=_safe(_asset("page.css")),
            theme=_safe(pictures.theme_css()),
            script=_safe(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            diagram=diagram,
            figures=[pair for pair in others if pair[0].figure not in (*BESIDE_THRESHOLD, *beside_costs, *beside_bins)],
            of_bins=[pair for pair in others if pair[0].figure in beside_bins],
            of_costs=[pair for pair in others if pair[0].figure in beside_costs],
            of_threshold=[pair for pair in others if pair[0].figure in BESIDE_THRESHOLD],
            words=first.vocabulary,
            refinement=contents_by_task.refinement(first.task),
            threshold=first.task == "binary" and data is not None,
            scores_are_true=first.task == "binary",
            shown=contents_by_task.SHOWN,
        )
    )


def frame(r: Report) -> str:
    """The page in a frame for notebooks, where its styles stay inside."""
    return (
        f'<iframe title="{html.escape(r.title)}" srcdoc="{html.escape(page(r))}" sandbox="allow-scripts" '
        'style="width:100%;height:80vh;min-height:30rem;border:1px solid #8884" loading="lazy"></iframe>'
    )


def page_data(r: Report) -> dict[str, Any]:
    """The data of the page's script: sorted confidences and numbers of every model and calibrator."""
    models, notes = [], []
    for m in r.models:
        packed = _pack_trials(m, BUDGET // len(r.models))
        packable = [t for t in m.trials if t.calibrator in packed]
        if left_out := [label(t.calibrator) for t in m.trials if t.curve is not None and t not in packable]:
            notes.append(f"{m.name}: {fmt.list_words(left_out)} left out of the diagram, to keep this file small.")
        trials = [
            {"label": label(t.calibrator), "learned": t.learned, "atoms": packed[t.calibrator], "numbers": _ready(t, m)}
            for t in packable
        ]
        best = next((i for i, t in enumerate(packable) if t.calibrator == m.best), 0)
        curve = m.trials[0].curve
        weights = (
            {"unit": 1, "effective": 1} if curve is None else {"unit": unit(curve), "effective": curve.weight_unit}
        )
        models.append({"name": m.name, "trials": trials, "best": best, **weights})
    if any(m.n > EXACT_ROWS for m in r.models):
        notes.append(
            f"More than {EXACT_ROWS:,} rows: bins of equal width are exact; bins of equal numbers of rows are read "
            "from pools of neighbouring rows and may differ in the last digit."
        )
    first = r.models[0]
    data = {"scale": SCALE, "bins": r.bins, "models": models, "notes": notes, "words": vars(first.vocabulary)}
    if first.task == "binary":
        costs = (1.0, 1.0) if first.cost is None or first.cost.fn is None else (first.cost.fn, first.cost.fp)
        data["costs"] = {"fn": costs[0], "fp": costs[1]}
    return data


def _pack_trials(m: Model, budget: int) -> dict[str, str]:
    """Packed curves of as many calibrators as fit, the most important first; the first always."""
    packed: dict[str, str] = {}
    threshold = None if m.cost is None else m.cost.threshold
    for t in sorted(m.trials, key=lambda t: (t.calibrator != "identity", t.calibrator != m.best)):
        atoms = "" if t.curve is None else pack(t.curve, threshold)
        if atoms and (not packed or sum(map(len, packed.values())) + len(atoms) <= budget):
            packed[t.calibrator] = atoms
    return packed


def _ready(t: CalibratorTrial, m: Model) -> dict[str, str]:
    return {name: mf.value(name, t.values[name]) for name in ("nll", "brier", contents_by_task.refinement(m.task))}


def _environment() -> Any:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"page": _asset("page.html.jinja")}), autoescape=True, undefined=StrictUndefined
    )
    environment.filters |= {"nb": _no_break, "first_sentence": _first_sentence, "other_sentences": _other_sentences}
    environment.globals |= {
        "percent": fmt.percent,
        "value": lambda *a: _minus(mf.value(*a)),
        "change": lambda *a: _minus(mf.change(*a)),
        "interval": lambda *a: _minus(mf.interval(*a)),
        "change_interval": lambda *a: _minus(mf.change_interval(*a)),
        "between": lambda low, high: " to ".join(fmt.apart([low, high], 4)),
        "number": fmt.number,
        "count": fmt.count,
        "chance": fmt.chance,
        "short": lambda measure: SHORT[name_of(measure)],
        "label": label,
        "judged": sentences.describe_judging,
        "choice": sentences.choice,
        "compared_first": order_trials,
        "mini": mini,
        "measured": lambda n: _minus(mf.measured(n.measure, n.value, n.low, n.high)[0]),
        "interval_or_why": _interval_or_why,
        "badge": sentences.badge,
        "facts": facts,
        "glossary": sentences.glossary,
        "tones": sentences.COLOURS,
        "shown_numbers": side_by_side,
        "most_ece": lambda m: max(v for t in m.trials for name, v in t.values.items() if name_of(name) == "ece") or 1,
        "broad": lambda svg: float(svg.partition('width="')[2].partition('"')[0]) > BROAD,
        "at": lambda share: f"{100 * share:.2f}%",
    }
    return environment


def _interval_or_why(n: Measurement) -> str:
    """Format both ends of an interval, or say why there are none."""
    if n.value != n.value:
        return "no interval: undefined on these rows"
    if n.low is None or n.high is None:
        return "no interval: not resampled"
    return _minus(mf.measured(n.measure, n.value, n.low, n.high)[1])


def _no_break(text: str) -> Any:
    """Keep a number and its unit on one line."""
    from markupsafe import escape

    return escape(text).replace(" %", "\N{NO-BREAK SPACE}%").replace(" points", "\N{NO-BREAK SPACE}points")


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


def _other_sentences(text: str) -> str:
    return text.partition(". ")[2]


def _safe(text: str) -> Any:
    """Mark text as HTML of our own, so that it is not escaped again."""
    from markupsafe import Markup

    return Markup(text)


def _asset(name: str) -> str:
    return files("calibrant.reporting").joinpath(name).read_text(encoding="utf-8")
