"""Figures that stand still on the page: rows computed by `calibrant.figures`, drawn once, coloured by the page."""

import html
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.parallel import one_blas_thread
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.cross_fit import most_folds
from calibrant.core.text.theme import COLOURS, GRID, INK, PAGE, QUIET, Theme
from calibrant.figures import CATALOGUE, PredictionFigure, Row, TableFigure
from calibrant.measures.nll import NLL
from calibrant.measures.refinement import Refinement
from calibrant.plotting.draw import spec
from calibrant.plotting.engine import to_svg
from calibrant.reporting import contents_by_task
from calibrant.reporting.parts import FigureData

DECOMPOSED_ELEMENTS = 1 << 21  # rows x classes; above, recalibrating once more would take too long
MOST_POINTS = 130  # of one curve
MOST_MODELS = 8  # as many as figures have colours

# The drawing is made in the light theme; names of colours let the page turn it dark without drawing it again.
VARIABLES = {INK["light"]: "--ink", QUIET["light"]: "--quiet", GRID["light"]: "--grid"} | {
    colour: f"--c{i}" for i, colour in enumerate(COLOURS["light"])
}


def compute(models: Mapping[str, Predictions], *, costs: bool = False) -> Iterator[FigureData]:
    """The rows and the words of every figure wanted; one that these rows do not allow is left out."""
    for name in contents_by_task.figures(next(iter(models.values())).task, costs=costs):
        figure = CATALOGUE.make(name)
        assert isinstance(figure, PredictionFigure)
        try:
            with _quietly():
                rows = figure.data(models)
                words = figure.words(rows)
        except InputError:  # for instance a ROC where every prediction is right
            continue
        yield FigureData(name, figure.title, words, rows)
    folds = min(map(most_folds, models.values()))
    if folds >= 2 and all(p.n * p.k <= DECOMPOSED_ELEMENTS for p in models.values()):
        with _quietly():
            decomposed = _decomposition(models, folds)
        yield decomposed


@contextmanager
def _quietly() -> Iterator[None]:
    """Without warnings of leaks, which the page gives once; and with one thread, for products are short."""
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)
        yield


def _decomposition(models: Mapping[str, Predictions], folds: int) -> FigureData:
    """The table of the loss as calibration and refinement."""
    import polars as pl

    parts = []
    for name, p in models.items():
        whole, left = NLL()(p), Refinement(folds=folds)(p)
        parts += [("NLL", name, "calibration", whole - left), ("NLL", name, "refinement", left)]
    figure = CATALOGUE.make("decomposition")
    assert isinstance(figure, TableFigure)
    rows = figure.data(pl.DataFrame(parts, schema=["score", "model", "part", "value"], orient="row"))
    return FigureData("decomposition", figure.title, figure.words(rows), rows)


def draw(figures: Iterable[FigureData]) -> list[tuple[FigureData, Future[str]]]:
    """Figures of the report as inline SVG to come: one is drawn while the next is computed."""
    with _one_thread() as engine:
        return [(figure, _begin(figure, engine)) for figure in figures]


def _begin(figure: FigureData, engine: ThreadPoolExecutor) -> Future[str]:
    chart, name = _describe(figure.figure, _thin(figure.rows)), name_of(figure.figure)
    return engine.submit(_draw, chart, figure.words, name)


@contextmanager
def _one_thread() -> Iterator[ThreadPoolExecutor]:
    """An executor of one thread that continues with its work after the block has ended."""
    engine = ThreadPoolExecutor(1)
    try:
        yield engine
    finally:
        engine.shutdown(wait=False)


def inline(figure: str, rows: list[Row], words: str, *, name: str) -> str:
    """Inline SVG: no background, colours by name, ids that nothing else of another name on the page has."""
    return _draw(_describe(figure, rows), words, name)


def _describe(figure: str, rows: list[Row]) -> dict[str, Any]:
    chart = spec(figure, rows)
    # Mixed colours have no name: such cells stay light on a dark page, and so the letters on them stay black.
    style = chart["config"]["style"] | {"weak_value": chart["config"]["style"]["strong_value"]}
    chart["config"] = chart["config"] | {"background": "transparent", "style": style}
    return chart


def _draw(chart: dict[str, Any], words: str, name: str) -> str:
    text = to_svg(chart)
    return _one_image(_own_ids(_name_colours(text[text.index("<svg") :]), name), words)


def _thin(rows: list[Row]) -> list[Row]:
    """Rows of long curves thinned out: Altair copies each row many times, and more points cannot be seen."""
    curves: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        curves.setdefault(tuple(v for v in row.values() if isinstance(v, str)), []).append(row)
    points = []
    for curve in curves.values():
        step = -(-len(curve) // MOST_POINTS)
        points += curve[:-1:step] + curve[-1:]
    return points


def _name_colours(text: str) -> str:
    def to_variable(match: re.Match[str]) -> str:
        return f'{match[1]}="var({VARIABLES[match[2].lower()]})"'

    colour = re.compile(rf'\b(fill|stroke)="({"|".join(map(re.escape, VARIABLES))})"', re.IGNORECASE)
    return _in_tags(text, lambda tag: colour.sub(to_variable, tag))


def _one_image(text: str, words: str) -> str:
    """Make the SVG one image with a label for screen readers, not hundreds of marks."""
    text = _in_tags(text, lambda tag: re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", tag))
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(words)}" ', 1)


def _own_ids(text: str, prefix: str) -> str:
    own = re.compile(r'\b(id="|href="#|[a-z-]+="url\(#)')
    return _in_tags(text, lambda tag: own.sub(rf"\g<1>{prefix}-", tag))


def _in_tags(text: str, change: Callable[[str], str]) -> str:
    """Apply a change inside the tags of an SVG only: text between them may look like attributes."""
    return re.sub(r'<(?:[^<>"]|"[^"]*")*>', lambda tag: change(tag[0]), text)


def theme_css() -> str:
    """The colours of the figures as names, light and dark, so that page and figures are of one piece."""
    light, dark = variables("light"), variables("dark")
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) "
        f"{{ :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }} }}\n"
        f"@media screen {{ :root[data-theme=dark] {{ color-scheme: dark; {dark} }} }}"
    )


def variables(theme: Theme) -> str:
    """The colours of a theme by name, as CSS."""
    named = {"--page": PAGE[theme], "--ink": INK[theme], "--quiet": QUIET[theme], "--grid": GRID[theme]}
    named |= {f"--c{i}": colour for i, colour in enumerate(COLOURS[theme])}
    # Letters need more contrast than bars.
    named["--good"] = {"light": "#00704f", "dark": COLOURS["dark"][2]}[theme]
    named["--care"] = {"light": "#8a5a00", "dark": "#f0b429"}[theme]
    named["--bad"] = {"light": "#b3261e", "dark": "#ff8a80"}[theme]
    named["--worse"] = {"light": "#ad4300", "dark": COLOURS["dark"][1]}[theme]
    return " ".join(f"{name}: {colour};" for name, colour in named.items())
