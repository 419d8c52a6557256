"""A calibration map as an ONNX graph, alone or behind a classifier."""

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.maps.export_check import (
    ONNX_INSTALL,
    ExportedFile,
    check_exportable,
    compare_outputs,
    require_module,
    to_input,
    trial_logits,
)
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.deciding.decision import Decision
from calibrant.repairing.export.decision_check import compare_decisions, trial_scores
from calibrant.repairing.export.onnx_nodes import decision_nodes, nodes_of

OPSET, OLDEST_OPSET, IR_VERSION = 17, 13, 8
INPUT, OUTPUT, PROBS_OUTPUT = "logits", "calibrated_logits", "calibrated_probs"
SCORES, DECISION = "scores", "decision"  # of a decision
BATCH = 32  # rows of the trial run of a whole classifier
SUMS_TO_ONE = 0.02  # how far sums of rounded probabilities may be from one

Scores = Literal["logits", "probs"]
FREE_SIZES = (1, 8, 32, 224)  # tried in turn for sizes of its input that the file leaves open


def to_onnx(
    m: Map,
    path: str | Path,
    *,
    append_to: str | Path | None = None,
    output: str | None = None,
    scores: Scores | None = None,
) -> ExportedFile:
    """Write a graph: logits (batch, k) in, `calibrated_logits` out, which are log-probabilities in float32.

    A map of one score takes log-odds (batch,) and gives calibrated log-odds: their sigmoid is the probability. Behind a
    classifier it also takes (batch, 1). Options that a question does not have stand at -inf.

    With `append_to` the map goes behind that classifier's only output of scores, or the one called "logits" or
    `output`; its old outputs stay. That output holds logits, or with `scores="probs"` probabilities (trees and linear
    models): the new output is then `calibrated_probs`, in the same shape, also of two columns for a binary map. What
    ZipMap turns into dictionaries is taken before that. An output that looks like probabilities when the classifier
    runs is refused unless `scores` says what it is. Images and volumes are (batch, k, ...). Inside, the map computes in
    float64. Nothing is written unless onnxruntime gives the numbers of the map, end to end, on random input.
    """
    onnx = require_module("onnx", ONNX_INSTALL)
    check_exportable(m)
    alone = _alone(m)
    logits = trial_logits(m)
    largest, rows = compare_outputs(m, to_input(m, logits), _probs(m, _run(alone, {INPUT: logits}, OUTPUT)), "onnx")
    model = alone
    if append_to is not None:
        model, joint = _append(m, Path(append_to), output, scores)
        largest = max(largest, _try_classifier(m, model, joint))
    try:
        data = model.SerializeToString()
    except Exception as error:  # protobuf holds at most 2 GB and says so in several ways
        raise InputError("export to onnx", expected="a model below 2 GB", got=str(error), fix="export alone") from error
    onnx.checker.check_model(data)
    write_whole(path, lambda stream: stream.write(data))
    return ExportedFile(Path(path), "onnx", largest, rows)


def decision_to_onnx(d: Decision, path: str | Path) -> ExportedFile:
    """Write a graph: `scores` in, `calibrated_probs` and `decision` out (int64: a class, or -1 for handing over).

    Scores are what the decision takes: logits or probabilities, (batch,) or (batch, k). Inside it computes in float64.
    Nothing is written unless onnxruntime gives the numbers and decisions of the decision itself.
    """
    onnx, m = require_module("onnx", ONNX_INSTALL), d.map
    check_exportable(m)
    helper, types = require_module("onnx.helper", ONNX_INSTALL), onnx.TensorProto
    nodes = decision_nodes(d, SCORES, PROBS_OUTPUT, DECISION)
    sizes = ["batch"] if m.one_score else ["batch", m.k]
    kinds = [(SCORES, types.FLOAT, sizes), (PROBS_OUTPUT, types.FLOAT, sizes), (DECISION, types.INT64, ["batch"])]
    graph_input, *graph_outputs = (helper.make_tensor_value_info(*kind) for kind in kinds)
    model = _model(helper.make_graph(nodes.nodes, "calibrant", [graph_input], graph_outputs, nodes.constants))
    _describe(model, m)
    facts = {name: value for name, value in d.to_dict().items() if name in ("aim", "words", "policy", "settings")}
    model.metadata_props.add(key="calibrant.decision", value=json.dumps(facts))
    scores, p = trial_scores(m)
    probs, decisions = _run(model, {SCORES: scores}, PROBS_OUTPUT, DECISION)
    largest, rows = compare_outputs(m, p, np.reshape(probs, (p.n, -1)), "onnx")
    compare_decisions(d, p, decisions, "onnx")
    data = model.SerializeToString()
    onnx.checker.check_model(data)
    write_whole(path, lambda stream: stream.write(data))
    return ExportedFile(Path(path), "onnx", largest, rows)


