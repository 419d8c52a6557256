"""Commands that put another confidence in the place of a network's own: confidnet, trust-score, density-ratio."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import calibrant as cal
from calibrant.cli._app import Json, Seed, app, bar, needs_train, print_json
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.files import SUFFIXES

if TYPE_CHECKING:
    from calibrant.datasets import Part
    from calibrant.network.confidnet import ConfidNet, FittedConfidNet
    from calibrant.train import Run
    from calibrant.train.batches import Batches
    from calibrant.train.recipe import Data

SHOWN = ("auroc", "aupr_error", "aupr_success", "ece", "nll")
HELD_OUT = 0.1  # share of the images to learn from that selects the epoch instead

Source = Annotated[Path, typer.Argument(metavar="RUN", help="the folder of a training, or predictions with features")]
Out = Annotated[Path, typer.Option("--out", "-o", help="write the predictions here (.npz, .parquet, .csv)")]
PartName = Annotated[str, typer.Option("--part", help="of the run: test, val or train")]
Fit = Annotated[Path | None, typer.Option("--fit", help="held-out predictions instead of the run's val.npz")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps")]
Step = Callable[[int], None]


@app.command()
def confidnet(
    run: Annotated[Path, typer.Argument(help="the folder of a training")],
    out: Annotated[Path, typer.Option("--out", "-o", help="a folder; one with a state in it goes on")],
    stages: Annotated[int, typer.Option(min=1, max=2, help="2: train a clone of the network as well")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="at most, of stage 1")] = 500,
    clone_epochs: Annotated[int, typer.Option(min=1, help="at most, of stage 2")] = 50,
    patience: Annotated[int, typer.Option(min=0, help="epochs without a better one that end a stage; 0: none")] = 50,
    learn: Annotated[str, typer.Option(help="from which images of the run: train or val")] = "train",
    augment: Annotated[bool, typer.Option("--augment", help="crop and flip as in training; slower")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="begin again, even where a state could go on")] = False,
    seed: Seed = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Learn a confidence from the features of a trained network; stopped by Ctrl-C, the same command goes on."""
    with needs_train():
        from calibrant.network.confidnet import ConfidNet
        from calibrant.train import open_run

    options = ConfidNet(stages=stages, epochs=epochs, clone_epochs=clone_epochs, patience=patience, seed=seed)
    if out.suffix in SUFFIXES:
        raise InputError("--out", expected="a folder", got=str(out), fix=f"use for instance {out.with_suffix('')}")
    made, state = open_run(run), out / "state.safetensors"
    if restart:
        state.unlink(missing_ok=True)
    with bar("epochs, at most", epochs + (clone_epochs if stages == 2 else 0), quiet=as_json) as step:
        try:
            fitted = _fit_confidnet(made, options, learn, augment, device, state, step)
        except KeyboardInterrupt:
            typer.echo(f"stopped; the same command goes on from the last epoch saved in {out}", err=True)
            raise typer.Exit(130) from None
    fitted.save(out)
    before, after = _write_confidnet(made, fitted, learn, device, out)
    facts = {name: fitted.facts[name] for name in ("options", "chosen", "mean_target")}
    facts |= {"folder": str(out), "learned_from": learn, "epochs": len(fitted.facts["log"])}
    if as_json:
        return print_json(facts | _compared(before, after, out / "test.npz"))
    typer.echo(_told_confidnet(facts))
    _show(before, after, out / "test.npz")


