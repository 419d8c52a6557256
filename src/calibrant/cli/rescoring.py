"""Commands that give a trained network another confidence: clamp, confidnet, trust-score, density-ratio."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli._app import (
    AllowCode,
    Device,
    Json,
    Seed,
    app,
    bar,
    needs_train,
    numbers,
    override_help,
    print_json,
    read_settings,
)
from calibrant.cli._rescoring_output import describe_confidnet, facts_of, show, tell_clamp
from calibrant.core.errors import InputError
from calibrant.core.io.formats import SUFFIXES
from calibrant.rescorers import ClampOptions

RunOrFile = Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, or predictions with features")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="predictions: .npz, .parquet, .csv (default: in the folder of the run)"),
]
PartName = Annotated[str, typer.Option("--part", help="part of the run: test, val or train")]
Fit = Annotated[Path | None, typer.Option("--fit", help="held-out predictions instead of the run's val.npz")]


@app.command()
def clamp(
    run: Annotated[
        str, typer.Argument(help="the folder of a training, or a network: package.module:callable, hf:NAME")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="folder for the clamp and the predictions (default: RUN/clamp)")
    ] = None,
    data: Annotated[str | None, typer.Option(help="calibrate on this data set instead of the run's own")] = None,
    root: Annotated[str, typer.Option(help="where its files are")] = "",
    part: Annotated[str, typer.Option(help="the part to calibrate on; val may be half of test (docs)")] = "val",
    weights: Annotated[
        Path | None, typer.Option(help="weights (safetensors) for a network that is not a calibrant run")
    ] = None,
    mean: Annotated[str, typer.Option(help="mean of pixels for such a network: 0.5 or 0.5,0.5,0.5")] = "",
    std: Annotated[str, typer.Option(help="standard deviation of pixels (default: the data set's)")] = "",
    gamma: Annotated[float, typer.Option(help="gamma of the focal loss; 0 is cross-entropy")] = 1.0,
    override: Annotated[list[str] | None, typer.Option(help=override_help(ClampOptions, but=("gamma", "seed")))] = None,
    onnx: Annotated[Path | None, typer.Option(help="write network and clamp to this ONNX file")] = None,
    allow_code: AllowCode = False,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Neural Clamping: learn an input perturbation and a temperature for a trained network."""
    with needs_train():
        from calibrant.rescorers.clamping import NeuralClamping
        from calibrant.rescoring.clamping import Images
        from calibrant.rescoring.clamping import clamp as clamped_by

    options = read_settings(NeuralClamping, [f"gamma={gamma}", f"seed={seed}", *(override or [])])
    images = Images(
        data=data,
        root=root,
        part=part,
        split_seed=options.seed,
        mean=numbers("--mean", mean),
        std=numbers("--std", std),
        batch=options.batch,
    )
    out = _out(out, run, "clamp")
    with (
        bar("passes (at most)", options.most_passes + 2, quiet=as_json) as step,
        _explain_interrupt("nothing was written"),
    ):
        clamped_run = clamped_by(
            run,
            options,
            images,
            weights=weights,
            device=device,
            on_pass=lambda _: step(1),
        )
    exported = None if onnx is None else clamped_run.clamped.export_onnx(onnx)
    clamped_run.save(out)
    if as_json:
        facts = {"folder": str(out), "onnx": None if exported is None else str(exported.path)}
        return print_json(facts | {"measures": clamped_run.measures, "report": asdict(clamped_run.clamped.report)})  # type: ignore[arg-type]
    tell_clamp(clamped_run, out, onnx)