# -- models -------------------------------------------------------------------------------------


def _alone(m: Map) -> Any:
    helper, types = require_module("onnx.helper", ONNX_INSTALL), require_module("onnx", ONNX_INSTALL).TensorProto
    nodes = nodes_of(m, "calibrant_", INPUT, OUTPUT)
    sizes = ["batch"] if m.one_score else ["batch", m.k]
    source, output = (helper.make_tensor_value_info(name, types.FLOAT, sizes) for name in (INPUT, OUTPUT))
    graph = helper.make_graph(nodes.nodes, "calibrant", [source], [output], nodes.constants)
    model = _model(graph)
    _describe(model, m)
    return model


def _model(graph: Any) -> Any:
    helper = require_module("onnx.helper", ONNX_INSTALL)
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="calibrant",
        producer_version=version("calibrant"),
    )


@dataclass(frozen=True)
class _Joint:
    """How a map is joined to a classifier: names of the outputs, and what the scores are."""

    old: str  # name of its output
    new: str  # name of the calibrated one
    are_probs: bool
    rank: int
    both: bool  # a map of one score behind an output with a column for each of two classes


def _append(m: Map, file: Path, output: str | None, scores: Scores | None) -> tuple[Any, _Joint]:
    """Join the map to the end of the classifier."""
    helper, types = require_module("onnx.helper", ONNX_INSTALL), require_module("onnx", ONNX_INSTALL).TensorProto
    model = _load(file)
    output = _expose_zipped(model, output)
    old = _scores_output(m, model, file, output)
    values = _try_output(model, old.name)
    _check_scores(m, values, f"{file}, output {old.name}", scores)
    are_probs = scores == "probs"
    both = m.one_score and values.ndim == 2 and values.shape[1] == 2
    name, used, copy = PROBS_OUTPUT if are_probs else OUTPUT, _names(model.graph), 1
    while any(other.startswith(_prefix(copy)) for other in used) or _number_name(name, copy) in used:
        copy += 1  # the classifier has a map already
    joint = _Joint(old=old.name, new=_number_name(name, copy), are_probs=are_probs, rank=values.ndim, both=both)
    nodes = nodes_of(m, _prefix(copy), joint.old, joint.new, are_probs=are_probs, rank=joint.rank, both=both)
    model.graph.node.extend(nodes.nodes)
    model.graph.initializer.extend(nodes.constants)
    sizes = [d.dim_param or d.dim_value or None for d in old.type.tensor_type.shape.dim]
    if len(sizes) > 1 and not m.one_score:
        sizes[1] = m.k
    model.graph.output.append(helper.make_tensor_value_info(joint.new, types.FLOAT, sizes or None))
    _describe(model, m)
    return model, joint


def _check_scores(m: Map, values: Any, where: str, scores: Scores | None) -> None:
    """Refuse an output whose numbers are not what `scores` says, or that looks like probabilities if nothing does."""
    k = 2 if m.one_score else m.k
    fits = values.ndim >= 2 and values.shape[1] == k
    if m.one_score:
        fits = fits or values.ndim == 1 or values.shape[1:] == (1,)
    if not fits:
        raise InputError(
            where,
            expected="one score, or one for each of two classes" if m.one_score else f"{m.k} classes",
            got=f"shape {values.shape}",
            fix="use the map of this classifier, or name another output",
        )
    inside = bool(((values >= -1e-6) & (values <= 1 + 1e-6)).all())
    columns = values.ndim >= 2 and values.shape[1] > 1
    look_like_probs = inside and (not columns or bool((np.abs(values.sum(axis=1) - 1) < SUMS_TO_ONE).all()))
    if scores == "probs" and not look_like_probs:
        got = "rows that do not sum to one" if inside else "numbers outside 0 to 1"
        raise InputError(where, expected="probabilities", got=got, fix='leave out scores="probs"')
    if scores is None and look_like_probs:
        sums = "rows from 0 to 1 that sum to one" if columns else "numbers from 0 to 1"
        raise InputError(
            where,
            expected="logits",
            got=f"{sums}, as probabilities are, on random input",
            fix='say scores="probs" (--scores probs), or scores="logits" if they are logits',
        )


