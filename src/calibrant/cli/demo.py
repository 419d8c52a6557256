"""The demo: train a small network until it is overconfident, measure it, repair it, write the report."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli._app import Json, Seed, app
from calibrant.cli.measuring import measure
from calibrant.cli.repairing import fit
from calibrant.cli.reporting import report


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the run and the report")] = Path("runs/demo"),
    no_train: Annotated[bool, typer.Option("--no-train", help="use the predictions that come with calibrant")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a small network, measure it, repair it and write the report: a minute or two on two cores.

    Without torch the predictions that come with calibrant are used instead, and nothing is trained.
    """
    from calibrant.datasets.fashion_mnist import CLASSES

    val, test = _predictions(out, no_train, seed, quiet=as_json)
    page = out / "report.html"
    named = ["title=The demo: a small network on Fashion-MNIST", f"class_names={','.join(CLASSES)}"]
    if as_json:
        return report([test], fit_on=[val], out=page, override=named, seed=seed, as_json=True)
    typer.echo("\n2. Measured on 4,000 test images:\n")
    measure(test, seed=seed)
    typer.echo("\n3. Calibrated by a map chosen and fitted on the validation images, judged on the test images:\n")
    fit(val, what="auto", test=test, seed=seed)
    typer.echo("\n4. The report:\n")
    report([test], fit_on=[val], out=page, override=named, seed=seed)
    typer.echo(f"\nOpen it in a browser (one file, no server, no network):\n  {page}")


def _predictions(out: Path, no_train: bool, seed: int, quiet: bool) -> tuple[Path, Path]:
    """Files of validation and test predictions: of a network trained here, or those that come with calibrant."""
    if not no_train:
        try:
            return _train(out, seed, quiet)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("calibrant"):
                raise
            note = f"There is no {error.name} here, so nothing is trained. To train the network of the demo too:"
            typer.echo(f"{note}\n  pip install 'calibrant[train]'\n", err=quiet)
    from calibrant.data import DEMO_TEST, DEMO_VAL

    typer.echo("1. Predictions that come with calibrant, of a network trained too long on 3,000 images.", err=quiet)
    return DEMO_VAL, DEMO_TEST


def _train(out: Path, seed: int, quiet: bool) -> tuple[Path, Path]:
    from calibrant.cli.training import train_with_bar
    from calibrant.training.recipe import find_recipe, read_recipe
    from calibrant.training.run import open_run

    typer.echo("1. Training a small network on 5,000 Fashion-MNIST images, until it is overconfident:\n", err=quiet)
    recipe = read_recipe(find_recipe("demo"), [f"seed={seed}"])
    other = (out / "run.json").exists() and open_run(out).recipe != recipe  # of another version, or seed
    train_with_bar(recipe, out, restart=other, quiet=quiet)
    return out / "val.npz", out / "test.npz"
