"""Every script in `examples/` runs, and prints what it is about."""

import runpy
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS = {
    "huggingface_trainer": ("torch", "transformers", "accelerate"),
    "sklearn_pipeline": ("sklearn",),
    "torch_to_onnx": ("torch", "sklearn", "onnx", "onnxruntime"),
}
SAYS = {
    "ci_gate": "ece 0.0681, limit 0.12: kept",
    "compare_seeds": "ECE of the second minus the first: -",
    "huggingface_trainer": "'auroc_correct'",
    "llm_multiple_choice": "choices)",
    "llm_stated_confidence": "2,000 answers",
    "monitoring": "alarm",
    "segmentation": "images as clusters: accuracy",
    "sklearn_pipeline": "positive-class ECE",
    "torch_to_onnx": "ONNX gives the same probabilities: True",
}


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_runs(name, tmp_path, monkeypatch, capsys):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    with suppress(SystemExit) if name == "ci_gate" else nullcontext():
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out


def test_every_example_is_tried():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(SAYS)
