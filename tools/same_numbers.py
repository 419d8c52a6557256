"""Record every number the library gives, and compare two records: for changes after which no number may differ.

python tools/same_numbers.py record before.json               before the change
python tools/same_numbers.py record after.json --part board   after it, all parts or some
python tools/same_numbers.py compare before.json after.json   exit code 1 where a value differs

A record maps "part/data set/.../field" to a number, a sentence or null. Errors of the library are recorded as their
text, its warnings too. Other errors are recorded and told: most often something was renamed. Then one function of a
part needs a change here, not the record.
"""

# ruff: noqa: B023 (every function that is given to `add` is called at once)

import argparse
import dataclasses
import hashlib
import json
import math
import os
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # sums of several threads may end in another digit
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import calibrant as cal  # noqa: E402
from calibrant.core.errors import InputError  # noqa: E402
from calibrant.measures import CATALOGUE as MEASURES  # noqa: E402
from calibrant.measuring.harmonic_score import harmonic_score  # noqa: E402

CLOSE = 1e-12  # of the number, or of 1
LONG = 60  # more numbers in a row are kept as the first ones and sums
LONGEST_TEXT = 20_000
LEFT_OUT = {"date", "versions", "version", "seconds", "command", "provenance", "path"}
P_VALUES = {"p_value", "p_corrected"}
LEVELS = (0.95, 0.8)
DIALECTS = (
    *("torchmetrics", "torch_uncertainty", "probmetrics", "netcal", "uncertainty_calibration", "relplot"),
    *("focal_calibration", "onmixup"),
)
FEW = ("ece", "nll", "auroc_correct", "classwise", "slope")
SOME = (*FEW, "gap", "brier", "oe_ratio", "average_precision", "ece:scheme=mass", "smooth", "accuracy", "debiased")
CHECKED = (*FEW, "gap", "smooth", "oe_ratio")
VARIANTS = (
    *("ece:bins=30", "ece:scheme=mass", "ece:scheme=mass,mass_rule=midpoint", "ece:closed=left", "ece:scope=top"),
    *("ece:norm=2", "ece:norm=3", "ece:norm=2,scheme=mass", *(f"ece:dialect={name}" for name in DIALECTS)),
    *("classwise:scheme=mass", "classwise:norm=2", "classwise:norm=2,scheme=mass", "classwise:bins=30"),
    *("refinement:loss=brier", "refinement:by=isotonic", "refinement:loss=brier,by=isotonic", "refinement:folds=3"),
    *("auroc_correct:scope=top", "auroc_correct:scope=event", "aurc:scope=top", "eaurc:scope=top", "gap:scope=top"),
    *("ks:rank=2", "ks:within=true", "ks:scope=top", "smooth:dialect=relplot", "smooth:scope=top"),
    *("mce:min_count=5", "mce:bins=30", "mce:scheme=mass", "brier:form=top", "brier:form=half", "brier:form=mean_k"),
    *("nll:floor=0.01", "ace_nixon:scheme=width", "debiased:scheme=width", "fpr95:tpr=0.9", "kde:norm=2"),
    *("mmce:width=0.2", "sece:h=0.05", "sece:form=eq5", "sece:leave_one_out=true", "tace:threshold=0.05"),
    *("ici:span=0.5", "e90:span=0.5", "rmsce:bins=30", "rmsce:scheme=mass", "avgce:bins=30", "atb:scope=top"),
)
P = cal.Predictions

# -- a record -------------------------------------------------------------------------------------


class Record:
    """Values by key, and what went wrong that is no error of the library."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.failed: list[str] = []

    def add(self, key: str, compute: Callable[[], Any]) -> None:
        """Record what a function gives, all fields of it, or its error, and the warnings of the library."""
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                self.values |= flat(key, compute())
            except InputError as error:
                self.values[f"{key}/error"] = steady(f"{type(error).__name__}: {error}")
            except Exception as error:
                self.values[f"{key}/error"] = steady(f"{type(error).__name__}: {error}")
                self.failed.append(f"{key}: {self.values[f'{key}/error']}")
        own = {steady(str(w.message)) for w in seen if w.category.__module__.startswith("calibrant")}
        if own:
            self.values[f"{key}/warnings"] = " | ".join(sorted(own))


def flat(key: str, value: Any) -> dict[str, Any]:
    """The numbers and sentences inside a value, by keys that say where they are."""
    if hasattr(value, "to_dict") and not isinstance(value, type | list):
        value = frame_columns(value) if hasattr(value, "columns") else value.to_dict()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, P):
        value = scores(value)
    if isinstance(value, Mapping):
        parts = {"/".join(name) if isinstance(name, tuple) else str(name): part for name, part in value.items()}
        return {
            k: v for name, part in parts.items() if name not in LEFT_OUT for k, v in flat(f"{key}/{name}", part).items()
        }
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        numbers = len(value) > LONG and all(isinstance(entry, int | float | list) for entry in value)
        whole = np.array(value, dtype=np.float64).ravel() if numbers and is_regular(value) else None
        if whole is not None and len(whole) > LONG:
            return flat(key, sums_of(whole))
        return {k: v for i, part in enumerate(value) for k, v in flat(f"{key}/{i}", part).items()} | {
            f"{key}/length": len(value)
        }
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return {key: str(value).lower()}
    return {key: value if value is None or isinstance(value, int | float) else steady(str(value))}


def is_regular(value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether numbers, or rows of equally many numbers, make an array."""
    try:
        return np.array(value).dtype.kind in "biuf"
    except ValueError:
        return False


def sums_of(values: Any) -> dict[str, Any]:
    """Many numbers in few, so that each of them matters, its place too."""
    known = np.nan_to_num(values, nan=0.0, posinf=1e9, neginf=-1e9)
    place = np.sin(np.arange(1, len(values) + 1))
    return {
        "first": values[:20].tolist(),
        "count": len(values),
        "undefined": int((~np.isfinite(values)).sum()),
        "mean": float(known.mean()),
        "square": float((known**2).mean()),
        "by_place": float((known * place).mean()),
    }


