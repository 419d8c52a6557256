"""A calibration map as one Python file that needs nothing but Python."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.disk import write_whole
from calibrant.core.exported import Exported, check_exportable, compared, given, has_one_score, trial_logits
from calibrant.core.map import Map
from calibrant.core.predictions import Predictions
from calibrant.repairing.python_lines import PythonLines
from calibrant.repairing.python_text import CLASSES, FUNCTIONS, ONE_SCORE, OPTIONS

TRIAL_WORK = 2_000_000  # multiplications in plain Python that the self-test may cost
LEAST_ROWS = 12  # of the self-test, whatever they cost


def to_python(m: Map, path: str | Path) -> Exported:
    """Write a file with `calibrate(logits) -> probabilities`, for one row; nothing if its numbers differ.

    Of a map of one score it is `calibrate(probability) -> probability`; of one for questions with options, it takes the
    logits of the options that there are.
    """
    check_exportable(m)
    text = source(m)
    room: dict[str, Any] = {"__name__": "calibrant_snippet"}
    exec(compile(text, str(path), "exec"), room)  # our own text: of the map it holds numbers, and its name in a comment
    logits = trial_logits(m)
    step = min(max(1, len(logits) * m.k**2 // TRIAL_WORK), len(logits) // LEAST_ROWS)
    found = compared(m, *_tried(m, room["calibrate"], logits[::step]), "python")
    write_whole(path, lambda stream: stream.write(text.encode()))
    return Exported(Path(path), "python", *found)


def _tried(m: Map, calibrate: Any, logits: Floats) -> tuple[Predictions, Any]:
    """Rows, and what the file says of each."""
    p = given(m, logits)
    if has_one_score(m):
        p = Predictions(p.probs, p.labels, "probs", p.extras)
        return p, [[calibrate(s)] for s in p.probs[:, 1].tolist()]
    if m.shape != "choices":
        return p, [calibrate(row) for row in logits.tolist()]
    said = np.zeros(logits.shape)
    for row, options in enumerate(np.isfinite(logits)):
        said[row, options] = calibrate(logits[row, options].tolist())
    return p, said


def source(m: Map) -> str:
    """The text of the file."""
    writer = PythonLines(m)
    for number, step in enumerate(m.steps, 1):
        writer.step(step, number)
    probs = writer.probs()
    functions = "\n\n".join(FUNCTIONS[name] for name in FUNCTIONS if name in writer.used)
    constants = "".join(f"{name} = {value}\n" for name, value in writer.constants.items())
    frame = ONE_SCORE if has_one_score(m) else OPTIONS if m.shape == "choices" else CLASSES
    return frame.format(
        map=ascii(m.calibrator),
        version=version("calibrant"),
        k=m.k,
        of="the positive class" if m.shape == "binary" else "being right",
        constants=f"\n{constants}" if constants else "",
        body="\n".join(f"    {line}" for line in writer.lines),
        probs=probs,
        functions=f"\n\n{functions}" if functions else "",
    )
