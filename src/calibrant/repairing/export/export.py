"""`export`: a map, or a decision with its map, in the format it will run in, tested before the file is written."""

from pathlib import Path

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.maps.export_check import ExportedFile, require_module
from calibrant.core.maps.map import Map
from calibrant.deciding.decision import Decision
from calibrant.repairing.export.onnx import Scores, decision_to_onnx, to_onnx
from calibrant.repairing.export.python import decision_to_python, to_python

FORMATS = ("onnx", "python", "torch")


def export(
    m: Map | Decision,
    to: str,
    out: str | Path,
    *,
    append_to: str | Path | None = None,
    output: str | None = None,
    scores: Scores | None = None,
) -> ExportedFile:
    """Write `m` as "onnx", "torch" (a torch.export program) or "python" (a file without dependencies).

    With "onnx", `append_to` puts it behind that classifier, at its only output of scores or the one named `output`,
    which holds logits, or with `scores="probs"` probabilities. A decision is exported with its map, to "onnx" or
    "python": scores in, calibrated probabilities and decisions out.
    """
    if to not in FORMATS:
        raise unknown_name("export", to, FORMATS)
    if to != "onnx" and (append_to, output, scores) != (None, None, None):
        raise InputError("append", expected="the format onnx", got=to, fix="export to onnx, or leave it out")
    if append_to is None and (output, scores) != (None, None):
        raise InputError(
            "scores" if output is None else "output",
            expected="a classifier to append to",
            got="none",
            fix="say which file to append to",
        )
    if Path(out).is_dir():
        raise InputError(str(out), expected="the name of a file", got="a folder", fix="name a file inside it")
    if isinstance(m, Decision):
        return _export_decision(m, to, out, append_to)
    if to == "onnx":
        return to_onnx(m, out, append_to=append_to, output=output, scores=scores)
    if to == "python":
        return to_python(m, out)
    require_module("torch", "torch")
    from calibrant.core.torch.map_module import export_torch

    return export_torch(m, out)


def _export_decision(d: Decision, to: str, out: str | Path, append_to: str | Path | None) -> ExportedFile:
    if to == "torch" or append_to is not None:
        got = "torch" if to == "torch" else "a classifier to append to"
        raise InputError("export", expected="a decision alone, to onnx or python", got=got, fix="export its map there")
    return decision_to_onnx(d, out) if to == "onnx" else decision_to_python(d, out)
