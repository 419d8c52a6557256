"""The tab "Your predictions": files or an example in, the verdict, a diagram to brush, costs, downloads, the report."""

from pathlib import Path
from typing import Any, get_args

import gradio as gr

from calibrant.app import draw
from calibrant.app.analysis import ALL, EXAMPLES, Analysis, View, is_sums, open_example, open_files, report_sums
from calibrant.app.repeat import repeat
from calibrant.app.report_files import write_report
from calibrant.app.session import Session, Sessions
from calibrant.app.tell import tell
from calibrant.core.errors import DamagedFileError, InputError
from calibrant.core.io.column_names import Columns
from calibrant.core.io.missing import MissingPolicy
from calibrant.core.io.preview import Preview, preview
from calibrant.deciding.costs import read_rule
from calibrant.reporting.excerpts import label
from calibrant.reporting.page import page

Updates = Any  # values by component, or nothing to change

ROLES = {  # option of `Columns` -> what is asked
    "score": "P(positive), of two classes",
    "confidence": "confidence in the prediction",
    "label": "true label",
    "correct": "whether it was right",
    "group": "group (segment)",
    "id": "name of the row",
    "weight": "weight",
    "cluster": "cluster",
}
STANDARD = "by its standard name"
PROGRESS = gr.Progress()
SEEN_AT_FIRST = (0.9, 1.0)  # the region of the diagram
# The address keeps the choices, so that a link shows the same view; data are never in it.
KEEP = """(...all) => {
  const names = ["example", "model", "with", "bins", "scheme", "segment", "low", "high"];
  const kept = new URLSearchParams(window.location.search);
  names.forEach((name, i) => { if (all[i] === null || all[i] === "") kept.delete(name); else kept.set(name, all[i]); });
  history.replaceState(null, "", "?" + kept.toString());
  return [...all.slice(0, -1), performance.now()];
}"""


