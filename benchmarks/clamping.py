"""Neural Clamping: passes over the calibration images until ours is where the paper's recipe ends."""

import tempfile
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks._page import Section, Target, show, table
from calibrant.rescorers.clamping import ClampReport, NeuralClamping
from calibrant.training.batches import Batches
from calibrant.training.images import load_splits
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Optimizer, Recipe, Schedule

EPOCHS, SMOKE_EPOCHS = 100, 2
ROWS, BATCH = 1000, 100  # ten steps an epoch, as in the paper on CIFAR-100 (5,000 rows in batches of 512)
RATES = {"the paper's rate": 0.001, "the toolkit's rate": 0.01}
LEAST, MOST, STEP = 5, 101, 4  # passes that ours is given, more and more
WORDS = (
    "`delta` and T of one small network (`resnet_small:depth=8,width=4`, trained here on 2,000 images of "
    "`fashion_mini`), fitted on 1,000 other images with focal loss, gamma 1. The peer is the published recipe: SGD "
    "with momentum 0.9, 100 epochs, ten shuffled batches an epoch, at the paper's rate 0.001 and at the rate 0.01 of "
    "the authors' toolkit. Ours is L-BFGS with the exact T at every point; a pass that only looks counts like one that "
    "also goes backward. Both have the same start and the same objective. Told is the first budget of ours that ends "
    "at or below the end of the recipe."
)


def run(*, smoke: bool) -> Section:
    section = Section("Neural Clamping", WORDS)
    epochs = SMOKE_EPOCHS if smoke else EPOCHS
    network, loader = _trained(epochs=1 if smoke else 4, limit=200 if smoke else 2000)
    rows = []
    for name, rate in RATES.items():
        theirs, seconds = _timed(NeuralClamping(by="sgd", epochs=epochs, rate=rate), network, loader)
        ours, our_seconds = _reaching(theirs.objective, network, loader, LEAST + STEP if smoke else MOST)
        share = ours.passes / epochs if ours.objective <= theirs.objective else float("nan")
        section.targets += [
            Target(f"passes to the objective of SGD at {name}, as a share of its {epochs}", share, "most", 0.25),
        ]
        rows += [_row(f"SGD, {name}", theirs, seconds), _row("ours, to there", ours, our_seconds)]
        rows[-1].append(f"**{show(seconds / our_seconds)}x**")
        rows[-2].append("")
    ours, our_seconds = _timed(NeuralClamping(passes=LEAST) if smoke else NeuralClamping(), network, loader)
    alone, alone_seconds = _timed(NeuralClamping(what="T"), network, loader)
    rows += [
        [*_row("ours, uncalibrated", ours, our_seconds), ""],
        [*_row("temperature alone", alone, alone_seconds), ""],
    ]
    section.tables = [table(["fit", "passes", "seconds", "objective", "T", "norm of delta", "time saved"], rows)]
    return section


def _trained(*, epochs: int, limit: int) -> tuple[nn.Module, DataLoader[tuple[Tensor, ...]]]:
    recipe = Recipe(
        model="resnet_small:depth=8,width=4",
        epochs=epochs,
        batch=32,
        data=Data(name="fashion_mini", split="5:1", limit=limit, test_limit=ROWS, augment="none"),
        optimizer=Optimizer(lr=0.1, weight_decay=0.0),
        schedule=Schedule("cosine"),
    )
    with tempfile.TemporaryDirectory() as folder:
        result = train(recipe, folder, device="cpu")
        network, pixels = result.network(), result.pixels(torch.device("cpu"))
    part = load_splits(recipe).val
    assert part is not None
    x, labels, _ = next(Batches(part=part, size=len(part), pixels=pixels).in_order())
    return network, DataLoader(
        TensorDataset(x, labels), BATCH, shuffle=True, generator=torch.Generator().manual_seed(0)
    )


def _reaching(
    objective: float, network: nn.Module, loader: DataLoader[tuple[Tensor, ...]], most: int
) -> tuple[ClampReport, float]:
    """Ours with the smallest budget that is low enough, temperature alone among them."""
    tried = [NeuralClamping(what="T"), *(NeuralClamping(passes=n, tolerance=0.0) for n in range(LEAST, most, STEP))]
    for recipe in tried:
        report, seconds = _timed(recipe, network, loader)
        if report.objective <= objective:
            break
    return report, seconds


def _timed(
    recipe: NeuralClamping, network: nn.Module, loader: DataLoader[tuple[Tensor, ...]]
) -> tuple[ClampReport, float]:
    start = perf_counter()
    report = recipe.fit(network, loader).report
    assert report is not None
    return report, perf_counter() - start


def _row(name: str, r: ClampReport, seconds: float) -> list[str]:
    return [name, str(r.passes), show(seconds), f"{r.objective:.4f}", f"{r.T:.3f}", f"{r.delta_norm:.3f}"]
