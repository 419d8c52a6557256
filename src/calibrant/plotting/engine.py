"""Charts drawn as SVG: in this process, or in one of its own that a command has started.

The converter holds Python's lock while it starts and while it draws, so in a thread it would stop all other threads.
This file is also what that process runs: a chart a line comes in, an SVG a line goes out.
"""

import atexit
import json
import signal
import sys
from contextlib import suppress
from importlib import import_module
from subprocess import PIPE, Popen
from threading import Lock, Thread
from typing import Any

_process: Popen[str] | None = None
_turn = Lock()  # one chart at a time: answers come in the order of questions

# Axes, a legend, an area, a line, a text: what figures are made of, so that the engine has compiled it when they come.
FIRST_CHART = {
    "data": {"values": [{"x": 0, "y": 0, "c": "a"}, {"x": 1, "y": 1, "c": "a"}]},
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "color": {"field": "c", "type": "nominal"}},
    "hconcat": [
        {
            "layer": [
                {"mark": mark, "encoding": {"y": {"field": "y", "type": "quantitative"}}}
                for mark in ("area", "line", "circle", "text")
            ]
        }
    ]
    * 2,
}


def start() -> None:
    """Start the drawing process, and a thread that loads Altair, while numbers are computed."""
    global _process
    with _turn:
        if _process is None:
            command = [sys.executable, "-P", __file__]  # -P: nothing is loaded from the folder it is started in
            with suppress(OSError):  # no more processes allowed: this one draws
                _process = Popen(command, stdin=PIPE, stdout=PIPE, text=True, encoding="utf-8")
            atexit.register(_stop)
            Thread(target=import_module, args=("altair",)).start()


def to_svg(chart: dict[str, Any]) -> str:
    """Draw a Vega-Lite specification as SVG."""
    version = vega_lite_version()
    svg = _ask([chart, version])
    if svg is not None:
        return svg
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart, vl_version=version))


def vega_lite_version() -> str:
    """The Vega-Lite that Altair writes, as the converter names it."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def _ask(question: list[Any]) -> str | None:
    """Ask the process for an SVG; None where there is no process, or it has ended or refused the chart."""
    global _process
    with _turn:
        if _process is None or _process.stdin is None or _process.stdout is None:
            return None
        try:
            print(json.dumps(question), file=_process.stdin, flush=True)
            answer = _process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            _stop()
            return None
    svg: str | None = json.loads(answer)
    return svg


def _stop() -> None:
    global _process
    if _process is not None:
        _process.kill()
        _process.communicate()
        _process = None


def _serve() -> None:
    """Answer until nobody asks: an SVG, or null for a chart that the converter refuses."""
    import vl_convert

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process ends it
    vl_convert.vegalite_to_svg(FIRST_CHART)
    for line in sys.stdin:
        chart, version = json.loads(line)
        svg = None
        with suppress(ValueError):
            svg = str(vl_convert.vegalite_to_svg(chart, vl_version=version))
        print(json.dumps(svg), flush=True)


if __name__ == "__main__":
    _serve()
