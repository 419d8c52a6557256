"""Neural Clamping beside temperature, vector, matrix and Dirichlet calibration, and its own parts: docs/clamping.md.

    python examples/compare_clamping.py [--cifar10 FOLDER] [--sgd]

Everything is fitted on the `val` part and measured on the `test` part of the networks of `networks.py`. Fits that are
finished are not repeated.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # other work shares the cores
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import networks
import numpy as np
import torch

import calibrant as cal
from calibrant.rescorers.clamping import Clamped, NeuralClamping, load_clamped
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.run import Run

MEASURES = {
    "accuracy %": "accuracy",
    "entropy": "entropy",
    "ECE %": "ece",
    "equal-mass ECE %": "ece:scheme=mass",
    "class-wise ECE %": "classwise",
}
LOGITS = {
    "TS": "temperature",
    "TS, ECE grid": "temperature_ece",
    "vector": "vector",
    "matrix": "matrix",
    "MS-ODIR": "ms_odir",
    "Dir-ODIR": "dirichlet",
}
CLAMPS = {
    "TS (FL)": {"what": "T"},
    "NC (CE)": {"gamma": 0.0},
    "NC (FL)": {},
    "NC (FL), pool": {"gamma_pool": "paper"},
    "NC (FL), data start": {"init": "data"},
    "NC (FL), lam by term": {"lambda_rule": "term"},
    "NC (FL), efficient": {"by": "efficient"},
}
CLAIMS = [  # ECE of the first minus ECE of the second: below 0 if the paper's claim holds here
    ("NC (FL)", "TS"),
    ("NC (CE)", "TS"),
    ("NC (FL)", "TS, ECE grid"),
    ("NC (FL)", "NC (CE)"),
    ("NC (FL)", "only T*"),
    ("NC (FL)", "only delta*"),
    ("TS", "TS (FL)"),
    ("NC (FL), pool", "NC (CE)"),
    ("NC (FL), efficient", "TS"),
]
RECIPE = "NC (FL), SGD"  # the paper's recipe: 100 passes, so only for the small networks
COARSE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # gammas of the pool where a pass takes seconds
SEEDS = 5  # random starts of one network
BATCH = 500
MARKS = "<!-- made by examples/compare_clamping.py: {} -->", "<!-- end: {} -->"


class Subject:
    """A trained network, its calibration images and its test images."""

    def __init__(self, run: Run, out: Path, passes: int, pool: str | tuple[float, ...] = "paper") -> None:
        self.run, self.out, self.passes, self.pool = run, out / run.folder.name, passes, pool
        self.network, self.splits = run.network(), load_splits(run.recipe)
        self.pixels = run.pixels(torch.device("cpu"))
        self.range = [tuple((x - m) / s for m, s in zip(run.mean, run.std, strict=True)) for x in (0, 1)]

    def predictions(self, name: str) -> cal.Predictions:
        """Of a method on the test images; fitted if it has not been."""
        file = self.out / f"{name.replace(' ', '-')}.npz"
        if not file.exists():
            print(f"{self.run.folder.name}: {name}", file=sys.stderr, flush=True)
            self._make(name).save(file)
        return cal.Predictions.load(file)

    def clamped(self, name: str, **options: object) -> Clamped:
        folder = self.out / name.replace(" ", "-")
        if not (folder / "clamp.json").exists():
            low, high = self.range
            recipe = NeuralClamping(passes=self.passes, low=low, high=high, **options)
            recipe.fit(self.network, self.batches("val")).save(folder)
        return load_clamped(folder, self.network)

    def batches(self, part: str) -> Batches:
        return Batches(getattr(self.splits, part), BATCH, self.pixels)

    def _make(self, name: str) -> cal.Predictions:
        if name == "uncalibrated":
            return self.run.test
        if name in LOGITS:
            return cal.fit(self.run.val, LOGITS[name])(self.run.test)
        if name in ("only delta*", "only T*"):
            clamped = self.clamped("NC (FL)").only("delta" if name == "only delta*" else "T")
        elif name == RECIPE:
            clamped = self.clamped(name, by="sgd")
        elif name.startswith("seed"):
            clamped = self.clamped(name, seed=int(name.split()[1]))
        else:
            chosen = {"gamma_pool": self.pool} if "pool" in name else CLAMPS[name]
            clamped = self.clamped(name, **chosen)
        return clamped.predict(self.batches("test"))


def names(recipe: bool) -> list[str]:
    first = ["uncalibrated", *LOGITS, *list(CLAMPS)[:4], "only delta*", "only T*", *list(CLAMPS)[4:]]
    return [*first, RECIPE] if recipe else first


def values(p: cal.Predictions) -> dict[str, float]:
    scale = {column: 1 if column == "entropy" else 100 for column in MEASURES}
    return {column: scale[column] * cal.measures.make(spec)(p) for column, spec in MEASURES.items()}


# -- tables -----------------------------------------------------------------------------------------


def over_networks(subjects: list[Subject], recipe: bool) -> str:
    """Mean and Student's t interval of every method, and of its difference from TS, network by network."""
    rows = {name: [values(s.predictions(name)) for s in subjects] for name in names(recipe)}
    differences = {
        name: [{c: one[c] - ts[c] for c in MEASURES} for one, ts in zip(found, rows["TS"], strict=True)]
        for name, found in rows.items()
        if name != "TS"
    }
    parts = [table(rows), "Minus TS, network by network:", table(differences), claims(rows), start_spread(subjects[0])]
    return "\n\n".join([*parts, fits(subjects, [*CLAMPS, RECIPE] if recipe else list(CLAMPS))])


