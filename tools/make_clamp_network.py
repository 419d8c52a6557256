"""Train the small network that comes with the package, to be clamped in the app.

    python tools/make_clamp_network.py

A narrow ResNet-8 on the data set fashion_mini, trained until it is overconfident; about a minute on two cores. It
writes the recipe and the weights, without the state of the optimizer, as a run in src/calibrant/data/clamp_run.
"""

import shutil
import tempfile
from pathlib import Path

import calibrant as cal
from calibrant.core.torch import checkpoint
from calibrant.data import CLAMP_RUN
from calibrant.training.recipe import read_recipe

FACTS = ("epoch", "stopped")


def main() -> None:
    recipe = read_recipe("demo", ["model=resnet8:width=8", "epochs=30", "seed=0"])
    with tempfile.TemporaryDirectory() as folder:
        run = cal.train(recipe, folder, device="cpu")
        print(cal.measure(run.test, "accuracy"), cal.measure(run.test, "ece"), sep="\n")
        tensors, facts = checkpoint.load(run.weights)
        CLAMP_RUN.mkdir(exist_ok=True)
        weights = checkpoint.named("network", checkpoint.under("network", tensors))
        checkpoint.save(CLAMP_RUN / run.weights.name, weights, {name: facts[name] for name in FACTS})
        shutil.copy(Path(folder) / "run.json", CLAMP_RUN / "run.json")
    for file in sorted(CLAMP_RUN.iterdir()):
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
