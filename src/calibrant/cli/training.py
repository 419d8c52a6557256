"""Commands that need a network: train and predict."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli._app import Json, Seed, app, needs_train, print_json

if TYPE_CHECKING:
    from calibrant.train import Progress, Recipe, Run

Set = Annotated[list[str] | None, typer.Option("--set", help="change a key: epochs=5, data.root=..., scale=small")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps")]


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="a TOML file; `calibrant list recipes`")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder of the run; one with a state in it goes on")],
    changes: Set = None,
    loss: Annotated[str | None, typer.Option(help='for instance "focal:gamma=3", "ce + 0.5*mdca"')] = None,
    model: Annotated[str | None, typer.Option(help="for instance wide_resnet:depth=16,width=4")] = None,
    data: Annotated[str | None, typer.Option(help="for instance cifar10")] = None,
    mixup: Annotated[float | None, typer.Option(help="alpha of mixup")] = None,
    seed: Annotated[int | None, typer.Option(help="of the weights and the order of images")] = None,
    device: Device = "auto",
    processes: Annotated[int, typer.Option(min=1, help="processes that share each batch")] = 1,
    restart: Annotated[bool, typer.Option("--restart", help="begin again, even where a state could go on")] = False,
    as_json: Json = False,
) -> None:
    """Train a network by a recipe; stopped by Ctrl-C or killed, the same command goes on where it was."""
    short = {"loss": loss, "model": model, "data.name": data, "mixup": mixup, "seed": seed}
    made = _recipe(recipe, [*(changes or []), *(f"{key}={value}" for key, value in short.items() if value is not None)])
    run = train_with_bar(made, out, device=device, processes=processes, restart=restart, quiet=as_json)
    if os.environ.get("LOCAL_RANK", "0") == "0":  # of several processes, one tells
        print_json(_facts(run)) if as_json else _tell(run)


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="the folder of a training")],
    out: Annotated[Path, typer.Option("--out", "-o", help="predictions: .npz, .parquet or .csv")],
    data: Annotated[str | None, typer.Option(help="another data set, for instance cifar10.1")] = None,
    root: Annotated[str, typer.Option(help="where its files are")] = "",
    part: Annotated[str, typer.Option(help="train, val or test")] = "test",
    corrupt: Annotated[
        str | None, typer.Option(help="for instance fog:severity=3; `calibrant list corruptions`")
    ] = None,
    batch: Annotated[int, typer.Option(min=1)] = 256,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Predictions of a trained network on its own test images or on others: logits, labels, features, ids."""
    with needs_train():
        from calibrant.train.predict import predict_run

    p = predict_run(run, data=data, root=root, part=part, corrupt=corrupt, batch=batch, device=device, seed=seed)
    p.save(out)
    facts = {"file": str(out), "n": p.n, "k": p.k, "accuracy": float(p.correct.mean())}
    if as_json:
        return print_json(facts)
    typer.echo(f"{out}: {p.n} rows, {p.k} classes, accuracy {p.correct.mean():.1%}\n\n  calibrant measure {out}")


@app.command()
def gamma(
    run: Annotated[Path, typer.Argument(help="the folder of a training with gamma-Net")],
    out: Annotated[Path, typer.Option("--out", "-o", help="a table: .parquet or .csv")],
    part: Annotated[str, typer.Option(help="test or val")] = "test",
    as_json: Json = False,
) -> None:
    """The gamma that was learned, for every image: a table for figures; at test time nothing else uses it."""
    with needs_train():
        from calibrant.train import open_run
    from calibrant.core.errors import InputError, unknown_name
    from calibrant.core.files import write_whole

    if out.suffix not in (".parquet", ".csv"):
        raise InputError(str(out), expected=".parquet or .csv", got=f"'{out.suffix}'", fix="name it gamma.parquet")
    if part not in ("test", "val"):
        raise unknown_name("part", part, ("test", "val"))
    opened = open_run(run)
    table = opened.gammas(getattr(opened, part))
    write_whole(out, lambda f: table.write_parquet(f) if out.suffix == ".parquet" else table.write_csv(f))
    groups = {"right": table.filter(table["correct"]), "wrong": table.filter(~table["correct"]), "all": table}
    facts = {
        name: {"n": rows.height, **{what: getattr(rows["gamma"], what)() for what in ("mean", "std", "min", "max")}}
        for name, rows in groups.items()
    }
    if as_json:
        return print_json({"file": str(out), "gamma": facts})
    typer.echo(f"{'answers':8}{'n':>8}{'mean':>9}{'std':>9}{'least':>9}{'most':>9}")
    for name, row in facts.items():
        shown = "".join(f"{row[what]:9.3f}" if row["n"] > 1 else f"{'-':>9}" for what in ("mean", "std", "min", "max"))
        typer.echo(f"{name:8}{row['n']:8}{shown}")
    typer.echo(f"\nwritten to {out}")


