"""Commands that need a network: train and predict."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli._app import AllowCode, Device, Json, Seed, app, needs_train, numbers, print_json, show_progress
from calibrant.core.errors import InputError
from calibrant.core.io.formats import SUFFIXES
from calibrant.core.text.number_format import percent, whole_percent

if TYPE_CHECKING:
    import polars as pl

    from calibrant.training.loop import TrainingProgress
    from calibrant.training.recipe import Recipe
    from calibrant.training.run import Run

Override = Annotated[
    list[str] | None, typer.Option("--override", help="change a key: epochs=5, data.root=..., scale=small")
]


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="a TOML file or a name (see `calibrant list recipes`)")],
    out: Annotated[Path, typer.Option("--out", "-o", help="folder of the run; an interrupted run continues")],
    changes: Override = None,
    loss: Annotated[str | None, typer.Option(help='for instance "focal:gamma=3", "ce + 0.5*mdca"')] = None,
    model: Annotated[str | None, typer.Option(help="for instance wide_resnet:depth=16,width=4")] = None,
    data: Annotated[str | None, typer.Option(help="for instance cifar10")] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the weights and of the order of images")] = None,
    device: Device = "auto",
    processes: Annotated[int, typer.Option(min=1, help="processes that share each batch")] = 1,
    restart: Annotated[bool, typer.Option("--restart", help="start over instead of continuing")] = False,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Train a network by a recipe. After an interruption, the same command continues."""
    short = {"loss": loss, "model": model, "data.name": data, "seed": seed}
    typed = [*(changes or []), *(f"{key}={value}" for key, value in short.items() if value is not None)]
    full_recipe = _recipe(recipe, typed)
    run = train_with_bar(full_recipe, out, device=device, processes=processes, restart=restart, quiet=as_json)
    if os.environ.get("LOCAL_RANK", "0") == "0":  # of several processes, one tells
        print_json(_facts(run)) if as_json else _tell(run)


@app.command()
def predict(
    run: Annotated[str, typer.Argument(help="folder of a run, or a network: mynet.py:resnet20, package.module:name")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="predictions: .npz, .parquet or .csv; a folder for a network")
    ],
    data: Annotated[str | None, typer.Option(help="another data set, for instance cifar10.1")] = None,
    root: Annotated[str, typer.Option(help="folder of the data set's files")] = "",
    weights: Annotated[Path | None, typer.Option(help="weights of a network: a torch or safetensors file")] = None,
    mean: Annotated[str, typer.Option(help="mean of pixels (0 to 1) for a network: 0.5 or 0.5,0.5,0.5")] = "",
    std: Annotated[str, typer.Option(help="standard deviation of pixels (default: the data set's)")] = "",
    part: Annotated[str, typer.Option(help="train, val or test")] = "test",
    corrupt: Annotated[
        str | None, typer.Option(help="for instance fog:severity=3; `calibrant list corruptions`")
    ] = None,
    attack: Annotated[
        str | None, typer.Option(help="fgsm, pgd or square with its size, for instance pgd:eps=1/255")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="images at a time")] = 256,
    device: Device = "auto",
    seed: Seed = 0,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Predict with a trained network on its own test images or on others.

    A network of your own is written to a folder that every command takes as a run, with val.npz and test.npz:
    calibrant predict mynet.py:resnet20 --weights resnet20.th --data cifar10 --mean .5 --std .25 --out r20
    """
    with needs_train():
        from calibrant.training.predict import predict_run

    if not Path(run).is_dir() and ":" in run:
        if part != "test" or corrupt or attack:
            fix = f"leave out --part, --corrupt and --attack, then use: calibrant predict {out} --corrupt ..."
            raise InputError(run, expected="a network to import into a folder first", got="more", fix=fix)
        return _import_network(run, out, data, root, weights, mean, std, seed, batch, device, as_json)
    if weights or mean or std:
        fix = "leave out --weights, --mean and --std: the run has its own"
        raise InputError(run, expected="a network such as mynet.py:resnet20", got="a run", fix=fix)
    p = predict_run(
        run,
        data=data,
        root=root,
        part=part,
        corrupt=corrupt,
        attack=attack,
        batch=batch,
        device=device,
        seed=seed,
    )
    p.save(out)
    facts = {"file": str(out), "n": p.n, "k": p.k, "accuracy": float(p.correct.mean())}
    if as_json:
        return print_json(facts)
    typer.echo(
        f"{out}: {p.n:,} rows, {p.k} classes, accuracy {percent(float(p.correct.mean()))}\n\n  calibrant measure {out}"
    )


@app.command()
def gamma(
    run: Annotated[Path, typer.Argument(help="folder of a run with gamma-Net")],
    out: Annotated[Path, typer.Option("--out", "-o", help="a table: .parquet or .csv")],
    part: Annotated[str, typer.Option(help="test or val")] = "test",
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Write the gamma that was learned for every image, as a table for figures."""
    with needs_train():
        from calibrant.training.run import open_run
    from calibrant.core.errors import unknown_name
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
        name: {
            "n": rows.height,
            **{statistic: getattr(rows["gamma"], statistic)() for statistic in ("mean", "std", "min", "max")},
        }
        for name, rows in groups.items()
    }
    if as_json:
        ahead = {key: opened.log[key].to_list() for key in ("meta_before", "meta_after")}
        return print_json({"file": str(out), "gamma": facts, **ahead})
    typer.echo(f"{'rows':8}{'n':>8}{'mean':>9}{'std':>9}{'least':>9}{'most':>9}")
    for name, row in facts.items():
        cells = "".join(
            f"{row[statistic]:9.3f}" if row["n"] > 1 else f"{'-':>9}" for statistic in ("mean", "std", "min", "max")
        )
        typer.echo(f"{name:8}{row['n']:8}{cells}")
    typer.echo(f"\n{_ahead(opened.log)}\nwritten to {out}")


