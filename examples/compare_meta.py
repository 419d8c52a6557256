"""Train one small network with learned regularisers and with fixed ones, three seeds each, and write docs/meta.md.

    python examples/compare_meta.py [--out runs/meta] [--jobs 2] [--cifar10 FOLDER]

Runs that are finished are not repeated; a killed one goes on where it was. With a folder that holds CIFAR-10, two of
the methods are trained on 5,000 of its images as well, one seed each, by the recipes of the paper at scale small.
"""

import argparse
import multiprocessing
import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core a training, several trainings at a time
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np

import calibrant as cal
from calibrant import measure
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Meta, Optimizer, Recipe, Schedule, find_recipe, read_recipe
from calibrant.training.run import Run, open_run

SEEDS = 3
METHODS = {  # name -> changes of the recipe; the look-ahead is that of the authors' code
    "CE": {"loss": "ce"},
    "focal 1": {"loss": "focal:gamma=1"},
    "FLSD-53": {"loss": "flsd"},
    "CE-DECE": {"loss": "ce", "meta": Meta(learn="l2", objective="ce + 0.5*dece", lookahead_step="raw")},
    "CE-SECE": {"loss": "ce", "meta": Meta(learn="l2", objective="ce + 0.5*sece", lookahead_step="raw")},
    "FLgamma": {"loss": "focal", "meta": Meta(learn="gamma", objective="ce", lookahead_step="raw")},
    "FLgamma-DECE": {"loss": "focal", "meta": Meta(learn="gamma", objective="ce + 0.5*dece", lookahead_step="raw")},
    "FLgamma-SECE": {"loss": "focal", "meta": Meta(learn="gamma", objective="ce + 0.5*sece", lookahead_step="raw")},
    "FLgamma, SECE alone": {"loss": "focal", "meta": Meta(learn="gamma", objective="sece", lookahead_step="raw")},
}
RAW = "meta.lookahead_step=raw"
CIFAR10 = {"CE": "ce", "FLgamma-SECE": "flgamma-sece"}  # name -> recipe
MEASURES = {
    "error": "error",
    "NLL": "nll",
    "ECE": "ece",
    "MCE": "mce",
    "equal-mass ECE": "ece:scheme=mass",
    "class-wise ECE": "classwise",
    "AUROC": "auroc",
}
DIFFERENCES = {
    "CE": ("CE-DECE", "CE-SECE", "FLgamma", "FLgamma-DECE", "FLgamma-SECE", "FLgamma, SECE alone"),
    "FLgamma": ("FLgamma-DECE", "FLgamma-SECE"),
    "focal 1": ("FLgamma-SECE", "FLgamma, SECE alone"),
}


def recipe(name: str, seed: int) -> Recipe:
    return Recipe(
        title=f"{name}, seed {seed}",
        model="resnet8",
        epochs=16,
        batch=64,
        seed=seed,
        scale="small",
        channels_last=True,
        test_each_epoch=seed == 0,  # for the curves
        data=Data(name="fashion_mini", split="8:1:1", limit=2400, augment="none"),
        reduction="sum",  # with clipping, as in the paper's recipes
        optimizer=Optimizer(lr=0.1, clip_norm=2.0),
        schedule=Schedule("cosine", warmup=1),
        **METHODS[name],
    )


def folder(out: Path, name: str, seed: int | str) -> Path:
    return out / f"{name.replace(',', '').replace(' ', '-').lower()}-{seed}"


