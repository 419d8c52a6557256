"""A calibration map as an ONNX graph, alone or behind a classifier."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.exported import (
    ONNX_INSTALL,
    Exported,
    check_exportable,
    compared,
    given,
    has_one_score,
    needed,
    trial_logits,
)
from calibrant.core.map import Map
from calibrant.repairing.onnx_nodes import nodes_of

OPSET, OLDEST_OPSET, IR_VERSION = 17, 13, 8
INPUT, OUTPUT = "logits", "calibrated_logits"
BATCH = 4  # rows of the trial run of a whole classifier
FREE_SIZES = (1, 8, 32, 224)  # tried in turn for sizes of its input that the file leaves open


def to_onnx(m: Map, path: str | Path, *, append_to: str | Path | None = None, output: str | None = None) -> Exported:
    """Write a graph: logits (batch, k) in, `calibrated_logits` out, which are log-probabilities in float32.

    A map of one score takes log-odds (batch,) and gives calibrated log-odds: their sigmoid is the probability. Behind a
    classifier it also takes (batch, 1). Options that a question does not have stand at -inf.

    With `append_to` the map goes behind that classifier's only output, or the one called "logits" or `output`; its
    old outputs stay. Inside, the map computes in float64. Nothing is written unless onnxruntime gives its numbers.
    """
    onnx = needed("onnx", ONNX_INSTALL)
    check_exportable(m)
    alone = _alone(m)
    logits = trial_logits(m)
    largest, rows = compared(m, given(m, logits), _probs(m, _run(alone, {INPUT: logits}, OUTPUT)), "onnx")
    model = alone
    if append_to is not None:
        model, old, new = _appended(m, Path(append_to), output)
        largest = max(largest, _try_classifier(m, model, old, new))
    try:
        data = model.SerializeToString()
    except Exception as error:  # protobuf holds at most 2 GB and says so in several ways
        raise InputError("export to onnx", expected="a model below 2 GB", got=str(error), fix="export alone") from error
    onnx.checker.check_model(data)
    write_whole(path, lambda stream: stream.write(data))
    return Exported(Path(path), "onnx", largest, rows)


# -- models -------------------------------------------------------------------------------------


def _alone(m: Map) -> Any:
    helper, types = needed("onnx.helper", ONNX_INSTALL), needed("onnx", ONNX_INSTALL).TensorProto
    nodes = nodes_of(m, "calibrant_", INPUT, OUTPUT)
    sizes = ["batch"] if has_one_score(m) else ["batch", m.k]
    taken, made = (helper.make_tensor_value_info(name, types.FLOAT, sizes) for name in (INPUT, OUTPUT))
    graph = helper.make_graph(nodes.made, "calibrant", [taken], [made], nodes.constants)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="calibrant",
        producer_version=version("calibrant"),
    )
    _describe(model, m)
    return model


def _appended(m: Map, file: Path, output: str | None) -> tuple[Any, str, str]:
    """The classifier with the map behind it, and the names of the old output and the new one."""
    helper, types = needed("onnx.helper", ONNX_INSTALL), needed("onnx", ONNX_INSTALL).TensorProto
    model = _load(file)
    old = _logits_output(m, model, file, output)
    taken = _names(model.graph)
    copy = 1
    while any(name.startswith(_prefix(copy)) for name in taken) or _numbered(OUTPUT, copy) in taken:
        copy += 1  # the classifier has a map already
    new = _numbered(OUTPUT, copy)
    nodes = nodes_of(m, _prefix(copy), old.name, new)
    model.graph.node.extend(nodes.made)
    model.graph.initializer.extend(nodes.constants)
    dims = [d.dim_param or d.dim_value or None for d in old.type.tensor_type.shape.dim] or ["batch", m.k]
    sizes = dims if has_one_score(m) else [dims[0], m.k]
    model.graph.output.append(helper.make_tensor_value_info(new, types.FLOAT, sizes))
    _describe(model, m)
    return model, old.name, new


def _prefix(copy: int) -> str:
    return "calibrant_" if copy == 1 else f"calibrant{copy}_"


def _numbered(name: str, copy: int) -> str:
    return name if copy == 1 else f"{name}_{copy}"


def _names(graph: Any) -> set[str]:
    values = {one.name for group in (graph.input, graph.output, graph.initializer, graph.node) for one in group}
    return values | {name for node in graph.node for name in (*node.input, *node.output)}


def _load(file: Path) -> Any:
    onnx = needed("onnx", ONNX_INSTALL)
    if not file.is_file():
        raise InputError(str(file), expected="a classifier in ONNX", got="no such file", fix="check the path")
    try:
        model = onnx.load(file)
        onnx.checker.check_model(model)
        standard = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        return model if standard >= OLDEST_OPSET else onnx.version_converter.convert_version(model, OPSET)
    except Exception as error:  # protobuf, checker and converter each have their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            str(file), expected="a classifier in ONNX", got=f"something else ({reason})", fix="write the file again"
        ) from error


def _logits_output(m: Map, model: Any, file: Path, name: str | None) -> Any:
    """The output that holds logits: the named one, the only one, or the one called "logits"."""
    outputs = {one.name: one for one in model.graph.output}
    name = name or (next(iter(outputs)) if len(outputs) == 1 else INPUT)
    if name not in outputs:
        raise InputError(
            str(file),
            expected="the name of the output with the logits" if name == INPUT else f"an output named {name}",
            got=f"outputs {', '.join(outputs)}",
            fix="name one of these",
        )
    types, tensor = needed("onnx", ONNX_INSTALL).TensorProto, outputs[name].type.tensor_type
    dims = [d.dim_value for d in tensor.shape.dim]
    numbers = tensor.elem_type in (types.FLOAT, types.DOUBLE, types.FLOAT16, types.BFLOAT16)
    fits = dims[1:] in ([], [0], [1]) if has_one_score(m) else len(dims) == 2 and dims[1] in (0, m.k)
    if not numbers or (dims and not fits):
        shown = " x ".join(d.dim_param or str(d.dim_value or "?") for d in tensor.shape.dim)
        raise InputError(
            f"{file}, output {name}",
            expected="log-odds of shape batch or batch x 1" if has_one_score(m) else f"logits of shape batch x {m.k}",
            got=f"{types.DataType.Name(tensor.elem_type)} of shape {shown}",
            fix="use the map of this classifier, or name another output",
        )
    for node in model.graph.node:
        if name in node.output and node.op_type in ("Softmax", "Sigmoid"):
            raise InputError(
                f"{file}, output {name}",
                expected="logits",
                got=f"probabilities (the output of a {node.op_type})",
                fix=f"export the classifier without its {node.op_type.lower()}",
            )
    return outputs[name]


def _describe(model: Any, m: Map) -> None:
    """Say in the model which map it carries."""
    whole = m.to_dict()
    told = {
        key: whole[key] for key in ("calibrant_map", "calibrator", "k", "shape", "parameters", "keeps_argmax", "fit")
    }
    values = {"calibrant.map": json.dumps(told), "calibrant.version": version("calibrant")}
    for old in [one for one in model.metadata_props if one.key in values]:
        model.metadata_props.remove(old)
    for key, value in values.items():
        model.metadata_props.add(key=key, value=value)


# -- trial runs ---------------------------------------------------------------------------------


def _session(model: Any) -> Any:
    runtime = needed("onnxruntime", ONNX_INSTALL)
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # warnings about a user's classifier are not ours
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(model: Any, inputs: dict[str, Any], *outputs: str) -> Any:
    found = _session(model).run(list(outputs), inputs)
    return found[0] if len(outputs) == 1 else found


def _try_classifier(m: Map, model: Any, old: str, new: str) -> float:
    """The whole classifier on random input: its new output must be the map of its old one."""
    failed = ""
    for size in FREE_SIZES:
        try:
            session = _session(model)
            rng = np.random.default_rng(0)
            inputs = {one.name: _random_input(one, size, rng) for one in session.get_inputs()}
            logits, calibrated = session.run([old, new], inputs)
        except Exception as error:  # onnxruntime's own errors share no base class
            failed = failed or str(error).strip().splitlines()[0]
            continue
        return compared(m, given(m, np.asarray(logits, dtype=np.float64)), _probs(m, calibrated), "onnx")[0]
    raise InputError(
        "export to onnx",
        expected="a classifier that runs on random input",
        got=failed,
        fix="export the map alone and join the two graphs where the input is known",
    )


def _random_input(one: Any, size: int, rng: np.random.Generator) -> Any:
    """Numbers of the right type and shape; free sizes become the batch (the first) or `size`."""
    shape = [d if isinstance(d, int) and d > 0 else (BATCH if i == 0 else size) for i, d in enumerate(one.shape)]
    kind = one.type.removeprefix("tensor(").removesuffix(")")  # onnxruntime's word, numpy's in most cases
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    return rng.normal(size=shape).astype(kind) if kind.startswith("float") else np.ones(shape, dtype=kind)


def _probs(m: Map, out: Any) -> Any:
    """What the output of a graph says, (n, k), or (n, 1) of one score."""
    logs = np.asarray(out, dtype=np.float64)
    if has_one_score(m):
        return 1 / (1 + np.exp(-logs.reshape(-1, 1)))
    e = np.exp(logs)
    return e / e.sum(axis=1, keepdims=True)