def _import_network(
    network: str,
    out: Path,
    data: str | None,
    root: str,
    weights: Path | None,
    mean: str,
    std: str,
    seed: int,
    batch: int,
    device: str,
    as_json: bool,
) -> None:
    from calibrant.training.import_network import import_network

    if data is None:
        raise InputError(network, expected="images to predict", got="no --data", fix="say --data NAME, --data cifar10")
    if out.suffix in SUFFIXES:
        raise InputError("--out", expected="a folder", got=str(out), fix=f"use for instance {out.with_suffix('')}")
    run = import_network(
        network,
        out,
        data=data,
        root=root,
        weights=weights,
        mean=numbers("--mean", mean),
        std=numbers("--std", std),
        split_seed=seed,
        batch=batch,
        device=device,
    )
    rows = {"val": run.val, "test": run.test}
    halved = run.recipe.data.split == "half test"
    of_all = rows.values() if halved else [run.test]
    n = sum(p.n for p in of_all)
    error = sum(int((~p.correct).sum()) for p in of_all) / n
    if as_json:
        counts = {f"n_{name}": p.n for name, p in rows.items()}
        return print_json({"folder": str(out), "n": n, "error": error, "halved": halved, **counts})
    typer.echo(f"{out}: error {percent(error, 2)} on the {n:,} test images of {data}")
    if halved:
        typer.echo(f"Half of them are in val.npz, to calibrate on, and half in test.npz, to judge by (--seed {seed}).")
    typer.echo(f"\n  calibrant report {out}/test.npz --fit-on {out}/val.npz\n  calibrant clamp {out}")


def train_with_bar(
    recipe: "Recipe", out: Path, *, device: str = "auto", processes: int = 1, restart: bool = False, quiet: bool = False
) -> "Run":
    """Train with progress on the screen; Ctrl-C leaves a checkpoint to continue from."""
    with needs_train():
        from calibrant.training.loop import train as run_training

    with _progress(quiet) as on_progress:
        try:
            return run_training(
                recipe, out, device=device, processes=processes, restart=restart, on_progress=on_progress
            )
        except KeyboardInterrupt:
            typer.echo(f"stopped; the same command continues from the last checkpoint in {out}", err=True)
            raise typer.Exit(130) from None


