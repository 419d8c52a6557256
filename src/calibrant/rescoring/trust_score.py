"""TrustScore of a part of a run, from the features of its training images."""

from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.rescorers.trust_score import FittedTrustScore, TrustScore
from calibrant.rescoring.rescored_predictions import Bar, RescoredPredictions, load_held_out, no_bar, predictions_of


def rescore_by_trust_score(
    source: Path,
    options: TrustScore,
    *,
    part: str = "test",
    probability: bool = True,
    fit: Path | None = None,
    train: Path | None = None,
    device: str = "auto",
    bar: Bar = no_bar,
) -> RescoredPredictions[FittedTrustScore]:
    """A run or a file of predictions with features, rescored by distances to training images.

    A `probability` is made of the score on held-out predictions; without it the score only ranks.
    """
    before = predictions_of(source, part, device=device, bar=bar)
    known = _training_images(source, train, device, bar)
    val = load_held_out(source, fit) if probability else None
    with bar("distances", before.n + (val.n if val else 0)) as step:
        fitted = options.fit(known.features, known.labels)  # type: ignore[arg-type]  # they are there
        if val is not None:
            fitted = fitted.calibrate(val, on_rows=step)
        return RescoredPredictions(before, fitted.predict(before, on_rows=step), fitted)


def _training_images(source: Path, train: Path | None, device: str, bar: Bar) -> Predictions:
    if train is None and not source.is_dir():
        fix = "give --train FILE, made by calibrant predict RUN --part train"
        raise InputError("trust-score", expected="features of the training images", got="none", fix=fix)
    known = predictions_of(train or source, "train", device=device, bar=bar)
    if known.features is None:
        fix = "predict with features, as calibrant predict does"
        raise InputError(str(train or source), expected="predictions with features", got="none", fix=fix)
    return known
