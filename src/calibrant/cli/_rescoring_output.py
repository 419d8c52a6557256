"""Output of rescoring commands: the numbers before and after, and how the fit went."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

from calibrant.core.text.number_format import number, percent

if TYPE_CHECKING:
    from calibrant.core.predictions import Predictions
    from calibrant.rescoring.clamping import ClampedRun
    from calibrant.rescoring.rescored_predictions import RescoredPredictions


def tell_clamp(run: "ClampedRun", out: Path, onnx: Path | None) -> None:
    r = run.clamped.report
    assert r is not None
    columns = next(iter(run.measures.values()))
    typer.echo(f"{'test':<23}" + "".join(f"{name:>11}" for name in columns))
    for name, values in run.measures.items():
        cells = (f"{v:11.4f}" if m == "entropy" else f"{percent(v, 2):>11}" for m, v in values.items())
        typer.echo(f"{name:<23}{''.join(cells)}".rstrip())
    typer.echo(f"\ngamma {r.gamma:g}, T {r.T:.4f}, norm of the perturbation {r.delta_norm:.4g}, {r.passes} passes")
    for line in r.diagnosis.split(". "):
        typer.echo(fill(line if line.endswith(".") else f"{line}.", 80))
    typer.echo(f"Written to {out}{'' if onnx is None else f' and {onnx}'}.")


def describe_confidnet(facts: dict[str, Any]) -> str:
    chosen, where = facts["chosen"], f"held-out {facts['learned_from']} images"
    lines = [f"ConfidNet after {facts['epochs']} epochs; chosen: epoch {chosen['epoch']} of stage {chosen['stage']},"]
    if chosen["by"] == "aupr_error":
        lines += [f"which has the best AUPR-error on {where}."]
    else:
        lines += [f"which has the lowest loss on {where} (fewer than 30 errors)."]
    return "\n".join([*lines, f"There the network gives the true class {facts['mean_target']:.3f} on average."])


def facts_of(rescored: "RescoredPredictions[Any]", file: Path, part: str) -> dict[str, Any]:
    after: Predictions = rescored.after
    counts = {"n": after.n, "k": after.k, "seen": after.row_data.seen}
    return {"file": str(file), "part": part, **counts, "measures": rescored.measures()}


def show(rescored: "RescoredPredictions[Any]", file: Path) -> None:
    typer.echo(f"\n{'measure':14}{'before':>10}{'after':>10}")
    for row in rescored.measures():
        typer.echo(f"{row['measure']:14}{number(row['before']):>10}{number(row['after']):>10}")
    typer.echo(f"\n{rescored.after.n:,} predictions written to {file}.\n\n  calibrant report {file}")
