"""What gamma-Net learns in the plan's own training: `python tools/meta_doubts.py` writes a table into docs/meta.md.

Seeds of FLgamma-SECE at the small scale, with the taken and with the raw look-ahead: how often the gradient is clipped,
where gamma is after some epochs, and how much it differs between images.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import polars as pl
import torch

from calibrant.core.files import write_whole
from calibrant.studying.expand_plan import recipe_in
from calibrant.studying.plan_files import read_plan
from calibrant.training.loop import train

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "meta.md"
MARKERS = ("<!-- written by tools/meta_doubts.py -->\n", "<!-- end of table -->")
EPOCHS = (3, 6, 9, 12)
OF_IMAGES = ("spread over test images", "least to most")  # of the weights that the plan selects, of the best epoch


@contextmanager
def counted(limit: float) -> Iterator[list[bool]]:
    """Whether the gradient of each step was longer than the limit that it is clipped to."""
    seen: list[bool] = []
    clip = torch.nn.utils.clip_grad_norm_

    def count(parameters: Any, max_norm: float, *args: Any, **options: Any) -> torch.Tensor:
        norm = clip(parameters, max_norm, *args, **options)
        seen.append(float(norm) > limit)
        return norm

    with mock.patch("torch.nn.utils.clip_grad_norm_", count):
        yield seen


def measured(data: str, method: str, seed: int) -> dict[str, Any]:
    plan = read_plan("meta-regularization", scale="small")
    recipe = recipe_in(plan, method, {"data": data, "model": "resnet8", "seed": seed})
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder, counted(recipe.optimizer.clip_norm) as clipped:
        run = train(recipe, Path(folder) / "run", device="cpu")
        gamma = pl.read_parquet(Path(folder) / "run" / "gamma.parquet")["gamma"]
        means = dict(run.log.select("epoch", "gamma_mean").rows())
    if len(clipped) < recipe.epochs:
        raise SystemExit("no step was seen to be clipped: torch or Fabric clip by another function now")
    return {
        "data": data,
        "method": method,
        "seed": seed,
        "clipped": sum(clipped) / len(clipped),
        "means": [means[epoch] for epoch in EPOCHS],
        "spread": gamma.std(),
        "range": (gamma.min(), gamma.max()),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: a line a training."""
    head = [f"mean gamma, epoch {epoch}" for epoch in EPOCHS]
    titles = ["data", "training", "seed", "steps clipped", *head, *(f"{what}, best epoch" for what in OF_IMAGES)]
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for row in rows:
        means = [f"{mean:.2f}" for mean in row["means"]]
        low, high = row["range"]
        facts = [row["data"], row["method"], str(row["seed"]), f"{100 * row['clipped']:.1f} %", *means]
        facts += [f"{row['spread']:.4f}", f"{low:.2f} to {high:.2f}"]
        lines.append(f"| {' | '.join(facts)} |")
    return "\n".join(lines)


def write(text: str) -> None:
    head, rest = PAGE.read_text().split(MARKERS[0], 1)
    whole = head + MARKERS[0] + "\n" + text + "\n\n" + MARKERS[1] + rest.partition(MARKERS[1])[2]
    write_whole(PAGE, lambda stream: stream.write(whole.encode()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=["fashion_mini:shrink=2", "cifar10:shrink=2"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    arguments = parser.parse_args()
    methods = ("FLgamma-SECE", "FLgamma-SECE, raw")
    found = []
    for data in arguments.data:
        for method in methods:
            for seed in arguments.seeds if method == methods[0] else arguments.seeds[:1]:
                found.append(measured(data, method, seed))
                print(found[-1], flush=True)
    write(table(found))
