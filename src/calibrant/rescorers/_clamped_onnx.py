"""A clamped network as one ONNX file, run by onnxruntime before the file gets its name."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.maps.export_check import ONNX_INSTALL, TOLERANCE, ExportedFile, require_module
from calibrant.core.torch.layers import freeze, wide

ROWS = 5  # of the comparison; the export itself looks at two, so that a fixed batch size shows
INPUT, OUTPUT = "inputs", "logits"


def export_clamped(network: nn.Module, delta: Tensor, T: Tensor, path: str | Path) -> ExportedFile:
    """Write the graph inputs -> network(inputs + delta) / T."""
    for module in ("onnx", "onnxscript", "onnxruntime"):
        require_module(module, ONNX_INSTALL if module != "onnxscript" else "onnxscript")
    clamped = _Clamped(network, delta, T)
    with freeze(clamped), torch.no_grad():
        x = _trial(delta, ROWS)
        expected = wide(clamped(x)).softmax(1).cpu().numpy()
        try:
            with _quietly():
                data = _graph(clamped)
            got = _run(data, x.cpu().numpy())
        except Exception as error:  # every layer of exporter and runtime has its own errors
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            fix = "save delta and T with save(), and add and divide around your own export"
            raise InputError("export to onnx", expected="a network that ONNX can hold", got=reason, fix=fix) from error
    largest = float(np.abs(got - expected).max()) if got.shape == expected.shape else np.inf
    if not largest < TOLERANCE:
        raise InputError(
            "export to onnx",
            expected=f"the network's probabilities within {TOLERANCE:g}",
            got=f"a difference of {largest:.2g}",
            fix="nothing was written; export in float32, or report this network as a bug",
        )
    write_whole(path, lambda stream: stream.write(data))
    return ExportedFile(Path(path), "onnx", largest, ROWS)


class _Clamped(nn.Module):
    """The clamped network without the check of shapes, which is settled here."""

    delta: Tensor
    T: Tensor

    def __init__(self, network: nn.Module, delta: Tensor, T: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("delta", delta)
        self.register_buffer("T", T)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.network(inputs + self.delta)
        return logits / self.T


def _graph(clamped: _Clamped) -> bytes:
    batch = {INPUT: {0: torch.export.Dim("batch")}}
    program: Any = torch.onnx.export(
        clamped.eval(),
        (_trial(clamped.delta, 2),),
        dynamo=True,
        dynamic_shapes=batch,
        input_names=[INPUT],
        output_names=[OUTPUT],
        verbose=False,
    )
    data: bytes = program.model_proto.SerializeToString()
    return data


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the exporter's messages about packages that it does not need here."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _trial(delta: Tensor, rows: int) -> Tensor:
    noise = torch.randn((rows, *delta.shape), generator=torch.Generator().manual_seed(0))
    return noise.to(delta)


def _run(data: bytes, x: Any) -> Any:
    runtime = require_module("onnxruntime", ONNX_INSTALL)
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    logits = np.asarray(session.run([OUTPUT], {INPUT: x})[0], dtype=np.float64)
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
