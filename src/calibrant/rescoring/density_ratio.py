"""Density-ratio calibration of a part of a run, fitted on its validation part."""

from pathlib import Path

from calibrant.rescorers.density_ratio import DensityRatio, FittedDensityRatio
from calibrant.rescoring.rescored_predictions import Bar, RescoredPredictions, load_held_out, no_bar, predictions_of


def rescore_by_density_ratio(
    source: Path,
    options: DensityRatio,
    *,
    part: str = "test",
    fit: Path | None = None,
    device: str = "auto",
    bar: Bar = no_bar,
) -> RescoredPredictions[FittedDensityRatio]:
    """A run or a file of predictions with features, rescored."""
    before, held_out = predictions_of(source, part, device=device, bar=bar), load_held_out(source, fit)
    with bar("distances", None):
        model = options.fit(held_out)
        return RescoredPredictions(before, model.predict(before), model)
