"""The page: a header that says what this is, and the tabs."""

import html
from pathlib import Path
from typing import Any

import gradio as gr

from calibrant.app.clamp_tab import ClampTab
from calibrant.app.predictions_tab import PredictionsTab
from calibrant.app.session import Sessions

PAGES = Path(__file__).parent / "pages"  # static pages that also work from disk
TITLES = {"understand": "Understand", "quiz": "Quiz", "architectures": "Architectures"}
HEADER = """<div class="cal"><h1>calibrant: is a classifier calibrated?</h1>
<p>Drop a file of predictions, or look at the example: does the model say 90 % where it is right 90 % of the time?
<span class="note">Nothing leaves this machine.</span></p></div>"""
HEADER_PUBLIC = HEADER.replace("Nothing leaves this machine.", "Files are deleted when you close the page.")


def build(sessions: Sessions, run: Path | None, *, public: bool = False) -> Any:
    """Build the page: all tabs in one Blocks."""
    with gr.Blocks(title="calibrant", analytics_enabled=False) as blocks:
        gr.HTML(HEADER_PUBLIC if public else HEADER)
        with gr.Tabs():
            with gr.Tab("Your predictions", id="predictions"):
                predictions = PredictionsTab(sessions)
            with gr.Tab("Clamp a network", id="clamp") as clamp:
                clamping = ClampTab(sessions, run)
            for name, title in TITLES.items():
                if (PAGES / f"{name}.html").is_file():
                    with gr.Tab(title, id=name):
                        address = html.escape(f"/pages/{name}.html")
                        gr.HTML(f'<iframe class="page" src="{address}" title="{title}" loading="lazy"></iframe>')
        started = blocks.load(predictions.begin, **predictions.start, show_progress="hidden")
        started.success(
            predictions.write_report,
            [predictions.rule, predictions.threshold, predictions.first_cost, predictions.second_cost],
            predictions.report_outputs,
            concurrency_id="report",
        )
        first_seen = [clamping.introduction, clamping.diagram, clamping.pictures, clamping.tries]
        clamp.select(clamping.open, None, first_seen, show_progress="hidden")

        def end(request: gr.Request) -> None:
            sessions.end(request)

        blocks.unload(end)
    return blocks
