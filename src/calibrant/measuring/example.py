"""Predictions that come with calibrant, to try everything with: in Python, and as the files that the pages use."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature
from calibrant.data import DEMO_TEST, DEMO_VAL, LLM_STATED

ANSWERS = 1000  # images of the table of three models
SNEAKER = 7  # a class of Fashion-MNIST


class Example(NamedTuple):
    """Predictions to fit on, and held-out predictions to measure on."""

    val: Predictions
    test: Predictions


def example(name: str = "fashion") -> Example:
    """Predictions of a real model, by name.

    - `fashion` (multiclass): a small network trained too long on Fashion-MNIST, 4,000 and 4,000 images, logits.
    - `sneakers` (binary): the same network as a detector of one class, P(sneaker); 10 % of the rows are positive.
    - `llm_stated` (confidence): GPT-4.1 on questions of MMLU-Pro, the confidence that it stated, and whether it was
      right, with the category of the question as group; answers without a stated confidence are dropped.

    >>> val, test = example("fashion")
    >>> test.n, test.k, round(float(test.confidence.mean() - test.correct.mean()), 3)
    (4000, 10, 0.068)
    """
    if name not in EXAMPLES:
        raise unknown_name("example", name, tuple(EXAMPLES))
    return EXAMPLES[name]()


def write_examples(folder: str | Path, name: str | None = None) -> dict[str, str]:
    """Write the files that the pages use into a folder, of one example or of all; returns what each file is."""
    if name is not None and name not in FILES:
        raise unknown_name("example", name, tuple(FILES))
    folder = Path(folder)
    writers = {file: writer for key, files in FILES.items() if name in (None, key) for file, writer in files.items()}
    if there := [file for file in writers if (folder / file).exists()]:
        expected, fix = "a folder without the files of the example", "name another folder"
        raise InputError(str(folder), expected=expected, got=f"one with {there[0]}", fix=fix)
    folder.mkdir(parents=True, exist_ok=True)
    for file, (_, write) in writers.items():
        write(folder / file)
    return {file: what for file, (what, _) in writers.items()}


def _fashion() -> Example:
    return Example(Predictions.load(DEMO_VAL), Predictions.load(DEMO_TEST))


def _sneakers() -> Example:
    val, test = (Predictions.binary(p.probs[:, SNEAKER], p.labels == SNEAKER) for p in _fashion())
    return Example(val, test)


def _llm_stated() -> Example:
    answers = Predictions.load(LLM_STATED, confidence="stated", group="category", missing="drop")
    order = np.random.default_rng(0).permutation(answers.n)
    return Example(answers.take(np.sort(order[: answers.n // 2])), answers.take(np.sort(order[answers.n // 2 :])))


def _save_scaled(file: Path) -> None:
    """Save the test predictions after temperature scaling on the validation predictions."""
    val, test = _fashion()
    test.with_temperature(find_temperature(val).T).save(file)


def _save_unlabelled(file: Path) -> None:
    np.savez(file, logits=_fashion().val.values)


def _save_scores(file: Path) -> None:
    test = _sneakers().test
    rows = zip(_fashion().test.probs[:, SNEAKER].tolist(), test.labels.tolist(), strict=True)
    lines = ["score,y", *(f"{score},{'yes' if label else 'no'}" for score, label in rows)]
    file.write_text("\n".join(lines) + "\n")


def _save_stream(file: Path) -> None:
    val = _fashion().val
    rows = zip(val.confidence.tolist(), val.correct.tolist(), strict=True)
    lines = [json.dumps({"confidence": confidence, "correct": correct}) for confidence, correct in rows]
    file.write_text("\n".join(lines) + "\n")


def _save_answers(file: Path) -> None:
    """Save answers of three models on the same images: uncalibrated, after temperature scaling, and twice as sure."""
    val, test = _fashion()
    rows = test.take(np.arange(ANSWERS))
    models = {"network": 1.0, "network-scaled": find_temperature(val).T, "network-sharp": 0.5}
    lines = ["model,id,group,confidence,correct"]
    for name, temperature in models.items():
        p = rows.with_temperature(temperature)
        cells = zip(rows.labels.tolist(), p.confidence.tolist(), p.correct.tolist(), strict=True)
        lines += [f"{name},{i},class {label},{c:.4f},{int(right)}" for i, (label, c, right) in enumerate(cells)]
    file.write_text("\n".join(lines) + "\n")


def _save_test(file: Path) -> None:
    _fashion().test.save(file)


EXAMPLES: dict[str, Callable[[], Example]] = {"fashion": _fashion, "sneakers": _sneakers, "llm_stated": _llm_stated}
FILES: dict[str, dict[str, tuple[str, Callable[[Path], object]]]] = {  # of an example: file, what it is, writer
    "fashion": {
        "val.npz": ("4,000 validation images, to fit on", lambda file: _fashion().val.save(file)),
        "test.npz": ("4,000 test images, to measure on", _save_test),
        "preds.npz": ("the same as test.npz", _save_test),
        "preds.csv": ("the same as a table", _save_test),
        "preds.parquet": ("the same as a table", _save_test),
        "a.npz": ("the same, to compare with b.npz", _save_test),
        "b.npz": ("the same network after temperature scaling", _save_scaled),
        "big.parquet": ("the same, standing for a file that does not fit into memory", _save_test),
        "ood.npz": ("logits without labels", _save_unlabelled),
        "answers.csv": ("confidences of three models on the same 1,000 images", _save_answers),
        "stream.jsonl": ("confidence and correct, a line each", _save_stream),
    },
    "sneakers": {"scores.csv": ("P(sneaker) and yes or no", _save_scores)},
    "llm_stated": {"llm_stated.csv": ("2,000 answers of a language model", lambda file: shutil.copy(LLM_STATED, file))},
}
