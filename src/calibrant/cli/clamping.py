"""The command around Neural Clamping."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import calibrant as cal
from calibrant.cli._app import Json, Seed, app, bar, needs_train, print_json
from calibrant.cli.training import Device
from calibrant.core.errors import InputError, unknown_name

if TYPE_CHECKING:
    import torch

    from calibrant.datasets import Part
    from calibrant.network.clamping import Clamped, NeuralClamping
    from calibrant.train.batches import Batches, Pixels

MEASURES = {
    "accuracy": "accuracy",
    "entropy": "entropy",
    "ECE": "ece",
    "ECE mass": "ece:scheme=mass",
    "class-wise": "classwise",
}


@app.command()
def clamp(
    run: Annotated[
        str, typer.Argument(help="the folder of a training, or a network: package.module:callable, hf:NAME")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder for the clamp and the predictions")],
    data: Annotated[str | None, typer.Option(help="calibrate on this data set instead of the run's own")] = None,
    root: Annotated[str, typer.Option(help="where its files are")] = "",
    part: Annotated[str, typer.Option(help="the part to calibrate on")] = "val",
    weights: Annotated[Path | None, typer.Option(help="of a network that is no run: a safetensors file")] = None,
    gamma: Annotated[float, typer.Option(help="of the focal loss; 0 is cross-entropy")] = 1.0,
    gamma_pool: Annotated[bool, typer.Option("--gamma-pool", help="try 0, 0.05 .. 1, take the lowest ECE")] = False,
    init: Annotated[str, typer.Option(help="random, data, logit_grad or zero")] = "random",
    by: Annotated[str, typer.Option(help="lbfgs, sgd (the paper's recipe) or efficient (three passes)")] = "lbfgs",
    what: Annotated[str, typer.Option(help="both, delta or T")] = "both",
    lam: Annotated[float | None, typer.Option(help="weight of the penalty (default: by --lambda-rule)")] = None,
    lambda_rule: Annotated[str, typer.Option(help="loss, term or ece")] = "loss",
    norm: Annotated[str, typer.Option(help="of the penalty: squared, or plain as in the toolkit")] = "squared",
    keep_inside: Annotated[bool, typer.Option("--keep-inside", help="images stay between black and white")] = False,
    passes: Annotated[int, typer.Option(help="over the calibration images, at most")] = 25,
    epochs: Annotated[int, typer.Option(help="of sgd")] = 100,
    batch: Annotated[int, typer.Option(min=1)] = 512,
    onnx: Annotated[Path | None, typer.Option(help="write network and clamp to this ONNX file")] = None,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Neural Clamping: learn an input perturbation and a temperature for a trained network."""
    with needs_train():
        from calibrant.network.clamping import NeuralClamping
        from calibrant.train.predict import device_of

    pool = "paper" if gamma_pool else None
    options: dict[str, Any] = {"gamma": gamma, "gamma_pool": pool, "init": init, "by": by, "what": what, "lam": lam}
    options |= {"lambda_rule": lambda_rule, "norm": norm, "keep_inside": keep_inside, "passes": passes}
    NeuralClamping(**options | {"low": 0.0, "high": 1.0}, epochs=epochs, seed=seed)  # bad options before slow files
    subject = _subject(run, data, root, part, weights, device_of(device), batch)
    low, high = (tuple((x - m) / s for m, s in zip(*subject.scale, strict=True)) for x in (0, 1))
    recipe = NeuralClamping(**options, low=low, high=high, epochs=epochs, seed=seed)
    clamped = _fit(recipe, subject, quiet=as_json)
    rows, predictions = _judged(clamped, subject)
    exported = None if onnx is None else clamped.export_onnx(onnx)
    clamped.save(out)
    for name, p in predictions.items():
        p.save(out / f"{name}.npz")
    if as_json:
        facts = {"folder": str(out), "onnx": None if exported is None else str(exported.path)}
        return print_json(facts | {"measures": rows, "report": _plain(asdict(clamped.report))})  # type: ignore[arg-type]
    _tell(rows, clamped, out, onnx)


class Subject(NamedTuple):
    """A network, the images it is calibrated on and those it is judged on."""

    network: "torch.nn.Module"
    scale: tuple[tuple[float, ...], tuple[float, ...]]  # mean and standard deviation of pixels, per channel
    calibration: "Batches"
    judged: "dict[str, Batches]"  # part -> its batches


