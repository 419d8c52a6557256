"""Theme of figures: colours everyone can tell apart, letters readable at 80 mm, light and dark.

Charts name styles ("gap", "whisker"), never colours, so that a page can switch the theme by switching the config.
"""

from typing import TYPE_CHECKING, Any, Literal

from calibrant.core.errors import unknown_name

if TYPE_CHECKING:
    import altair as alt

Theme = Literal["light", "dark"]

WIDTH = 236  # of one panel; with its axis about 302 pixels, which is 80 mm
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

# Okabe and Ito's colours, lightened for a dark page. The first means underconfident, the second overconfident.
COLOURS = {
    "light": ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#8c6d1f"],
    "dark": ["#5ab4ee", "#ff8a4c", "#35c99b", "#e8a3c9", "#f3bf4e", "#b3dcf7", "#b8b8b8", "#d1b25c"],
}
INK = {"light": "#1c1c1c", "dark": "#f0f0f0"}
QUIET = {"light": "#5e5e5e", "dark": "#b4b4b4"}  # axis words: contrast above 6:1 on the page
GRID = {"light": "#e6e6e6", "dark": "#343a40"}
PAGE = {"light": "#ffffff", "dark": "#15191d"}
DIVERGING = {
    "light": ["#3a8fc4", "#9cc7e0", "#f4f4f4", "#efbf9b", "#e0762a"],
    "dark": ["#5ab4ee", "#2f6487", "#22282d", "#8f4b26", "#ff8a4c"],
}
RAMP = {
    "light": ["#440154", "#3b528b", "#21918c", "#5ec962", "#d8d219"],
    "dark": ["#6a4c93", "#4c78b5", "#2aa198", "#6fd16f", "#fde725"],
}

# "40 %" on axes and in tooltips, as in every sentence.
LOCALE = {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["$", ""], "percent": "\N{NO-BREAK SPACE}%"}


def config(theme: Theme) -> dict[str, Any]:
    """The Vega-Lite config of a theme."""
    if theme not in PAGE:
        raise unknown_name("theme", str(theme), sorted(PAGE))
    ink, quiet, grid, colours = INK[theme], QUIET[theme], GRID[theme], COLOURS[theme]
    return {
        "background": PAGE[theme],
        "font": FONT,
        "padding": 5,
        "view": {"stroke": None},
        "axis": {
            "labelColor": quiet,
            "titleColor": quiet,
            "labelFontSize": 10,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 6,
            "gridColor": grid,
            "domainColor": quiet,
            "tickColor": quiet,
            "tickSize": 3,
            "labelLimit": 130,
            "labelOverlap": "greedy",
            "labelSeparation": 4,
        },
        "axisYQuantitative": {"minExtent": 32},  # so that panels above each other stand in line
        "legend": {
            "labelColor": quiet,
            "titleColor": quiet,
            "labelFontSize": 10,
            "titleFontSize": 10,
            "titleFontWeight": "normal",
            "orient": "top",
            "direction": "horizontal",
            "labelLimit": 200,
            "symbolSize": 70,
            "symbolStrokeWidth": 2.5,
            "offset": 6,
            "padding": 0,
            "columnPadding": 10,
            "rowPadding": 2,
            "gradientThickness": 8,
            "gradientLength": 150,
        },
        "title": {
            "color": ink,
            "fontSize": 11,
            "fontWeight": "bold",
            "anchor": "start",
            "frame": "group",
            "offset": 6,
            "limit": WIDTH,
        },
        "header": {"labelColor": ink, "labelFontSize": 11, "titleColor": quiet},
        "concat": {"spacing": 16},
        "locale": {"number": LOCALE},
        "range": {
            "category": colours,
            "diverging": DIVERGING[theme],
            "ramp": RAMP[theme],
            "heatmap": RAMP[theme],
            "ordinal": RAMP[theme],
        },
        "mark": {"color": colours[0]},
        "text": {"color": ink, "fontSize": 10},
        "style": {
            "diagonal": {"color": quiet, "strokeDash": [4, 4], "strokeWidth": 1},
            "reference": {"color": quiet, "strokeDash": [2, 3], "strokeWidth": 1.25},
            "curve": {"strokeWidth": 2},
            "noise": {"strokeWidth": 1.25, "strokeDash": [2, 2]},
            "mean": {"strokeWidth": 1, "strokeDash": [3, 3]},
            "class_line": {"strokeWidth": 1, "opacity": 0.6},
            "class_whisker": {"strokeWidth": 0.8, "opacity": 0.7},
            "class_dot": {"opacity": 0.9},
            "cell": {"strokeWidth": 0.5, "stroke": PAGE[theme]},
            "interval": {"color": colours[0], "strokeWidth": 2, "opacity": 0.6},
            "estimate": {"color": colours[0], "size": 45, "opacity": 1},
            "curve_dot": {"size": 22, "opacity": 1},
            "gap": {"opacity": 0.5},
            "accuracy": {"color": ink, "strokeWidth": 1.5},
            "dot": {"color": ink, "size": 14, "opacity": 1},
            "whisker": {"color": ink, "strokeWidth": 0.8},
            "count": {"color": quiet, "opacity": 0.6},
            "band": {"opacity": 0.2, "strokeWidth": 0},
            "density": {"fillOpacity": 0.25, "strokeWidth": 1.75},
            "box": {"opacity": 0.45},
            "median": {"color": ink, "strokeWidth": 2},
            "run": {"color": ink, "opacity": 0.6, "size": 12},
            "total": {"color": ink, "strokeWidth": 2},
            "cloud": {"opacity": 0.6, "size": 16},
            "note": {"color": ink, "fontSize": 11, "fontWeight": "bold"},
            "value": {"color": ink, "fontSize": 9},
            "weak_value": {"color": ink, "fontSize": 9},
            "strong_value": {"color": "#000000", "fontSize": 9},
            "label": {"color": quiet, "fontSize": 10},
        },
    }


def dress(chart: Any) -> "alt.TopLevelMixin":
    """Apply the light theme to a chart; `spec` can put it into the dark one."""
    chart._kwds["config"] = config("light")
    dressed: alt.TopLevelMixin = chart
    return dressed
