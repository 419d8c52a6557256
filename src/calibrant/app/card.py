"""A picture of the verdict, 1200 x 630 pixels, for a chat or a slide."""

import textwrap
from typing import Any

from calibrant.app.draw import asset
from calibrant.core.catalogue import name_of
from calibrant.core.errors import visible
from calibrant.core.text import number_format as fmt
from calibrant.core.text.theme import COLOURS, GRID, INK, PAGE, QUIET
from calibrant.reporting.excerpts import mini
from calibrant.reporting.parts import CalibratorTrial, Model
from calibrant.reporting.report import Report

TONES = {"green": "#00704f", "amber": "#8a5a00", "red": "#b3261e", "grey": QUIET["light"]}


def card_png(r: Report) -> bytes:
    """The card as PNG."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(card_svg(r)))


def card_svg(r: Report) -> str:
    from jinja2 import Environment, StrictUndefined

    m = r.models[0]
    several = r.ranking is not None
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(asset("card.svg.jinja")).render(
        page=PAGE["light"],
        ink=INK["light"],
        quiet=QUIET["light"],
        grid=GRID["light"],
        tone=TONES[m.verdict.colour],
        over=COLOURS["light"][1],
        under=COLOURS["light"][0],
        title=visible(r.title)[:80],
        headline=textwrap.wrap(r.ranking.words if several and r.ranking else m.verdict.lines[0], 27)[:5],
        action=textwrap.wrap(m.verdict.action, 44)[:3],
        diagrams=_diagrams(m, r.bins),
        score=m.vocabulary.score,
        right=m.vocabulary.right,
        source=f"{fmt.count(m.n, 'row')}, {r.provenance.date}",
        version=r.provenance.versions["calibrant"],
    )


def _diagrams(m: Model, bins: int) -> list[dict[str, Any]]:
    trials = [m.after("identity")] if m.trials else []
    if m.repair:
        trials.append(m.after(m.best))
    return [_diagram(t, bins) for t in trials if t.curve is not None]


def _diagram(t: CalibratorTrial, bins: int) -> dict[str, Any]:
    assert t.curve is not None
    ece = next(value for name, value in t.values.items() if name_of(name) == "ece")
    name = "uncalibrated" if t.calibrator == "identity" else t.calibrator
    return {"title": f"{name}: ECE {fmt.percent(ece)}", "bars": mini(t.curve, bins)}