def _subject(
    run: str, data: str | None, root: str, part: str, weights: Path | None, device: "torch.device", batch: int
) -> Subject:
    from calibrant.train.batches import Batches
    from calibrant.train.predict import fitting, load_splits
    from calibrant.train.run import open_run

    if not Path(run).is_dir() and ":" in run:
        return _other(run, data, root, part, weights, device, batch)
    opened = open_run(run)
    splits, pixels = load_splits(opened.recipe), opened.pixels(device)
    parts = {name: p for name in ("val", "test") if (p := getattr(splits, name)) is not None}
    if data is not None:
        chosen = fitting(_part(data, root, part), opened.shape, data)
    elif part in parts and part != "test":
        chosen = parts[part]
    else:
        fix = "calibrate on other images: --data NAME --part PART"
        have = f"'{part}'; the run has {', '.join(parts)}"
        raise InputError("--part", expected="a part of the run to calibrate on, not test", got=have, fix=fix)
    judged = {name: Batches(p, batch, pixels) for name, p in parts.items()}
    return Subject(opened.network(device), _scale(pixels), Batches(chosen, batch, pixels), judged)


def _other(
    spec: str, data: str | None, root: str, part: str, weights: Path | None, device: "torch.device", batch: int
) -> Subject:
    """A network of another package and a data set."""
    from calibrant import datasets, models
    from calibrant.models import _checkpoint as checkpoint
    from calibrant.train.batches import Batches, Pixels

    if data is None or part == "test":
        got = "no --data" if data is None else "--part test"
        fix = "say --data NAME --part PART; it is judged on the part test"
        raise InputError(spec, expected="images to calibrate on", got=got, fix=fix)
    chosen, test, like = _part(data, root, part), _part(data, root, "test"), datasets.make(data, root)
    _, size, _, channels = chosen.images.shape
    network = models.build(spec, models.Shape(len(chosen.classes), channels, size))
    if weights is not None:
        checkpoint.put(network, checkpoint.load(weights)[0], str(weights))
    pixels = Pixels(like.mean, like.std, device)
    judged = {"val": Batches(chosen, batch, pixels), "test": Batches(test, batch, pixels)}
    return Subject(network.to(device).eval(), _scale(pixels), judged["val"], judged)


def _part(data: str, root: str, part: str) -> "Part":
    from calibrant import datasets

    dataset = datasets.make(data, root)
    if part not in dataset.parts:
        raise unknown_name(f"part of {data}", part, dataset.parts)
    return dataset.load(part)


def _scale(pixels: "Pixels") -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(pixels.mean), tuple(pixels.std)


def _fit(recipe: "NeuralClamping", subject: Subject, *, quiet: bool) -> "Clamped":
    with bar("passes (at most)", recipe.most_passes, quiet=quiet) as step:
        try:
            return recipe.fit(subject.network, subject.calibration, on_pass=lambda _: step(1))
        except KeyboardInterrupt:
            typer.echo("stopped; nothing was written", err=True)
            raise typer.Exit(130) from None


def _judged(clamped: "Clamped", subject: Subject) -> tuple[dict[str, dict[str, float]], dict[str, cal.Predictions]]:
    """Measures on the test part before, with temperatures alone and clamped; and the clamped predictions."""
    from calibrant.network.clamping import Clamped

    assert clamped.report is not None
    plain = Clamped(subject.network, 0 * clamped.delta, 1.0)
    T = cal.fit(plain.predict(subject.calibration), "temperature").parameters["T"]
    before = plain.predict(subject.judged["test"])
    made = {name: _with_ids(clamped.predict(batches), batches.part) for name, batches in subject.judged.items()}
    tried = {"before": before, "temperature": before.tempered(T)}
    if clamped.report.gamma:
        tried["temperature, same loss"] = before.tempered(clamped.report.T_alone)
    tried["clamped"] = made["test"]
    measures = {name: cal.measures.make(spec) for name, spec in MEASURES.items()}
    return {name: {m: measure(p) for m, measure in measures.items()} for name, p in tried.items()}, made


def _with_ids(p: cal.Predictions, part: "Part") -> cal.Predictions:
    return cal.Predictions.from_logits(p.logits, p.labels, ids=part.ids, few_rows=True)


def _tell(rows: dict[str, dict[str, float]], clamped: "Clamped", out: Path, onnx: Path | None) -> None:
    r = clamped.report
    assert r is not None
    typer.echo(f"{'test':<23}" + "".join(f"{name:>11}" for name in MEASURES))
    for name, values in rows.items():
        shown = (f"{v:11.4f}" if m == "entropy" else f"{v:11.2%}" for m, v in values.items())
        typer.echo(f"{name:<23}{''.join(shown)}".rstrip())
    typer.echo(f"\ngamma {r.gamma:g}, T {r.T:.4f}, norm of the perturbation {r.delta_norm:.4g}, {r.passes} passes")
    for line in r.diagnosis.split(". "):
        typer.echo(line if line.endswith(".") else f"{line}.")
    typer.echo(f"Written to {out}{'' if onnx is None else f' and {onnx}'}.")


def _plain(value: Any) -> Any:
    """Tuples as lists, for JSON."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