def _prefix(copy: int) -> str:
    return "calibrant_" if copy == 1 else f"calibrant{copy}_"


def _number_name(name: str, copy: int) -> str:
    return name if copy == 1 else f"{name}_{copy}"


def _names(graph: Any) -> set[str]:
    values = {item.name for group in (graph.input, graph.output, graph.initializer, graph.node) for item in group}
    return values | {name for node in graph.node for name in (*node.input, *node.output)}


def _load(file: Path) -> Any:
    onnx = require_module("onnx", ONNX_INSTALL)
    if not file.is_file():
        raise InputError(str(file), expected="a classifier in ONNX", got="no such file", fix="check the path")
    try:
        model = onnx.load(file)
        onnx.checker.check_model(model)
        versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
        if not versions:  # trees and linear models use operators of ai.onnx.ml alone
            model.opset_import.append(onnx.helper.make_opsetid("", OPSET))
        standard = max(versions, default=OPSET)
        return model if standard >= OLDEST_OPSET else onnx.version_converter.convert_version(model, OPSET)
    except Exception as error:  # protobuf, checker and converter each have their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            str(file), expected="a classifier in ONNX", got=f"something else ({reason})", fix="write the file again"
        ) from error


def _expose_zipped(model: Any, name: str | None) -> str | None:
    """Make the table that a ZipMap turns into dictionaries an output too; `name`, or its own name where it was meant.

    Converters of scikit-learn and LightGBM put a ZipMap at the end by default; no map can follow it.
    """
    graph, outputs = model.graph, {output.name for output in model.graph.output}
    types = require_module("onnx", ONNX_INSTALL).TensorProto
    for node in graph.node:
        if node.op_type == "ZipMap" and node.output[0] in outputs and node.input[0] not in outputs:
            info = require_module("onnx.helper", ONNX_INSTALL).make_tensor_value_info(
                node.input[0], types.FLOAT, [None, None]
            )
            graph.output.append(info)
            name = node.input[0] if name == node.output[0] else name
    return name


def _scores_output(m: Map, model: Any, file: Path, name: str | None) -> Any:
    """The output that holds scores: the named one, the one called "logits", or the only one that can be."""
    outputs = {output.name: output for output in model.graph.output}
    able = [output for output in outputs.values() if _can_hold_scores(m, output)]
    if name is None:
        name = INPUT if INPUT in outputs else able[0].name if len(able) == 1 else None
        name = next(iter(outputs)) if name is None and len(outputs) == 1 else name
    if name is None or name not in outputs:
        raise InputError(
            str(file),
            expected="the name of the output with the scores" if name is None else f"an output named {name}",
            got=f"outputs {', '.join(outputs)}",
            fix="name one of these (--output)",
        )
    if outputs[name] not in able:
        raise InputError(
            f"{file}, output {name}",
            expected="log-odds of shape batch, batch x 1 or batch x 2"
            if m.one_score
            else f"logits of shape batch x {m.k}, or batch x {m.k} x ...",
            got=_type_words(outputs[name]),
            fix="use the map of this classifier, or name another output (--output)",
        )
    return outputs[name]


def _can_hold_scores(m: Map, output: Any) -> bool:
    """Whether the type and the shape, as far as the file says them, are those of scores for this map."""
    types, tensor = require_module("onnx", ONNX_INSTALL).TensorProto, output.type.tensor_type
    if tensor.elem_type not in (types.FLOAT, types.DOUBLE, types.FLOAT16, types.BFLOAT16):
        return False
    dims = [d.dim_value for d in tensor.shape.dim]
    if m.one_score:
        return dims[1:] in ([], [0], [1], [2])
    return not dims or (len(dims) >= 2 and dims[1] in (0, m.k))