def train_with_bar(
    recipe: "Recipe", out: Path, *, device: str = "auto", processes: int = 1, restart: bool = False, quiet: bool = False
) -> "Run":
    """Train with progress on the screen; Ctrl-C leaves a state that goes on."""
    with needs_train():
        from calibrant.train import train as run_training

    with _progress(quiet) as on_progress:
        try:
            return run_training(
                recipe, out, device=device, processes=processes, restart=restart, on_progress=on_progress
            )
        except KeyboardInterrupt:
            typer.echo(f"stopped; the same command goes on from the last state saved in {out}", err=True)
            raise typer.Exit(130) from None


def _recipe(path: Path, changes: list[str]) -> "Recipe":
    with needs_train():
        from calibrant.train.recipe import find_recipe, read_recipe

    return read_recipe(find_recipe(path), changes)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[["Progress"], None]]:
    """A bar with the time left on a terminal, and a line an epoch everywhere."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn(), "left", TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("training", total=None)

        def show(now: "Progress") -> None:
            done = now.epoch * now.steps + now.step
            what = f"epoch {now.epoch + 1}/{now.epochs}  loss {now.loss:.3f}"
            bar.update(task, description=what, completed=done, total=now.epochs * now.steps)
            if now.row and not quiet:
                console.print(epoch_line(now.row, now.epochs), highlight=False, markup=False)

        yield show


def epoch_line(row: dict[str, Any], epochs: int) -> str:
    """One row of the log for people, in 80 columns."""
    line = f"epoch {row['epoch']:>{len(str(epochs))}}/{epochs}  loss {row['train_loss']:.3f}"
    if "val_error" in row:
        line += "" if "gamma_mean" in row else f" error {row['train_error']:6.1%}"
        line += f" | val error {row['val_error']:6.1%} ECE {row['val_ece']:6.2%} NLL {row['val_nll']:.3f}"
    return line + (f" gamma {row['gamma_mean']:.2f}" if "gamma_mean" in row else "")


def _facts(run: "Run") -> dict[str, Any]:
    from calibrant.train.loop import measured

    parts = {name: getattr(run, name) for name in ("val", "test") if (run.folder / f"{name}.npz").exists()}
    return {
        "folder": str(run.folder),
        "reduced": run.recipe.reduced,
        "recipe": run.recipe.to_dict(),
        "measures": {key: value for name, p in parts.items() for key, value in measured(p, name).items()},
        "log": run.log.to_dicts(),
    }


def _tell(run: "Run") -> None:
    from calibrant.train.loop import measured

    row = measured(run.test, "test")
    auroc = f"{row['test_auroc']:.3f}" if row["test_auroc"] is not None else "-"
    typer.echo(
        f"test error {row['test_error']:.1%}  ECE {row['test_ece']:.2%}  NLL {row['test_nll']:.3f}  AUROC {auroc}"
    )
    if run.recipe.reduced:
        typer.echo(f"(scale {run.recipe.scale}: smaller than the paper's training)")
    capped = run.log["gamma_capped"][-1] if "gamma_capped" in run.log.columns else 0
    if capped:
        typer.echo(f"gamma reached its cap of {run.recipe.meta.cap:g} for {capped:.0%} of the images: lower meta.lr")
    has_val = (run.folder / "val.npz").exists()
    typer.echo(f"\n  calibrant measure {run.folder}/test.npz")
    if has_val:
        typer.echo(f"  calibrant fit {run.folder}/val.npz --with auto --test {run.folder}/test.npz")
