"""Train one small network with each of the main losses, three seeds each, and write docs/losses.md.

    python examples/compare_losses.py [--out runs/losses] [--jobs 2]

Runs that are finished are not repeated; a killed one goes on where it was.
"""

import argparse
import multiprocessing
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core a training, several trainings at a time

import numpy as np

from calibrant.measures import make
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Optimizer, Recipe, Schedule
from calibrant.training.run import Run, open_run

SEEDS = 3
LOSSES = {  # name -> changes of the recipe
    "CE": {"loss": "ce"},
    "ERL 0.1": {"loss": "erl:beta=0.1"},
    "LS 0.05": {"loss": "label_smoothing:epsilon=0.05"},
    "focal 3": {"loss": "focal:gamma=3"},
    "FLSD-53": {"loss": "flsd"},
    "L1 0.01": {"loss": "lp_norm:alpha=0.01,p=1"},
    "MMCE": {"loss": "mmce_weighted"},
    "mixup 0.2": {"mixup": 0.2},
}
MEASURES = {
    "error": lambda p: 1 - float(p.correct.mean()),
    "ECE": make("ece"),
    "NLL": make("nll"),
    "Brier": make("brier"),
    "AUROC": make("auroc"),
    "ECE after TS": None,
}


def recipe(name: str, seed: int) -> Recipe:
    return Recipe(
        title=f"{name}, seed {seed}",
        model="resnet8",
        epochs=12,
        batch=128,
        seed=seed,
        scale="small",
        channels_last=True,
        data=Data(name="fashion_mini", split="5:1", augment="none"),
        optimizer=Optimizer(lr=0.1, nesterov=True),
        schedule=Schedule("cosine", warmup=1),
        **LOSSES[name],
    )


def run_one(job: tuple[str, int, Path]) -> str:
    name, seed, out = job
    folder = out / f"{name.replace(' ', '-').lower()}-{seed}"
    train(recipe(name, seed), folder, device="cpu")
    return f"{name}, seed {seed}"


def measured(run: Run) -> dict[str, float]:
    from calibrant import fit

    values = {name: m(run.test) for name, m in MEASURES.items() if m is not None}
    return values | {"ECE after TS": make("ece")(fit(run.val, "temperature")(run.test))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/losses"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", type=Path, default=Path("docs/losses.md"))
    options = parser.parse_args()
    jobs = [(name, seed, options.out) for seed in range(SEEDS) for name in LOSSES]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for done, what in enumerate(pool.imap_unordered(run_one, jobs), 1):
            print(f"{done}/{len(jobs)}  {what}", file=sys.stderr, flush=True)
    runs = {name: [options.out / f"{name.replace(' ', '-').lower()}-{s}" for s in range(SEEDS)] for name in LOSSES}
    rows = {name: [measured(open_run(folder)) for folder in folders] for name, folders in runs.items()}
    start, end = "<!-- made by examples/compare_losses.py -->", "<!-- end -->"
    page = options.page.read_text()
    before, after = page.partition(start)[0], page.partition(end)[2]
    options.page.write_text(f"{before}{start}\n\n{table(rows)}\n\n{end}{after}")


def table(rows: dict[str, list[dict[str, float]]]) -> str:
    """Mean and 95 % interval (Student's t over seeds) of every measure, per loss; and of the difference from CE."""
    from scipy.stats import t

    factor = float(t.ppf(0.975, SEEDS - 1)) / np.sqrt(SEEDS)

    def cell(values: list[float], name: str) -> str:
        scale, digits = (1, 3) if name == "NLL" else (100, 1)
        mean, half = scale * np.mean(values), scale * factor * np.std(values, ddof=1)
        return f"{mean:.{digits}f} ± {half:.{digits}f}"

    def lines(of: dict[str, list[dict[str, float]]]) -> list[str]:
        return [
            "| " + " | ".join([loss, *(cell([row[name] for row in runs], name) for name in MEASURES)]) + " |"
            for loss, runs in of.items()
        ]

    differences = {
        loss: [{n: row[n] - ce[n] for n in MEASURES} for row, ce in zip(runs, rows["CE"], strict=True)]
        for loss, runs in rows.items()
        if loss != "CE"
    }
    head = ["| loss | " + " | ".join(f"{n}{'' if n == 'NLL' else ' %'}" for n in MEASURES) + " |"]
    head += ["| --- |" + " --: |" * len(MEASURES)]
    return "\n".join([*head, *lines(rows), "", "Minus cross-entropy, seed by seed:", "", *head, *lines(differences)])


if __name__ == "__main__":
    main()