@app.command()
def trust_score(
    run: Source,
    out: Out,
    part: PartName = "test",
    raw: Annotated[bool, typer.Option("--raw", help="score / (1 + score), which is no probability")] = False,
    neighbour: Annotated[str, typer.Option(help="of each class that counts: second or first")] = "second",
    alpha: Annotated[float, typer.Option(help="share of each class's thinnest training rows to drop")] = 0.0,
    fit: Fit = None,
    train: Annotated[Path | None, typer.Option("--train", help="predictions of the training images")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Confidence from distances: how much nearer is a row to training images of its class than to all others?"""
    from calibrant.network.trust_score import TrustScore

    options = TrustScore(neighbour=neighbour, alpha=alpha)  # type: ignore[arg-type]  # it checks the word
    before = _part(run, part, device, as_json)
    known = cal.Predictions.load(train) if train else _train_part(run, device, as_json)
    val = None if raw else _held_out(run, fit)
    with bar("distances", before.n + (val.n if val else 0), quiet=as_json) as step:
        fitted = options.fit(_features(known, train or run), known.labels)
        if val is not None:
            fitted = fitted.calibrate(val, on_rows=step)
        after = fitted.predict(before, on_rows=step)
    after.save(out)
    if as_json:
        facts = {"neighbour": neighbour, "alpha": alpha, "slope": fitted.slope, "offset": fitted.offset}
        return print_json({"probability": not raw, **facts, **_compared(before, after, out, _name(run, part))})
    typer.echo(f"TrustScore from {len(fitted.known):,} training rows, {neighbour} neighbours")
    if raw:
        typer.echo("The score only ranks. It is no probability: ECE and NLL say nothing here.")
    else:
        typer.echo(f"confidence = sigmoid({fitted.slope:.3g} ln(score) {fitted.offset:+.3g}), from held-out rows")
    _show(before, after, out)


@app.command()
def density_ratio(
    run: Source,
    out: Out,
    part: PartName = "test",
    neighbours: Annotated[int, typer.Option(min=1, help="held-out rows that say how near a row is")] = 10,
    fit: Fit = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Confidence from held-out rows that are as sure, and as near to others, as a row is."""
    from calibrant.network.density_ratio import DensityRatio

    options = DensityRatio(neighbours=neighbours)
    before, val = _part(run, part, device, as_json), _held_out(run, fit)
    with bar("distances", None, quiet=as_json):
        after = options.fit(val).predict(before)
    after.save(out)
    if as_json:
        return print_json(
            {"neighbours": neighbours, "fitted_on": val.n, **_compared(before, after, out, _name(run, part))}
        )
    typer.echo(f"Density ratio from {val.n:,} held-out rows, {neighbours} neighbours")
    _show(before, after, out)


# -- what goes in -----------------------------------------------------------------------------------


def _part(run: Path, part: str, device: str, quiet: bool) -> cal.Predictions:
    """Predictions of a part: those of the run's own file where there is one."""
    if not run.is_dir():
        return cal.Predictions.load(run)
    file = run / f"{part}.npz"
    return cal.Predictions.load(file) if file.exists() else _predict(run, part, device, quiet)


def _name(run: Path, part: str) -> str:
    return part if run.is_dir() else run.stem


def _train_part(run: Path, device: str, quiet: bool) -> cal.Predictions:
    if not run.is_dir():
        fix = "give --train FILE, made by calibrant predict RUN --part train"
        raise InputError("trust-score", expected="features of the training images", got="none", fix=fix)
    return _predict(run, "train", device, quiet)


def _held_out(run: Path, fit: Path | None) -> cal.Predictions:
    file = fit or run / "val.npz"
    if fit is None and not file.exists():
        fix = "give --fit FILE, or train with a part for validation (data.split)"
        raise InputError(str(run), expected="held-out predictions", got="no val.npz", fix=fix)
    return cal.Predictions.load(file)


def _features(p: cal.Predictions, where: Path) -> Any:
    if p.features is None:
        fix = "predict with features, as calibrant predict does"
        raise InputError(str(where), expected="predictions with features", got="none", fix=fix)
    return p.features


def _predict(run: Path, part: str, device: str, quiet: bool) -> cal.Predictions:
    """Predictions with a bar, of any part of a run."""
    with needs_train():
        from calibrant.train.predict import device_of, load_splits, predict
        from calibrant.train.run import open_run

    made, where = open_run(run), device_of(device)
    splits = load_splits(made.recipe)
    chosen: Part | None = getattr(splits, part, None) if part in vars(splits) else None
    if chosen is None:
        raise unknown_name("part", part, [name for name in vars(splits) if getattr(splits, name) is not None])
    with bar(f"{part} images", len(chosen), quiet=quiet) as step:
        return predict(made.network(where), chosen, made.pixels(where, part), on_batch=step)


# -- ConfidNet --------------------------------------------------------------------------------------


class _Shuffled:
    """Training batches in an order of their own in each epoch."""

    def __init__(self, batches: "Batches", data: "Data") -> None:
        self.batches, self.data, self.epoch = batches, data, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        return self.batches.shuffled(self.epoch, self.data)


def _fit_confidnet(
    run: "Run", options: "ConfidNet", learn: str, augment: bool, device: str, state: Path, step: Step
) -> "FittedConfidNet":
    from calibrant.train.batches import Batches
    from calibrant.train.predict import device_of, load_splits

    splits, where = load_splits(run.recipe), device_of(device)
    part = {"train": splits.train, "val": splits.val}.get(learn)
    if part is None:
        raise unknown_name("--learn", learn, ["train", *(["val"] if splits.val else [])])
    order, pixels = np.random.default_rng(options.seed).permutation(len(part)), run.pixels(where)
    selecting, learned = np.split(order, [max(2, round(HELD_OUT * len(part)))])
    data = run.recipe.data if augment else replace(run.recipe.data, augment="none")
    return options.fit(
        run.network(where),
        _Shuffled(Batches(part.take(np.sort(learned)), options.batch, pixels, options.seed), data),
        Batches(part.take(np.sort(selecting)), 256, pixels),
        augmented=data.augment != "none",
        state=state,
        on_epoch=lambda row: step(1),
    )


def _write_confidnet(
    run: "Run", fitted: "FittedConfidNet", learn: str, device: str, out: Path
) -> tuple[cal.Predictions, cal.Predictions]:
    """The run's own predictions with the new confidences; returns those of the test part, before and after."""
    from calibrant.train.batches import Batches
    from calibrant.train.predict import device_of, load_splits

    splits, where = load_splits(run.recipe), device_of(device)
    parts = {"test": splits.test} | ({"val": splits.val} if splits.val is not None else {})
    made = {}
    for name, part in parts.items():
        before: cal.Predictions = getattr(run, name)
        after = before.with_confidence(fitted.confidence(Batches(part, 256, run.pixels(where, name))))
        extras = replace(after.extras, seen=1.0 if name == learn else after.extras.seen)
        made[name] = before, cal.Predictions(after.values, after.labels, after.kind, extras)
        made[name][1].save(out / f"{name}.npz")
    return made["test"]


def _told_confidnet(facts: dict[str, Any]) -> str:
    chosen, where = facts["chosen"], f"held-out {facts['learned_from']} images"
    lines = [f"ConfidNet after {facts['epochs']} epochs; chosen: epoch {chosen['epoch']} of stage {chosen['stage']},"]
    if chosen["by"] == "aupr_error":
        lines += [f"which has the best AUPR-error on {where}."]
    else:
        lines += [f"which has the lowest loss on {where} (fewer than 30 errors)."]
    return "\n".join([*lines, f"There the network gives the true class {facts['mean_target']:.3f} on average."])


# -- what comes out ---------------------------------------------------------------------------------


def _compared(before: cal.Predictions, after: cal.Predictions, file: Path, part: str = "test") -> dict[str, Any]:
    measures = [
        {"measure": name, "before": cal.measures.make(name)(before), "after": cal.measures.make(name)(after)}
        for name in SHOWN
    ]
    return {
        "file": str(file),
        "part": part,
        "n": after.n,
        "k": after.k,
        "seen": after.extras.seen,
        "measures": measures,
    }


def _show(before: cal.Predictions, after: cal.Predictions, file: Path) -> None:
    from calibrant.report.text import number

    typer.echo(f"\n{'measure':14}{'before':>10}{'after':>10}")
    for row in _compared(before, after, file)["measures"]:
        typer.echo(f"{row['measure']:14}{number(row['before']):>10}{number(row['after']):>10}")
    typer.echo(f"\n{after.n:,} predictions written to {file}.\n\n  calibrant report {file}")
