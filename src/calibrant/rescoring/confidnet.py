"""ConfidNet of a run: learned from its training or validation images, written beside its own predictions."""

from pathlib import Path

from calibrant.core.errors import unknown_name
from calibrant.rescorers.confidnet import STATE, ConfidNet, FittedConfidNet, OnEpoch
from calibrant.rescoring.rescored_predictions import RescoredPredictions
from calibrant.rescoring.run import RunToRescore


def rescore_by_confidnet(
    folder: Path,
    options: ConfidNet,
    out: Path,
    *,
    learn: str = "train",
    augment: bool = False,
    restart: bool = False,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
) -> RescoredPredictions[FittedConfidNet]:
    """Learn a confidence for the run in `folder` and write it, with its predictions, to `out`.

    An interrupted fit leaves its state in `out`; the next call continues from it, unless `restart` says otherwise.
    """
    run = RunToRescore(folder, out, device=device)
    if learn not in ("train", *run.judged) or learn == "test":
        raise unknown_name("--learn", learn, ["train", *(part for part in run.judged if part != "test")])
    if restart:
        (out / STATE).unlink(missing_ok=True)
    fitted, after = options.fit_run(run, learn=learn, augment=augment, on_epoch=on_epoch)
    return RescoredPredictions(run.predictions("test"), after["test"], fitted)