@app.command()
def confidnet(
    run: Annotated[Path, typer.Argument(help="the folder of a training")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="a folder (default: RUN/confidnet); an interrupted fit there continues"),
    ] = None,
    stages: Annotated[int, typer.Option(min=1, max=2, help="2: train a clone of the network as well")] = 1,
    epochs: Annotated[int, typer.Option(min=1, help="most epochs of stage 1")] = 500,
    clone_epochs: Annotated[int, typer.Option(min=1, help="most epochs of stage 2")] = 50,
    patience: Annotated[
        int, typer.Option(min=0, help="stop a stage after this many epochs without improvement; 0: never")
    ] = 50,
    learn: Annotated[str, typer.Option(help="from which images of the run: train or val")] = "train",
    augment: Annotated[bool, typer.Option("--augment", help="crop and flip as in training; slower")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="start over instead of continuing")] = False,
    allow_code: AllowCode = False,
    seed: Seed = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Learn a confidence from the features of a trained network. Interrupted by Ctrl-C, run it again to continue."""
    with needs_train():
        from calibrant.rescorers.confidnet import ConfidNet
        from calibrant.rescoring.confidnet import rescore_by_confidnet

    options = ConfidNet(stages=stages, epochs=epochs, clone_epochs=clone_epochs, patience=patience, seed=seed)
    out = _out(out, run, "confidnet")
    if out.suffix in SUFFIXES:
        raise InputError("--out", expected="a folder", got=str(out), fix=f"use for instance {out.with_suffix('')}")
    most = epochs + (clone_epochs if stages == 2 else 0)
    continues = f"run the same command again to continue from the last epoch saved in {out}"
    with bar("epochs, at most", most, quiet=as_json) as step, _explain_interrupt(continues):
        rescored = rescore_by_confidnet(
            run,
            options,
            out,
            learn=learn,
            augment=augment,
            restart=restart,
            device=device,
            on_epoch=lambda _: step(1),
        )
    facts = {name: rescored.model.facts[name] for name in ("options", "chosen", "mean_target")}
    facts |= {"folder": str(out), "learned_from": learn, "epochs": len(rescored.model.facts["log"])}
    if as_json:
        return print_json(facts | facts_of(rescored, out / "test.npz", "test"))
    typer.echo(describe_confidnet(facts))
    show(rescored, out / "test.npz")


@app.command()
def trust_score(
    run: RunOrFile,
    out: Out = None,
    part: PartName = "test",
    raw: Annotated[bool, typer.Option("--raw", help="write score / (1 + score), not a probability")] = False,
    neighbour: Annotated[str, typer.Option(help="neighbour of each class that counts: second or first")] = "second",
    alpha: Annotated[float, typer.Option(help="share of outlying training rows to drop per class")] = 0.0,
    fit: Fit = None,
    train: Annotated[Path | None, typer.Option("--train", help="predictions of the training images")] = None,
    allow_code: AllowCode = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Confidence from distances to training images: predicted class against all others."""
    from calibrant.rescorers.trust_score import TrustScore
    from calibrant.rescoring.trust_score import rescore_by_trust_score

    out = _out(out, run, "trust-score.npz")
    options = TrustScore(neighbour=neighbour, alpha=alpha)  # type: ignore[arg-type]  # it checks the word
    with needs_train():
        rescored = rescore_by_trust_score(
            run,
            options,
            part=part,
            probability=not raw,
            fit=fit,
            train=train,
            device=device,
            bar=partial(bar, quiet=as_json),
        )
    rescored.after.save(out)
    slope, offset = rescored.model.slope, rescored.model.offset
    if as_json:
        facts = {"probability": not raw, "neighbour": neighbour, "alpha": alpha, "slope": slope, "offset": offset}
        return print_json(facts | facts_of(rescored, out, _name(run, part)))
    typer.echo(f"TrustScore from {len(rescored.model.known):,} training rows, {neighbour} neighbours")
    if raw:
        typer.echo("The score only ranks. It is not a probability: ECE and NLL mean nothing here.")
    else:
        typer.echo(f"confidence = sigmoid({slope:.3g} ln(score) {offset:+.3g}), from held-out rows")
    show(rescored, out)


@app.command()
def density_ratio(
    run: RunOrFile,
    out: Out = None,
    part: PartName = "test",
    neighbours: Annotated[int, typer.Option(min=1, help="how many held-out neighbours a row is compared with")] = 10,
    fit: Fit = None,
    allow_code: AllowCode = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Confidence from held-out rows with similar confidence and similar distance to their neighbours."""
    from calibrant.rescorers.density_ratio import DensityRatio
    from calibrant.rescoring.density_ratio import rescore_by_density_ratio

    out = _out(out, run, "density-ratio.npz")
    options, progress = DensityRatio(neighbours=neighbours), partial(bar, quiet=as_json)
    with needs_train():
        rescored = rescore_by_density_ratio(run, options, part=part, fit=fit, device=device, bar=progress)
    rescored.after.save(out)
    if as_json:
        facts = {"neighbours": neighbours, "fitted_on": len(rescored.model.known)}
        return print_json(facts | facts_of(rescored, out, _name(run, part)))
    typer.echo(f"Density ratio from {len(rescored.model.known):,} held-out rows, {neighbours} neighbours")
    show(rescored, out)


def _out(out: Path | None, run: str | Path, name: str) -> Path:
    """The folder to write to: as given, or under this name in the folder of the run."""
    if out is None and not Path(run).is_dir():
        fix = f"say --out {name}"
        raise InputError("--out", expected="a place to write to, where there is no run", got="none", fix=fix)
    return out or Path(run) / name


def _name(run: Path, part: str) -> str:
    return part if run.is_dir() else run.stem


@contextmanager
def _explain_interrupt(then: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"stopped; {then}", err=True)
        raise typer.Exit(130) from None
