"""Every script in `examples/` runs, and prints what it is about."""

import runpy
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS = {
    "cifar_resnet": ("torch",),
    "huggingface_trainer": ("torch", "transformers", "accelerate"),
    "sklearn_pipeline": ("sklearn",),
    "torch_to_onnx": ("torch", "sklearn", "onnx", "onnxruntime"),
}
ALONE = {"huggingface_trainer", "torch_to_onnx"}
SAYS = {
    "cifar_resnet": "resnet20: 269,722 weights",
    "ci_gate": "ece 0.0681, limit 0.12: holds",
    "compare_seeds": "ECE of the second minus the first: -",
    "huggingface_trainer": "'auroc_correct'",
    "llm_multiple_choice": "choice)",
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
    assert SAYS[name] in (_alone if name in ALONE else _here)(EXAMPLES / f"{name}.py", tmp_path, monkeypatch, capsys)


def _here(script, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [script.name])
    with suppress(SystemExit) if script.stem == "ci_gate" else nullcontext():
        runpy.run_path(str(script), run_name="__main__")
    return capsys.readouterr().out


def _alone(script, folder, *_):
    """In a process of its own: other libraries warn, and look for packages of the names of our test folders."""
    ended = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_example_is_tried():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(SAYS)