def _recipe(path: Path, changes: list[str]) -> "Recipe":
    with needs_train():
        from calibrant.training.recipe import find_recipe, read_recipe

    return read_recipe(find_recipe(path), changes)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[["TrainingProgress"], None]]:
    """A bar with the time left on a terminal, and one line per epoch everywhere."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn(), "left", TimeRemainingColumn())
    with show_progress(*columns, quiet=quiet) as bar:
        task = bar.add_task("training", total=None)

        def show(now: "TrainingProgress") -> None:
            done = now.epoch * now.steps + now.step
            what = f"epoch {now.epoch + 1}/{now.epochs}  loss {now.loss:.3f}"
            bar.update(task, description=what, completed=done, total=now.epochs * now.steps)
            if now.row and not quiet:
                bar.console.print(epoch_line(now.row, now.epochs), highlight=False, markup=False)

        yield show


def epoch_line(row: dict[str, Any], epochs: int) -> str:
    """Format one row of the log in 80 columns."""
    line = f"epoch {row['epoch']:>{len(str(epochs))}}/{epochs}  loss {row['train_loss']:.3f}"
    if "val_error" in row:
        line += "" if "gamma_mean" in row else f" error {percent(row['train_error'], 1):>6}"
        error, ece = percent(row["val_error"], 1), percent(row["val_ece"], 2)
        line += f" | val error {error:>6} ECE {ece:>6} NLL {row['val_nll']:.3f}"
    return line + (f" gamma {row['gamma_mean']:.2f}" if "gamma_mean" in row else "")


def _ahead(log: "pl.DataFrame") -> str:
    """A line on how looking ahead changed the meta objective in the first and in the last epoch."""
    rows = [log.row(i, named=True) for i in sorted({0, log.height - 1})]
    changes = (f"{row['meta_before']:.3f} to {row['meta_after']:.3f} in epoch {row['epoch']}" for row in rows)
    return f"meta objective before and after the step ahead: {', '.join(changes)}"


def _facts(run: "Run") -> dict[str, Any]:
    from calibrant.training.log import measure_part

    parts = {name: getattr(run, name) for name in ("val", "test") if (run.folder / f"{name}.npz").exists()}
    return {
        "folder": str(run.folder),
        "reduced": run.recipe.reduced,
        "recipe": run.recipe.to_dict(),
        "measures": {key: value for name, p in parts.items() for key, value in measure_part(p, name).items()},
        "log": run.log.to_dicts(),
    }


def _tell(run: "Run") -> None:
    from calibrant.training.log import measure_part

    row = measure_part(run.test, "test")
    auroc = f"{row['test_auroc_correct']:.3f}" if row["test_auroc_correct"] is not None else "-"
    error, ece = percent(row["test_error"], 1), percent(row["test_ece"], 2)
    typer.echo(f"test error {error}  ECE {ece}  NLL {row['test_nll']:.3f}  AUROC {auroc}")
    if run.recipe.reduced:
        typer.echo(f"(scale {run.recipe.scale}: smaller than the paper's training)")
    capped = run.log["gamma_capped"][-1] if "gamma_capped" in run.log.columns else 0
    if capped:
        typer.echo(
            f"gamma reached its cap of {run.recipe.meta.cap:g} for {whole_percent(capped)} of the images: lower meta.lr"
        )
    if "meta_after" in run.log.columns:
        typer.echo(_ahead(run.log))
    has_val = (run.folder / "val.npz").exists()
    typer.echo(f"\n  calibrant measure {run.folder}/test.npz")
    if has_val:
        typer.echo(f"  calibrant fit {run.folder}/val.npz --with auto --test {run.folder}/test.npz")
