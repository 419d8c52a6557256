"""The tab "Clamp a network": a temperature and a perturbation by hand, fits with progress, and a table of tries."""

import threading
from pathlib import Path
from typing import Any

import gradio as gr

from calibrant.app import draw
from calibrant.app.analysis import Analysis, Source, View
from calibrant.app.session import Session, Sessions
from calibrant.app.tell import tell
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.data import CLAMP_RUN

Updates = dict[Any, Any]
PROGRESS = gr.Progress()
NETWORK = "network"
CLOCK = "(...all) => [...all.slice(0, -1), performance.now()]"
LEAST_T, MOST_T = 0.2, 5  # of the slider
BUTTONS = {
    "temperature": "Temperature scaling",
    "vector": "Vector scaling",
    "clamping_ce": "Neural Clamping, cross-entropy",
    "clamping_focal": "Neural Clamping, focal loss",
    "clamping_gamma": "Neural Clamping, search gamma",
}
INTRODUCTION = """<div class="cal"><p class="lead">{name}. It is frozen: a clamp adds one picture, delta, to every input
and divides the logits by one temperature T. Move the sliders, or fit both on {calibration:,} validation images; all
of the below is measured on {judged:,} test images.</p></div>"""
NO_TORCH = """<div class="cal"><p>A network needs PyTorch: <code>pip install 'calibrant[train]'</code>.</p></div>"""


