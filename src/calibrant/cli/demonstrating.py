"""The demo: train a small network until it is overconfident, measure it, repair it, write the report."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli._app import Json, Seed, app, needs_train
from calibrant.cli.measuring import measure
from calibrant.cli.repairing import fit
from calibrant.cli.reporting import report


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder of the run and the report")] = Path("runs/demo"),
    no_train: Annotated[bool, typer.Option("--no-train", help="use predictions that come with calibrant")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a small network, measure it, repair it and write the report: about two minutes on two cores."""
    from calibrant.datasets.fashion_mnist import CLASSES

    val, test = _predictions(out, no_train, seed, quiet=as_json)
    page = out / "report.html"
    title, names = "The demo: a small network on Fashion-MNIST", ",".join(CLASSES)
    if as_json:
        return report([test], fit_on=[val], out=page, class_names=names, title=title, seed=seed, as_json=True)
    typer.echo("\n2. Measured on 4,000 test images:\n")
    measure(test, seed=seed)
    typer.echo("\n3. Repaired with a map fitted on validation images, judged on the test images:\n")
    fit(val, what="temperature", test=test, seed=seed)
    typer.echo("\n4. The report:\n")
    report([test], fit_on=[val], out=page, class_names=names, title=title, seed=seed)
    typer.echo(f"\nOpen it in a browser (one file, no server, no network):\n  {page}")


def _predictions(out: Path, no_train: bool, seed: int, quiet: bool) -> tuple[Path, Path]:
    if no_train:
        from calibrant.demo import PATH, VAL_PATH

        typer.echo("1. A network trained too long on 3,000 Fashion-MNIST images.", err=quiet)
        return VAL_PATH, PATH
    typer.echo("1. Training a small network on 5,000 Fashion-MNIST images, until it is overconfident:\n", err=quiet)
    with needs_train():
        from calibrant.cli.training import train_with_bar
        from calibrant.train import open_run
        from calibrant.train.recipe import find_recipe, read_recipe

    recipe = read_recipe(find_recipe("demo"), [f"seed={seed}"])
    other = (out / "run.json").exists() and open_run(out).recipe != recipe  # of another version, or seed
    train_with_bar(recipe, out, restart=other, quiet=quiet)
    return out / "val.npz", out / "test.npz"
