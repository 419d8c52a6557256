"""Put other confidences in the place of a network's own, on three small networks, and write docs/confidence.md.

    python examples/compare_confidences.py [--out runs/confidence]

The networks are those of `examples/networks.py`, trained first where they are missing. Every row of the table is made
by a command or a call that the page shows; what is there already is not made again.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
from networks import SEEDS, fashion

import calibrant as cal
from calibrant.measures import make
from calibrant.rescorers.density_ratio import ProximityGroups
from calibrant.training.run import Run

BASE = "softmax"
COMMANDS = {  # row of the table -> command; it writes test.npz in the folder of the row
    "ConfidNet": "confidnet {run} --out {out} --epochs 120 --seed {seed}",
    "ConfidNet, stage 2": "confidnet {run} --out {out} --epochs 120 --seed {seed} --stages 2 --clone-epochs 4",
    "ConfidNet from val": "confidnet {run} --out {out} --epochs 300 --seed {seed} --learn val",
    "TrustScore": "trust-score {run} --out {out}/test.npz",
    "density ratio": "density-ratio {run} --out {out}/test.npz",
}
MEASURES = {"AUROC": make("auroc"), "AUPR-error": make("aupr_error"), "ECE": make("ece")}


def made(run: Run, name: str, out: Path) -> cal.Predictions:
    """The predictions of one row, by its command."""
    folder = folder_of(run, name, out)
    if not (folder / "test.npz").exists():
        if name == "ConfidNet, stage 2":  # goes on where the first stage ended
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder_of(run, "ConfidNet", out) / "state.safetensors", folder)
        command = COMMANDS[name].format(run=run.folder, out=folder, seed=run.recipe.seed)
        subprocess.run([sys.executable, "-m", "calibrant", *command.split()], check=True, stdout=subprocess.DEVNULL)
    return cal.Predictions.load(folder / "test.npz")


def folder_of(run: Run, name: str, out: Path) -> Path:
    return out / f"{run.folder.name}-{name.replace(',', '').replace(' ', '-').lower()}"


def measured(run: Run, out: Path) -> dict[str, dict[str, float]]:
    """Row of the table -> measure -> value, for one network."""
    rows = {
        BASE: run.test,
        "temperature": cal.fit(run.val, "temperature")(run.test),
        "temperature by proximity": ProximityGroups("temperature").fit(run.val).predict(run.test),
        **{name: made(run, name, out) for name in COMMANDS},
    }
    return {name: {measure: m(p) for measure, m in MEASURES.items()} for name, p in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/confidence"))
    parser.add_argument("--page", type=Path, default=Path("docs/confidence.md"))
    options = parser.parse_args()
    found = []
    for seed in range(SEEDS):
        found.append(measured(fashion(seed), options.out))
        print(f"{seed + 1}/{SEEDS} networks", file=sys.stderr, flush=True)
    start, end = "<!-- made by examples/compare_confidences.py -->", "<!-- end -->"
    page = options.page.read_text()
    before, after = page.partition(start)[0], page.partition(end)[2]
    options.page.write_text(f"{before}{start}\n\n{tables(found)}\n\n{end}{after}")


def tables(found: list[dict[str, dict[str, float]]]) -> str:
    """Mean and 95 % interval (Student's t over networks) of every row, and of its difference from the softmax."""
    from scipy.stats import t

    factor = float(t.ppf(0.975, SEEDS - 1)) / np.sqrt(SEEDS)

    def cell(values: list[float], sign: str = "") -> str:
        return f"{100 * np.mean(values):{sign}.1f} ± {100 * factor * np.std(values, ddof=1):.1f}"

    def line(name: str, cells: list[str]) -> str:
        return f"| {name} | " + " | ".join(cells) + " |"

    head = ["| confidence | " + " | ".join(f"{m} %" for m in MEASURES) + " |", "| --- |" + " --: |" * len(MEASURES)]
    values = [line(name, [cell([one[name][m] for one in found]) for m in MEASURES]) for name in found[0]]
    differences = [
        line(name, [cell([one[name][m] - one[BASE][m] for one in found], "+") for m in MEASURES])
        for name in found[0]
        if name != BASE
    ]
    return "\n".join([*head, *values, "", f"Minus {BASE}, network by network:", "", *head, *differences])


if __name__ == "__main__":
    main()
