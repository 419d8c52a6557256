"""Style of the app: letters and colours of the report, in the components of Gradio."""

from typing import Any

from calibrant.app.draw import asset
from calibrant.core.text.theme import COLOURS, GRID, INK, PAGE, QUIET
from calibrant.reporting.pictures import variables

FONTS = ["-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Noto Sans", "Liberation Sans", "Arial", "sans-serif"]
MONOSPACE = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Liberation Mono", "monospace"]


def css() -> str:
    return f":root {{ {variables('light')} }}\n.dark {{ {variables('dark')} }}\n{asset('app.css')}"


def theme() -> Any:
    """A Gradio theme that loads no fonts."""
    import gradio as gr

    both = {
        "body_background_fill": PAGE,
        "background_fill_primary": PAGE,
        "background_fill_secondary": PAGE,
        "block_background_fill": PAGE,
        "body_text_color": INK,
        "body_text_color_subdued": QUIET,
        "block_label_text_color": QUIET,
        "block_title_text_color": INK,
        "block_info_text_color": QUIET,
        "border_color_primary": GRID,
        "slider_color": {name: colours[0] for name, colours in COLOURS.items()},
        "color_accent_soft": GRID,
        "button_primary_background_fill": INK,
        "button_primary_background_fill_hover": QUIET,
        "button_primary_text_color": PAGE,
    }
    values = {name: colours["light"] for name, colours in both.items()}
    values |= {f"{name}_dark": colours["dark"] for name, colours in both.items()}
    base = gr.themes.Base(
        font=FONTS, font_mono=MONOSPACE, primary_hue="blue", neutral_hue="neutral", radius_size="sm", text_size="md"
    )
    return base.set(**values, block_shadow="none", block_border_width="0px", block_label_border_width="0px")