def run_one(job: tuple[str, int | str, Path, str]) -> str:
    name, seed, out, root = job
    if seed == "cifar10":
        file = find_recipe(f"meta/cifar10-resnet18-{CIFAR10[name]}")
        made = read_recipe(file, ["scale=small", f"data.root={root}", "data.limit=5000", "channels_last=true", RAW])
    else:
        made = recipe(name, int(seed))
    train(made, folder(out, name, seed), device="cpu")
    return f"{name}, {seed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/meta"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cifar10", default="", help="a folder with CIFAR-10")
    parser.add_argument("--page", type=Path, default=Path("docs/meta.md"))
    options = parser.parse_args()
    jobs = [(name, seed, options.out, "") for seed in range(SEEDS) for name in METHODS]
    jobs += [(name, "cifar10", options.out, options.cifar10) for name in CIFAR10 if options.cifar10]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for done, what in enumerate(pool.imap_unordered(run_one, jobs), 1):
            print(f"{done}/{len(jobs)}  {what}", file=sys.stderr, flush=True)
    runs = {name: [open_run(folder(options.out, name, seed)) for seed in range(SEEDS)] for name in METHODS}
    draw(runs, options.page)
    parts = [tables(runs)]
    if options.cifar10:
        parts += [cifar10_table({name: open_run(folder(options.out, name, "cifar10")) for name in CIFAR10})]
    start, end = "<!-- made by examples/compare_meta.py -->", "<!-- end -->"
    page = options.page.read_text()
    before, after = page.partition(start)[0], page.partition(end)[2]
    options.page.write_text("\n\n".join([f"{before}{start}", *parts, f"{end}{after}"]))


def draw(runs: dict[str, list[Run]], page: Path) -> None:
    """The curves of the first seed: gamma per epoch, mean and spread over the test images."""
    import polars as pl

    names = [name for name in runs if "gamma" in name]
    logs = pl.concat([runs[name][0].log.with_columns(model=pl.lit(name)) for name in names])
    rows = logs.select("model", "epoch", "gamma_mean", "gamma_std", "test_ece", "test_error")
    cal.draw("training_curves", rows, page.parent / "gamma.svg")


def tables(runs: dict[str, list[Run]]) -> str:
    """Mean and 95 % interval (Student's t over seeds) of every measure; and of differences, seed by seed."""
    rows = {name: [measured(run.test) for run in own] for name, own in runs.items()}
    parts = [table("method", {name: cells(own) for name, own in rows.items()})]
    for base, names in DIFFERENCES.items():
        less = {
            name: [{m: row[m] - b[m] for m in row} for row, b in zip(rows[name], rows[base], strict=True)]
            for name in names
        }
        parts += [f"Minus {base}, seed by seed:", table("method", {name: cells(own) for name, own in less.items()})]
    return "\n\n".join(parts)


def measured(p: Predictions) -> dict[str, float]:
    return {name: make(spec)(p) for name, spec in MEASURES.items()}


def cells(rows: list[dict[str, float]]) -> list[str]:
    from scipy.stats import t

    factor = float(t.ppf(0.975, len(rows) - 1)) / np.sqrt(len(rows))
    made = []
    for name in MEASURES:
        values = np.array([row[name] for row in rows]) * scale(name)
        made.append(f"{values.mean():.{digits(name)}f} ± {factor * values.std(ddof=1):.{digits(name)}f}")
    return made


def cifar10_table(runs: dict[str, Run]) -> str:
    """One network a method: intervals are of the test images (bootstrap), not of trainings."""
    made = {}
    for name, run in runs.items():
        found = [(measure(run.test, spec), scale(of), digits(of)) for of, spec in MEASURES.items()]
        made[name] = [f"{s * m.value:.{d}f} [{s * m.low:.{d}f}, {s * m.high:.{d}f}]" for m, s, d in found]
    return "On CIFAR-10, one seed:\n\n" + table("method", made)


def table(corner: str, rows: dict[str, list[str]]) -> str:
    names = [name if scale(name) == 1 else f"{name} %" for name in MEASURES]
    head = [f"| {corner} | " + " | ".join(names) + " |", "| --- |" + " --: |" * len(names)]
    return "\n".join(head + [f"| {name} | " + " | ".join(row) + " |" for name, row in rows.items()])


def scale(name: str) -> int:
    return 1 if name == "NLL" else 100


def digits(name: str) -> int:
    return 3 if name == "NLL" else 2 if name == "class-wise ECE" else 1


if __name__ == "__main__":
    main()