class ClampTab:
    """Components of the tab and their actions."""

    def __init__(self, sessions: Sessions, run: Path | None) -> None:
        self.sessions, self.run = sessions, run or CLAMP_RUN
        self.introduction = gr.HTML(elem_id="clamp-introduction")
        with gr.Row():
            with gr.Column(scale=4, min_width=300):
                self.T = gr.Slider(LEAST_T, MOST_T, value=1, step=0.01, label="temperature T", elem_id="temperature")
                self.strength = gr.Slider(0, 3, value=1, step=0.05, label="strength of delta", elem_id="strength")
                self.keep = gr.Button("Keep this try", size="sm", elem_id="keep-try")
                self.buttons = {
                    method: gr.Button(title, size="sm", elem_id=f"fit-{method}") for method, title in BUTTONS.items()
                }
                self.cancel = gr.Button("Cancel", variant="stop", size="sm", elem_id="cancel", interactive=False)
                self.status = gr.HTML(elem_id="clamp-status", min_height=48)
            with gr.Column(scale=7, min_width=320):
                self.diagram = gr.HTML(elem_id="clamp-diagram")
        self.pictures = gr.HTML(elem_id="pictures")
        self.tries = gr.HTML(elem_id="tries")
        self.clock = gr.Number(visible=False)  # when something was asked for
        self._wire()

    def _wire(self) -> None:
        sliders, outputs = [self.T, self.strength], [self.diagram, self.pictures]
        fast = {"show_progress": "hidden", "concurrency_id": "look", "concurrency_limit": 4}
        slider_events = [slider.input for slider in sliders]
        gr.on(slider_events, self.look, [*sliders, self.clock], outputs, js=CLOCK, trigger_mode="always_last", **fast)
        self.keep.click(self.keep_try, sliders, self.tries, **fast)
        running = []
        for method, button in self.buttons.items():
            started = button.click(self.start, None, [self.cancel, self.status], **fast)
            running.append(
                started.then(
                    self._fitter(method),
                    None,
                    [self.status, self.cancel, *sliders, *outputs, self.tries],
                    concurrency_id="fit",
                    concurrency_limit=2,
                    show_progress_on=self.status,
                )
            )
        self.cancel.click(self.stop, None, [self.cancel, self.status], **fast)

    @tell
    def open(self, request: gr.Request) -> Updates:
        """Show the uncalibrated network when the tab is first opened."""
        try:
            trials = self._trials(self.sessions.of(request))
        except ModuleNotFoundError:
            return {self.introduction: NO_TORCH}
        subject = trials.subject
        words = INTRODUCTION.format(
            name=draw.escape(subject.name[:1].upper() + subject.name[1:]),
            calibration=len(subject.calibration.part),
            judged=len(subject.judged.part),
        )
        return {self.introduction: words, self.tries: draw.clamp_tries(trials.tries), **self._show(trials, 1.0, 1.0)}

    @tell
    def look(self, request: gr.Request, T: float, strength: float, asked: float) -> Updates:
        session = self.sessions.of(request)
        with session.turn(asked) as is_newest:
            return self._show(self._trials(session), float(T), float(strength)) if is_newest else gr.skip()

    @tell
    def keep_try(self, request: gr.Request, T: float, strength: float) -> Updates:
        trials = self._trials(self.sessions.of(request))
        T, strength = float(T), float(strength)
        trials.keep("by hand", trials.predict(T, strength), T=T, strength=strength)
        return {self.tries: draw.clamp_tries(trials.tries)}

    @tell
    def start(self, request: gr.Request) -> Updates:
        """Prepare a fit, which may wait for its turn: from now on it can be cancelled."""
        self.sessions.of(request).stop = threading.Event()
        return {self.cancel: gr.update(interactive=True), self.status: _note("Waiting for its turn.")}

    @tell
    def stop(self, request: gr.Request) -> Updates:
        self.sessions.of(request).stop.set()
        return {self.cancel: gr.update(interactive=False), self.status: _note("Cancelling.")}

    def _fitter(self, method: str) -> Any:
        @tell
        def fit(request: gr.Request, progress: Any = PROGRESS) -> Updates:
            return self._fit(self.sessions.of(request), method, progress)

        return fit

    def _fit(self, session: Session, method: str, progress: Any) -> Updates:
        from calibrant.rescoring.clamp_trials import InterruptedFitError

        trials, stop, off = self._trials(session), session.stop, {self.cancel: gr.update(interactive=False)}
        try:
            if stop.is_set():
                raise InterruptedFitError
            T, p = trials.fit(method, on_share=lambda share: progress(share, desc=BUTTONS[method]), stop=stop)
        except InterruptedFitError:
            return {self.status: _note(f"{BUTTONS[method]} was cancelled: nothing has changed."), **off}
        except InputError as error:
            return {self.status: _note(str(error)), **off}
        strength = trials.tries[-1].strength
        slider_values = {} if T is None else {self.T: min(max(round(T, 2), LEAST_T), MOST_T), self.strength: strength}
        message = (
            f"{BUTTONS[method]}: T = {T:.3g}."
            if T is not None
            else f"{BUTTONS[method]}: a scale and a shift per class."
        )
        return {
            self.status: _note(message),
            self.tries: draw.clamp_tries(trials.tries),
            **off,
            **slider_values,
            **self._show(trials, T or 1.0, strength, p, BUTTONS[method] if T is None else None),
        }

    def _trials(self, session: Session) -> Any:
        from calibrant.rescoring.clamp_trials import ClampTrials, open_subject

        with session.lock:
            if session.clamping is None:
                session.clamping = ClampTrials(open_subject(self.run))
                session.clamping.keep("uncalibrated", session.clamping.predict(strength=0.0), T=1.0, strength=0.0)
            return session.clamping

    def _show(
        self, trials: Any, T: float, strength: float, p: Predictions | None = None, map_name: str | None = None
    ) -> Updates:
        before = trials.predict(strength=0.0)
        after = trials.predict(T, strength) if p is None else p
        analysis = Analysis(source=Source(), models={NETWORK: after}, fits={})
        how = f"T = {T:.3g}, strength of delta {strength:.3g}" if map_name is None else map_name
        sentence = f"{how}: {fmt.count(after.n, 'test image')} in 15 bins of equal width."
        return {
            self.diagram: draw.diagram(analysis, View(NETWORK), None, sentence),
            self.pictures: draw.clamp_pictures(trials.pictures(strength), before, after, strength),
        }


def _note(text: str) -> str:
    return f'<p class="cal note" role="status">{draw.escape(text)}</p>'