def _type_words(output: Any) -> str:
    tensor = output.type.tensor_type
    if not output.type.HasField("tensor_type"):
        return "a list of dictionaries (convert the model without ZipMap)"
    sizes = " x ".join(d.dim_param or str(d.dim_value or "?") for d in tensor.shape.dim)
    return f"{require_module('onnx', ONNX_INSTALL).TensorProto.DataType.Name(tensor.elem_type)} of shape {sizes}"


def _describe(model: Any, m: Map) -> None:
    """Write into the model's metadata which map it carries."""
    whole = m.to_dict()
    facts = {
        key: whole[key] for key in ("calibrant_map", "calibrator", "k", "task", "parameters", "keeps_argmax", "fit")
    }
    values = {"calibrant.map": json.dumps(facts), "calibrant.version": version("calibrant")}
    for old in [entry for entry in model.metadata_props if entry.key in values]:
        model.metadata_props.remove(old)
    for key, value in values.items():
        model.metadata_props.add(key=key, value=value)


# -- trial runs ---------------------------------------------------------------------------------


def _session(model: Any) -> Any:
    runtime = require_module("onnxruntime", ONNX_INSTALL)
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # warnings about a user's classifier are not ours
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(model: Any, inputs: dict[str, Any], *outputs: str) -> Any:
    arrays = _session(model).run(list(outputs), inputs)
    return arrays[0] if len(outputs) == 1 else arrays


def _try_output(model: Any, name: str) -> Any:
    """Values of an output of the classifier on random input."""
    return np.asarray(_try_outputs(model, [name])[0], dtype=np.float64)


def _try_classifier(m: Map, model: Any, joint: _Joint) -> float:
    """Run the whole classifier on random input: its new output must be the map of its old one."""
    old, new = (np.asarray(values, dtype=np.float64) for values in _try_outputs(model, [joint.old, joint.new]))
    if old.shape != new.shape:
        raise InputError(
            "export to onnx", expected=f"shape {old.shape}", got=f"{new.shape}", fix="please report this map as a bug"
        )
    if joint.rank > 2 and not m.one_score:
        old, new = (np.moveaxis(values, 1, -1).reshape(-1, m.k) for values in (old, new))
    if not joint.are_probs:
        logits = old[:, 1] - old[:, 0] if joint.both else old
        odds = new[:, 1] - new[:, 0] if joint.both else new
        return compare_outputs(m, to_input(m, logits), _probs(m, odds), "onnx")[0]
    if m.one_score:
        old, new = (values[:, 1:] if joint.both else values.reshape(-1, 1) for values in (old, new))
        old = np.concatenate([1 - old, old], axis=1)
    blank = to_input(m, np.zeros(len(old)) if m.one_score else np.zeros_like(old))
    before = Predictions._from_valid(np.clip(old, 0, 1), blank.labels, "probs", blank.row_data)
    return compare_outputs(m, before, new, "onnx")[0]


def _try_outputs(model: Any, names: list[str]) -> list[Any]:
    failed = ""
    for size in FREE_SIZES:
        try:
            session, rng = _session(model), np.random.default_rng(0)
            return list(
                session.run(names, {node.name: _random_input(node, size, rng) for node in session.get_inputs()})
            )
        except Exception as error:  # onnxruntime's own errors share no base class
            failed = failed or str(error).strip().splitlines()[0]
    raise InputError(
        "export to onnx",
        expected="a classifier that runs on random input",
        got=failed,
        fix="export the map alone and join the two graphs where the input is known",
    )


def _random_input(node: Any, size: int, rng: np.random.Generator) -> Any:
    """Numbers of the right type and shape; free sizes become the batch (the first) or `size`."""
    shape = [d if isinstance(d, int) and d > 0 else (BATCH if i == 0 else size) for i, d in enumerate(node.shape)]
    kind = node.type.removeprefix("tensor(").removesuffix(")")  # onnxruntime's word, numpy's in most cases
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    return rng.normal(size=shape).astype(kind) if kind.startswith("float") else np.ones(shape, dtype=kind)


def _probs(m: Map, out: Any) -> Any:
    """Probabilities from the output of a graph, (n, k), or (n, 1) of one score."""
    logs = np.asarray(out, dtype=np.float64)
    if m.one_score:
        return 1 / (1 + np.exp(-logs.reshape(-1, 1)))
    e = np.exp(logs)
    return e / e.sum(axis=1, keepdims=True)