def frame_columns(frame: Any) -> dict[str, Any]:
    """The columns of a polars frame."""
    return {name: frame[name].to_list() for name in frame.columns}


def scores(p: P) -> Any:
    """What predictions say: P(positive), the confidence, or all probabilities."""
    return p.score if p.task in ("binary", "confidence") else p.probs


def steady(text: str) -> str:
    """Text without what may change from run to run: dates, temporary folders, tabs; very long text by its hash."""
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", text).replace(tempfile.gettempdir(), "TMP")
    text = re.sub(r"TMP/\w+", "TMP", text)
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}... {hashlib.sha256(text.encode()).hexdigest()}"
    return text


# -- data -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two models on the same rows, and a third set of other rows, of another size."""

    a: P
    b: P
    other: P


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def drawn(n: int, k: int, seed: int) -> tuple[Any, Any, Any]:
    """Logits of two models and labels: the first is too sure, the second noisier."""
    rng = np.random.default_rng(seed)
    z = 1.3 * rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=(n, k))).argmax(axis=1)
    return 1.6 * z + 0.3 * rng.normal(size=(n, k)), 1.1 * z + 0.5 * rng.normal(size=(n, k)), y


def multiclass(n: int, *, k: int = 10, seed: int = 5, probs: bool = False, right: bool = False, **rows: Any) -> Pair:
    a, b, y = drawn(n, k, seed)
    if right:
        a, b = (z + 12 * np.eye(k)[y] for z in (a, b))
    if probs:
        a, b = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in (a, b))
    build = P.from_probs if probs else P.from_logits
    c, _, labels = drawn(max(8, 3 * n // 4), k, seed + 1)
    return Pair(build(a, y, **rows), build(b, y, **rows), P.from_logits(c, labels))


def positives(n: int, *, seed: int = 6, digits: int | None = None, shift: float = 0.0, **rows: Any) -> Pair:
    rng = np.random.default_rng(seed)
    x = 1.5 * rng.normal(size=n) - shift
    y, z = rng.random(n) < sigmoid(x), 0.8 * x + 0.3 * rng.normal(size=n)
    m = 3 * n // 4
    x2 = 1.5 * rng.normal(size=m) - shift
    values = [sigmoid(1.5 * x + 0.2), sigmoid(z), sigmoid(1.2 * x2)]
    values = [v if digits is None else v.round(digits) for v in values]
    other = P.binary(values[2], rng.random(m) < sigmoid(x2))
    return Pair(P.binary(values[0], y, **rows), P.binary(values[1], y, **rows), other)


def confidences(n: int, *, seed: int = 7, digits: int | None = None, right: bool | None = None, **rows: Any) -> Pair:
    rng = np.random.default_rng(seed)
    x, x2 = 1.5 * rng.normal(size=(2, n))
    y, y2 = (rng.random(n) < 0.5 + 0.45 * sigmoid(v) if right is None else np.full(n, right) for v in (x, x2))
    values = [0.6 + 0.4 * sigmoid(x), 0.5 + 0.5 * sigmoid(1.5 * x), 0.55 + 0.4 * sigmoid(x2)]
    values = [v if digits is None else v.round(digits) for v in values]
    a, b = (P.from_confidence(v, y, **rows) for v in values[:2])
    return Pair(a, b, P.from_confidence(values[2][: 3 * n // 4], y2[: 3 * n // 4]))


def choices(n: int, seed: int = 8) -> Pair:
    a, b, _ = drawn(n, 5, seed)
    mask = np.random.default_rng(seed).random((n, 5)) < 0.8
    mask[:, :2] = True
    y = np.where(mask, a + np.random.default_rng(seed + 1).gumbel(size=(n, 5)), -np.inf).argmax(axis=1)
    p, q = (P.from_logits(z, y, mask=mask) for z in (a, b))
    return Pair(p, q, q.take(np.arange(n // 4, n)))


def fashion(rows: int = 4000) -> Pair:
    val, test = cal.example("fashion")
    noise = 0.5 * np.random.default_rng(3).normal(size=test.values.shape)
    test, other = P.from_logits(test.values[:rows], test.labels[:rows]), val.take(np.arange(3 * rows // 4))
    return Pair(test, P.from_logits(0.6 * test.values + noise[:rows], test.labels), other)


def digits() -> Pair:
    """Half of the digits of scikit-learn, as two classifiers fitted on the other half see them."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    x, y = load_digits(return_X_y=True)
    fitted = [
        model.fit(x[::2] / 16, y[::2]) for model in (GaussianNB(var_smoothing=1e-3), LogisticRegression(max_iter=50))
    ]
    a, b = (P.from_probs(model.predict_proba(x[1::2] / 16), y[1::2]) for model in fitted)
    return Pair(a, b, a.take(np.arange(600)))


def with_ids() -> Pair:
    """Two models that share some rows by name."""
    a, b, y = drawn(300, 4, 9)
    order = np.random.default_rng(1).permutation(300)[:250]
    names = np.array([f"row {i}" for i in range(300)])
    p, q = P.from_logits(a[:280], y[:280], ids=names[:280]), P.from_logits(b[order], y[order], ids=names[order])
    return Pair(p, q, q)


def rows_of(n: int = 600) -> dict[str, Any]:
    """Weights, clusters and groups of rows."""
    rng = np.random.default_rng(4)
    return {
        "whole": rng.integers(0, 4, n),
        "fractional": rng.gamma(2.0, 1.0, n),
        "clusters": np.repeat(np.arange(n // 6), 6),
        "groups": rng.choice(["north", "south", "west"], n, p=[0.5, 0.4, 0.1]),
    }


MAKERS: dict[str, Callable[[], Pair]] = {
    "8 rows": lambda: multiclass(8, k=3),
    "80 rows": lambda: multiclass(80, k=4),
    "600 rows": lambda: multiclass(600),
    "whole weights": lambda: multiclass(600, weights=rows_of()["whole"]),
    "fractional weights": lambda: multiclass(600, k=5, weights=rows_of()["fractional"]),
    "clusters": lambda: multiclass(600, k=5, clusters=rows_of()["clusters"]),
    "weights and clusters": lambda: multiclass(
        600, k=5, weights=rows_of()["fractional"], clusters=rows_of()["clusters"], groups=rows_of()["groups"]
    ),
    "binary": lambda: positives(600),
    "binary ties": lambda: positives(600, digits=1),
    "binary weights and clusters": lambda: positives(
        600, weights=rows_of()["fractional"], clusters=rows_of()["clusters"]
    ),
    "binary few clusters": lambda: positives(600, clusters=np.repeat(np.arange(12), 50)),
    "rare positives": lambda: positives(400, shift=4.0),
    "binary 8 rows": lambda: positives(8),
    "confidence": lambda: confidences(600, groups=rows_of()["groups"]),
    "confidence ties": lambda: confidences(600, digits=1, weights=rows_of()["whole"]),
    "choice": lambda: choices(400),
    "all right": lambda: multiclass(80, k=4, right=True),
    "all right probs": lambda: multiclass(80, k=4, probs=True, right=True),
    "all right confidence": lambda: confidences(80, right=True),
    "all wrong confidence": lambda: confidences(80, right=False),
    "ids": with_ids,
    "digits": digits,
    "sneakers": lambda: Pair(
        *(q.take(np.arange(1500)) for q in (*cal.example("sneakers"), cal.example("sneakers").val))
    ),
    "fashion": fashion,
    "many rows": lambda: multiclass(120_000, k=3),
    "many rows binary": lambda: positives(120_000),
}
BIG = ("fashion", "many rows", "many rows binary")
FULL = ("80 rows", "600 rows", "weights and clusters", "binary", "binary weights and clusters", "confidence")
HALF = ("whole weights", "fractional weights", "clusters", "binary ties", "rare positives", "all right", "choice")
CHEAP = ("accuracy", "ece", "nll", "brier", "gap", "classwise", "auroc_correct", "slope", "ece:scheme=mass")


@cache
def data(name: str) -> Pair:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[name]()


def pairs(but: tuple[str, ...] = ()) -> Iterator[tuple[str, Pair]]:
    return ((name, data(name)) for name in MAKERS if name not in but)


def specs(name: str) -> tuple[str, ...]:
    """The measures of a data set: all of the catalogue, options of them on some sets; a few of very many rows."""
    if name.startswith("many"):
        return CHEAP
    if name in ("all right probs", "all right confidence", "all wrong confidence"):  # each takes seconds there
        return SOME
    return (*MEASURES.names(), *(VARIANTS if name in FULL else ()))


def with_text(result: Any) -> dict[str, Any]:
    return result.to_dict() | {"text": str(result)}


# -- parts: measures ------------------------------------------------------------------------------


def confidence_of_wrong(p: P) -> float:
    """A function as a measure."""
    return float(p.mean(p.confidence * (1 - p.outcome)))


def part_measure(r: Record) -> None:
    for name, rows in pairs():
        for spec in specs(name):
            for level in LEVELS if name in FULL or spec in SOME else LEVELS[:1]:
                r.add(f"measure/{name}/{spec}/{level}", lambda: with_text(cal.measure(rows.a, spec, confidence=level)))
        for spec in () if name in BIG else FEW:
            r.add(f"measure/{name}/{spec}/100 resamples", lambda: cal.measure(rows.a, spec, resamples=100, seed=3))
            r.add(f"measure/{name}/{spec}/value alone", lambda: cal.measure(rows.b, spec, resamples=0))
        r.add(f"measure/{name}/standard", lambda: cal.measure(rows.b, "standard"))
        r.add(f"measure/{name}/function", lambda: cal.measure(rows.a, confidence_of_wrong))
    for name in ("600 rows", "80 rows", "digits", "whole weights"):
        r.add(
            f"measure/{name}/benchmark102",
            lambda: cal.measure_set(data(name).a, "benchmark102", ood={"b": data(name).b}),
        )


def part_compare(r: Record) -> None:
    for name, rows in pairs():
        chosen = CHEAP[:7] if name in BIG else specs(name) if name in (*FULL, *HALF) else SOME
        for spec in chosen:
            for level in LEVELS if spec in FEW else LEVELS[:1]:
                key, options = f"compare/{name}/{spec}/{level}", {"confidence": level}
                r.add(f"{key}/paired", lambda: with_text(cal.compare(rows.a, rows.b, spec, **options)))
                if spec in SOME and (name not in BIG or level == LEVELS[0]):
                    r.add(f"{key}/itself", lambda: cal.compare(rows.a, rows.a, spec, **options))
                    r.add(f"{key}/other rows", lambda: cal.compare(rows.a, rows.other, spec, paired=False, **options))
                    r.add(f"{key}/not paired", lambda: cal.compare(rows.a, rows.b, spec, paired=False, **options))
        for spec in () if name in BIG else FEW:
            r.add(
                f"compare/{name}/{spec}/100 resamples", lambda: cal.compare(rows.a, rows.b, spec, resamples=100, seed=3)
            )
        r.add(f"compare/{name}/function", lambda: cal.compare(rows.a, rows.b, confidence_of_wrong))


def part_check(r: Record) -> None:
    for name, rows in pairs():
        for spec in CHEAP[:5] if name in BIG else CHECKED:
            for level in LEVELS if name in FULL and spec in FEW else LEVELS[:1]:
                for side in ("max", "min"):
                    options = {"limit": 0.1, "side": side, "confidence": level}
                    r.add(f"check/{name}/{spec}/{level}/{side}", lambda: with_text(cal.check(rows.a, spec, **options)))
                options = {"limit": 0.02, "confidence": level}
                r.add(
                    f"check/{name}/{spec}/{level}/against",
                    lambda: with_text(cal.check(rows.a, spec, against=rows.other, **options)),
                )


def part_tests(r: Record) -> None:
    tests = ("spiegelhalter", "hosmer_lemeshow", "ece", "atb", "ks", "classwise", "debiased")
    for name, rows in pairs():
        every = (*tests[:2], *specs(name)) if name == "80 rows" else (*tests, *SOME) if name in FULL else tests
        for test in tests[:3] if name in BIG else every:
            r.add(f"tests/{name}/{test}", lambda: cal.calibration_test(rows.a, test))
        for options in ({"groups": 5}, {"seen": True}, {"resamples": 200, "seed": 3}):
            words = ",".join(f"{option}={value}" for option, value in options.items())
            r.add(
                f"tests/{name}/hosmer_lemeshow/{words}",
                lambda: cal.calibration_test(rows.b, "hosmer_lemeshow", **options),
            )
        if name not in BIG:
            r.add(
                f"tests/{name}/usual",
                lambda: cal.calibration_test(rows.b, ["spiegelhalter", "hosmer_lemeshow", "atb", "ece"]).sentence,
            )


def part_decompose(r: Record) -> None:
    for name, rows in pairs():
        r.add(f"decompose/{name}", lambda: dict(cal.decompose(rows.a)))
        r.add(f"decompose/{name}/30 bins", lambda: dict(cal.decompose(rows.b, bins=30)))
    r.add("decompose/harmonic_score", lambda: harmonic_score([0.9, 0.5], [0.1, 0.0], beta=2.0))
    r.add("decompose/synthetic", lambda: cal.synthetic(ece=0.18, auroc=0.9, n=400))
    for name in ("600 rows", "binary", "clusters", "fractional weights", "confidence"):
        a, b, other = vars(data(name)).values()
        for runs in (
            {"a": [a], "b": [b], "half": [a.with_temperature(2.0)]},
            {"a": [a, b], "b": [b, other], "c": [other] * 2},
        ):
            key = f"decompose/{name}/table of {len(runs['a'])} runs"
            r.add(key, lambda: cal.table(runs, ["ece", "nll", "accuracy", "gap"]).to_dict())
            r.add(f"{key}/text", lambda: cal.table(runs, ["ece", "brier"]).text("csv"))


# -- parts: maps and decisions --------------------------------------------------------------------

FITTED_ON = (
    "600 rows",
    "whole weights",
    "weights and clusters",
    "binary",
    "binary ties",
    "confidence",
    "choice",
    "all right",
    "80 rows",
)


@cache
def calibrators() -> tuple[str, ...]:
    more = (
        "temperature+isotonic",
        "histogram:bins=5",
        "platt:of=score",
        "bbq:score=bic",
        "ets:loss=nll",
        "isotonic:scope=top",
    )
    return (*cal.calibrators.names(), *more)


def part_maps(r: Record) -> None:
    from calibrant.repairing.judge import repair

    for name in FITTED_ON:
        rows = data(name)
        for spec in calibrators():
            key, fitted = f"maps/{name}/{spec}", []
            r.add(f"{key}/map", lambda: fitted.append(cal.fit(rows.a, spec)) or fitted[0].to_dict())
            if fitted:
                r.add(f"{key}/outputs", lambda: scores(fitted[0](rows.other.take(np.arange(min(50, rows.other.n))))))
        for spec in ("temperature", "isotonic"):
            r.add(
                f"maps/{name}/{spec}/repair", lambda: repair(cal.fit(rows.a, spec), rows.a, test=rows.other).to_dict()
            )
            r.add(f"maps/{name}/{spec}/cross-fitted", lambda: repair(cal.fit(rows.a, spec), rows.a, folds=5).to_dict())
        for options in ({}, {"keep_argmax": True}):
            r.add(f"maps/{name}/choose {options}", lambda: choice_of(rows.a, **options))
    for name in ("weights and clusters", "confidence"):
        r.add(f"maps/{name}/by group", lambda: cal.fit(data(name).a, "temperature", by_group=True).to_dict())
    val, test = cal.example("fashion")
    r.add("maps/fashion/choose", lambda: choice_of(val.take(np.arange(1000))))
    r.add("maps/fashion/repair", lambda: repair(cal.fit(val, "temperature"), val, test=test).to_dict())


def choice_of(p: P, **options: Any) -> dict[str, Any]:
    chosen = cal.choose(p, **options)
    return {"map": chosen.map.to_dict(), "verdict": chosen.verdict, "ruling": chosen.ruling}


def part_export(r: Record) -> None:
    rows = {name: data(name) for name in ("600 rows", "binary")}
    with tempfile.TemporaryDirectory() as folder:
        for name, pair in rows.items():
            x = pair.a.values[:50] if name == "600 rows" else pair.a.score[:50]
            for spec in cal.calibrators.names():
                out = Path(folder) / spec
                r.add(
                    f"export/{name}/{spec}/python",
                    lambda: [
                        vars(cal.export(cal.fit(pair.a, spec), "python", f"{out}.py")),
                        out.with_suffix(".py").read_text(),
                    ],
                )
                r.add(
                    f"export/{name}/{spec}/onnx", lambda: run_onnx(cal.fit(pair.a, spec), out.with_suffix(".onnx"), x)
                )
            for spec in ("temperature", "isotonic", "ets"):
                r.add(
                    f"export/{name}/{spec}/torch",
                    lambda: run_torch(cal.fit(pair.a, spec), Path(folder) / f"{spec}.pt2", x),
                )
        decision = cal.decide(rows["binary"].a, cost="fn=9,fp=1", map=cal.fit(rows["binary"].b, "platt"))
        r.add(
            "export/binary/decision/python",
            lambda: [vars(cal.export(decision, "python", f"{folder}/d.py")), Path(f"{folder}/d.py").read_text()],
        )


def run_onnx(m: Any, file: Path, x: Any) -> Any:
    import onnxruntime

    written = cal.export(m, "onnx", file)
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    precision = np.float64 if "double" in given.type else np.float32
    outputs = session.run(None, {given.name: (x if len(given.shape) == np.ndim(x) else x[:, None]).astype(precision)})
    return {"written": vars(written), "outputs": [np.asarray(output, dtype=np.float64) for output in outputs]}


def run_torch(m: Any, file: Path, x: Any) -> Any:
    import torch

    written = cal.export(m, "torch", file)
    outputs = torch.export.load(file).module()(torch.tensor(x, dtype=torch.float32))
    return {"written": vars(written), "outputs": outputs.detach().double().numpy()}


def part_decisions(r: Record) -> None:
    costs = ("fn=9,fp=1", "fn=1,fp=3,abstain=0.2", "wrong=5,abstain=1", "threshold=0.8")
    asked = [{"cost": cost} for cost in costs] + [{"max_error": e} for e in (0.02, 0.2)] + [{"min_precision": 0.7}]
    for name, rows in pairs():
        k = rows.a.k
        matrix = (np.ones((k, k)) - np.eye(k)) * (1 + np.arange(k)[:, None])
        matrices = [{"cost": matrix}, {"cost": np.hstack([matrix, np.full((k, 1), 0.3)])}] if k < 20 else []
        for i, options in enumerate([*asked, *matrices]):
            for level in LEVELS if name not in BIG else LEVELS[:1]:
                r.add(f"decisions/{name}/{i}/{level}", lambda: decided(rows, confidence=level, **options))
    for name in ("binary", "600 rows", "binary weights and clusters"):
        m = cal.fit(data(name).b, "temperature")
        r.add(f"decisions/{name}/with a map", lambda: decided(data(name), max_error=0.2, map=m))


def decided(rows: Pair, **options: Any) -> dict[str, Any]:
    decision = cal.decide(rows.a, **options)
    done = {"decision": decision.to_dict(), "possible": str(decision.possible)}
    return done | {"decided": decision(rows.other), "judged": cal.evaluate(decision, rows.other).to_dict()}


def part_adapt(r: Record) -> None:
    for name in (
        "600 rows",
        "80 rows",
        "binary",
        "binary weights and clusters",
        "fractional weights",
        "clusters",
        "rare positives",
        "confidence",
    ):
        rows = data(name)
        for spec in ("identity", "temperature"):
            r.add(f"adapt/{name}/{spec}/base_rates", lambda: estimated_rates(cal.fit(rows.a, spec), rows, spec))
            r.add(
                f"adapt/{name}/{spec}/map",
                lambda: cal.adapt(cal.fit(rows.a, spec), fit_on=rows.a, unlabelled=rows.other, resamples=20).to_dict(),
            )
    m = cal.fit(data("binary").a, "platt")
    r.add("adapt/binary/known", lambda: cal.adapt(m, from_rates=0.2, to_rates=0.5)([0.1, 0.3, 0.9]))


def estimated_rates(m: Any, rows: Pair, spec: str) -> dict[str, Any]:
    rates = cal.base_rates(m, rows.a, rows.other, resamples=60 if spec == "identity" else 20, confidence=0.9)
    return rates.to_dict() | {"words": rates.words}


def part_rescorers(r: Record) -> None:
    z, _, y = drawn(500, 4, 12)
    x = np.hstack([z, np.random.default_rng(2).normal(size=(500, 3))]).astype(np.float32)
    p, q = P.from_logits(z[:250], y[:250], features=x[:250]), P.from_logits(z[250:], y[250:], features=x[250:])
    r.add(
        "rescorers/trust score",
        lambda: cal.rescorers.TrustScore().fit(x[:250], y[:250]).calibrate(q.take(np.arange(150))).predict(q),
    )
    r.add("rescorers/density ratio", lambda: cal.rescorers.DensityRatio().fit(p).predict(q))
    r.add("rescorers/proximity groups", lambda: cal.ProximityGroups(groups=3).fit(p).predict(q))
    r.add("rescorers/sklearn", lambda: calibrated_probabilities(x, y))


def calibrated_probabilities(x: Any, y: Any) -> Any:
    from sklearn.naive_bayes import GaussianNB

    fitted = [
        cal.CalibratedClassifier(GaussianNB(), method=m, cv=3).fit(x[:250], y[:250]) for m in ("auto", "temperature")
    ]
    return [model.predict_proba(x[250:300]) for model in fitted]


# -- parts: pages, streams, studies, networks -----------------------------------------------------


def answers(questions: int, messy: bool) -> Any:
    """Answers of five models to the same questions, with two confidences; with gaps, where messy."""
    import polars as pl

    rng, parts = np.random.default_rng(3), []
    ease = rng.normal(size=questions)
    for i, (name, right) in enumerate(
        {"small": 0.4, "small-think": 0.6, "large": 0.6, "large-think": 0.75, "large-FP8": 0.6}.items()
    ):
        chance = sigmoid(1.5 * ease + 2.2 * math.log(right / (1 - right)) + 0.5 * rng.normal(size=questions))
        stated = np.clip(np.round(20 * (chance + 0.3 - 0.05 * i + 0.1 * rng.normal(size=questions))) / 20, 0, 1)
        stated[:: 7 if messy and i == 1 else questions + 1] = np.nan
        columns = {"model": [name] * questions, "question": np.arange(questions), "stated": stated}
        columns |= {"category": [("law", "math", "history")[q % 3] for q in range(questions)]}
        columns |= {"correct": (rng.random(questions) < chance).astype(int)}
        columns |= {"tokens": np.clip(chance + 0.15 * rng.normal(size=questions), 0, 1)}
        parts.append(pl.DataFrame(columns))
    return pl.concat(parts)


def part_board(r: Record) -> None:
    whole = {"confidence": ("stated", "tokens"), "group": "category", "id": "question"}
    for key, questions, messy, options in (
        ("two confidences", 400, False, whole),
        ("gaps", 400, True, whole | {"confidence": "stated", "missing": "count_as_wrong", "level": 0.8}),
        ("gaps dropped", 300, True, {"confidence": "stated", "id": "question", "calibrator": "temperature"}),
        ("few", 40, False, {"confidence": "tokens", "id": "question", "calibrator": "histogram:bins=4"}),
    ):
        made: list[Any] = []
        r.add(f"board/{key}", lambda: made.append(cal.board(answers(questions, messy), **options)) or made[0].to_dict())
        for form in ("markdown", "csv") if made else ():
            r.add(f"board/{key}/{form}", lambda: made[0].text(form))
        if made:
            r.add(
                f"board/{key}/worse",
                lambda: [
                    facts.worse for each in made[0].boards for s in each.rankings.values() for facts in s.values()
                ],
            )


def part_report(r: Record) -> None:
    val, test = (p.take(np.arange(1200)) for p in cal.example("fashion"))
    several = data("600 rows")
    for key, build in {
        "fashion": lambda: cal.report(test, fit_on=val),
        "cost": lambda: cal.report(data("binary").a, fit_on=data("binary").other, cost="fn=9,fp=1"),
        "abstain": lambda: cal.report(data("binary ties").a, cost="fn=5,fp=1,abstain=0.3"),
        "accept": lambda: cal.report(data("80 rows").a, cost="wrong=5,abstain=1", bins=10, seed=2),
        "clusters and groups": lambda: cal.report(data("weights and clusters").a),
        "binary clusters": lambda: cal.report(data("binary weights and clusters").a, resamples=100),
        "confidence": lambda: cal.report(data("confidence").a),
        "choice": lambda: cal.report(data("choice").a, calibrators=["temperature", "isotonic"]),
        "several": lambda: cal.report(
            {"a": several.a, "b": several.b, "soft": several.a.with_temperature(1.6)},
            calibrators=["temperature", "ets"],
        ),
        "several binary": lambda: cal.report({"a": data("binary").a, "b": data("binary").b}, cost="fn=9,fp=1"),
        "all right": lambda: cal.report(data("all right").a),
        "8 rows": lambda: cal.report(data("8 rows").a),
        "few": lambda: cal.report(data("80 rows").a, fit_on=data("80 rows").other, keep_argmax=True),
        "sums": lambda: cal.report(stream(several.a)),
        "sums binary": lambda: cal.report(stream(data("binary").a)),
    }.items():
        made: list[Any] = []
        r.add(f"report/{key}", lambda: made.append(build()) or made[0].to_dict())
        if made:
            r.add(f"report/{key}/text", lambda: str(made[0]))
            r.add(f"report/{key}/markdown", lambda: saved_text(made[0]))


def saved_text(report: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        report.save(f"{folder}/report.md")
        return Path(f"{folder}/report.md").read_text()


def part_plots(r: Record) -> None:
    for name in (
        "600 rows",
        "binary",
        "binary ties",
        "weights and clusters",
        "confidence",
        "binary weights and clusters",
        "80 rows",
    ):
        models = {"a": data(name).a, "b": data(name).b}
        for figure in cal.plot("list"):
            r.add(f"plots/{name}/{figure}", lambda: plotted(figure, models))


def plotted(figure: str, source: Any) -> dict[str, Any]:
    drawn = cal.plot(figure, source)
    columns = {
        name: [row.get(name) for row in drawn.rows] for name in dict.fromkeys(k for row in drawn.rows for k in row)
    }
    return {"words": drawn.words, "rows": columns}


@cache
def streamed() -> tuple[str, ...]:
    """The measures that sums can answer."""

    def can(spec: str) -> bool:
        try:
            cal.Accumulator([spec])
        except InputError:
            return False
        return True

    return tuple(spec for spec in (*MEASURES.names(), *VARIANTS) if can(spec))


def stream(p: P, measures: tuple[str, ...] | None = None) -> Any:
    made = cal.Accumulator(measures)
    for rows in np.array_split(np.arange(p.n), 3):
        made.update(p.take(rows))
    return made


def fits(spec: str, p: P) -> bool:
    """Whether a measure can be asked of these predictions."""
    try:
        MEASURES.make(spec).check_shape(p)
    except InputError:
        return False
    return True


def part_streams(r: Record) -> None:
    r.add("streams/which", lambda: " ".join(streamed()))
    for name, rows in pairs():
        chosen = (
            tuple(s for s in streamed() if fits(s, rows.a)) if name in FULL or name == "fractional weights" else None
        )
        made: list[Any] = []
        key = f"streams/{name}"
        r.add(key, lambda: made.append([stream(p, chosen) for p in (rows.a, rows.other)]) or made[0][0].n)
        if not made:
            continue
        one, other = made[0]
        r.add(f"{key}/state", lambda: json.loads(one.to_json()))
        r.add(f"{key}/merged", lambda: json.loads(one.merge(other).to_json()))
        r.add(f"{key}/merged/measures", lambda: one.merge(other).measure_all())
        r.add(f"{key}/prometheus", one.to_prometheus)
        r.add(f"{key}/rows", lambda: scores(one.to_predictions()))
        for spec in one.specs:
            r.add(f"{key}/{spec}/value", lambda: one.value(spec))
            for level in LEVELS if spec in FEW else LEVELS[:1]:
                r.add(f"{key}/{spec}/{level}", lambda: with_text(one.measure(spec, confidence=level)))
                r.add(f"{key}/{spec}/{level}/compare", lambda: with_text(one.compare(other, spec, confidence=level)))
            for side in ("max", "min") if spec in CHECKED else ():
                r.add(f"{key}/{spec}/{side}", lambda: one.check(spec, limit=0.1, side=side))
            if spec in CHECKED:
                r.add(f"{key}/{spec}/against", lambda: other.check_against(one, spec, limit=0.02))
    for name in ("weights and clusters", "confidence"):
        p = data(name).a
        p = P.from_confidence(p.confidence, p.correct, groups=p.groups)
        by, later = (cal.Accumulators(by=("day", "segment")) for _ in range(2))
        for each, rows in ((by, np.arange(400)), (later, np.arange(200, 600))):
            each.update(p.take(rows), {"day": np.where(rows % 2, "monday", "tuesday")})
        r.add(f"streams/{name}/keyed", lambda: json.loads(by.merge(later).to_json()))
        for spec in ("ece", "accuracy"):
            r.add(
                f"streams/{name}/keyed/{spec}",
                lambda: [
                    by.measure(spec),
                    by.check(spec, limit=0.1),
                    later.compare(by, spec),
                    later.compare(by.total(), spec),
                ],
            )


def part_watch(r: Record) -> None:
    for name in ("binary", "confidence", "600 rows", "sneakers", "ids"):
        p = data(name).a
        for options in ({}, {"mode": "change", "tolerance": 0.0}, {"alpha": 0.2}, {"segments": True}):
            made: list[Any] = []
            key = f"watch/{name}/{options}"
            r.add(key, lambda: made.append(cal.watch(p, **options)) or made[0].to_dict())
            if made:
                r.add(
                    f"{key}/state", lambda: [json.loads(made[0].to_json()), made[0].history(), made[0].to_prometheus()]
                )


def part_claims(r: Record) -> None:
    import polars as pl

    from calibrant.studying.claims import decide_claims
    from calibrant.studying.plan import After, Claim, Method, Plan
    from calibrant.studying.tables import cells_in_words, detectable, difference, settled_by

    methods = {"CE": 0.06, "focal": 0.045, "ours": 0.03, "smooth": 0.032}
    base: dict[str, Any] = {"says": "it is so", "of": "ours", "measure": "ece"}
    claims = [Claim(**base, is_=is_, against=rival) for is_ in ("lower", "higher") for rival in ("CE", "smooth")]
    claims += [Claim(**base, is_="lower", among=["CE", "focal", "smooth"], rank=rank) for rank in (1, 2, 3)]
    claims += [Claim(**base, is_="equal", against="smooth", within=within) for within in (0.005, 0.05)]
    claims += [Claim(**base, is_="lower", than=0.04), Claim(**base, is_="lower", against="CE", where={"data": ["c"]})]
    for key, seeds, halves, sway in (
        ("five seeds", 5, False, 0.004),
        ("halves", 8, True, 0.004),
        ("one seed", 1, False, 0.004),
        ("noisy", 3, False, 0.03),
    ):
        rng, lines = np.random.default_rng(11), []
        for name, level in methods.items():
            for place, more in (("a", 0.0), ("b", 0.02)):
                for seed in range(1, seeds + 1):
                    where = {"data": place, "seed": seed, "measure": "ece", "set": "test", "n": 10, "k": 2, "why": ""}
                    value = level + more * (name != "focal") + sway * rng.normal()
                    lines.append({"method": name, "calibrator": "identity", "rescorer": "", "value": value, **where})
        grid = {"data": ["a", "b", "c"], "seed": list(range(1, seeds + 1))}
        plan = Plan(
            title="t",
            base="meta",
            grid=grid,
            methods=dict.fromkeys(methods, Method()),
            claim=claims,
            after=After(halves=halves),
        )
        r.add(f"claims/{key}", lambda: [f.to_dict() for f in decide_claims(plan, pl.DataFrame(lines))])
        for words in (difference, detectable, settled_by, cells_in_words):
            r.add(
                f"claims/{key}/{words.__name__}", lambda: [words(f) for f in decide_claims(plan, pl.DataFrame(lines))]
            )


def networks(n: int, seed: int) -> Any:
    """A table of made-up architectures with every column that questions ask for."""
    import polars as pl

    rng, frames = np.random.default_rng(seed), []
    operations = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
    index = np.sort(rng.permutation(15_625)[:n])
    cells = [
        "|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format(*(operations[i // 5**e % 5] for e in range(6))) for i in index
    ]
    for name in ("cifar10", "cifar100"):
        accuracy = rng.uniform(0.5, 0.95, n)
        ece = 0.25 - 0.2 * accuracy + rng.normal(0, 0.01, n)
        columns: dict[str, Any] = {"space": ["topology"] * n, "data": [name] * n, "arch": cells, "index": index}
        columns |= {"unique": index % 2 == 0, "constant": index < 50, "accuracy": accuracy}
        for state, level in (("pre", ece), ("post", np.abs(rng.normal(0.02, 0.005, n)))):
            for family in ("ECE", "ECE_em", "cwCE", "cwCE_em", "MCE"):
                own = rng.uniform(0.01, 0.1, n) if family == "cwCE_em" else level
                for bins in (5, 10, 15, 20, 25, 50, 100, 200, 500):
                    columns[f"{state}_{family}_{bins}"] = own * (1 + 0.05 * math.log(bins / 5)) + rng.normal(0, 1e-4, n)
            for other in ("KSCE", "KDECE", "MMCE", "NLL", "Brier"):
                columns[f"{state}_{other}"] = level + rng.normal(0, 1e-3, n)
        for other in (
            "pgd_1.0",
            "square_1.0",
            *(f"corrupt_{c}" for c in ("shot_noise", "frost", "glass_blur", "snow")),
        ):
            columns[other] = ece + rng.normal(0, 0.01, n)
        columns |= {column: rng.uniform(0.5, 1, n) for column in ("auc_cifar10c", "auc_svhn", "correct_confidence")}
        columns |= {
            "hcs": 2 * accuracy * (1 - ece) / (accuracy + 1 - ece),
            "incorrect_confidence": rng.uniform(0.3, 0.9, n),
        }
        columns |= {"params": rng.integers(1000, 10**6, n), "flops": rng.uniform(1, 300, n)}
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)


def part_networks(r: Record) -> None:
    from calibrant.nas.answers import as_text, read_networks, to_dict
    from calibrant.nas.questions import make, names
    from calibrant.nas.search import front, search_table

    tables = {
        "80 networks": lambda: networks(80, 0),
        "12 networks": lambda: networks(12, 1),
        "own table": read_networks,
    }
    for key, build in tables.items():
        table = build()
        for question in names():
            made: list[Any] = []
            r.add(f"networks/{key}/{question}", lambda: made.append(make(question)(table)) or to_dict(made[0]))
            if made:
                r.add(f"networks/{key}/{question}/text", lambda: as_text(made[0], short=False))
        options = {"budget": 6, "seeds": 8, "data": "cifar10"}
        r.add(f"networks/{key}/search", lambda: search_table(table, goal="hcs", **options))
        r.add(f"networks/{key}/front", lambda: front(table, data="cifar10"))


def part_commands(r: Record) -> None:
    """The commands of the terminal, on the files that the pages use."""
    from calibrant.measuring.example import write_examples

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            write_examples("files")
            for name in ("test", "val", "a", "b"):
                P.load(f"files/{name}.npz").take(np.arange(800)).save(f"{name}.npz")
            for command in COMMANDS:
                r.add(f"commands/{command}", lambda: run_command(command))
        finally:
            os.chdir(here)


COMMANDS = (
    "measure test.npz",
    "measure test.npz --json",
    "measure files/llm_stated.csv --confidence-column stated --missing drop --json",
    "compare a.npz b.npz",
    "compare a.npz b.npz --json",
    "check test.npz --max ece=0.03 --json",
    "check test.npz --max ece=0.03",
    "test test.npz",
    "test test.npz --json",
    "decompose test.npz",
    "fit val.npz --test test.npz --with temperature",
    "fit val.npz --test test.npz --with temperature --json",
    "board files/answers.csv --id-column id --group-column group",
    "decide files/scores.csv --label-column y --positive yes --cost fn=9,fp=1",
    "plot reliability test.npz",
    "watch files/stream.jsonl",
    "nas ask bin-size --json",
)


def run_command(command: str) -> dict[str, Any]:
    from typer.testing import CliRunner

    from calibrant.cli import app

    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "100"})
    problem = "" if done.exception is None else f"{type(done.exception).__name__}: {done.exception}"
    try:
        shown = json.loads(done.stdout)
    except ValueError:
        shown = done.stdout
    return {"exit": done.exit_code, "problem": problem, "shown": shown}


PARTS: dict[str, Callable[[Record], None]] = {
    name.removeprefix("part_"): value for name, value in list(globals().items()) if name.startswith("part_")
}

# -- record and compare ---------------------------------------------------------------------------


def record(out: Path, parts: list[str]) -> int:
    """Compute the parts, and write them; tell what failed for a reason that is not the library's."""
    print(f"calibrant from {Path(cal.__file__).parent}", flush=True)
    r = Record()
    for name in parts:
        begin, before, failed = time.process_time(), len(r.values), len(r.failed)
        try:
            PARTS[name](r)
        except Exception as error:  # the other parts still say what they can
            r.failed.append(f"{name} ended early: {type(error).__name__}: {error}")
        strange = f", {len(r.failed) - failed} unexpected errors" if len(r.failed) > failed else ""
        print(
            f"{name:12} {len(r.values) - before:8,} values {time.process_time() - begin:6.1f} s of one core{strange}",
            flush=True,
        )
    for line in r.failed[:20]:
        print(f"unexpected: {line[:200]}", file=sys.stderr)
    out.write_text(json.dumps(r.values, indent=0, allow_nan=False) + "\n", encoding="utf-8")
    print(f"{len(r.values):,} values, {len(r.failed)} unexpected errors")
    return 0


def compare(before: Path, after: Path, parts: list[str], most: int) -> int:
    """List the keys that only one record has, and the values that differ; 1 where there are any."""
    a, b = (json.loads(file.read_text(encoding="utf-8")) for file in (before, after))
    of_a, of_b = ({part_of(key) for key in values} & set(parts) for values in (a, b))
    known = of_a & of_b
    if of_a ^ of_b:
        print(f"not compared, only one file has them: {', '.join(sorted(of_a ^ of_b))}")
    a, b = ({key: value for key, value in values.items() if part_of(key) in known} for values in (a, b))
    lost, new = [key for key in a if key not in b], [key for key in b if key not in a]
    differ = [key for key, value in a.items() if key in b and not alike(value, b[key])]
    p_values = only_p_values(differ, [*lost, *new])
    wrong = [key for key in differ if key not in set(p_values)]
    for title, keys in {"only before": lost, "only after": new, "different": wrong, "p-values": p_values}.items():
        for key in keys[:most]:
            print(f"{title}: {key}: {short(a.get(key))} -> {short(b.get(key))}")
        if len(keys) > most:
            print(f"{title}: and {len(keys) - most:,} more")
    counts = {
        title: Counter(map(part_of, keys))
        for title, keys in {"": a, "wrong": [*lost, *new, *wrong], "p": p_values}.items()
    }
    for part in sorted(known):
        print(
            f"{part:12} {counts[''][part]:8,} values, {counts['wrong'][part]:6,} differ, "
            f"{counts['p'][part]:5,} p-values only"
        )
    largest = max((distance(value, b[key]) for key, value in a.items() if key in b), default=0.0)
    total = len(lost) + len(new) + len(wrong)
    print(f"{len(a):,} values, {total:,} differ, {len(p_values):,} p-values only; largest difference {largest:.3g}")
    return 1 if total else 0


def part_of(key: str) -> str:
    return key.partition("/")[0]


def only_p_values(differ: list[str], gone: list[str]) -> list[str]:
    """The p-values that differ where nothing beside them does, except the sentence that quotes them."""
    names: dict[str, set[str]] = {}
    for key in (*differ, *gone):
        place, _, name = key.rpartition("/")
        names.setdefault(place, set()).add(name)
    fine = {place for place, own in names.items() if own & P_VALUES and own <= {*P_VALUES, "text"}}
    return [key for key in differ if key.rpartition("/")[0] in fine]


def distance(x: Any, y: Any) -> float:
    """The difference of two numbers, relative where they are large; 0 for what is not two numbers."""
    both = isinstance(x, int | float) and isinstance(y, int | float)
    return abs(x - y) / max(1.0, abs(x)) if both else 0.0


def alike(x: Any, y: Any) -> bool:
    if isinstance(x, int | float) and isinstance(y, int | float):
        return distance(x, y) <= CLOSE
    return x == y


def short(value: Any) -> str:
    return f"{value!r:.160}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording, comparing = commands.add_parser("record"), commands.add_parser("compare")
    recording.add_argument("out", type=Path)
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--most", type=int, default=40, help="lines of each kind")
    for command in (recording, comparing):
        command.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    if options.command == "record":
        return record(options.out, options.part)
    return compare(options.before, options.after, options.part, options.most)


if __name__ == "__main__":
    sys.exit(main())
