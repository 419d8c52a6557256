"""`export`: a map in the format it will run in, tested against the map before the file is written."""

from pathlib import Path

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.exported import Exported, needed
from calibrant.core.map import Map
from calibrant.repairing.to_onnx import to_onnx
from calibrant.repairing.to_python import to_python

FORMATS = ("onnx", "python", "torch")


def export(
    m: Map, to: str, out: str | Path, *, append_to: str | Path | None = None, output: str | None = None
) -> Exported:
    """Write `m` as "onnx", "torch" (a torch.export program) or "python" (a file without dependencies).

    With "onnx", `append_to` puts it behind that classifier, at its only output or the one named `output`.
    """
    if to not in FORMATS:
        raise unknown_name("export", to, FORMATS)
    if to != "onnx" and (append_to is not None or output is not None):
        raise InputError("append", expected="the format onnx", got=to, fix="export to onnx, or leave it out")
    if output is not None and append_to is None:
        raise InputError("output", expected="a classifier to append to", got="none", fix="say which file to append to")
    if Path(out).is_dir():
        raise InputError(str(out), expected="the name of a file", got="a folder", fix="name a file inside it")
    if to == "onnx":
        return to_onnx(m, out, append_to=append_to, output=output)
    if to == "python":
        return to_python(m, out)
    needed("torch", "torch")
    from calibrant.core.torch.map import export_torch

    return export_torch(m, out)