class PredictionsTab:
    """Components of the tab and their actions."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        with gr.Row():
            with gr.Column(scale=4, min_width=300):
                self._build_inputs()
            with gr.Column(scale=7, min_width=320):
                self.verdict = gr.HTML(elem_id="verdict")
        with gr.Row():
            with gr.Column(scale=4, min_width=300):
                self._build_controls()
            with gr.Column(scale=7, min_width=320):
                self.diagram = gr.HTML(elem_id="diagram", js_on_load=draw.asset("brush.js"))
        self.rows = gr.HTML(elem_id="rows")
        self._build_costs()
        with gr.Accordion("Downloads, and the code that repeats this", open=True, elem_id="take-away"):
            # Two lists: of one, the answer to a slider could take away what a report that ended meanwhile has added.
            self.report_downloads = gr.HTML(elem_id="report-downloads")
            self.downloads = gr.HTML(elem_id="downloads")
            self.code = gr.HTML(elem_id="code")
        self.report = gr.HTML(elem_id="report")
        self.view_outputs = [self.diagram, self.rows, self.cost, self.downloads, self.code]
        self.report_outputs = [self.report, self.verdict, self.report_downloads]
        self.clock = gr.Number(visible=False)  # when something was asked for
        self._wire()

    def _build_inputs(self) -> None:
        self.files = gr.File(
            label="Your predictions: drop a file, or one per model", file_count="multiple", height=150, elem_id="files"
        )
        self.example = gr.Radio(list(EXAMPLES), value="fashion", label="or an example", elem_id="example")
        with gr.Accordion("Fit on one file, judge on another", open=False):
            self.fit_files = gr.File(
                label="Files to fit calibrators on, one per model",
                file_count="multiple",
                height=130,
                elem_id="fit-files",
            )
        with gr.Accordion("Columns", open=False, elem_id="columns") as self.columns:
            self.preview = gr.HTML(elem_id="preview")
            self.roles = {
                name: gr.Dropdown([STANDARD], value=STANDARD, label=label, elem_id=f"column-{name}", filterable=False)
                for name, label in ROLES.items()
            }
            self.logits = gr.Checkbox(label="the score or confidence is a logit", elem_id="logits")
            self.positive = gr.Textbox(label="the positive label, if labels are words", elem_id="positive")
            policies = list(get_args(MissingPolicy))
            self.missing = gr.Radio(policies, value="error", label="rows without a score", elem_id="missing")
            self.read = gr.Button("Read again", variant="primary", elem_id="read")

    def _build_controls(self) -> None:
        self.model = gr.Dropdown([], label="model", visible=False, elem_id="model", filterable=False)
        self.calibrator = gr.Dropdown(
            [("uncalibrated", "identity")], value="identity", label="calibrator", elem_id="calibrator", filterable=False
        )
        self.bins = gr.Slider(5, 100, value=15, step=1, label="bins", elem_id="bins")
        schemes = [("equal width", "width"), ("equal numbers of rows", "mass")]
        self.scheme = gr.Radio(schemes, value="width", label="bins of", elem_id="scheme")
        self.segment = gr.Dropdown(
            [ALL], value=ALL, label="segment", visible=False, elem_id="segment", filterable=False
        )
        low, high = SEEN_AT_FIRST
        self.low = gr.Slider(0, 1, value=low, step=0.005, label="rows from", elem_id="low")
        self.high = gr.Slider(0, 1, value=high, step=0.005, label="rows to", elem_id="high")

    def _build_costs(self) -> None:
        with gr.Accordion("Threshold and cost", open=False, elem_id="costs"):
            with gr.Row():
                rules = [("a threshold", "threshold"), ("costs", "costs")]
                self.rule = gr.Radio(rules, value="threshold", label="decide by", elem_id="rule")
                self.threshold = gr.Slider(0.01, 1, value=0.9, step=0.01, label="threshold", elem_id="threshold")
                self.first_cost = gr.Number(value=5, label="a wrong prediction costs", elem_id="first-cost")
                self.second_cost = gr.Number(value=1, label="abstaining costs", elem_id="second-cost")
            self.cost = gr.HTML(elem_id="cost")
            self.write = gr.Button("Write the report with this rule", elem_id="write")

    def _wire(self) -> None:
        view = [self.example, self.model, self.calibrator, self.bins, self.scheme, self.segment, self.low, self.high]
        rule = [self.rule, self.threshold, self.first_cost, self.second_cost]
        roles = [*self.roles.values(), self.logits, self.positive, self.missing]
        everything = [
            *view, *roles, *self.view_outputs, *self.report_outputs, self.preview, self.columns, *rule[2:],
        ]  # fmt: skip
        slow = {"concurrency_id": "report", "concurrency_limit": 2}
        reading = {"concurrency_id": "read", "concurrency_limit": 4}  # a verdict does not wait for others' reports
        fast = {"show_progress": "hidden", "concurrency_id": "look", "concurrency_limit": 4}
        self.start = {"inputs": [*view, *rule], "outputs": everything}
        opened = [
            self.example.input(self.open_example, [*view, *rule, self.clock], everything, js=KEEP, **fast),
            *(
                event(self.open_files, [self.files, self.fit_files, *roles, *view, *rule], everything, **reading)
                for event in (
                    *(event for box in (self.files, self.fit_files) for event in (box.upload, box.delete, box.clear)),
                    self.read.click,
                )
            ),
        ]
        for opening in opened:
            opening.success(self.write_report, rule, self.report_outputs, **slow)
        self.write.click(self.write_report, rule, self.report_outputs, **slow)
        controls = [self.model.input, self.calibrator.input, self.bins.input, self.scheme.input, self.segment.input]
        controls += [
            self.low.input,
            self.high.input,
            self.threshold.input,
            *(control.input for control in rule[:1] + rule[2:]),
        ]
        # One event for all of them: the browser then sends the last choice when the one before has been answered.
        gr.on(
            controls,
            self.look,
            [*view, *rule, self.clock],
            self.view_outputs,
            js=KEEP,
            trigger_mode="always_last",
            **fast,
        )
        brushed = [self.low, self.high, *self.view_outputs]
        self.diagram.select(self.brush, [*view, *rule], brushed, **fast).then(None, [*view, self.clock], None, js=KEEP)

    @tell
    def begin(self, request: gr.Request, *values: Any) -> Updates:
        """Open the view that the address names, or an example."""
        parameters = dict(request.query_params)
        view, low, high = _view([parameters.get(name, value) for name, value in zip(VIEW, values, strict=False)])
        name = parameters.get("example", "fashion")
        return self._open(request, open_example(name if name in EXAMPLES else "fashion"), view, low, high, values[8:])

    @tell
    def open_example(self, request: gr.Request, name: str, *values: Any) -> Updates:
        view, low, high = _view([None, *values[:7]])
        return self._open(request, open_example(str(name)), view, low, high, values[7:])

    @tell
    def open_files(self, request: gr.Request, files: Any, fit_files: Any, *values: Any) -> Updates:
        """Read the uploads; ask for the roles of columns where they are not clear."""
        roles, values = values[: len(ROLES) + 3], values[len(ROLES) + 3 :]
        view, low, high = _view(values)
        session = self.sessions.of(request)
        uploads = [self.sessions.owned(request, [str(path) for path in paths or ()]) for paths in (files, fit_files)]
        if not uploads[0]:
            if not uploads[1]:
                return gr.skip()
            fix = "drop a file into the first box as well"
            raise InputError("files", expected="predictions to judge", got="only some to fit on", fix=fix)
        judged, fitted = (
            session.keep_files(paths, kind) for paths, kind in zip(uploads, ("judged", "fitted"), strict=True)
        )
        if any(map(is_sums, judged)):
            return self._open_sums(session, judged)
        previews = _previews(judged[:1])
        updates: Updates = {self.preview: draw.previews(previews), self.example: None}
        names = next(iter(previews.values())).names if previews else ()
        for role, component in self.roles.items():
            choice = roles[list(ROLES).index(role)]
            choices = [STANDARD, *(["none"] if role in ("group", "id", "weight", "cluster") else []), *names[:1000]]
            updates[component] = gr.update(choices=choices, value=choice if choice in choices else STANDARD)
        try:
            analysis = open_files(judged, fitted, _columns(roles, names))
        except InputError as error:
            session.analysis = None
            question = bool(names) and not isinstance(error, DamagedFileError)
            return {
                **updates,
                self.verdict: draw.problem(error, question=question),
                self.columns: gr.update(open=True),
                **dict.fromkeys((*self.view_outputs, self.report, self.report_downloads), ""),
            }
        return updates | self._open(request, analysis, view, low, high, values[8:], is_upload=True)

    def _open_sums(self, session: Session, judged: list[Path]) -> Updates:
        if len(judged) > 1:
            fix = "drop one state, or the rows of several models"
            raise InputError("files", expected="one state of sums", got=f"{len(judged)} files", fix=fix)
        session.analysis, report = None, report_sums(judged[0])
        address = session.offer("report", "report.html", lambda: page(report).encode())
        nothing = dict.fromkeys((*self.view_outputs, self.preview), "")
        return {
            **nothing,
            self.example: None,
            self.verdict: draw.report_verdict(report),
            self.report_downloads: draw.part("downloads", [("report.html", address, "the whole report, one file")]),
            self.report: draw.part("frame", address, report.title),
        }

    def _open(
        self,
        request: Any,
        analysis: Analysis,
        view: View,
        low: float,
        high: float,
        rule: Any,
        *,
        is_upload: bool = False,
    ) -> Updates:
        """Show everything but the report: the first verdict must not wait for it."""
        session = self.sessions.of(request)
        with session.lock:
            session.analysis, session.results = analysis, {}
            view = analysis.check(view)
            binary = analysis.first.task == "binary"
            costs = ("a missed positive costs", "a false alarm costs") if binary else COSTS
            updates: Updates = {
                self.verdict: draw.first_verdict(analysis.assess(View(view.model)), analysis),
                self.example: analysis.source.example,
                self.model: gr.update(
                    choices=list(analysis.models), value=view.model, visible=len(analysis.models) > 1
                ),
                self.calibrator: gr.update(
                    choices=[(label(name), name) for name in analysis.calibrators], value=view.calibrator
                ),
                self.bins: view.bins,
                self.scheme: view.scheme,
                self.segment: gr.update(
                    choices=analysis.segments, value=view.segment, visible=len(analysis.segments) > 1
                ),
                self.low: low,
                self.high: high,
                self.first_cost: gr.update(label=costs[0]),
                self.second_cost: gr.update(label=costs[1]),
                self.report: '<p class="cal note">The report is being written.</p>',
                self.report_downloads: "",
            }
            if not is_upload:
                updates |= {self.preview: "", self.columns: gr.update(open=False)}
            return updates | self._look(session, view, low, high, rule)

    @tell
    def look(self, request: gr.Request, *values: Any) -> Updates:
        """Show the diagram, the rows and the costs of a view."""
        session = self.sessions.of(request)
        view, low, high = _view(values)
        with session.turn(values[-1]) as is_newest:
            return self._look(session, view, low, high, values[8:]) if is_newest else gr.skip()

    @tell
    def brush(self, request: gr.Request, event: gr.EventData, *values: Any) -> Updates:
        """Show the rows of a region that was drawn."""
        session = self.sessions.of(request)
        view, _, _ = _view(values)
        low, high = _region(getattr(event, "low", 0), getattr(event, "high", 1))
        with session.lock:
            return {self.low: low, self.high: high, **self._look(session, view, low, high, values[8:])}

    @tell
    def write_report(self, request: gr.Request, progress: Any = PROGRESS, *rule: Any) -> Updates:
        """Write the whole report, and offer its files to download."""
        session = self.sessions.of(request)
        analysis = session.analysis
        if analysis is None:
            return gr.skip()
        cost = _rule_text(analysis, rule) if rule[0] == "costs" else None
        files = write_report(analysis, cost, _steps(progress))
        report = files.report
        with session.lock:
            if session.analysis is not analysis:  # another file was dropped meanwhile
                return gr.skip()
            address = session.offer("report", "report.html", lambda: files.html)
            session.offer("card", "card.png", lambda: files.card)
            return {
                self.report: draw.part("frame", address, report.title),
                self.verdict: draw.report_verdict(report),
                self.report_downloads: _links(
                    session, {"report": "the whole report, one file", "card": "the verdict as a picture"}
                ),
            }

    def _look(self, session: Session, view: View, low: float, high: float, rule: Any) -> Updates:
        analysis = session.analysis
        if analysis is None:
            return gr.skip()
        view = analysis.check(view)
        address = session.offer("rows", "rows.csv", lambda: draw.region_csv(analysis, view, low, high))
        calibration = analysis.calibrate(view)[0]
        session.results.pop("map", None)
        if calibration is not None:
            session.offer("map", "map.json", lambda: calibration.to_json().encode())
        text = _rule_text(analysis, rule)
        code = repeat(analysis, view, text if rule[0] == "costs" else None)
        session.offer("code", "repeat.py", code.encode)
        notes = {"map": "the calibration map, for calibrant apply or cal.load_map", "code": "the code below"}
        return {
            self.diagram: draw.diagram(analysis, view, (low, high)),
            self.rows: draw.region(analysis, view, low, high, address),
            self.cost: draw.cost_table(analysis.cost(view, read_rule(text))),
            self.downloads: _links(session, notes),
            self.code: draw.part("code", code),
        }


VIEW = ("example", "model", "with", "bins", "scheme", "segment", "low", "high")
COSTS = ("a wrong prediction costs", "abstaining costs")


def _links(session: Session, notes: dict[str, str]) -> str:
    """The list of those files that the session offers, with a note for each."""
    offered = {result: session.results[result] for result in notes if result in session.results}
    links = [(r.name, f"/results/{key}/{r.name}", notes[result]) for result, (key, r) in offered.items()]
    return draw.part("downloads", links)


def _view(values: Any) -> tuple[View, float, float]:
    """The view from the values of components or of the address; the analysis replaces invalid ones."""
    _, model, calibrator, bins, scheme, segment, low, high = values[:8]
    try:
        count = int(float(bins))
    except (TypeError, ValueError, OverflowError):
        count = 15
    scheme_name: Any = str(scheme)
    return View(str(model), str(calibrator), count, scheme_name, str(segment)), *_region(low, high)


def _region(low: Any, high: Any) -> tuple[float, float]:
    try:
        ends = sorted(min(max(float(end), 0.0), 1.0) for end in (low, high))
    except (TypeError, ValueError):
        return SEEN_AT_FIRST
    return (ends[0], ends[1]) if ends == ends and ends[0] <= ends[1] else SEEN_AT_FIRST


def _rule_text(analysis: Analysis, rule: Any) -> str:
    """The rule as the command line writes it: numbers only, so that it can never name a file."""
    by, threshold, first, second = rule[:4]
    if by != "costs":
        return f"threshold={float(threshold):g}"
    names = ("fn", "fp") if analysis.first.task == "binary" else ("wrong", "abstain")
    return ",".join(f"{name}={float(value or 0):g}" for name, value in zip(names, (first, second), strict=True))


def _columns(roles: Any, names: Any) -> Columns:
    """The columns that were chosen and that the file has."""
    known = {*names, "none"}
    chosen: Any = {role: str(value) for role, value in zip(ROLES, roles, strict=False) if value in known}
    logits, positive, missing = roles[len(ROLES) :]
    return Columns(
        **chosen,
        logits=bool(logits),
        positive=str(positive).strip() or None if positive else None,
        missing=missing,
    )


def _previews(files: list[Path]) -> dict[str, Preview]:
    """The first rows of the first file, where it is a table or an archive."""
    try:
        return {file.name: preview(file) for file in files}
    except InputError:
        return {}


def _steps(progress: Any) -> Any:
    return lambda what: progress(None, desc=f"Writing the report: {what}")
