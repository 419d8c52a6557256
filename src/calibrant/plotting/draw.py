"""Draw a figure into a file: compute the rows, draw them, save by suffix. Pages carry everything they need inside."""

import html
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from calibrant.core.errors import InputError, visible
from calibrant.core.files import write_whole
from calibrant.core.json import in_script
from calibrant.core.predictions import Predictions
from calibrant.core.text.theme import INK, PAGE, Theme, config
from calibrant.figures import CATALOGUE, Figure, PredictionFigure, Row, TableFigure
from calibrant.plotting.engine import to_svg, vega_lite_version
from calibrant.plotting.pdf_order import in_order

if TYPE_CHECKING:
    import polars as pl

FigureSource: TypeAlias = "Predictions | Mapping[str, Predictions] | pl.DataFrame"

SUFFIXES = (".svg", ".png", ".pdf", ".html")
PIXELS_PER_INCH = 96  # of a chart: 302 pixels are 80 mm
PRINT = 300  # pixels per inch of a PNG
MOST_MODELS = 8  # the colours of the theme


def compute(figure: str | Figure, source: "FigureSource | None") -> list[Row]:
    """Compute the rows of a figure: from predictions (one model, or several by name) or from a table."""
    drawing = CATALOGUE.make(figure) if isinstance(figure, str) else figure
    if isinstance(drawing, PredictionFigure):
        return drawing.data(name_models(source))
    if not isinstance(drawing, TableFigure):
        raise TypeError(f"{type(drawing).__name__} is neither a figure of predictions nor of a table")
    if source is None or isinstance(source, Predictions | Mapping):
        raise InputError(
            type(drawing).__name__,
            expected=f"a table with columns {', '.join(drawing.columns)}" if drawing.columns else "a table",
            got="nothing" if source is None else "predictions",
            fix="give a polars DataFrame",
        )
    return drawing.data(source)


def spec(figure: str | Figure, rows: list[Row], *, theme: Theme = "light") -> dict[str, Any]:
    """The Vega-Lite specification, with the figure's words as its alternative text."""
    drawing = CATALOGUE.make(figure) if isinstance(figure, str) else figure
    with _without_validation():
        chart = drawing.chart(rows).to_dict(validate=False)
    whole: dict[str, Any] = _visible(chart | {"config": config(theme), "description": drawing.words(rows)})
    return whole


def draw(figure: str | Figure, source: FigureSource, out: str | Path, *, theme: Theme = "light") -> str:
    """Draw into a file (.svg, .png, .pdf, .html) and return the figure's words."""
    drawing = CATALOGUE.make(figure) if isinstance(figure, str) else figure
    file = check_out(out)
    config(theme)  # a wrong theme is refused before anything is computed
    if file.suffix == ".html":
        drawing = drawing.for_page()
    rows = compute(drawing, source)
    content = _content(spec(drawing, rows, theme=theme), file.suffix, drawing.title, theme)
    write_whole(file, lambda stream: stream.write(content))
    return drawing.words(rows)


def check_out(out: str | Path) -> Path:
    """The path, if its suffix is one we can write."""
    file = Path(out)
    if file.suffix not in SUFFIXES:
        raise InputError(
            str(out),
            expected=f"a name that ends in {', '.join(SUFFIXES)}",
            got=f"'{file.suffix or file.name}'",
            fix="give the figure one of these suffixes",
        )
    return file


def page(chart: dict[str, Any], *, title: str, theme: Theme = "light") -> str:
    """One HTML file with chart, caption and libraries inside: it opens without a network."""
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle  # its stub asks for a snippet that is not needed
    return _PAGE.substitute(
        title=html.escape(title),
        words=html.escape(chart["description"]),
        ink=INK[theme],
        page=PAGE[theme],
        scheme=theme,
        libraries=bundle(vl_version=vega_lite_version()),
        chart=in_script(chart),
    )


def _visible(value: Any) -> Any:
    """Escape control characters in every text of a value: one ends the converter, and Python with it."""
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return visible(value) if isinstance(value, str) else value


def _content(chart: dict[str, Any], suffix: str, title: str, theme: Theme) -> bytes:
    import vl_convert

    if suffix == ".html":
        return page(chart, title=title, theme=theme).encode()
    scale = 72 / PIXELS_PER_INCH  # the converter counts 72 pixels to an inch
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(chart, vl_version=vega_lite_version(), scale=scale, ppi=PRINT))
    if suffix == ".pdf":
        return in_order(bytes(vl_convert.svg_to_pdf(_resize(to_svg(chart), scale))))
    return picture(chart).encode()


def picture(chart: dict[str, Any]) -> str:
    """The chart as SVG, with its description as a label."""
    label = html.escape(chart["description"])
    return to_svg(chart).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _resize(svg: str, scale: float) -> str:
    """The SVG at another size; its content is in the view box."""
    head, end, rest = svg.partition(">")
    return re.sub(r' (width|height)="([\d.]+)"', lambda m: f' {m[1]}="{float(m[2]) * scale:g}"', head) + end + rest


def _without_validation() -> AbstractContextManager[None]:
    """Altair checks each part of a chart against its schema, which takes longer than drawing it; tests validate."""
    from altair.utils.schemapi import debug_mode

    return cast("AbstractContextManager[None]", debug_mode(False))


def name_models(source: "FigureSource | None") -> Mapping[str, Predictions]:
    """Models by name; a single model needs none."""
    if isinstance(source, Predictions):
        return {"model": source}
    if not isinstance(source, Mapping) or not source or not all(isinstance(p, Predictions) for p in source.values()):
        raise InputError(
            "figure",
            expected="predictions, or several by name",
            got=type(source).__name__ if source is not None else "nothing",
            fix='give {"CE": p, "focal": q}',
        )
    if len(source) > MOST_MODELS:
        raise InputError(
            "figure",
            expected=f"at most {MOST_MODELS} models, whose colours can be told apart",
            got=str(len(source)),
            fix="draw fewer at a time",
        )
    return source


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: $scheme; }
body { margin: 1.5rem; color: $ink; background: $page; }
body { font: 15px/1.45 "Liberation Sans", Arial, Helvetica, sans-serif; }
figure { margin: 0; }
figcaption { max-width: 42rem; margin-top: .75rem; }
.vega-bind { margin-top: .5rem; }
.vega-bind label { display: flex; align-items: center; gap: .6rem; }
.vega-bind input[type=range] { width: 16rem; }
</style>
<script>$libraries</script>
</head>
<body>
<figure>
<div id="chart"></div>
<figcaption>$words</figcaption>
</figure>
<script>
vegaEmbed("#chart", $chart, {renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}})
  .then(result => { window.view = result.view; });
</script>
</body>
</html>
""")