def claims(rows: dict[str, list[dict[str, float]]]) -> str:
    lines = ["| ECE of | minus that of | difference, % |", "| --- | --- | --: |"]
    for one, other in CLAIMS:
        each = np.array([a["ECE %"] - b["ECE %"] for a, b in zip(rows[one], rows[other], strict=True)])
        lines.append(f"| {one} | {other} | {each.mean():.2f} ± {half_width(each):.2f} |")
    return "The differences that the paper's claims are about, network by network:\n\n" + "\n".join(lines)


def half_width(each: np.ndarray) -> float:
    """Of a 95 % interval of the mean, by Student's t."""
    from scipy.stats import t

    return float(t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each)))


def table(rows: dict[str, list[dict[str, float]]]) -> str:
    lines = ["| method | " + " | ".join(MEASURES) + " |", "| --- |" + " --: |" * len(MEASURES)]
    for name, found in rows.items():
        cells = []
        for column in MEASURES:
            each = np.array([one[column] for one in found])
            digits = 3 if column == "entropy" else 2
            cells.append(f"{each.mean():.{digits}f} ± {half_width(each):.{digits}f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def start_spread(s: Subject) -> str:
    """Five random starts of one network beside the data-driven one."""
    rows = {f"seed {i}": values(s.predictions(f"seed {i}" if i else "NC (FL)")) for i in range(SEEDS)}
    made = values(s.predictions("NC (FL), data start"))
    lines = ["| start | " + " | ".join(MEASURES) + " |", "| --- |" + " --: |" * len(MEASURES)]
    cells = []
    for column in MEASURES:
        each = np.array([row[column] for row in rows.values()])
        digits = 3 if column == "entropy" else 2
        cells.append(f"{each.mean():.{digits}f} (sd {each.std(ddof=1):.{digits}f})")
    lines.append(f"| random, {SEEDS} seeds | " + " | ".join(cells) + " |")
    plain = [f"{value:.{3 if column == 'entropy' else 2}f}" for column, value in made.items()]
    lines.append("| data-driven | " + " | ".join(plain) + " |")
    return f"Random and data-driven starts, {s.run.folder.name}, NC (FL):\n\n" + "\n".join(lines)


def fits(subjects: list[Subject], chosen: list[str]) -> str:
    """How the fits went, on the calibration images."""
    head = "| fit | network | gamma | T | norm of delta | objective: TS, same loss | objective: end | passes |"
    lines = [head, "| --- | --- |" + " --: |" * 6]
    for name in chosen:
        for s in subjects:
            r = json.loads((s.out / name.replace(" ", "-") / "clamp.json").read_text())["report"]
            numbers = f"{r['gamma']:g} | {r['T']:.3f} | {r['delta_norm']:.3f} | {r['objective_temperature']:.4f}"
            lines.append(f"| {name} | {s.run.folder.name} | {numbers} | {r['objective']:.4f} | {r['passes']} |")
    return "The fits, on the calibration images:\n\n" + "\n".join(lines)


def one_network(s: Subject) -> str:
    """Values with bootstrap intervals, and paired differences."""
    lines = ["| method | " + " | ".join(MEASURES) + " |", "| --- |" + " --: |" * len(MEASURES)]
    for name in names(False):
        lines.append(f"| {name} | " + " | ".join(bootstrapped(s.predictions(name))) + " |")
    pairs = ["| ECE of | minus that of | difference, % |", "| --- | --- | --: |"]
    for one, other in CLAIMS:
        pairs.append(f"| {one} | {other} | {difference(s.predictions(other), s.predictions(one))} |")
    said = "The differences that the paper's claims are about, on the same test images:"
    return "\n\n".join(["\n".join(lines), said, "\n".join(pairs), fits([s], list(CLAMPS))])


def bootstrapped(p: cal.Predictions) -> Iterator[str]:
    for column, spec in MEASURES.items():
        m = cal.measure(p, spec, resamples=200)
        scale, digits = (1, 3) if column == "entropy" else (100, 2)
        yield f"{scale * m.value:.{digits}f} [{scale * m.low:.{digits}f}, {scale * m.high:.{digits}f}]"


def difference(a: cal.Predictions, b: cal.Predictions) -> str:
    """ECE of b minus ECE of a, with a paired bootstrap interval."""
    found = cal.compare(a, b, "ece", resamples=500)
    return f"{100 * found.difference:.2f} [{100 * found.low:.2f}, {100 * found.high:.2f}]"


def put(page: Path, what: str, text: str) -> None:
    """Between the marks of the page."""
    start, end = (mark.format(what) for mark in MARKS)
    before, _, rest = page.read_text().partition(start)
    page.write_text(f"{before}{start}\n\n{text}\n\n{end}{rest.partition(end)[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cifar10", default="", help="a folder with CIFAR-10")
    parser.add_argument("--sgd", action="store_true", help="the paper's recipe too: 100 passes a network")
    parser.add_argument("--out", type=Path, default=Path("runs/clamping"))
    parser.add_argument("--page", type=Path, default=Path("docs/clamping.md"))
    options = parser.parse_args()
    fashion = [Subject(networks.fashion(seed), options.out, 25) for seed in range(networks.SEEDS)]
    put(options.page, "fashion_mini", over_networks(fashion, options.sgd))
    if options.cifar10:
        larger = Subject(networks.cifar10(options.cifar10), options.out, 15, COARSE)
        put(options.page, "cifar10", one_network(larger))


if __name__ == "__main__":
    main()
